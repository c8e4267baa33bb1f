"""Forgetting: gone from every read at once, never wider than asked, and, purged, gone from every file."""

from __future__ import annotations

import random
import sqlite3
import struct
from typing import TYPE_CHECKING, Any

import pytest

import memkura
from asking import LEGS, at_once, each_leg, each_life, files_with, from_another_process, ids, seen
from memkura import errors
from memkura.testing import FrozenClock, ToyEmbedder

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from asking import Look
    from memkura import Engine
    from memkura.embedders import Kind, Vector

# What stays, what goes, and a query that fits both.
PAIRS = {
    "english": ("tea is brewed with soft water", "tea is brewed at 80 degrees", "how is tea brewed"),
    "japanese": ("お茶は軟水で淹れる", "お茶は八十度のお湯で淹れる", "お茶を淹れる"),
    "chinese": ("部署脚本每天凌晨三点备份", "部署脚本每周手动运行一次", "部署脚本"),
    "korean": ("배포는 매주 화요일에 진행한다", "배포는 승인 뒤에 진행한다", "배포는 언제 진행한다"),
    "code": ("call parse_http_response() first", "parse_http_response() raises on 204", "parse_http_response"),
}


@each_life
@pytest.mark.parametrize(("stays", "goes", "query"), list(PAIRS.values()), ids=list(PAIRS))
def test_forgotten_memory_is_in_no_read(
    engine: Engine, store_path: Path, look: Look, stays: str, goes: str, query: str
) -> None:
    """A forgotten memory takes no place in any leg, list, count or get, here, later and elsewhere."""
    gone = engine.remember("ann", goes)
    kept = engine.remember("ann", stays)
    assert set(seen(engine, "ann", query)["fused"]) == {gone, kept}
    assert engine.forget("ann", gone) == [gone]
    assert look(engine, store_path, "ann", query, [gone, kept], k=1) == {
        "text": [kept],
        "vector": [kept],
        "fused": [kept],
        "list": [kept],
        "count": 1,
        "get": {gone: None, kept: stays},
    }


@each_leg
def test_no_option_of_recall_shows_a_forgotten_memory(engine: Engine, legs: Sequence[str] | None) -> None:
    """Neither its own words, its own vector, its id as a filter nor superseded rows bring it back."""
    gone = engine.remember("ann", "the spare key hangs behind the boiler", tags=["key"])
    engine.remember("ann", "the meter is read in May")
    engine.forget("ann", gone)
    for more in ({}, {"include_superseded": True}, {"filters": {"tags": "key"}}, {"filters": {"memory_id": gone}}):
        assert gone not in ids(engine.recall("ann", "the spare key hangs behind the boiler", legs=legs, **more))
    assert engine.list("ann", filters={"memory_id": gone}) == []
    assert engine.count("ann", filters={"tags": "key"}) == 0


def test_forgotten_memory_takes_no_write(engine: Engine) -> None:
    """A second forget, an update and a new memory built on it answer as for an unknown id."""
    gone = engine.remember("ann", "the spare key hangs behind the boiler")
    engine.forget("ann", gone)
    with pytest.raises(errors.NotFound):
        engine.forget("ann", gone)
    with pytest.raises(errors.NotFound):
        engine.update_memory("ann", gone, summary="it hangs in the hall")
    with pytest.raises(errors.NotFound):
        engine.remember("ann", "it hangs in the hall", supersedes=gone)
    assert engine.count("ann") == 0


def test_forgotten_key_is_free(engine: Engine) -> None:
    """Getting by a forgotten key gives nothing; writing the key again works."""
    engine.remember("ann", "vegetarian", key="diet")
    engine.forget("ann", filters={"key": "diet"})
    assert engine.get("ann", key="diet") is None
    assert ids(engine.recall("ann", "diet")) == []
    engine.remember("ann", "eats everything", key="diet")
    memory = engine.get("ann", key="diet")
    assert memory is not None
    assert memory.summary == "eats everything"
    assert engine.count("ann") == 1


def test_forgetting_stays_in_its_context(engine: Engine) -> None:
    """Emptying one context leaves the other's rows."""
    for number in range(10):
        engine.remember("ann", f"ann's row {number}")
        engine.remember("ben", f"ben's row {number}")
    assert len(engine.forget("ann", everything=True)) == 10
    assert (engine.count("ann"), engine.count("ben")) == (0, 10)
    assert len(engine.recall("ben", "row", k=20)) == 10


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"filters": None},
        {"filters": {}},
        {"filters": {"and": []}},
        {"filters": {"and": [{}]}},
        {"filters": {"or": []}},
        {"filters": {"or": [{}]}},
        {"filters": {"not": {}}},
        {"filters": {"not": {"or": []}}},
        {"filters": {"usr": "ann"}},
        {"filters": {"context_id": "ann"}},
        {"filters": {"tags": {"like": "%"}}},
        {"filters": {"tags": None}},
        {"filters": []},
        {"filters": "tags"},
        {"memory_id": None},
        {"memory_id": ""},
        {"memory_id": "*"},
        {"memory_id": "%"},
        {"everything": False},
        {"purge": True},
        {"filters": {}, "purge": True},
        {"filters": {"tags": "x"}, "everything": True},
        {"filters": {"not": {"tags": {"in": []}}}},
        {"filters": {"or": [{"type": "note"}, {"not": {"memory_id": {"in": []}}}]}},
    ],
    ids=repr,
)
def test_forget_that_does_not_say_what_raises(engine: Engine, said: dict[str, Any]) -> None:
    """Nothing named, an empty filter or a misspelt one deletes nothing; emptying a context takes its own word."""
    engine.remember("ann", "tea is brewed at 80 degrees", tags=["x"])
    with pytest.raises(errors.InvalidInput):
        engine.forget("ann", **said)
    assert engine.count("ann") == 1


@pytest.mark.parametrize("context_id", ["", " ", None, 0], ids=repr)
def test_forget_without_a_context_raises(engine: Engine, context_id: Any) -> None:
    """An empty or missing context is an error and never means all of them."""
    engine.remember("ann", "tea is brewed at 80 degrees")
    with pytest.raises((errors.InvalidInput, TypeError)):
        engine.forget(context_id, everything=True)
    assert engine.count("ann") == 1


def test_forget_of_nothing_selected_has_its_own_error(engine: Engine) -> None:
    """`forget(context_id)` alone says that nothing was selected."""
    engine.remember("ann", "tea")
    with pytest.raises(errors.NothingSelected):
        engine.forget("ann")


@pytest.mark.parametrize("field", ["trust_teir", "usr", "tag", "context_id", "content", "Type", "metadata", "$or", ""])
def test_misspelt_filter_never_runs_without_the_filter(engine: Engine, field: str) -> None:
    """An unknown filter field raises in every verb that takes filters, and is named."""
    memory_id = engine.remember("ann", "tea")
    for verb in (
        lambda filters: engine.recall("ann", "tea", filters=filters),
        lambda filters: engine.recall("nobody", "tea", filters=filters),
        lambda filters: engine.list("ann", filters=filters),
        lambda filters: engine.count("ann", filters=filters),
        lambda filters: engine.explain("ann", "tea", memory_id, filters=filters),
        lambda filters: engine.forget("ann", filters=filters),
    ):
        for filters in ({field: "trusted"}, {"not": {field: "trusted"}}, {"or": [{"type": "note"}, {field: 1}]}):
            with pytest.raises(errors.UnknownField) as caught:
                verb(filters)
            assert caught.value.field == f"filters.{field}"
    assert engine.count("ann") == 1


@each_leg
def test_filter_on_a_key_that_no_row_has_matches_nothing(engine: Engine, legs: Sequence[str] | None) -> None:
    """An unused metadata key is a filter like any other: no row matches, and forgetting by it deletes nothing."""
    engine.remember("ann", "tea", metadata={"owner": "ann"})
    filters = {"metadata.onwer": "ann"}
    assert list(engine.recall("ann", "tea", filters=filters, legs=legs)) == []
    assert engine.list("ann", filters=filters) == []
    assert engine.count("ann", filters=filters) == 0
    assert engine.forget("ann", filters=filters) == []
    assert engine.forget("ann", filters={"tags": {"in": []}}) == []
    assert engine.count("ann") == 1


def test_forget_by_filter_takes_exactly_the_matches(engine: Engine) -> None:
    """The ids that it names are those that went, and are those that matched."""
    rows = [engine.remember("ann", f"row {number}", tags=[f"third-{number % 3}"]) for number in range(30)]
    gone = engine.forget("ann", filters={"tags": "third-1"})
    assert sorted(gone) == sorted(rows[1::3])
    assert sorted(ids(engine.list("ann"))) == sorted(rows[0::3] + rows[2::3])


@pytest.mark.parametrize("purge", [False, True], ids=["retired", "purged"])
def test_delete_and_add_again_many_times(engine: Engine, store_path: Path, purge: bool) -> None:  # noqa: FBT001
    """Rounds of writing and forgetting the same texts and key leave the last ones findable by their own vectors."""
    order = random.Random(7)
    spoken = ["the cat sleeps on the sofa", "invoices are paid on the 25th", "the boiler is in the cellar"]
    for _ in range(20):
        engine.remember("ann", "a value that goes", key="diet")
        engine.forget("ann", filters={"key": "diet"}, purge=purge)
        rows = [engine.remember("ann", text) for text in spoken]
        order.shuffle(rows)
        for row in rows:
            engine.forget("ann", row, purge=purge)
    last = {text: engine.remember("ann", text) for text in spoken}
    key = engine.remember("ann", "eats everything", key="diet")
    for look in (at_once, from_another_process):
        for text, memory_id in last.items():
            answers = look(engine, store_path, "ann", text, [key], k=4)
            assert [answers[leg][0] for leg in LEGS] == [memory_id] * 3
            assert answers["get"] == {key: "eats everything"}
            assert answers["count"] == 4
    memory = engine.get("ann", key="diet")
    assert memory is not None
    assert memory.summary == "eats everything"


@pytest.mark.parametrize("purge", [False, True], ids=["retired", "purged"])
@each_life
def test_emptied_context_takes_a_row_at_once(
    engine: Engine,
    store_path: Path,
    look: Look,
    purge: bool,  # noqa: FBT001
) -> None:
    """A row written right after a context was emptied is its only one."""
    for number in range(25):
        engine.remember("ann", f"old row {number}")
    assert len(engine.forget("ann", everything=True, purge=purge)) == 25
    row = engine.remember("ann", "a new row")
    answers = look(engine, store_path, "ann", "row", [row])
    assert answers == {
        **{key: [row] for key in LEGS},
        "list": [row],
        "count": 1,
        "get": {row: "a new row"},
    }


MARKERS = {
    "english": "kanpo7731",
    "japanese": "冷蔵庫鍵番号",
    "chinese": "备份数据库密",
    "korean": "화요일배포방",
    "identifier": "parse_vault_key_9",
}


def test_purging_by_filter_reaches_what_was_forgotten(engine: Engine) -> None:
    """PUR-1: forgotten first and purged later, by the filter that selected it then; nothing else goes."""
    marked = [engine.remember("c", f"zanzibar {at}", tags=["old"], metadata={"n": at}) for at in range(4)]
    kept = engine.remember("c", "zanzibar stays", tags=["new"])
    forgotten = engine.remember("c", "pemba", tags=["new"])
    engine.forget("c", filters={"tags": "old", "metadata.n": {"lt": 3}})
    engine.forget("c", forgotten)
    assert sorted(engine.forget("c", filters={"tags": "old"}, purge=True)) == sorted(marked)
    assert engine.forget("c", filters={"tags": "old"}, purge=True) == []
    assert engine.history("c", forgotten)
    assert ids(engine.list("c")) == [kept]


@pytest.mark.parametrize("marker", list(MARKERS.values()), ids=list(MARKERS))
@pytest.mark.parametrize("sealed", [False, True], ids=["fresh", "sealed"])
def test_purged_text_is_in_no_file(engine: Engine, store_path: Path, marker: str, sealed: bool) -> None:  # noqa: FBT001
    """After `forget(purge=True)` and `compact()` no file holds the text, old revisions, tags, metadata or vector."""
    gone = engine.remember("ann", f"the code is {marker}", f"older: {marker}", metadata={"note": marker}, tags=[marker])
    engine.remember("ann", f"the key {marker}", key=marker, proof=marker, session=marker)
    kept = engine.remember("ann", "the meter is read in May")
    engine.recall("ann", marker)
    if sealed:
        engine.compact()
    assert files_with(store_path, marker.encode())
    engine.update_memory("ann", gone, summary=f"the code was {marker}")
    engine.update_memory("ann", gone, summary="the code was changed", content=None)
    assert len(engine.forget("ann", filters={"not": {"memory_id": kept}}, purge=True)) == 2
    engine.compact()
    assert files_with(store_path, marker.encode()) == []
    engine.close()
    assert files_with(store_path, marker.encode()) == []
    with memkura.open(store_path, embedder=ToyEmbedder(), clock=FrozenClock()) as again:
        assert ids(again.recall("ann", f"the code is {marker}")) in ([], [kept])
        assert again.get("ann", gone) is None
        assert again.count("ann") == 1


def test_purge_reaches_what_was_forgotten_and_superseded(engine: Engine, store_path: Path) -> None:
    """A memory that was only retired can be purged afterwards, with all of its history."""
    old = engine.remember("ann", "stack: kanpo7731")
    new = engine.remember("ann", "stack moved to kanpo7732", supersedes=old)
    engine.forget("ann", new)
    engine.forget("ann", old, purge=True)
    engine.forget("ann", new, purge=True)
    engine.compact()
    assert files_with(store_path, b"kanpo7731", b"kanpo7732") == []


def test_purged_vector_is_in_no_file(engine: Engine, store_path: Path) -> None:
    """The components of a purged memory's vector go with it."""
    vector = [0.0] * 64
    vector[3:7] = [0.5123, 0.4987, -0.5011, 0.4875]
    bytes_of_it = struct.pack("<4f", *vector[3:7])
    length = sum(value * value for value in vector) ** 0.5
    as_unit = struct.pack("<4f", *(value / length for value in vector[3:7]))
    gone = engine.remember("ann", "the meter is read in May", embedding=vector)
    engine.remember("ann", "tea")
    assert files_with(store_path, bytes_of_it, as_unit)
    engine.forget("ann", gone, purge=True)
    engine.compact()
    assert files_with(store_path, bytes_of_it, as_unit) == []


class Quoting(ToyEmbedder):
    """Down, and repeats what it was asked, as many servers do."""

    def embed(self, texts: Sequence[str], *, kind: Kind) -> Iterable[Vector]:
        if self.failing:
            raise RuntimeError(f"cannot embed {list(texts)!r} as {kind}")
        return super().embed(texts, kind=kind)


def test_what_an_embedder_says_of_a_text_is_kept_nowhere(store_path: Path) -> None:
    """It is given as the reason of later texts, of other contexts too, which a purge of the text does not reach."""
    toy = Quoting()
    toy.failing = True
    with memkura.open(store_path, embedder=toy) as engine:
        rows = [{"context_id": "ann", "summary": f"zanzibar {at} opens the vault"} for at in range(5)]
        engine.remember_many([*rows, {"context_id": "bob", "summary": "tea"}])
        engine.recall("ann", "zanzibar")
        report = engine.reindex()
        for shown in (engine.embedder, engine.context("bob").stats(), report):
            assert "zanzibar" not in repr(shown)
        (reason,) = report.reasons
        assert reason == engine.embedder.last_error
        assert reason.startswith("RuntimeError (test_forget.py:")
        engine.forget("ann", everything=True, purge=True)
        engine.compact()
    assert files_with(store_path, b"zanzibar") == []


def test_what_an_older_build_noted_of_an_embedder_goes_when_compacted(store_path: Path) -> None:
    """The memory waits for its vector as before."""
    toy = Quoting()
    toy.failing = True
    with memkura.open(store_path, embedder=toy) as engine:
        engine.remember("bob", "tea")
    database = sqlite3.connect(store_path / "record.sqlite3")
    with database:
        database.execute("UPDATE embedding SET problem = 'cannot embed zanzibar'")
    database.close()
    with memkura.open(store_path, embedder=toy) as engine:
        engine.compact()
        assert files_with(store_path, b"zanzibar") == []
        toy.failing = False
        assert engine.maintain()["embedded"] == 1


def test_purge_is_final_while_another_process_watches(engine: Engine, store_path: Path) -> None:
    """A second handle with a warm index does not keep the bytes alive, and stops returning the memory."""
    gone = engine.remember("ann", "the marker is kanpo7731")
    with memkura.open(store_path, embedder=ToyEmbedder(), clock=FrozenClock()) as other:
        assert ids(other.recall("ann", "kanpo7731")) == [gone]
        engine.forget("ann", gone, purge=True)
        engine.compact()
        assert list(other.recall("ann", "the marker is kanpo7731")) == []
        assert list(other.recall("ann", "the marker is kanpo7731", as_of=FrozenClock()())) == []
        assert files_with(store_path, b"kanpo7731") == []


@pytest.mark.parametrize("sealed", [False, True], ids=["fresh", "sealed"])
def test_forgotten_text_is_in_no_file_once_compacted(engine: Engine, store_path: Path, sealed: bool) -> None:  # noqa: FBT001
    """Deleted is deleted: what was replaced and expired stays, what was forgotten goes, revisions and all."""
    gone = engine.remember("ann", "tea is brewed at 80 degrees", tags=["gonetag"])
    engine.update_memory("ann", gone, summary="tea is brewed at 85 degrees")
    kept = engine.remember("ann", "tea is brewed with soft water")
    old = engine.remember("ann", "the window is from 14 to 16")
    engine.remember("ann", "the window is from 13 to 15", supersedes=old)
    if sealed:
        engine.compact()
    engine.forget("ann", gone)
    assert [revision["action"] for revision in engine.history("ann", gone)] == ["remember", "update", "forget"]
    engine.compact()
    for text in (b"80 degrees", b"85 degrees", b"gonetag"):
        assert files_with(store_path, text) == []
    assert [revision["action"] for revision in engine.history("ann", gone)] == ["purge"]
    assert ids(engine.recall("ann", "how is tea brewed", k=1)) == [kept]
    assert [revision["action"] for revision in engine.history("ann", old)] == ["remember", "supersede"]
    assert old in ids(engine.recall("ann", "window", include_superseded=True))


def test_store_shrinks_with_what_was_forgotten(engine: Engine, store_path: Path) -> None:
    """Nine rows in ten are forgotten: after compacting, record and indexes are smaller by more than seven tenths."""

    def size() -> int:
        return sum(path.stat().st_size for path in store_path.rglob("*") if path.is_file() and path.name != "reserve")

    tags = [["kept"], *[[]] * 9] * 200
    engine.remember_many(
        {"context_id": "c", "summary": f"row {at}", "content": f"word{at} " * 100, "tags": tags[at]}
        for at in range(2_000)
    )
    engine.recall("c", "row")
    engine.compact()
    before = size()
    engine.forget("c", filters={"not": {"tags": "kept"}})
    engine.compact()
    assert engine.count("c") == 200
    assert size() < 0.3 * before


def test_history_of_a_forgotten_memory_stays_until_purged(engine: Engine, clock: FrozenClock) -> None:
    """A plain forget keeps every revision and who made it; a purge leaves no text behind."""
    memory_id = engine.remember("ann", "tea is brewed at 80 degrees")
    clock.advance(60)
    engine.forget("ann", memory_id)
    revisions = engine.history("ann", memory_id)
    assert [revision["action"] for revision in revisions] == ["remember", "forget"]
    assert {revision["summary"] for revision in revisions} == {"tea is brewed at 80 degrees"}
    engine.forget("ann", memory_id, purge=True)
    try:
        left = engine.history("ann", memory_id)
    except errors.NotFound:
        left = []
    assert "80 degrees" not in repr(left)
