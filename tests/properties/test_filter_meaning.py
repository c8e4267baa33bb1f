"""Random filters over random memories: what the indexes answer is what the filter says in plain Python."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import memkura
from asking import LEGS, ids
from memkura.testing import FrozenClock, ToyEmbedder

DAY = datetime(2029, 1, 1, tzinfo=UTC)
TEXTS = ["a", "A", "b", "a_b", "a%b", "", "あ", "z"]
NUMBERS = [-1, 0, 1, 1.0, 0.5, 2, 2**53, 2**53 + 1, float(2**53), -(2**63), 2**63 - 1, 1e300, -0.0]

scalars = st.one_of(st.sampled_from(TEXTS), st.sampled_from(NUMBERS), st.booleans())
values = st.one_of(
    scalars,
    st.none(),
    st.lists(scalars, max_size=3),
    st.dictionaries(st.sampled_from(["y", "z"]), st.one_of(scalars, st.lists(scalars, max_size=2)), max_size=2),
)
days = st.integers(0, 4).map(lambda number: DAY + timedelta(days=number))
memories = st.fixed_dictionaries(
    {
        "summary": st.sampled_from(["tea", "green tea", "coffee"]),
        "type": st.sampled_from(["note", "fact"]),
        "importance": st.sampled_from([0.0, 0.25, 0.5, 1.0]),
    },
    optional={
        "tags": st.lists(st.sampled_from([text for text in TEXTS if text]), max_size=3, unique=True),
        "session": st.sampled_from(["s1", "s2"]),
        "event_time": days,
        "metadata": st.dictionaries(st.sampled_from(["x", "x.y", "w"]), values, max_size=3),
    },
)


def _tests(value: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    bounds = st.fixed_dictionaries(
        {}, optional={"gt": value, "lt": value, "eq": value, "in": st.lists(value, max_size=3), "exists": st.booleans()}
    )
    inclusive = st.fixed_dictionaries({}, optional={"gte": value, "lte": value})
    return st.one_of(value, bounds.filter(bool), inclusive.filter(bool))


conditions = st.one_of(
    st.fixed_dictionaries({"tags": _tests(st.sampled_from(TEXTS))}),
    st.fixed_dictionaries({"session": _tests(st.sampled_from(["s1", "s2", "s3"]))}),
    st.fixed_dictionaries({"type": _tests(st.sampled_from(["note", "fact", "rule"]))}),
    st.fixed_dictionaries({"importance": _tests(st.sampled_from([0, 0.25, 0.3, 0.5, 1]))}),
    st.fixed_dictionaries({"event_time": _tests(days)}),
    st.fixed_dictionaries({"metadata.x": _tests(scalars)}),
    st.fixed_dictionaries({"metadata.x.y": _tests(scalars)}),
    st.fixed_dictionaries({"metadata.nobody": _tests(scalars)}),
)
filters = st.recursive(
    conditions,
    lambda inner: st.one_of(
        st.fixed_dictionaries({"and": st.lists(inner, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"or": st.lists(inner, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"not": inner}),
        st.tuples(inner, inner).map(lambda pair: {**pair[0], **pair[1]}),
    ),
    max_leaves=6,
)


# What an object or a list is by itself: it is there, and equals nothing.
COMPOSITE = object()


def _leaves(path: str, value: Any) -> list[tuple[str, Any]]:
    """Every value in metadata with its path; what lists hold has the list's path."""
    if isinstance(value, dict):
        within = [leaf for name, item in value.items() for leaf in _leaves(f"{path}.{name}", item)]
        return [(path, COMPOSITE), *within]
    if isinstance(value, list):
        return [(path, COMPOSITE), *(leaf for item in value for leaf in _leaves(path, item))]
    return [] if value is None else [(path, value)]


def _held(row: dict[str, Any], name: str) -> list[Any]:
    """The values of a field."""
    if name.startswith("metadata."):
        every = [leaf for key, value in row.get("metadata", {}).items() for leaf in _leaves(f"metadata.{key}", value)]
        return [value for path, value in every if path == name]
    value = row.get(name)
    if value is None:
        return []
    return list(value) if name == "tags" else [value]


def _kind(value: Any) -> str:
    return "truth" if isinstance(value, bool) else "number" if isinstance(value, int | float) else type(value).__name__


def _equal(one: Any, other: Any) -> bool:
    return _kind(one) == _kind(other) and one == other


def _within(value: Any, test: dict[str, Any]) -> bool:
    """Whether it lies within every bound; values of another type than a bound lie outside."""
    holds = {
        "gt": lambda bound: value > bound,
        "gte": lambda bound: value >= bound,
        "lt": lambda bound: value < bound,
        "lte": lambda bound: value <= bound,
    }
    return all(
        _kind(value) == _kind(bound) and holds[operator](bound) for operator, bound in test.items() if operator in holds
    )


def _passes(held: list[Any], test: Any) -> bool:
    if not isinstance(test, dict):
        return any(_equal(value, test) for value in held)
    if "eq" in test and not any(_equal(value, test["eq"]) for value in held):
        return False
    if "in" in test and not any(_equal(value, wanted) for value in held for wanted in test["in"]):
        return False
    if "exists" in test and bool(held) != test["exists"]:
        return False
    if test.keys() & {"gt", "gte", "lt", "lte"}:
        return any(_within(value, test) for value in held)
    return True


def _matches(row: dict[str, Any], wanted: dict[str, Any]) -> bool:
    """What a filter means."""
    for name, part in wanted.items():
        if name == "and":
            holds = all(_matches(row, one) for one in part)
        elif name == "or":
            holds = any(_matches(row, one) for one in part)
        elif name == "not":
            holds = not _matches(row, part)
        else:
            holds = _passes(_held(row, name), part)
        if not holds:
            return False
    return True


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(rows=st.lists(memories, max_size=12), wanted=st.lists(filters, min_size=1, max_size=8))
def test_filters_mean_what_they_say(rows: list[dict[str, Any]], wanted: list[dict[str, Any]]) -> None:
    """Count, list and each leg of recall agree with the meaning, written down in plain Python."""
    with memkura.open(":memory:", embedder=ToyEmbedder(8), clock=FrozenClock()) as engine:
        written = [str(row) for row in engine.remember_many([{"context_id": "c", **row} for row in rows])]
        for one in wanted:
            matching = [row for row, said in zip(written, rows, strict=True) if _matches(said, one)]
            assert engine.count("c", filters=one) == len(matching), one
            assert ids(engine.list("c", filters=one)) == matching, one
            for leg, legs in LEGS.items():
                found = ids(engine.recall("c", "tea coffee", legs=legs, filters=one, k=100))
                assert sorted(found) == sorted(matching), (leg, one)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rows=st.lists(memories, min_size=1, max_size=10), one=filters)
def test_forgetting_by_a_filter_takes_what_it_means(rows: list[dict[str, Any]], one: dict[str, Any]) -> None:
    """The rows that go are those that match, and the rest stays; a filter that by its form is for all is refused."""
    with memkura.open(":memory:", embedder=None, clock=FrozenClock()) as engine:
        written = [str(row) for row in engine.remember_many([{"context_id": "c", **row} for row in rows])]
        matching = {row for row, said in zip(written, rows, strict=True) if _matches(said, one)}
        try:
            assert set(engine.forget("c", filters=one)) == matching
        except memkura.NothingSelected:
            assert matching == set(written)
            matching = set()
        assert set(ids(engine.list("c"))) == set(written) - matching
