"""Sealed indexes: copies that are never believed against the record."""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import shutil
import sqlite3
import stat
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

import memkura
from asking import ids
from memkura import errors
from memkura.testing import FrozenClock, ToyEmbedder

if TYPE_CHECKING:
    from pathlib import Path

    from memkura import Engine

_WORDS = ["harbour", "灯台", "deploy", "getUserById", "coffee", "배포", "3.11.7", "log", "再現率", "tea", "the"]


class Past:
    """A store with a past: its folder when it was closed, its index 1,000 writes before, and what it answered."""

    def __init__(self, folder: Path, clock: FrozenClock) -> None:
        self.path, self.older, self.other = folder / "it", folder / "older", folder / "other"
        chance = random.Random(5)
        with memkura.open(self.path, embedder=ToyEmbedder(), clock=clock) as engine:
            ids = engine.remember_many([_item(chance, at) for at in range(1000)])
            engine.count("c")
            engine.compact()
        shutil.copytree(self.path / "index", self.older)
        with memkura.open(self.path, embedder=ToyEmbedder(), clock=clock) as engine:
            engine.remember_many([_item(chance, at) for at in range(1000, 1500)])
            for at in range(0, 600, 2):
                engine.update_memory("c", ids[at], summary=_text(chance), tags=[f"now{at % 3}"])
            for at in range(1, 600, 3):
                engine.forget("c", ids[at], purge=at % 2 == 0)
            engine.compact()
            self.expected = _answers(engine)
            assert engine.count("c") == 1300
        with memkura.open(self.other, embedder=ToyEmbedder(), clock=clock) as engine:
            engine.remember_many([_item(chance, at) for at in range(1500)])
            engine.count("c")
            engine.compact()

    def index_file(self, at: int) -> Path:
        """A file of the index: they have other names in every store."""
        return sorted(_files(self.path / "index"))[at]


def _text(chance: random.Random) -> str:
    return " ".join(chance.choices(_WORDS, k=chance.randint(2, 9)))


def _item(chance: random.Random, at: int) -> dict[str, object]:
    item: dict[str, object] = {"context_id": "c", "summary": f"{_text(chance)} n{at}", "tags": [f"tag{at % 7}"]}
    if at % 5 == 0:
        item |= {"session": f"s{at // 20}", "metadata": {"n": at, "deep": {"名": chance.choice(_WORDS)}}}
    if at % 11 == 0:
        item |= {"key": f"key.{at}", "scope": "workspace"}
    return item


def _answers(engine: Engine) -> list[tuple[list[str], list[float], list[str]]]:
    """The ids, scores and lacks of 50 questions: by words, by meaning, by key, with filters and without."""
    chance = random.Random(6)
    filters: list[dict[str, object] | None] = [None, {"tags": "tag3"}, {"metadata.n": {"gte": 100}}]
    filters.append({"session": {"exists": True}})
    answers = []
    for at in range(50):
        question = f"{_text(chance)} key.{at * 11}"
        legs = [None, ["text"], ["vector"]][at % 3]
        hits = engine.recall("c", question, legs=legs, filters=filters[at % 4], k=20)
        answers.append(([hit.memory_id for hit in hits], [hit.score for hit in hits], hits.degraded))
    return answers


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Past:
    return Past(tmp_path_factory.mktemp("past"), FrozenClock())


@pytest.fixture
def past(made: Past, tmp_path: Path) -> Past:
    """A copy of its own for each test."""
    copy = object.__new__(Past)
    copy.path, copy.older, copy.other, copy.expected = tmp_path / "it", made.older, made.other, made.expected
    shutil.copytree(made.path, copy.path)
    return copy


def _replace_index(past: Past, by: Path) -> None:
    shutil.rmtree(past.path / "index")
    shutil.copytree(by, past.path / "index")


def _flip(path: Path, at: int) -> None:
    whole = bytearray(path.read_bytes())
    if whole:
        whole[at % len(whole)] ^= 0x01
        path.write_bytes(whole)


def _see_the_same(past: Past, clock: FrozenClock) -> int:
    """The store answers as it did, from the first recall on, and its index is the record's. Returns sealed texts."""
    with memkura.open(past.path, embedder=ToyEmbedder(), clock=clock) as engine:
        answers = _answers(engine)
        for (ids, scores, degraded), (expected, expected_scores, _) in zip(answers, past.expected, strict=True):
            assert ids == expected
            assert scores == pytest.approx(expected_scores, abs=1e-9)
            assert degraded == []
        sealed = engine.stats().more["sealed_texts"]
        assert engine.doctor().drift == 0
        return int(sealed)


def test_whole_index_is_opened(past: Past, clock: FrozenClock) -> None:
    """I3: a sealed index answers as the one did that it was made of, and nothing of it is made again."""
    assert _see_the_same(past, clock) == 1300
    for path in (past.path / "index").rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)


@pytest.mark.parametrize("harm", ["deleted", "another store's", "older", "emptied"])
def test_other_index_changes_no_answer(past: Past, clock: FrozenClock, harm: str) -> None:
    """I3: without its index, with another store's, or with its own of 1,000 writes ago a store answers the same."""
    if harm == "deleted":
        shutil.rmtree(past.path / "index")
    elif harm == "emptied":
        for path in _files(past.path / "index"):
            path.write_bytes(b"")
    else:
        _replace_index(past, past.older if harm == "older" else past.other / "index")
    # Of its own older one, what has changed since is read again, and what is gone is taken out.
    assert _see_the_same(past, clock) == (1000 if harm == "older" else 0)


def test_one_changed_byte_changes_no_answer(past: Past, clock: FrozenClock) -> None:
    """A byte changed in any file of the index, each in turn, at its start, middle and end: the index is made again."""
    files = len(_files(past.path / "index"))
    assert files == len({"CURRENT", "LOCK", "manifest.json", "rows", "state", "text", "codes", "vectors"})
    for number in range(files):
        path = past.index_file(number)
        whole = path.read_bytes()
        for at in (0, len(whole) // 2, number * 7919 % max(len(whole), 1), -1):
            _flip(path, at)
            assert _see_the_same(past, clock) == (1300 if not whole else 0), path.name
            path.write_bytes(whole)


def test_other_embedder_leaves_the_index(past: Past, clock: FrozenClock) -> None:
    """Vectors of the embedder before are not those that are asked for now; after a reindex the index is made anew."""
    with memkura.open(past.path, embedder=ToyEmbedder(dim=32), clock=clock) as engine:
        assert engine.recall("c", "coffee").degraded == ["vector:embedder_changed"]
        engine.reindex()
        assert engine.recall("c", "coffee").degraded == []
        assert engine.stats().more["sealed_texts"] == 0
        expected = _answers(engine)
        assert engine.compact()
        assert _answers(engine) == expected
    with memkura.open(past.path, embedder=ToyEmbedder(dim=32), clock=clock) as engine:
        assert _answers(engine) == expected
        assert engine.stats().more["sealed_texts"] == 1300


def test_mapped_index_outlives_its_folder(past: Past, clock: FrozenClock) -> None:
    """Another handle seals and removes the index that this one has mapped: both go on, and so does a forked child."""
    with memkura.open(past.path, embedder=ToyEmbedder(), clock=clock) as reader:
        before = set((past.path / "index" / "1").iterdir())
        assert _answers(reader) == past.expected
        with memkura.open(past.path, embedder=ToyEmbedder(), clock=clock) as writer:
            added = writer.remember("c", "a lighthouse 灯台 coffee", tags=["tag3"])
            writer.compact()
            expected = _answers(writer)
        assert len(before - set((past.path / "index" / "1").iterdir())) == 1
        assert _answers(reader) == expected
        assert reader.recall("c", "a lighthouse 灯台 coffee")[0].memory_id == added
        child = os.fork()
        if child == 0:
            try:
                os._exit(0 if _answers(reader) == expected else 1)
            except BaseException:  # noqa: BLE001 - the child must not go on as a test run
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        shutil.rmtree(past.path / "index")
        assert _answers(reader) == expected
    with open("/proc/self/maps", encoding="utf-8") as maps:  # noqa: PTH123 - not a path of the test
        assert str(past.path) not in maps.read()


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.mark.parametrize("sealed_before", [False, True])
def test_purged_text_leaves_every_file(store_path: Path, sealed_before: bool) -> None:  # noqa: FBT001
    """After a purge and `compact` no byte of the text is in any file, and the rest of the store is there."""
    with memkura.open(store_path, embedder=ToyEmbedder()) as engine:
        engine.remember_many([{"context_id": "c", "summary": f"filler {at}"} for at in range(100)])
        secret = engine.remember(
            "c", "kanpo7731 it is", content="kanpo7731", tags=["kanpo7731"], idempotency_key="kanpo7731"
        )
        engine.update_memory("c", secret, summary="the marker was kanpo7731")
        engine.recall("c", "warm")
        if sealed_before:
            engine.compact()
            assert any(b"kanpo7731" in path.read_bytes() for path in _files(store_path))
        engine.forget("c", secret, purge=True)
        engine.compact()
        assert not [path for path in _files(store_path) if b"kanpo7731" in path.read_bytes()]
        assert not len(engine.recall("c", "kanpo7731", legs=["text"]))
        assert engine.count("c") == 100
        assert [entry["action"] for entry in engine.history("c", secret)] == ["purge"]


def test_compact_does_not_pass_over_a_busy_sealer(store_path: Path) -> None:
    """While somebody else seals, `compact` waits and then says that it could not, instead of leaving purged words."""
    with memkura.open(store_path, embedder=None, busy_timeout=0.2) as engine:
        engine.remember("c", "one")
        engine.recall("c", "one")
        engine.compact()
        engine.remember("c", "two")
        (lock,) = store_path.glob("index/*/LOCK")
        with lock.open("w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            with pytest.raises(errors.StoreBusy):
                engine.compact()
        engine.compact()
        assert engine.stats().more["fresh_texts"] == 0


def test_purged_words_of_every_field_leave_the_index(store_path: Path) -> None:
    """I12: tags, keys, sessions and metadata of what was purged are in no file after `compact`."""
    with memkura.open(store_path, embedder=ToyEmbedder()) as engine:
        engine.remember_many([{"context_id": "c", "summary": f"filler {at}"} for at in range(50)])
        secret = engine.remember(
            "c",
            "plain",
            tags=["kanpo1"],
            key="kanpo2",
            scope="workspace",
            session="kanpo3",
            metadata={"kanpo4": {"kanpo5": ["kanpo6"]}},
        )
        engine.count("c")
        engine.compact()
        assert any(b"kanpo" in path.read_bytes() for path in _files(store_path / "index"))
    with memkura.open(store_path, embedder=ToyEmbedder()) as engine:
        assert engine.stats("c").more["sealed_texts"] == 0
        engine.forget("c", secret, purge=True)
        engine.compact()
        assert not [path for path in _files(store_path) if b"kanpo" in path.read_bytes()]
    with memkura.open(store_path, embedder=ToyEmbedder()) as engine:
        assert engine.count("c", filters={"tags": "kanpo1"}) == 0
        assert engine.stats("c").more["sealed_texts"] == 50


def test_same_numbers_of_another_past_are_not_believed(store_path: Path, tmp_path: Path) -> None:
    """An older record is put back and changed as often: a sealed index that knows the numbers is left."""
    with memkura.open(store_path, embedder=None) as engine:
        memory = engine.remember("c", "first")
    shutil.copy(store_path / "record.sqlite3", tmp_path / "older")
    with memkura.open(store_path, embedder=None) as engine:
        engine.update_memory("c", memory, summary="zebra")
        engine.count("c")
        engine.compact()
    shutil.copy(tmp_path / "older", store_path / "record.sqlite3")
    with memkura.open(store_path, embedder=None) as engine:
        engine.update_memory("c", memory, summary="giraffe")
    with memkura.open(store_path, embedder=None) as engine:
        assert [hit.memory_id for hit in engine.recall("c", "giraffe")] == [memory]
        assert not len(engine.recall("c", "zebra"))
        assert engine.doctor().drift == 0


def test_another_past_is_found_out_behind_a_busy_key(store_path: Path, tmp_path: Path) -> None:
    """An older record is put back, and the newest changes of both are of one memory, which changed since anyway."""
    with memkura.open(store_path, embedder=None) as engine:
        rows = engine.remember_many({"context_id": "c", "summary": f"harbour {at}"} for at in range(200))
        status = engine.remember("c", "status", key="status")
    shutil.copy(store_path / "record.sqlite3", tmp_path / "older")
    with memkura.open(store_path, embedder=None) as engine:
        engine.update_memory("c", rows[5], summary="zebra")
        for turn in range(100):
            engine.update_memory("c", status, summary=f"one past {turn}")
        engine.recall("c", "harbour")
        engine.compact()
    shutil.copy(tmp_path / "older", store_path / "record.sqlite3")
    with memkura.open(store_path, embedder=None) as engine:
        for turn in range(103):
            engine.update_memory("c", status, summary=f"another past {turn}")
    with memkura.open(store_path, embedder=None) as engine:
        assert not len(engine.recall("c", "zebra"))
        assert rows[5] in ids(engine.recall("c", "harbour 5", k=200))
        assert engine.doctor().drift == 0


def test_index_of_another_past_is_not_believed(store_path: Path, tmp_path: Path) -> None:
    """When an older record is put back, a sealed index that knows later texts under the same row numbers is left."""
    with memkura.open(store_path, embedder=None) as engine:
        engine.remember("c", "first")
        engine.recall("c", "first")
        engine.compact()
    shutil.copy(store_path / "record.sqlite3", tmp_path / "older")
    with memkura.open(store_path, embedder=None) as engine:
        engine.remember("c", "zebra")
        engine.compact()
        assert engine.stats().more["sealed_texts"] == 2
    shutil.copy(tmp_path / "older", store_path / "record.sqlite3")
    with memkura.open(store_path, embedder=None) as engine:
        giraffe = engine.remember("c", "giraffe")
    with memkura.open(store_path, embedder=None) as engine:
        assert [hit.memory_id for hit in engine.recall("c", "giraffe")] == [giraffe]
        assert not len(engine.recall("c", "zebra"))


def test_index_of_another_past_is_left_though_both_end_alike(store_path: Path, tmp_path: Path) -> None:
    """An older record is put back, and both pasts end in the same purges, which leave no state to tell them by."""
    copy = tmp_path / "record"
    with memkura.open(store_path, embedder=None) as engine:
        engine.remember_many([{"context_id": "c", "summary": f"note {at}", "tags": ["old"]} for at in range(70)])
    shutil.copy(store_path / "record.sqlite3", copy)

    def live(word: str) -> Engine:
        engine = memkura.open(store_path, embedder=None)
        engine.remember("c", f"{word} is the word")
        engine.forget("c", filters={"tags": "old"}, purge=True)
        return engine

    with live("mango") as engine:
        engine.compact()
    shutil.copy(copy, store_path / "record.sqlite3")
    live("papaya").close()
    with memkura.open(store_path, embedder=None) as engine:
        assert [hit.summary for hit in engine.recall("c", "papaya")] == ["papaya is the word"]
        assert not engine.recall("c", "mango")


@pytest.mark.parametrize("harm", ["flipped", "cut", "removed", "folder-removed"])
def test_damaged_index_is_built_again(store_path: Path, clock: FrozenClock, harm: str) -> None:
    """A file of the index that lost or changed bytes changes no answer: the index is made again from the record."""
    with memkura.open(store_path, embedder=None, clock=clock) as engine:
        engine.remember_many([{"context_id": "c", "summary": f"word{at} common"} for at in range(200)])
        engine.recall("c", "warm")
        engine.compact()
        assert _files(store_path / "index")
        expected = [(hit.memory_id, hit.score) for hit in engine.recall("c", "word7 common")]
    for path in _files(store_path / "index"):
        whole = path.read_bytes()
        if harm == "flipped" and len(whole) > 4:
            path.write_bytes(
                whole[: len(whole) // 2] + bytes([whole[len(whole) // 2] ^ 0xFF]) + whole[len(whole) // 2 + 1 :]
            )
        elif harm == "cut":
            path.write_bytes(whole[: len(whole) // 2])
        elif harm == "removed" and path.suffix in {".idx", ".term"}:
            path.unlink()
    if harm == "folder-removed":
        shutil.rmtree(store_path / "index")
    with memkura.open(store_path, embedder=None, clock=clock) as engine:
        assert [(hit.memory_id, hit.score) for hit in engine.recall("c", "word7 common")] == expected
        engine.compact()
    with memkura.open(store_path, embedder=None, clock=clock) as engine:
        assert [(hit.memory_id, hit.score) for hit in engine.recall("c", "word7 common")] == expected
        assert engine.stats().more["sealed_texts"] == 200


@pytest.mark.parametrize("link", ["index", "index/1", "index/1/LOCK", "index/1/CURRENT.new"])
@pytest.mark.parametrize("verb", ["compact", "maintain"])
def test_link_in_a_store_leads_nowhere(store_path: Path, tmp_path: Path, link: str, verb: str) -> None:
    """A store from a stranger: nothing outside of it is written, emptied or removed, and every row is found."""
    with memkura.open(store_path, embedder=None) as engine:
        engine.remember_many({"context_id": "c", "summary": f"row {at}"} for at in range(5000))
    victim = tmp_path / "victim"
    (victim / "1" / "work").mkdir(parents=True)
    for file in (victim / "file", victim / "1" / "work" / "file"):
        file.write_text("precious")
    place = store_path / link
    shutil.rmtree(store_path / "index", ignore_errors=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(victim / "file" if "." in place.name or place.name == "LOCK" else victim)
    with memkura.open(store_path, embedder=None) as engine:
        assert len(engine.recall("c", "row 4711", k=1)) == 1
        with contextlib.suppress(errors.StoreError):
            getattr(engine, verb)()
        assert engine.recall("c", "row 4711", k=1)[0].summary == "row 4711"
    left = {str(path.relative_to(victim)): path.is_file() and path.read_text() for path in victim.rglob("*")}
    assert left == {"file": "precious", "1": False, "1/work": False, "1/work/file": "precious"}


def test_texts_that_are_gone_give_their_memory_back(store_path: Path) -> None:
    """One memory that is written again and again with much text does not grow the index by all that it has said."""
    words = 40_000
    with memkura.open(store_path, embedder=None) as engine:
        one = engine.remember("c", "notes")
        for turn in range(30):
            content = " ".join(f"{number:x}{'zkqw'[turn % 4]}" for number in range(turn * words, (turn + 1) * words))
            engine.update_memory("c", one, content=content)
            engine.recall("c", "notes")
        deadline = time.monotonic() + 60
        while engine.stats().more["fresh_texts"] > 20 and time.monotonic() < deadline:
            engine.recall("c", "notes")
            time.sleep(0.05)
        assert engine.stats().more["fresh_texts"] <= 20
        assert engine.doctor().drift == 0


def test_log_of_changes_is_bounded(store_path: Path) -> None:
    """Compacting shortens it; whoever had not followed that far builds its index again, and misses nothing."""
    with memkura.open(store_path, embedder=None) as behind, memkura.open(store_path, embedder=None) as ahead:
        old = behind.remember("c", "the first of all")
        kept = behind.remember("d", "in another context")
        assert behind.recall("c", "first")
        assert behind.recall("d", "context")
        ahead.remember_many({"context_id": "c", "summary": f"row {at}"} for at in range(10_500))
        ahead.forget("c", old)
        ahead.compact()
        assert not behind.recall("c", "first", legs=["text"])
        assert behind.recall("c", "row 10499", k=1)[0].summary == "row 10499"
        assert [hit.memory_id for hit in behind.recall("d", "context")] == [kept]
        assert behind.count("c") == ahead.count("c") == 10_500
        assert behind.doctor().is_sound
    with contextlib.closing(sqlite3.connect(store_path / "record.sqlite3")) as record:
        assert record.execute("SELECT count(*) FROM change").fetchone() == (10_000,)
    with memkura.open(store_path, embedder=None) as engine:
        assert engine.recall("c", "row 77", k=1)[0].summary == "row 77"
        engine.remember("c", "one more")
        assert engine.recall("c", "more", k=1)[0].summary == "one more"


def test_contexts_beyond_the_budget_are_dropped_and_loaded_again(store_path: Path, clock: FrozenClock) -> None:
    """Whatever is in memory, the answers are the same; what was not used for longest goes."""
    contexts = [f"context {number}" for number in range(6)]
    with memkura.open(store_path, embedder=ToyEmbedder(), clock=clock) as engine:
        engine.remember_many(
            {"context_id": context, "summary": f"{context} row {at}"} for context in contexts for at in range(300)
        )
    asked = [(context, f"row {at}") for context in contexts for at in (1, 299)] * 2
    found = []
    for budget in (None, 0, 600_000):
        with memkura.open(store_path, embedder=ToyEmbedder(), clock=clock, memory_budget=budget) as engine:
            found.append([[(hit.memory_id, hit.score) for hit in engine.recall(*asking)] for asking in asked])
            loaded = engine.stats().more["loaded_contexts"]
            assert loaded in {None: {6}, 0: {1}, 600_000: {2, 3, 4, 5}}[budget], budget
    assert found[0] == found[1] == found[2]
    with memkura.open(store_path, embedder=ToyEmbedder(), clock=clock, memory_budget=0) as engine:
        for at in range(3):
            engine.remember("context 0", f"a row of its own {at}")
            engine.recall("context 1", "row")
            assert len(engine.recall("context 0", "own", legs=["text"])) == at + 1


@pytest.mark.skipif(sys.platform == "win32", reason="no limits of files")
def test_seal_that_fails_leaves_no_litter(store_path: Path) -> None:
    """Time and again: what could not be finished takes no room."""
    with memkura.open(store_path, embedder=None) as engine:
        engine.remember_many({"context_id": "c", "summary": f"row {at}"} for at in range(3_000))
    code = (
        "import resource, signal, sys, memkura\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "engine = memkura.open(sys.argv[1], embedder=None)\nengine.recall('c', 'row')\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))\n"
        "for _ in range(3):\n    try:\n        engine.compact()\n    except memkura.StorageFull:\n        print(1)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code, str(store_path)], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["1"] * 3
    assert [path.name for path in (store_path / "index" / "1").iterdir() if path.is_dir()] == []
    with memkura.open(store_path, embedder=None) as engine:
        engine.recall("c", "row")
        engine.compact()
        assert len([path for path in (store_path / "index" / "1").iterdir() if path.is_dir()]) == 1
