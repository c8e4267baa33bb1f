"""Vectors: another embedder, unusable ones, and ones that callers bring themselves."""

from __future__ import annotations

import math
from array import array
from typing import TYPE_CHECKING, Any

import pytest

import memkura
from asking import each_leg, ids
from memkura import errors
from memkura.testing import FrozenClock, ToyEmbedder

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from memkura import Engine
    from memkura.embedders import Kind, Vector


class Interrupted(ToyEmbedder):
    """Raises a KeyboardInterrupt, as a person does, after so many texts."""

    def __init__(self, dim: int, after: int) -> None:
        super().__init__(dim)
        self.left = after

    def embed(self, texts: Sequence[str], *, kind: Kind) -> Iterable[Vector]:
        """As the toy's, until the interruption."""
        self.left -= len(texts)
        if self.left < 0:
            raise KeyboardInterrupt
        return super().embed(texts, kind=kind)


@pytest.fixture
def hundred(store_path: Path) -> Path:
    """A store of a hundred rows with vectors of eight components."""
    with memkura.open(store_path, embedder=ToyEmbedder(8), clock=FrozenClock()) as engine:
        engine.remember_many([{"context_id": "c", "summary": f"tea of lot {number}"} for number in range(100)])
        assert engine.stats().unembedded == 0
    return store_path


def test_store_opens_with_another_dimension(hundred: Path) -> None:
    """Nothing is lost, recall works by text and says so, and writing goes on."""
    with memkura.open(hundred, embedder=ToyEmbedder(12), clock=FrozenClock()) as engine:
        assert engine.count("c") == 100
        assert engine.embedder.state == "changed"
        assert "reindex" in engine.embedder.note
        hits = engine.recall("c", "lot 42")
        assert hits[0].summary == "tea of lot 42"
        assert (hits.mode, hits.degraded) == ("text", ["vector:embedder_changed"])
        assert list(engine.recall("c", "lot 42", legs=["vector"])) == []
        added = engine.remember("c", "coffee of lot 200")
        assert engine.count("c") == 101
        assert engine.recall("c", "coffee", k=1)[0].memory_id == added


def test_reindex_that_partly_fails_is_partial_and_then_completes(hundred: Path) -> None:
    """It reports what it could not do, compares no vectors of two models meanwhile, and ends complete."""
    toy = ToyEmbedder(12)
    with memkura.open(hundred, embedder=toy, clock=FrozenClock()) as engine:
        engine.remember("c", "coffee of lot 200")
        toy.answers["lot 42"] = "raise"
        report = engine.reindex()
        assert report.total == 101
        assert report.done < 101
        assert report.failed > 0
        assert (report.done + report.failed, report.state) == (101, "partial")
        assert report.reasons
        assert engine.recall("c", "lot 7").degraded
        assert list(engine.recall("c", "lot 7", legs=["vector"])) == []
        assert engine.count("c") == 101
        toy.answers.clear()
        embedded = len(toy.texts)
        report = engine.reindex()
        assert (report.total, report.done, report.failed, report.state) == (101, 101, 0, "complete")
        assert len(toy.texts) - embedded < 101, "what was done is not done again"
        hits = engine.recall("c", "tea of lot 42", legs=["vector"])
        assert hits[0].summary == "tea of lot 42"
        assert (hits.degraded, engine.stats().unembedded, engine.embedder.state) == ([], 0, "ready")


def test_interrupted_reindex_resumes(hundred: Path) -> None:
    """A run that was broken off goes on where it stopped, in another process's handle too."""
    with memkura.open(hundred, embedder=Interrupted(12, after=70), clock=FrozenClock()) as engine:
        with pytest.raises(KeyboardInterrupt):
            engine.reindex()
        assert engine.count("c") == 100
        assert engine.recall("c", "lot 42")[0].summary == "tea of lot 42"
    toy = ToyEmbedder(12)
    with memkura.open(hundred, embedder=toy, clock=FrozenClock()) as engine:
        assert engine.count("c") == 100
        assert engine.reindex().state == "complete"
        assert engine.recall("c", "tea of lot 42", legs=["vector"], k=1)[0].summary == "tea of lot 42"


def test_old_embedder_still_works_while_reindexing_is_partial(hundred: Path) -> None:
    """The old vectors answer the old embedder until the new ones are all there."""
    toy = ToyEmbedder(12)
    toy.answers["lot 42"] = "raise"
    with memkura.open(hundred, embedder=toy, clock=FrozenClock()) as engine:
        assert engine.reindex().state == "partial"
    with memkura.open(hundred, embedder=ToyEmbedder(8), clock=FrozenClock()) as engine:
        hits = engine.recall("c", "tea of lot 42", legs=["vector"], k=1)
        assert (len(hits), hits.mode, hits.degraded) == (1, "vector", [])
        assert engine.stats().unembedded == 0


@pytest.mark.parametrize(("name", "dim"), [("other", 8), ("toy", 12)])
def test_same_dimension_of_another_model_is_another_embedder(hundred: Path, name: str, dim: int) -> None:
    """Vectors of two models are never compared, also when their lengths agree."""
    with memkura.open(hundred, embedder=ToyEmbedder(dim, name=name), clock=FrozenClock()) as engine:
        assert engine.recall("c", "tea of lot 42").degraded == ["vector:embedder_changed"]
        assert list(engine.recall("c", "tea of lot 42", legs=["vector"])) == []
        row = engine.remember("c", "tea of lot 300")
        assert not row.embedded
    with memkura.open(hundred, embedder=ToyEmbedder(8), clock=FrozenClock()) as engine:
        assert row not in ids(engine.recall("c", "tea of lot 300", legs=["vector"], k=200))
        engine.maintain()
        assert row in ids(engine.recall("c", "tea of lot 300", legs=["vector"], k=200))


BAD = ["zeros", "nan", "inf", "short", "raise"]


def _spoiled(toy: ToyEmbedder) -> None:
    for answer in BAD:
        toy.answers[f"spoils {answer}"] = answer  # type: ignore[assignment]


@pytest.mark.parametrize("batch", [False, True], ids=["singly", "batch"])
def test_unusable_vectors_cost_their_row_the_vector_alone(engine: Engine, toy: ToyEmbedder, batch: bool) -> None:  # noqa: FBT001
    """Zero, not finite, short or raised: the rows exist and are found by text; the vector leg has the good one."""
    _spoiled(toy)
    spoken = [f"tea that spoils {answer}" for answer in BAD] + ["tea that is good"]
    if batch:
        rows = engine.remember_many([{"context_id": "c", "summary": text} for text in spoken])
    else:
        rows = [engine.remember("c", text) for text in spoken]
    assert [row.embedded for row in rows] == [False] * len(BAD) + [True]
    assert [row.embedded for row in engine.list("c")] == [False] * len(BAD) + [True]
    assert engine.stats().unembedded == len(BAD)
    assert ids(engine.recall("c", "tea", legs=["vector"])) == [rows[-1]]
    hits = engine.recall("c", "tea", explain=True)
    assert set(ids(hits)) == set(rows)
    assert not [hit for hit in hits if math.isnan(hit.score)]
    assert "nan" not in repr([hit.explanation for hit in hits])


@pytest.mark.parametrize("answer", BAD)
def test_unusable_vector_has_a_reason(engine: Engine, toy: ToyEmbedder, answer: str) -> None:
    """The embedder's state says why; a wrong length names both lengths."""
    _spoiled(toy)
    engine.remember("c", f"tea that spoils {answer}")
    assert engine.embedder.state == "failing"
    assert engine.embedder.last_error
    if answer == "short":
        assert "63" in engine.embedder.last_error
        assert "64" in engine.embedder.last_error


@pytest.mark.parametrize("answer", BAD)
def test_unusable_query_vector_falls_back_to_text(engine: Engine, toy: ToyEmbedder, answer: str) -> None:
    """When the question's own vector is of no use, text answers and the result is marked degraded."""
    row = engine.remember("c", "tea that is good")
    toy.answers["?"] = answer  # type: ignore[assignment]
    hits = engine.recall("c", "tea ?")
    assert (ids(hits), hits.mode) == ([row], "text")
    assert len(hits.degraded) == 1
    assert hits.degraded[0].startswith("vector:")
    toy.answers.clear()
    assert engine.recall("c", "tea ?").degraded == []


@pytest.mark.parametrize(
    "vector",
    [
        [0.0] * 4,
        [math.nan, 0, 0, 1],
        [math.inf, 0, 0, 1],
        [-math.inf, 0, 0, 1],
        [1.0] * 3,
        [1.0] * 5,
        [],
        ["a", "b", "c", "d"],
        "abcd",
        b"abcd",
        [[1.0] * 4, [0.0] * 4],
        [[1.0] * 4, [1.0] * 3],
        7,
    ],
    ids=repr,
)
def test_given_vector_that_cannot_be_used_is_refused(tmp_path: Path, vector: Any) -> None:
    """A caller's own vector is checked before anything is written; a wrong length names both."""
    with memkura.open(tmp_path / "s", embedder=None) as engine:
        engine.remember("c", "tea", embedding=[1.0, 0.0, 0.0, 0.0])
        with pytest.raises(errors.InvalidInput) as caught:
            engine.remember("c", "coffee", embedding=vector)
        if vector in ([1.0] * 3, [1.0] * 5):
            assert isinstance(caught.value, errors.InvalidVector)
            assert str(len(vector)) in str(caught.value)
            assert "4" in str(caught.value)
        assert engine.count("c") == 1


@pytest.mark.parametrize("form", [list, tuple, lambda v: array("f", v), lambda v: array("d", v)])
def test_given_vector_may_have_any_usual_form(tmp_path: Path, form: Any) -> None:
    """Lists, tuples and arrays of either precision are the same vector, in writing and asking."""
    with memkura.open(tmp_path / "s", embedder=None) as engine:
        rows = [
            engine.remember("c", f"row {at}", embedding=form([float(at == place) for place in range(4)]))
            for at in range(4)
        ]
        for at, row in enumerate(rows):
            hits = engine.recall("c", embedding=form([float(at == place) for place in range(4)]), k=1, explain=True)
            assert ids(hits) == [row]
            assert hits[0].explanation["vector"]["cosine"] == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("scale", [1e-30, 1e-3, 1.0, 1e3, 1e30])
def test_length_of_a_vector_does_not_count(tmp_path: Path, scale: float) -> None:
    """Similarity is the cosine: vectors of any length are compared by direction alone."""
    with memkura.open(tmp_path / "s", embedder=None) as engine:
        row = engine.remember("c", "tea", embedding=[0.6 * scale, 0.8 * scale])
        engine.remember("c", "coffee", embedding=[1.0, 0.0])
        hits = engine.recall("c", embedding=[0.6, 0.8], explain=True)
        assert hits[0].memory_id == row
        assert hits[0].explanation["vector"]["cosine"] == pytest.approx(1.0, abs=1e-5)


@each_leg
def test_store_without_vectors_answers_by_text(store_path: Path, legs: Sequence[str] | None) -> None:
    """Text alone is a full mode: without an embedder nothing is degraded, and the vector leg is just empty."""
    with memkura.open(store_path, embedder=None) as engine:
        row = engine.remember("c", "tea")
        hits = engine.recall("c", "tea", legs=legs)
        assert ids(hits) == ([] if legs == ("vector",) else [row])
        assert engine.recall("c", "tea").degraded == []
        assert engine.embedder.state == "off"
