"""Updating: the vector follows the text, the old words are gone, and an embedder's outage loses nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import memkura
from asking import LEGS, each_leg, each_life, ids, seen, texts
from memkura import errors
from memkura.testing import FrozenClock, ToyEmbedder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from asking import Look
    from memkura import Engine
    from memkura.embedders.protocol import Kind, Vector

# The text before and after, a query for each, and a filler near to neither.
CHANGES = {
    "english": (
        "the cat sleeps on the sofa",
        "invoices are paid on the 25th",
        "cat sofa",
        "invoices paid",
        "a boiler stands down there",
    ),
    "japanese": ("猫はソファで寝ている", "請求書は二十五日に支払う", "猫はソファ", "請求書", "地下室にボイラー"),
    "chinese": ("猫在沙发上睡觉", "发票在每月底支付", "沙发上", "发票在", "地下室有锅炉"),
    "korean": ("고양이가 소파에서 잔다", "송장은 월말에 지급한다", "고양이가", "송장은", "지하실에 보일러"),
    "identifiers": ("ORA-01555 snapshot", "E0382 in block", "snapshot", "E0382", "boiler down there"),
}
each_change = pytest.mark.parametrize(
    ("before", "after", "old_query", "new_query", "filler"), list(CHANGES.values()), ids=list(CHANGES)
)


@each_life
@each_change
def test_vector_and_words_follow_the_text(
    engine: Engine, store_path: Path, look: Look, before: str, after: str, old_query: str, new_query: str, filler: str
) -> None:
    """The new text is found by every leg, the old words by none, here, later and elsewhere."""
    memory_id = engine.remember("ann", before)
    engine.remember("ann", filler)
    assert seen(engine, "ann", old_query, k=1)["fused"] == [memory_id]
    engine.update_memory("ann", memory_id, summary=after)
    answers = look(engine, store_path, "ann", new_query, [memory_id], k=1)
    assert [answers[leg] for leg in LEGS] == [[memory_id]] * 3
    assert answers["get"] == {memory_id: after}
    with memkura.open(store_path, embedder=ToyEmbedder(), clock=FrozenClock()) as again:
        assert again.recall("ann", old_query, legs=["text"]).as_dicts() == []


@each_change
def test_raw_cosine_follows_the_text(
    engine: Engine, store_path: Path, before: str, after: str, old_query: str, new_query: str, filler: str
) -> None:
    """The cosine of an updated memory is nearer to what it says now than to what it said, after reopening too."""
    memory_id = engine.remember("ann", before)
    engine.remember("ann", filler)
    engine.update_memory("ann", memory_id, summary=after)
    with memkura.open(store_path, embedder=ToyEmbedder(), clock=FrozenClock()) as again:
        for opened in (engine, again):
            old, new = (opened.explain("ann", query, memory_id)["vector"]["cosine"] for query in (old_query, new_query))
            assert old < new


@each_life
def test_content_and_tags_are_followed_too(engine: Engine, store_path: Path, look: Look) -> None:
    """A new content replaces the old one in each leg; a tag that was taken off is no longer searched."""
    memory_id = engine.remember("ann", "note of the day", "the cat sleeps on the sofa", tags=["feline"])
    engine.remember("ann", "a boiler in the cellar")
    engine.update_memory("ann", memory_id, content="invoices are paid on the 25th", tags=["billing"])
    answers = look(engine, store_path, "ann", "when are invoices paid", k=1)
    assert [answers[leg] for leg in LEGS] == [[memory_id]] * 3
    with memkura.open(store_path, embedder=ToyEmbedder(), clock=FrozenClock()) as again:
        for gone in ("cat", "sofa", "feline"):
            assert list(again.recall("ann", gone, legs=["text"])) == []
        assert ids(again.recall("ann", "billing", legs=["text"])) == [memory_id]
        assert again.count("ann", filters={"tags": "feline"}) == 0


@pytest.mark.parametrize(
    ("change", "matches", "no_longer"),
    [
        ({"metadata": {"state": "done"}}, {"metadata.state": "done"}, {"metadata.state": "open"}),
        ({"metadata": {}}, {"metadata.state": {"exists": False}}, {"metadata.state": {"exists": True}}),
        ({"tags": ["b"]}, {"tags": "b"}, {"tags": "a"}),
        ({"tags": []}, {"tags": {"exists": False}}, {"tags": "a"}),
        ({"type": "fact"}, {"type": "fact"}, {"type": "note"}),
        ({"importance": 0.9}, {"importance": {"gt": 0.8}}, {"importance": {"lte": 0.8}}),
        ({"confidence": 1.0}, {"confidence": 1}, {"confidence": {"lt": 1}}),
        ({"session": None}, {"session": {"exists": False}}, {"session": "s1"}),
        ({"session": "s2"}, {"session": "s2"}, {"session": "s1"}),
        ({"delivery_mode": "always"}, {"delivery_mode": "always"}, {"delivery_mode": "on_recall"}),
    ],
    ids=repr,
)
def test_change_of_other_fields_calls_no_embedder_and_filters_at_once(
    engine: Engine,
    toy: ToyEmbedder,
    store_path: Path,
    change: dict[str, Any],
    matches: dict[str, Any],
    no_longer: dict[str, Any],
) -> None:
    """Only a change of text costs an embedding; any other is seen by filters at once, and the old value no more."""
    memory_id = engine.remember("ann", "tea", tags=["a"], metadata={"state": "open"}, session="s1")
    calls = toy.calls
    receipt = engine.update_memory("ann", memory_id, **change)
    assert toy.calls == calls
    assert (receipt.version, receipt.embedded, receipt.created) == (2, True, False)
    assert engine.count("ann", filters=matches) == 1
    assert engine.count("ann", filters=no_longer) == 0
    with memkura.open(store_path, embedder=ToyEmbedder(), clock=FrozenClock()) as again:
        for legs in LEGS.values():
            assert ids(again.recall("ann", "tea", legs=legs, filters=matches)) == [memory_id]
            assert ids(again.recall("ann", "tea", legs=legs, filters=no_longer)) == []


def test_fields_not_given_stay(engine: Engine, clock: FrozenClock) -> None:
    """An update changes what it names, the version and the time, and nothing else."""
    memory_id = engine.remember("ann", "tea", "green", tags=["a"], metadata={"x": 1}, importance=0.7, key="drink")
    before = engine.get("ann", memory_id)
    assert before is not None
    clock.advance(60)
    engine.update_memory("ann", memory_id, importance=0.8)
    after = engine.get("ann", memory_id)
    assert after is not None
    changed = {name for name, value in after.as_dict().items() if before.as_dict()[name] != value}
    assert changed == {"importance", "updated_at", "version"}


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"importance": 1.5}, errors.InvalidInput),
        ({"importance": float("nan")}, errors.InvalidInput),
        ({"summary": ""}, errors.InvalidInput),
        ({"summary": None}, errors.InvalidInput),
        ({"summary": 5}, errors.InvalidInput),
        ({"tags": "a"}, errors.InvalidInput),
        ({"tags": [1]}, errors.InvalidInput),
        ({"metadata": {"x": float("inf")}}, errors.InvalidInput),
        ({"metadata": {"trust_tier": "trusted"}}, errors.InvalidInput),
        ({"delivery_mode": "sometimes"}, errors.InvalidInput),
        ({"type": ""}, errors.InvalidInput),
        ({"embedding": [0.0] * 64, "summary": "x"}, errors.InvalidVector),
        ({"embedding": [1.0] * 3, "summary": "x"}, errors.InvalidVector),
    ],
    ids=repr,
)
def test_refused_update_changes_nothing(engine: Engine, change: dict[str, Any], error: type[Exception]) -> None:
    """A field that cannot be taken leaves the memory, its version and its history as they were."""
    memory_id = engine.remember("ann", "tea", tags=["a"])
    before = engine.get("ann", memory_id)
    assert before is not None
    with pytest.raises(error):
        engine.update_memory("ann", memory_id, **change)
    after = engine.get("ann", memory_id)
    assert after is not None
    assert after.as_dict() == before.as_dict()
    assert len(engine.history("ann", memory_id)) == 1
    assert ids(engine.recall("ann", "tea")) == [memory_id]


def test_unknown_field_of_an_update_is_refused(engine: Engine) -> None:
    """A misspelt field is a TypeError of the call, not ignored."""
    memory_id = engine.remember("ann", "tea")
    with pytest.raises(TypeError):
        engine.update_memory("ann", memory_id, sumary="coffee")  # type: ignore[call-arg]


def test_outage_loses_no_write_and_is_filled_in(store_path: Path, clock: FrozenClock) -> None:
    """While the embedder fails, the row is kept and found by text, and the answer says so; upkeep repairs it."""
    toy = ToyEmbedder()
    toy.failing = True
    with memkura.open(store_path, embedder=toy, clock=clock) as engine:
        memory_id = engine.remember("ann", "the vault code is in the blue folder")
        assert not memory_id.embedded
        assert engine.stats().unembedded == 1
        assert engine.stats("ann").unembedded == 1
        hits = engine.recall("ann", "where is the vault code")
        assert (ids(hits), hits.degraded, hits.mode) == ([memory_id], ["vector:embedder_failed"], "text")
        assert list(engine.recall("ann", "where is the vault code", legs=["vector"])) == []
        toy.failing = False
        engine.maintain()
        assert engine.stats().unembedded == 0
        hits = engine.recall("ann", "where is the vault code", legs=["vector"])
        assert (ids(hits), hits.degraded) == ([memory_id], [])


def test_outage_during_an_update_hides_the_old_vector(engine: Engine, toy: ToyEmbedder) -> None:
    """When the new text could not be embedded, the old text's vector does not answer for it."""
    memory_id = engine.remember("ann", "the cat sleeps on the sofa")
    toy.failing = True
    receipt = engine.update_memory("ann", memory_id, summary="invoices are paid on the 25th")
    assert not receipt.embedded
    toy.failing = False
    assert ids(engine.recall("ann", "the cat sleeps on the sofa", legs=["vector"])) == []
    assert ids(engine.recall("ann", "invoices", legs=["text"])) == [memory_id]
    assert engine.stats().unembedded == 1
    engine.maintain()
    assert ids(engine.recall("ann", "invoices are paid", legs=["vector"])) == [memory_id]


def test_one_text_that_fails_costs_its_neighbours_nothing(engine: Engine, toy: ToyEmbedder) -> None:
    """In a batch of which one text cannot be embedded, the others have their vectors."""
    toy.answers["poison"] = "raise"
    rows = engine.remember_many(
        {"context_id": "ann", "summary": text} for text in ["tea is green", "a poison text", "coffee is black"]
    )
    assert [row.embedded for row in rows] == [True, False, True]
    assert set(ids(engine.recall("ann", "poison tea coffee", legs=["text"]))) == set(rows)
    assert set(ids(engine.recall("ann", "tea coffee", legs=["vector"]))) == {rows[0], rows[2]}


SPOKEN = [
    f"note {number}: the {word} is kept in room {number * 7 % 13}"
    for number, word in enumerate(["key", "lamp", "cup", "rope", "map", "coin", "book", "bell", "drum", "fork"] * 5)
]


@each_leg
def test_one_by_one_and_batch_answer_alike(tmp_path: Path, legs: Sequence[str] | None) -> None:
    """The same texts written singly and in one batch are the same to get, list and recall."""
    with (
        memkura.open(tmp_path / "one", embedder=ToyEmbedder(), clock=FrozenClock()) as one,
        memkura.open(tmp_path / "many", embedder=ToyEmbedder(), clock=FrozenClock()) as many,
    ):
        singly = [one.remember("ann", text) for text in SPOKEN]
        batch = many.remember_many([{"context_id": "ann", "summary": text} for text in SPOKEN])
        assert [(row.created, row.version, row.embedded) for row in singly] == [
            (row.created, row.version, row.embedded) for row in batch
        ]
        assert texts(one.list("ann")) == texts(many.list("ann")) == SPOKEN
        for query in ("where is the lamp", "room 7", "note 31", "the drum in room 4"):
            answers = [
                [
                    (hit.summary, pytest.approx(hit.score, abs=1e-9))
                    for hit in opened.recall("ann", query, k=20, legs=legs)
                ]
                for opened in (one, many)
            ]
            assert answers[0] == answers[1]


class Meddled(ToyEmbedder):
    """Before it answers a document, somebody else has done something; so often."""

    def __init__(self, times: int = 0) -> None:
        super().__init__()
        self.times = times
        self.meddle: Callable[[], object] = lambda: None

    def embed(self, texts: Sequence[str], *, kind: Kind) -> Iterable[Vector]:
        vectors = super().embed(texts, kind=kind)
        if kind == "document" and self.times:
            self.times -= 1
            self.meddle()
        return vectors


@pytest.mark.parametrize(("times", "embedded"), [(1, True), (2, True), (99, False)])
def test_vector_is_of_the_text_that_was_kept(store_path: Path, times: int, embedded: bool) -> None:  # noqa: FBT001
    """I11: while an update is embedded another writer changes the rest of the text; no vector of a mixture stays."""
    meddled = Meddled()
    written = iter(range(100))
    with (
        memkura.open(store_path, embedder=meddled) as engine,
        memkura.open(store_path, embedder=None) as other,
    ):
        memory_id = engine.remember("ann", "a summary", "the cat sleeps on the sofa")
        meddled.meddle = lambda: other.update_memory("ann", memory_id, content=f"invoices {next(written)}")
        meddled.times = times
        receipt = engine.update_memory("ann", memory_id, summary="another summary")
        assert receipt.embedded is embedded
        memory = engine.get("ann", memory_id)
        assert memory is not None
        meddled.times = 0
        # Each writer's change is one revision: what was tried again was written once.
        assert len(engine.history("ann", memory_id)) == memory.version == receipt.version == next(written) + 2
        engine.maintain()
        question = f"{memory.summary}\n{memory.content}"
        hit = engine.recall("ann", question, legs=["vector"])[0]
        assert hit.explanation["vector"]["cosine"] == pytest.approx(1.0, abs=1e-3)
        assert memory.content is not None
        assert memory.content.startswith("invoices")


def test_vector_of_an_embedder_left_behind_is_not_kept(store_path: Path) -> None:
    """I11: while a text is embedded, the store goes over to another embedder of the same dimension."""
    meddled = Meddled(times=1)
    with memkura.open(store_path, embedder=meddled) as engine:
        meddled.times = 0
        engine.remember("ann", "a filler")
        meddled.meddle = lambda: engine.reindex(ToyEmbedder(name="other"))
        meddled.times = 1
        receipt = engine.remember("ann", "the cat sleeps on the sofa")
        assert not receipt.embedded
        assert engine.embedder.id == "other-64"
        assert ids(engine.recall("ann", "the cat sleeps", legs=["vector"])) != [receipt]
        engine.maintain()
        assert ids(engine.recall("ann", "the cat sleeps", legs=["vector"], k=1)) == [receipt]
