"""Text and names that strangers wrote: data, never syntax."""

from __future__ import annotations

from typing import Any

import pytest

import memkura
from memkura import errors
from memkura.testing import ToyEmbedder

_QUERIES = {
    "brackets": "(" * 100_000,
    "quotes": '"' * 50_000,
    "nots": "NOT " * 20_000,
    "one-word": "a" * 1_000_000,
    "stars": "* *",
    "fields": "a:b:c^9~",
    "range": "[1 TO",
    "many-words": " ".join(f"w{at}" for at in range(10_000)),
    "nul": "\0",
    "surrogate": "\ud800",
    "marks": "a" + "\u0301" * 5_000,
    "unspaced": "港" * 100_000,
    "joined": "x_" * 100_000,
    "hidden": "\u200b" * 100_000 + "word1",
}

_NAMES = ["x'); DROP TABLE memory;--", 'a"b', "a.b", "$.a[*]", "%", "_", "\\", ";", "--", "*", "あ_い"]


@pytest.fixture(scope="module")
def crowded() -> Any:
    """A store of a thousand rows."""
    with memkura.open(":memory:", embedder=ToyEmbedder()) as engine:
        engine.remember_many([{"context_id": "c", "summary": f"word{at} common topic {at % 13}"} for at in range(1000)])
        yield engine


@pytest.mark.timeout(20)
@pytest.mark.parametrize("query", _QUERIES.values(), ids=_QUERIES.keys())
def test_every_string_is_a_legal_query(crowded: memkura.Engine, query: str) -> None:
    """However odd or long, a query is answered, without an exception."""
    assert len(crowded.recall("c", query)) <= 10


@pytest.mark.parametrize("name", _NAMES)
def test_names_are_literal(name: str) -> None:
    """Contexts, keys, tags, metadata keys and sessions with signs in them are kept, filtered and returned literally."""
    with memkura.open(":memory:", embedder=None) as engine:
        for context in (name, "other"):
            engine.remember(
                context, "kept", key=name, tags=[name], metadata={name: name}, session=name, idempotency_key=name
            )
        engine.remember(name, "plain", tags=["plain"], metadata={"plain": "plain"})
        memory = engine.get(name, key=name)
        assert memory is not None
        assert (memory.context_id, memory.key, memory.tags, memory.metadata) == (name, name, (name,), {name: name})
        filters: list[dict[str, Any]] = [
            {"tags": name},
            {f"metadata.{name}": name},
            {"session": name},
            {"key": name},
            {"tags": {"in": [name]}},
        ]
        for wanted in filters:
            assert engine.count(name, filters=wanted) == 1, wanted
        assert engine.count(name) == 2
        assert engine.count("other") == 1
        engine.forget(name, filters={"tags": name})
        assert (engine.count(name), engine.count("other")) == (1, 1)


def test_deep_and_wide_filters_are_refused(crowded: memkura.Engine) -> None:
    """A filter nested 10,000 deep, or with 100,000 values, is refused by name."""
    deep: dict[str, Any] = {"type": "note"}
    for _ in range(10_000):
        deep = {"not": deep}
    for filters in (deep, {"tags": {"in": ["a"] * 100_000}}, {"or": [{"type": "a"}] * 10_000}):
        with pytest.raises(errors.LimitExceeded):
            crowded.count("c", filters=filters)


@pytest.mark.parametrize(
    ("filters", "error"),
    [
        ({"trust_teir": "trusted"}, errors.UnknownField),
        ({"type": {"like": "n%"}}, errors.UnknownField),
        ({"importance": "high"}, errors.InvalidFilter),
        ({"created_at": "2030-01-01T00:00:00"}, errors.InvalidInput),
        ({"memory_id": {"gt": "a"}}, errors.InvalidFilter),
        ({"or": []}, errors.InvalidFilter),
        ([], errors.InvalidInput),
        ("type", errors.InvalidInput),
    ],
)
def test_filter_that_means_nothing_is_refused(crowded: memkura.Engine, filters: Any, error: type[Exception]) -> None:
    """A filter is never run without what was not understood, by any verb."""
    for verb in (
        lambda: crowded.recall("c", "word", filters=filters),
        lambda: crowded.count("c", filters=filters),
        lambda: crowded.list("c", filters=filters),
        lambda: crowded.forget("c", filters=filters),
    ):
        with pytest.raises(error):
            verb()
    assert crowded.count("c") == 1000
