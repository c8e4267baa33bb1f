"""The calls of memkura that are made most often, one by one, for ``pytest-benchmark``.

    pytest benches --benchmark-only
    pytest benches --benchmark-only --benchmark-save=before    (and after a change: --benchmark-compare=*_before)

It says what a change of ours did to one call. How memkura compares with others is said by ``rivals.py``, where all are
asked in turn. Tests are collected from ``tests`` alone, so this never runs with them.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest

import memkura
from memkura.embedders.given import Given
from workload import DIM, Workload, clustered, tag

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pytest_benchmark.fixture import BenchmarkFixture

_MEMORIES = 2_000
_QUESTIONS = 50


@pytest.fixture(scope="module")
def load() -> Workload:
    """Two thousand memories."""
    return clustered(_MEMORIES, _QUESTIONS)


@pytest.fixture(scope="module")
def ids() -> list[str]:
    """The ids of the memories, once they are there."""
    return []


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory, load: Workload, ids: list[str]) -> Iterator[memkura.Context]:
    """A context with all of them."""
    path: Path = tmp_path_factory.mktemp("calls")
    with memkura.open(path / "store", embedder=Given(DIM, "synthetic")) as engine:
        items = [{**item, "key": f"k{at}"} for at, item in enumerate(load.items())]
        ids += engine.remember_many(items)
        engine.compact()
        yield engine.context("c")


@pytest.fixture
def in_turn(load: Workload) -> Callable[[], int]:
    """The ordinal of another question at each call."""
    turns = itertools.cycle(range(len(load.questions)))
    return lambda: next(turns)


@pytest.mark.parametrize("share", [None, 0.6, 0.01])
@pytest.mark.parametrize("legs", [["text"], ["vector"], None], ids=["text", "vector", "hybrid"])
def test_recall(
    benchmark: BenchmarkFixture,
    context: memkura.Context,
    load: Workload,
    in_turn: Callable[[], int],
    legs: list[str] | None,
    share: float | None,
) -> None:
    """The best ten, by either leg or both, of all and under a filter."""
    filters: dict[str, Any] | None = None if share is None else {"tags": tag("random", share)}

    def recall() -> memkura.Hits:
        at = in_turn()
        text = None if legs == ["vector"] else load.questions[at]
        vector = None if legs == ["text"] else load.question_vectors[at]
        return context.recall(text, embedding=vector, k=10, legs=legs, filters=filters)

    assert len(benchmark(recall)) > 0


def test_get_by_id(benchmark: BenchmarkFixture, context: memkura.Context, ids: list[str]) -> None:
    """One memory by its id."""
    assert benchmark(lambda: context.get(ids[_MEMORIES // 2])) is not None


def test_get_by_key(benchmark: BenchmarkFixture, context: memkura.Context) -> None:
    """One memory by its key."""
    assert benchmark(lambda: context.get(key="k1000")) is not None


def test_count(benchmark: BenchmarkFixture, context: memkura.Context) -> None:
    """How many a filter keeps."""
    assert benchmark(lambda: context.count(filters={"tags": tag("random", 0.1)})) == _MEMORIES // 10


def test_list(benchmark: BenchmarkFixture, context: memkura.Context) -> None:
    """The latest hundred."""
    assert len(benchmark(lambda: context.list(limit=100, descending=True))) == 100


@pytest.mark.parametrize("durability", ["power_loss", "process_crash"])
def test_remember(benchmark: BenchmarkFixture, tmp_path: Path, load: Workload, durability: Any) -> None:
    """One memory, in a store that begins empty."""
    numbers = itertools.count()
    with memkura.open(tmp_path / "store", embedder=Given(DIM, "synthetic"), durability=durability) as engine:

        def remember() -> memkura.Remembered:
            at = next(numbers)
            return engine.remember("c", f"{at} {load.texts[at % _MEMORIES]}", embedding=load.vectors[at % _MEMORIES])

        assert benchmark(remember).created
