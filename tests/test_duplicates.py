# ruff: noqa: RUF001 - full-width letters are what is tested
"""One current truth: keys overwrite, `supersedes` retires, replays are one row, and different facts never merge."""

from __future__ import annotations

import multiprocessing
from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

import memkura
from asking import LEGS, each_leg, each_life, ids, texts
from memkura import errors
from memkura.testing import FrozenClock, ToyEmbedder

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from asking import Look
    from memkura import Engine

SAME_KEY = [
    ("diet", "diet"),
    ("Deploy.Prod", "deploy.prod"),
    ("deploy.prod", "deploy.prod "),
    ("a b", "a\u3000 b"),
    ("ＰｏｓｔｇｒｅＳＱＬ", "postgresql"),
    ("ﾃﾞｰﾀﾍﾞｰｽ", "データベース"),
    ("パスワード", "パスワード"),
    ("회의록", "회의록"),
    ("Ångström", "A\u030angstro\u0308m"),
    ("STRASSE", "straße"),
]
OTHER_KEY = [("deploy.prod", "deploy_prod"), ("a b", "ab"), ("v1.2", "v12"), ("はは", "ばば"), ("c", "c++"), ("%", "_")]


@each_life
def test_key_written_again_has_one_current_value(engine: Engine, store_path: Path, look: Look) -> None:
    """A key names one memory: the same id, the next version, the new words found and the old ones not."""
    first = engine.remember("ann", "vegetarian since spring", key="diet")
    second = engine.remember("ann", "eats everything again", key="diet")
    assert (second, second.created, second.version) == (first, False, 2)
    answers = look(engine, store_path, "ann", "eats everything", [first])
    assert [answers[leg] for leg in LEGS] == [[first]] * 3
    assert (answers["list"], answers["count"], answers["get"]) == ([first], 1, {first: "eats everything again"})
    with memkura.open(store_path, embedder=ToyEmbedder(), clock=FrozenClock()) as again:
        assert list(again.recall("ann", "vegetarian", legs=["text"])) == []


def test_history_of_a_key_tells_every_value_its_time_and_its_door(engine: Engine, clock: FrozenClock) -> None:
    """Both values are in the history, oldest first, with when and by which door they came."""
    memory_id = engine.remember("ann", "vegetarian", key="diet")
    clock.advance(60)
    engine.remember("ann", "eats everything", key="diet")
    revisions = engine.history("ann", memory_id)
    assert [revision["summary"] for revision in revisions] == ["vegetarian", "eats everything"]
    assert [revision["version"] for revision in revisions] == [1, 2]
    assert revisions[0]["updated_at"] < revisions[1]["updated_at"] == clock()
    assert all(revision["door"] for revision in revisions)


@pytest.mark.parametrize(("one", "other"), SAME_KEY)
def test_forms_of_one_key_are_one_key(engine: Engine, one: str, other: str) -> None:
    """Case, width, composition and spacing do not make another key, in writing, reading or filtering."""
    for written, asked in ((one, other), (other, one)):
        engine.remember("ann", f"said as {written}", key=written)
        memory = engine.get("ann", key=asked)
        assert memory is not None
        assert memory.summary == f"said as {written}"
        assert engine.count("ann", filters={"key": asked}) == 1
        assert ids(engine.recall("ann", asked, legs=["key"])) == [memory.memory_id]
    assert engine.count("ann") == 1


@pytest.mark.parametrize(("one", "other"), OTHER_KEY)
def test_different_keys_stay_apart(engine: Engine, one: str, other: str) -> None:
    """Punctuation and voicing marks do make another key."""
    engine.remember("ann", "the one", key=one)
    engine.remember("ann", "the other", key=other)
    assert engine.count("ann") == 2
    assert [getattr(engine.get("ann", key=key), "summary", None) for key in (one, other)] == ["the one", "the other"]


def test_key_is_unique_within_its_scope_and_context(engine: Engine) -> None:
    """The same key in another scope or context is another memory."""
    places = [("ann", None), ("ann", "global"), ("ann", "team"), ("ben", None)]
    for context_id, scope in places:
        engine.remember(context_id, f"in {context_id} {scope}", key="diet", scope=scope)
    for context_id, scope in places:
        memory = engine.get(context_id, key="diet", scope=scope)
        assert memory is not None
        assert memory.summary == f"in {context_id} {scope}"
    assert (engine.count("ann"), engine.count("ben")) == (3, 1)


@each_life
def test_superseded_memory_is_out_of_every_read(engine: Engine, store_path: Path, look: Look) -> None:
    """What a newer memory replaces is retired at once; the newer one alone answers."""
    old = engine.remember("ann", "database stack: PostgreSQL")
    new = engine.remember("ann", "database stack moved to MySQL", supersedes=old)
    answers = look(engine, store_path, "ann", "which database stack", [old, new])
    assert [answers[leg] for leg in LEGS] == [[new]] * 3
    assert (answers["list"], answers["count"]) == ([new], 1)
    assert answers["get"][old] is None


@each_leg
def test_superseded_memory_is_shown_when_asked_for(engine: Engine, legs: Sequence[str] | None) -> None:
    """`include_superseded=True` returns it too, with the id of what replaced it; it stays so after compacting."""
    old = engine.remember("ann", "database stack: PostgreSQL")
    new = engine.remember("ann", "database stack moved to MySQL", supersedes=old)
    for _ in range(2):
        hits = engine.recall("ann", "which database stack", legs=legs, include_superseded=True)
        assert set(ids(hits)) == {old, new}
        assert {hit.superseded_by for hit in hits} == {None, new}
        assert ids(engine.recall("ann", "which database stack", legs=legs)) == [new]
        engine.compact()


def test_chain_of_replacements_has_one_end(engine: Engine) -> None:
    """Each replaces the one before; a replaced one cannot be replaced again."""
    rows = [engine.remember("ann", "limit is 0")]
    for number in range(1, 6):
        rows.append(engine.remember("ann", f"limit is {number}", supersedes=rows[-1]))
    assert ids(engine.list("ann")) == [rows[-1]]
    with pytest.raises(errors.NotFound):
        engine.remember("ann", "limit is 99", supersedes=rows[0])
    assert texts(engine.recall("ann", "limit")) == ["limit is 5"]
    assert len(engine.recall("ann", "limit", include_superseded=True)) == 6


def test_superseded_memory_can_be_forgotten_by_purge(engine: Engine) -> None:
    """A purge of the old one takes it from the history reads too."""
    old = engine.remember("ann", "stack: PostgreSQL")
    new = engine.remember("ann", "stack moved to MySQL", supersedes=old)
    engine.forget("ann", old, purge=True)
    assert ids(engine.recall("ann", "stack", include_superseded=True)) == [new]


def _put(path: str, worker: int, values: int) -> None:
    with memkura.open(path, embedder=None) as engine:
        for number in range(values):
            engine.remember("ann", f"value {worker}-{number}", key=f"key-{number % 10}")


def test_writers_of_one_key_race_without_loss(store_path: Path) -> None:
    """Several processes over the same keys: one row a key, every value in its history, nobody raises."""
    memkura.open(store_path, embedder=None).close()
    spawn = multiprocessing.get_context("spawn")
    writers = [spawn.Process(target=_put, args=(str(store_path), worker, 50)) for worker in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    assert [writer.exitcode for writer in writers] == [0] * 4
    with memkura.open(store_path, embedder=None) as engine:
        rows = engine.list("ann")
        assert sorted(row.key or "" for row in rows) == sorted(f"key-{number}" for number in range(10))
        histories = [engine.history("ann", row.memory_id) for row in rows]
        assert Counter(revision["summary"] for history in histories for revision in history) == Counter(
            f"value {worker}-{number}" for worker in range(4) for number in range(50)
        )
        assert [[revision["version"] for revision in history] for history in histories] == [list(range(1, 21))] * 10
        for row in rows:
            assert ids(engine.recall("ann", row.summary, k=1)) == [row.memory_id]


def _replay(path: str, calls: int) -> list[str]:
    with memkura.open(path, embedder=None) as engine:
        return [str(engine.remember("ann", "deploy finished", idempotency_key="evt-512")) for _ in range(calls)]


def test_replayed_write_is_one_row(store_path: Path) -> None:
    """The same idempotency key from several processes: one row, and every call has its id."""
    memkura.open(store_path, embedder=None).close()
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        answers = pool.starmap(_replay, [(str(store_path), 10)] * 4, chunksize=1)
    assert len({memory_id for answer in answers for memory_id in answer}) == 1
    with memkura.open(store_path, embedder=None) as engine:
        assert ids(engine.list("ann")) == answers[0][:1]


def test_replay_holds_within_a_batch_and_apart_between_contexts(engine: Engine) -> None:
    """An idempotency key counts within one call and one context, not across contexts."""
    row = {"context_id": "ann", "summary": "deploy finished", "idempotency_key": "evt-512"}
    first, second, other = engine.remember_many([row, row, {**row, "context_id": "ben"}])
    assert first == second
    assert first != other
    assert (engine.count("ann"), engine.count("ben")) == (1, 1)


def test_same_text_without_a_word_is_two_rows(engine: Engine) -> None:
    """Nothing is merged that nobody asked to merge; the write says what it resembles."""
    first = engine.remember("ann", "deploy finished")
    second = engine.remember("ann", "deploy finished")
    assert first != second
    assert second.duplicates == (first,)
    assert engine.count("ann") == 2
    assert set(ids(engine.recall("ann", "deploy finished"))) == {first, second}


DIFFERENT = [
    ("deadline is 15 October", "deadline is 16 October"),
    ("pool size 10", "pool size 100"),
    ("feature X is enabled", "feature X is not enabled"),
    ("use v1.2", "use v1.3"),
    ("use v1.2", "use v12"),
    ("parser in C", "parser in C++"),
    ("締切は十五日", "締切は十六日"),
    ("功能已启用", "功能未启用"),
    ("배포를 한다", "배포를 안 한다"),
]


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
@each_leg
def test_different_facts_are_not_merged(engine: Engine, one: str, other: str, legs: Sequence[str] | None) -> None:
    """With deduplication on, facts that differ in one word or number stay two, each first for its own text."""
    rows = {text: engine.remember("ann", text, dedup="exact") for text in (one, other)}
    assert all(row.created for row in rows.values())
    assert engine.count("ann") == 2
    for text, row in rows.items():
        first = engine.recall("ann", text, legs=legs)[0]
        if legs == ("vector",) and other == "parser in C++":
            continue  # the toy embedder sees words alone
        assert first.memory_id == row


@pytest.mark.parametrize(("one", "other"), [("temperature 5", "temperature -5"), ("C", "C#"), ("up 5%", "up 5")])
def test_signs_make_another_fact(engine: Engine, one: str, other: str) -> None:
    """A sign that carries meaning is not punctuation to fold away."""
    assert engine.remember("ann", one, dedup="exact").created
    assert engine.remember("ann", other, dedup="exact").created


@pytest.mark.parametrize(
    ("text", "again"),
    [
        ("deadline is 15 October", "deadline is 15 October"),
        ("deadline is 15 October", " deadline is\t15  October"),
        ("パスワード", "パスワード"),
    ],
)
def test_repeated_fact_is_folded_when_asked(engine: Engine, text: str, again: str) -> None:
    """The same text adds no row, and the call reports the memory it was folded into."""
    first = engine.remember("ann", text, dedup="exact")
    folded = engine.remember("ann", again, dedup="exact")
    assert (folded, folded.created, folded.duplicates) == (first, False, (first,))
    assert texts(engine.list("ann")) == [text]
    engine.forget("ann", first)
    assert engine.remember("ann", again, dedup="exact").created


def test_folding_loses_nothing(engine: Engine, clock: FrozenClock) -> None:
    """A write is folded only into a memory that a read shows, and that is found under the key that the write names."""
    expired = engine.remember("c", "same words", expires_at=clock() + timedelta(seconds=5))
    clock.advance(10)
    kept = engine.remember("c", "same words", dedup="exact", idempotency_key="w")
    assert kept.created
    assert kept != expired
    assert engine.get("c", kept) is not None
    keyed = engine.remember("c", "same words", dedup="exact", key="k")
    found = engine.get("c", key="k")
    assert found is not None
    assert found.memory_id == keyed
    assert engine.remember("c", "same  words", dedup="exact") == kept


@pytest.mark.parametrize(
    ("text", "again"),
    [
        ("deadline is 15 October", "Deadline is 15  October."),
        ("ＰｏｓｔｇｒｅＳＱＬを使う", "PostgreSQLを使う"),
        ("締切は十五日。", "締切は十五日"),
        ("the password is Hunter2", "the password is hunter2"),
        ("ship only if !debug", "ship only if debug"),
        ("result is 2⁵", "result is 25"),
        ("option -v", "option -V"),
        ("Deploys happen on Friday?", "Deploys happen on Friday."),
    ],
)
def test_near_duplicate_is_reported_and_kept(engine: Engine, text: str, again: str) -> None:
    """What differs in dress alone may still mean something else: both are kept, and the second says so."""
    first = engine.remember("ann", text, dedup="exact")
    second = engine.remember("ann", again, dedup="exact")
    assert (second.created, second.duplicates) == (True, (first,))
    assert texts(engine.list("ann")) == [text, again]


def test_lasting_fact_is_not_folded_into_a_passing_one(engine: Engine, clock: FrozenClock) -> None:
    """A memory stands for another only as long as that would have lasted."""
    soon, later = (clock() + timedelta(hours=hours) for hours in (1, 2))
    passing = engine.remember("ann", "the office is closed", expires_at=soon)
    assert engine.remember("ann", "the office is closed", expires_at=soon, dedup="exact") == passing
    assert engine.remember("ann", "the office is closed", expires_at=later, dedup="exact").created
    lasting = engine.remember("ann", "the office is closed", dedup="exact")
    assert lasting.created
    assert engine.remember("ann", "the office is closed", expires_at=later, dedup="exact").created is False
    clock.advance(3 * 3600)
    assert ids(engine.list("ann")) == [lasting]


def test_trusted_fact_is_not_folded_into_an_outside_one(store_path: Path) -> None:
    """Planted text does not keep anybody from saying the same as a trusted fact."""
    with memkura.Engine(store_path, None, door="import") as importing:
        importing.remember("ann", "deploys go out on Friday")
    with memkura.open(store_path, embedder=None) as engine:
        mine = engine.remember("ann", "deploys go out on Friday", dedup="exact")
        assert mine.created
        assert ids(engine.recall("ann", "deploys", filters={"trust_tier": "trusted"})) == [mine]
