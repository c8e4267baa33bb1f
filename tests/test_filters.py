"""Filters hold before the cut, limits are exact, order is reproducible and scores are honest."""

from __future__ import annotations

import math
import operator
import random
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

import memkura
from asking import each_leg, ids
from memkura import errors
from memkura.testing import FrozenClock, ToyEmbedder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from memkura import Engine

EARLY = datetime(2029, 1, 1, tzinfo=UTC)
LATE = datetime(2029, 6, 1, tzinfo=UTC)
FEW = 5


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """A thousand rows near to "green tea", and five farther away that differ in every field one can filter by."""
    path = tmp_path_factory.mktemp("crowd") / "store"
    near = [
        {
            "context_id": "c",
            "summary": f"green tea tea green {number % 5}",
            "tags": ["a", "all"],
            "metadata": {"lot": 1, "of": {"who": "ann"}, "list": [1, 2]},
            "event_time": EARLY,
            "session": "s1",
            "importance": 0.9,
            "type": "note",
        }
        for number in range(1000)
    ]
    far = [
        {
            "context_id": "c",
            "summary": "green tea " + "and some other words " * (number + 1),
            "tags": ["b", "all"],
            "metadata": {"lot": 2, "of": {"who": "ben"}, "list": [2, 3]},
            "event_time": LATE,
            "session": "s2",
            "importance": 0.4,
            "type": "fact",
            "delivery_mode": "always",
        }
        for number in range(FEW)
    ]
    with memkura.open(path, embedder=ToyEmbedder(), clock=FrozenClock()) as engine:
        engine.remember_many([*near[:500], *far, *near[500:]])
        yield engine


SELECTIVE: list[dict[str, Any]] = [
    {"tags": "b"},
    {"tags": {"in": ["b", "nobody"]}},
    {"event_time": {"gte": LATE}},
    {"event_time": {"gt": EARLY, "lte": "2029-06-01T09:00:00+09:00"}},
    {"delivery_mode": "always"},
    {"type": "fact"},
    {"session": "s2"},
    {"importance": {"lt": 0.5}},
    {"metadata.lot": 2},
    {"metadata.lot": {"gt": 1, "lt": 3}},
    {"metadata.of.who": "ben"},
    {"metadata.list": 3},
    {"not": {"tags": "a"}},
    {"or": [{"tags": "b"}, {"metadata.lot": 99}]},
    {"and": [{"tags": "all"}, {"type": "fact"}]},
    {"tags": "b", "type": "fact", "event_time": {"gte": LATE}},
    {"trust_tier": "trusted", "metadata.lot": 2},
    {"not": {"or": [{"metadata.lot": 1}, {"session": "s1"}]}},
]


@pytest.mark.parametrize("filters", SELECTIVE, ids=repr)
@each_leg
def test_filter_holds_before_the_cut(crowd: Engine, filters: dict[str, Any], legs: Sequence[str] | None) -> None:
    """When five of a thousand and five match, k=5 gives exactly these, in the order that the whole answer has them."""
    crowd.recall("c", "green tea", k=2000)
    wanted = [hit.memory_id for hit in crowd.recall("c", "green tea", k=2000, legs=legs) if hit.session == "s2"]
    got = crowd.recall("c", "green tea", k=FEW, filters=filters, legs=legs)
    assert set(ids(got)) == set(wanted)
    assert len(got) == FEW == crowd.count("c", filters=filters)
    scores = [hit.score for hit in got]
    assert scores == sorted(scores, reverse=True)
    if legs == ("vector",):
        assert ids(got) == wanted
    assert ids(crowd.recall("c", "green tea", k=FEW - 2, filters=filters, legs=legs)) == ids(got)[: FEW - 2]


def test_filtered_order_within_a_leg_is_by_raw_score(crowd: Engine) -> None:
    """Among the rows that match, the raw cosine or raw keyword score decides."""
    for leg, path in (("vector", ("vector", "cosine")), ("text", ("text", "score"))):
        hits = crowd.recall("c", "green tea", k=FEW, filters={"tags": "b"}, legs=[leg], explain=True)
        raw = [hit.explanation[path[0]][path[1]] for hit in hits]
        assert raw == sorted(raw, reverse=True)
        assert len(set(raw)) == FEW


def test_filter_does_not_change_raw_scores(crowd: Engine) -> None:
    """A row's keyword score and cosine are the same with and without a filter."""
    whole = {hit.memory_id: hit for hit in crowd.recall("c", "green tea", k=2000, explain=True)}
    for hit in crowd.recall("c", "green tea", k=FEW, filters={"tags": "b"}, explain=True):
        before = whole[hit.memory_id].explanation
        assert hit.explanation["vector"]["cosine"] == pytest.approx(before["vector"]["cosine"], abs=1e-6)
        assert hit.explanation["text"]["score"] == pytest.approx(before["text"]["score"], abs=1e-6)


@pytest.mark.parametrize(
    ("filters", "error"),
    [
        ({"importance": "high"}, errors.InvalidFilter),
        ({"created_at": 5}, errors.InvalidFilter),
        ({"tags": {}}, errors.InvalidFilter),
        ({"tags": 1}, errors.InvalidFilter),
        ({"or": {}}, errors.InvalidFilter),
        ({"importance": {"gt": 0.1, "gte": 0.2}}, errors.InvalidFilter),
        ({"event_time": {"gt": datetime(2029, 1, 1)}}, errors.InvalidInput),  # noqa: DTZ001 - that is the point
        ({"metadata.x": None}, errors.InvalidFilter),
        ({"metadata.x": float("nan")}, errors.InvalidInput),
        ({"metadata.x": 2**63}, errors.InvalidInput),
        ({"metadata.x": {"near": 1}}, errors.UnknownField),
        ({"metadata.x": {"exists": "yes"}}, errors.InvalidFilter),
        ({1: 2}, errors.InvalidInput),
        ([("tags", "a")], errors.InvalidInput),
    ],
    ids=repr,
)
def test_malformed_filter_is_refused(crowd: Engine, filters: Any, error: type[Exception]) -> None:
    """A filter that cannot mean anything raises in each verb, whether or not a row would match."""
    for verb in (crowd.list, crowd.count):
        with pytest.raises(error):
            verb("c", filters=filters)
    with pytest.raises(error):
        crowd.recall("c", "tea", filters=filters)


@pytest.mark.parametrize("share", [1, 10, 100, 500, 1000])
def test_vector_leg_is_exact_under_selective_filters(tmp_path: Path, share: int) -> None:
    """The ten nearest of those that match are the true ten, however few match, and also when half was forgotten."""
    rows, dim, questions = 6000, 32, 20
    chance = random.Random(7)
    vectors = [_unit(chance, dim) for _ in range(rows)]
    matching = [number for number in range(rows) if number * 7919 % 1000 < share]
    with memkura.open(tmp_path / "store", embedder=None, clock=FrozenClock()) as engine:
        written = engine.remember_many(
            [
                {
                    "context_id": "c",
                    "summary": f"row {number}",
                    "tags": ["in"] if number * 7919 % 1000 < share else ["out"],
                    "embedding": vectors[number],
                }
                for number in range(rows)
            ],
            batch_size=rows,
        )
        asked = [_unit(chance, dim) for _ in range(questions)]
        assert _mean_recall(engine, asked, vectors, written, matching) >= (1.0 if share <= 10 else 0.99)
        engine.forget("c", filters={"memory_id": {"in": [str(row) for row in written[::2]]}})
        left = [number for number in matching if number % 2]
        assert engine.count("c", filters={"tags": "in"}) == len(left)
        assert _mean_recall(engine, asked, vectors, written, left) >= (1.0 if share <= 10 else 0.99)


def _unit(chance: random.Random, dim: int) -> list[float]:
    vector = [chance.gauss(0, 1) for _ in range(dim)]
    length = sum(value * value for value in vector) ** 0.5
    return [value / length for value in vector]


def _mean_recall(
    engine: Engine,
    asked: Sequence[Sequence[float]],
    vectors: Sequence[Sequence[float]],
    written: Sequence[str],
    matching: Sequence[int],
) -> float:
    found = wanted = 0
    for question in asked:
        near = sorted(matching, key=lambda at: -sum(a * b for a, b in zip(question, vectors[at], strict=True)))[:10]
        hits = engine.recall("c", embedding=question, k=10, filters={"tags": "in"})
        assert len(hits) == len(near)
        wanted += len(near)
        found += len({str(written[at]) for at in near} & set(ids(hits)))
    return found / wanted if wanted else 1.0


@pytest.fixture(scope="module")
def thirty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """Thirty rows that all answer "tea"."""
    with memkura.open(tmp_path_factory.mktemp("thirty") / "s", embedder=ToyEmbedder(), clock=FrozenClock()) as engine:
        for number in range(30):
            engine.remember("c", f"tea of lot {number}" + " and more" * (number % 4))
        engine.remember("one", "tea")
        engine.create_context("empty")
        yield engine


@pytest.mark.parametrize("k", [0, 1, 5, 29, 30, 31, 10_000, 100_000])
@each_leg
def test_limit_is_exact(thirty: Engine, k: int, legs: Sequence[str] | None) -> None:
    """There are min(k, matches) hits, all of them rows that exist, none twice."""
    hits = thirty.recall("c", "tea", k=k, legs=legs)
    assert len(hits) == min(k, 30)
    assert len(set(ids(hits))) == len(hits)
    assert set(ids(hits)) <= set(ids(thirty.list("c")))
    assert len(thirty.recall("one", "tea", k=k, legs=legs)) == min(k, 1)
    assert len(thirty.recall("empty", "tea", k=k, legs=legs)) == 0
    assert len(thirty.recall("never written", "tea", k=k, legs=legs)) == 0


@pytest.mark.parametrize("k", [-1, -(2**70), 100_001, 2**70, 1.5, "3", None, True], ids=repr)
def test_impossible_limit_is_refused(thirty: Engine, k: Any) -> None:
    """A limit that is negative, beyond the documented one or no whole number raises a ValueError."""
    with pytest.raises(ValueError, match="k"):
        thirty.recall("c", "tea", k=k)
    with pytest.raises(ValueError, match="offset"):
        thirty.recall("c", "tea", offset=-1)
    with pytest.raises(ValueError, match="limit"):
        thirty.list("c", limit=-1)


@pytest.mark.parametrize("size", [1, 4, 7, 15, 29])
@each_leg
def test_pages_together_are_the_whole(thirty: Engine, size: int, legs: Sequence[str] | None) -> None:
    """Pages of any size, laid end to end, are the answer in one piece; so are those of `list`."""
    whole = ids(thirty.recall("c", "tea", k=30, legs=legs))
    starts = range(0, 35, size)
    assert [one for start in starts for one in ids(thirty.recall("c", "tea", k=size, offset=start, legs=legs))] == whole
    listed = ids(thirty.list("c", limit=1000))
    assert [one for start in starts for one in ids(thirty.list("c", limit=size, offset=start))] == listed
    assert ids(thirty.list("c", limit=1000, descending=True)) == listed[::-1]


def test_large_limit_is_kept(tmp_path: Path) -> None:
    """Of 12,000 rows k=6,000 gives 6,000, and k=100,000 gives all."""
    with memkura.open(tmp_path / "s", embedder=None) as engine:
        engine.remember_many(
            [{"context_id": "c", "summary": f"tea {number}"} for number in range(12_000)], batch_size=12_000
        )
        assert len(set(ids(engine.recall("c", "tea", k=6000)))) == 6000
        assert len(set(ids(engine.recall("c", "tea", k=100_000)))) == 12_000
        assert len(engine.list("c", limit=12_000)) == engine.count("c") == 12_000


ORDER = """
import sys, memkura
from memkura.testing import FrozenClock, ToyEmbedder
with memkura.open(sys.argv[1], embedder=ToyEmbedder(), clock=FrozenClock()) as engine:
    for legs in (None, ["text"], ["vector"]):
        print([(hit.memory_id, hit.score) for hit in engine.recall("c", "tea of the house", k=20, legs=legs)])
"""


def test_order_is_the_same_in_fresh_processes_after_compact_and_rebuild(engine: Engine, store_path: Path) -> None:
    """The same data and query give the same ids in the same order, whoever asks and whatever was tidied."""
    for number in range(60):
        engine.remember("c", f"tea of the {'house' if number % 3 else 'garden'}" + " more" * (number % 5))

    def asked() -> str:
        return subprocess.run(
            [sys.executable, "-c", ORDER, str(store_path)], capture_output=True, text=True, timeout=60, check=True
        ).stdout

    first = asked()
    assert first.count("01") > 50
    assert asked() == first
    engine.compact()
    assert asked() == first
    engine.reindex()
    assert asked() == first


@each_leg
def test_equal_scores_go_by_id(engine: Engine, legs: Sequence[str] | None) -> None:
    """Rows that say the same come in the order of their ids."""
    rows = [engine.remember("c", "the very same tea") for _ in range(12)]
    hits = engine.recall("c", "the very same tea", k=12, legs=legs)
    assert len({hit.score for hit in hits}) == 1
    assert ids(hits) == sorted(rows)


def test_explanation_shows_raw_signals(engine: Engine) -> None:
    """Every hit shows its raw cosine, raw keyword score, rank in each leg and its decay factor."""
    for text in ("tea of the house", "tea of the garden and the house", "coffee of the house"):
        engine.remember("c", text)
    hits = engine.recall("c", "tea of the house", explain=True)
    assert len(hits) == 3
    for hit in hits:
        said = hit.explanation
        assert -1.0 <= said["vector"]["cosine"] <= 1.0 + 1e-6
        assert said["text"]["score"] > 0
        assert said["vector"]["rank"] >= 1
        assert said["text"]["rank"] >= 1
        assert said["freshness_factor"] == 1.0
        assert said["score"] == hit.score


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"legs": ["text"]}, "it shares no word with the query"),
        ({"legs": ["vector"], "min_similarity": 0.99}, "its cosine is below min_similarity, or no leg finds it"),
        ({"legs": ["key"]}, "the query does not name its key"),
        ({"filters": {"type": "rule"}}, "a filter excludes it"),
    ],
)
def test_reason_is_true_of_the_legs_that_were_asked(engine: Engine, options: dict[str, Any], reason: str) -> None:
    """Why a memory is in no answer."""
    row = engine.remember("c", "tea of the house")
    query = "zzz" if "text" in options.get("legs", ["text"]) else "tea"
    assert engine.explain("c", query, row, **options)["reason"] == reason


def test_superseded_memory_is_explained_as_one_when_asked_for(engine: Engine) -> None:
    """It is in use for whoever includes superseded ones."""
    old = engine.remember("c", "stack: PostgreSQL")
    engine.remember("c", "stack: MySQL", supersedes=old)
    assert engine.explain("c", "stack", old)["reason"] == "it is not in use"
    assert engine.explain("c", "stack", old, include_superseded=True)["rank"] == 1
    assert "no word" in engine.explain("c", "zzz", old, include_superseded=True, legs=["text"])["reason"]


def test_raw_signals_do_not_depend_on_the_best_candidate(engine: Engine) -> None:
    """A row's cosine is the same whether or not a better row is in the answer."""
    row = engine.remember("c", "tea of the house")
    before = engine.explain("c", "tea garden", row)["vector"]["cosine"]
    best = engine.remember("c", "tea garden")
    assert engine.explain("c", "tea garden", row)["vector"]["cosine"] == pytest.approx(before, abs=1e-6)
    assert engine.explain("c", "tea garden", best)["vector"]["cosine"] == pytest.approx(1.0, abs=1e-5)
    assert 0 < before < 0.99


def test_minimum_similarity_compares_raw_cosines(engine: Engine) -> None:
    """Nothing is near a foreign query; without the floor nothing is hidden; the floor is the raw cosine itself."""
    for text in ("boil the pasta in salted water", "knead the dough for ten minutes", "roast the onions slowly"):
        engine.remember("c", text)
    assert list(engine.recall("c", "quantum chromodynamics", min_similarity=0.5)) == []
    assert len(engine.recall("c", "quantum chromodynamics", legs=["vector"])) == 3
    hits = engine.recall("c", "boil the dough", explain=True, legs=["vector"])
    cosines = [hit.explanation["vector"]["cosine"] for hit in hits]
    for floor in (-1.0, 0.0, 0.2, 0.5, 1.0):
        left = engine.recall("c", "boil the dough", legs=["vector"], min_similarity=floor)
        assert ids(left) == [hit.memory_id for hit, cosine in zip(hits, cosines, strict=True) if cosine >= floor]


def test_no_floor_hides_opposite_vectors(tmp_path: Path) -> None:
    """Without `min_similarity` even a row whose cosine is -1 fills the answer up."""
    with memkura.open(tmp_path / "s", embedder=None) as engine:
        rows = [
            engine.remember("c", f"row {number}", embedding=vector)
            for number, vector in enumerate([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
        ]
        assert ids(engine.recall("c", embedding=[1.0, 0.0], k=10)) == rows


@pytest.mark.parametrize("order", ["created_at", "updated_at"])
def test_list_is_in_the_order_asked_for(engine: Engine, clock: FrozenClock, order: str) -> None:
    """Rows are listed by the time of creation or of change, ties by id."""
    rows = []
    for number in range(6):
        rows.append(engine.remember("c", f"row {number}"))
        if number % 2:
            clock.advance(timedelta(seconds=1))
    engine.update_memory("c", rows[0], importance=0.9)
    wanted = sorted(engine.list("c"), key=lambda row: (getattr(row, order), row.memory_id))
    assert ids(engine.list("c", order=order)) == ids(wanted)
    assert ids(engine.list("c", order=order, descending=True))[-1] == wanted[0].memory_id


def test_order_holds_far_behind_the_best(engine: Engine) -> None:
    """Memories that fit badly are in the order in which they fit, whatever their ids."""
    words = " ".join(f"w{number}" for number in range(400))
    worst = engine.remember("c", f"tulip {words}")
    worse = engine.remember("c", f"tulip {words[:550]}")
    engine.remember_many([{"context_id": "c", "summary": "tulip tulip tulip rose"} for _ in range(40)])
    hits = engine.recall("c", "tulip", k=42, legs=["text"])
    assert ids(hits)[-2:] == [worse, worst]
    assert hits[-1].score < hits[-2].score < hits[-3].score


def test_many_answers_of_the_vector_leg_are_the_nearest(store_path: Path) -> None:
    """A large `k` gives the `k` nearest, in their order."""
    chance = random.Random(4)
    vectors = [[chance.gauss(0, 1) for _ in range(16)] for _ in range(3000)]
    items = [{"context_id": "c", "summary": f"row {at}", "embedding": vector} for at, vector in enumerate(vectors)]
    with memkura.open(store_path.with_name("many"), embedder=None) as engine:
        rows = engine.remember_many(items)
        asked = [chance.gauss(0, 1) for _ in range(16)]
        found = ids(engine.recall("c", embedding=asked, k=1000))
    nearness = {
        str(row): sum(map(operator.mul, asked, vector)) / math.hypot(*vector)
        for row, vector in zip(rows, vectors, strict=True)
    }
    nearest = sorted(nearness, key=lambda row: -nearness[row])[:1000]
    assert len(set(nearest) & set(found)) >= 999
    assert [nearness[row] for row in found] == pytest.approx([nearness[row] for row in nearest], abs=1e-6)


def test_instant_is_not_compared_with_metadata(engine: Engine) -> None:
    """Metadata holds texts: two texts of one instant need not be alike."""
    engine.remember("c", "x", metadata={"due": "2030-01-01T09:00:00+09:00"})
    due = datetime(2030, 1, 1, tzinfo=UTC)
    for filters in ({"metadata.due": due}, {"metadata.due": {"lt": due}}, {"not": {"metadata.due": {"in": [due]}}}):
        with pytest.raises(errors.InvalidInput, match="instant"):
            engine.count("c", filters=filters)
    assert engine.count("c", filters={"metadata.due": "2030-01-01T09:00:00+09:00"}) == 1


@pytest.mark.parametrize(
    ("filters", "advice"),
    [
        ({"tags": ["a", "b"]}, '"in"'),
        ({"type": None}, '"exists"'),
        ({"type": {"ne": "rule"}}, '"not"'),
        ({"trust_tier": "trustd"}, "external, trusted"),
        ({"not": {"trust_tier": "extrenal"}}, "external, trusted"),
        ({"status": {"in": ["active", "deleted"]}}, "active, stale, retired, archived"),
        ({"source_type": "web"}, "manual, import, connector"),
        ({"delivery_mode": {"eq": "never"}}, "on_recall, always, on_trigger"),
    ],
)
def test_slip_in_a_filter_is_told_with_what_was_meant(engine: Engine, filters: Any, advice: str) -> None:
    """A filter that could only ever match nothing, or everything, is no filter that anybody wants."""
    with pytest.raises(errors.MemkuraError) as caught:
        engine.count("c", filters=filters)
    assert advice in str(caught.value)
