# ruff: noqa: RUF001 - odd letters are what is tested
"""Hostile input: every string is a query, no name becomes syntax, and what is too much is refused at once."""

from __future__ import annotations

import sqlite3
import time
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

# A query is to be answered in a second; ten times that is a hang.
HANG_SECONDS = 10.0


@pytest.fixture(scope="module")
def thousand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """A thousand ordinary rows."""
    with memkura.open(tmp_path_factory.mktemp("h") / "store", embedder=ToyEmbedder(), clock=FrozenClock()) as engine:
        engine.remember_many(
            {"context_id": "c", "summary": f"word{number} (not) a:b and a {number % 13}", "tags": [f"t{number % 7}"]}
            for number in range(1000)
        )
        yield engine


QUERIES = {
    "parentheses": "(" * 100_000,
    "quotes": '"' * 50_000,
    "nots": "NOT " * 20_000,
    "one letter": "a" * 1_000_000,
    "one kana": "あ" * 300_000,
    "stars": "* *",
    "fields": "a:b:c^9~",
    "range": "[1 TO",
    "words": " ".join(f"word{number}" for number in range(10_000)),
    "nul": "\x00",
    "surrogate": "\ud800",
    "marks": "e" + "\u0301" * 5_000,
    "joiners": "\u200d" * 50_000,
    "tags": "\U000e0069" * 20_000,
    "dots": "a." * 100_000,
    "underscores": "a_" * 100_000,
    "camels": "aB" * 100_000,
    "hangul": "각" * 100_000,
    "emoji": "😀" * 100_000,
    "slashes": "/" * 100_000,
    "digits": "1" * 100_000,
    "spaces": "a" + " " * 500_000 + "b",
}


@pytest.mark.parametrize("query", QUERIES.values(), ids=list(QUERIES))
@each_leg
def test_every_string_is_a_query_and_is_answered_soon(thousand: Engine, query: str, legs: Sequence[str] | None) -> None:
    """Whatever is asked is answered without an exception and without a hang."""
    started = time.monotonic()
    hits = thousand.recall("c", query, legs=legs)
    assert time.monotonic() - started < HANG_SECONDS
    assert all(0 <= hit.score < float("inf") for hit in hits)


@pytest.mark.parametrize("text", [text for text in QUERIES.values() if len(text.encode("utf-8", "replace")) <= 1 << 20])
def test_every_string_can_be_remembered_and_found(text: str) -> None:
    """The same strings as content are kept, indexed and harm no other row."""
    with memkura.open(":memory:", embedder=None) as engine:
        if text.isprintable() or text.strip("\x00\ud800"):
            row = engine.remember("c", "the odd one", text)
            memory = engine.get("c", row)
            assert memory is not None
            assert memory.content == text
        other = engine.remember("c", "an ordinary row")
        assert ids(engine.recall("c", "ordinary")) == [other]


def _deep(levels: int, how: str) -> dict[str, Any]:
    inner: dict[str, Any] = {"type": "note"}
    for _ in range(levels):
        inner = {"not": inner} if how == "not" else {how: [inner]}
    return inner


@pytest.mark.parametrize(
    "filters",
    [
        _deep(10_000, "not"),
        _deep(10_000, "and"),
        _deep(10_000, "or"),
        {"tags": {"in": [str(number) for number in range(100_000)]}},
        {"or": [{"tags": str(number)} for number in range(100_000)]},
        {f"metadata.x{number}": 1 for number in range(100_000)},
        {"tags": "x" * 10_000_000},
        {"metadata.x": _deep(10_000, "and")},
    ],
    ids=["nots", "ands", "ors", "values", "conditions", "members", "text", "operators"],
)
def test_filter_that_is_too_much_is_refused_soon(thousand: Engine, filters: dict[str, Any]) -> None:
    """A filter beyond its limits raises in every verb, at once."""
    started = time.monotonic()
    for verb in (thousand.count, thousand.list, thousand.forget):
        with pytest.raises(errors.InvalidInput):
            verb("c", filters=filters)
    with pytest.raises(errors.InvalidInput):
        thousand.recall("c", "word", filters=filters)
    assert time.monotonic() - started < HANG_SECONDS
    assert thousand.count("c") == 1000


SYNTAX = [
    "x'); DROP TABLE memory;--",
    'a"b',
    "a.b",
    "$.a[*]",
    "%",
    "_",
    "\\",
    ";",
    "--",
    "'",
    "`",
    "*",
    "?",
    "a%b",
    ":x",
    "@x",
    "{}",
    "[0]",
    "null",
    "NaN",
    "a\\u0000b",
    "𝒳",
    "..",
    "../../etc/passwd",
    "x/*",
    "*/",
    "${x}",
    "{{x}}",
    "<b>",
    "\u202e",
]


@pytest.mark.parametrize("name", SYNTAX)
def test_names_are_stored_filtered_and_returned_literally(engine: Engine, store_path: Path, name: str) -> None:
    """As context, key, scope, tag, type, session, metadata key and value a name means itself and matches itself."""
    row = engine.remember(
        name, f"about {name}", key=name, scope=name, tags=[name], type=name, session=name, metadata={name: {name: name}}
    )
    engine.remember(name, "another row", tags=["x"], metadata={"x": "y"})
    engine.remember("other", "another context")
    for filters in (
        {"tags": name},
        {"key": name},
        {"scope": name},
        {"type": name},
        {"session": name},
        {f"metadata.{name}.{name}": name},
        {"tags": {"in": [name]}},
        {"tags": {"gte": name, "lte": name}},
    ):
        assert ids(engine.list(name, filters=filters)) == [row], filters
        assert ids(engine.recall(name, "about row", filters=filters)) == [row], filters
    memory = engine.get(name, key=name, scope=name)
    assert memory is not None
    assert memory.memory_id == row
    assert (memory.context_id, memory.key, memory.scope, memory.tags) == (name, name, name, (name,))
    assert (memory.type, memory.session, memory.metadata) == (name, name, {name: {name: name}})
    assert engine.count("other") == 1
    assert engine.count(name) == 2
    assert sorted(one["context_id"] for one in engine.contexts()) == sorted({name, "other"})
    engine.close()
    with memkura.open(store_path, embedder=ToyEmbedder(), clock=FrozenClock()) as again:
        assert again.count(name, filters={"tags": name}) == 1


@pytest.mark.parametrize("name", SYNTAX)
def test_name_in_the_place_of_a_field_is_refused_by_name(engine: Engine, name: str) -> None:
    """An odd sort field, filter field, operator or leg is an error that names it."""
    engine.remember("c", "tea")
    with pytest.raises(errors.InvalidInput) as caught:
        engine.list("c", order=name)
    assert caught.value.field == "order"
    with pytest.raises(errors.UnknownField) as unknown:
        engine.count("c", filters={name: "x"})
    assert unknown.value.field == f"filters.{name}"
    with pytest.raises(errors.UnknownField):
        engine.count("c", filters={"tags": {name: "x"}})
    with pytest.raises(errors.InvalidInput):
        engine.recall("c", "tea", legs=[name])
    with pytest.raises(errors.InvalidInput):
        engine.recall("c", "tea", fusion=name)
    with pytest.raises(errors.InvalidInput):
        engine.recall("c", "tea", freshness=name)
    with pytest.raises(errors.InvalidInput):
        engine.recall("c", "tea", weights={name: 1.0})
    with pytest.raises(errors.InvalidInput):
        engine.remember_many([{"context_id": "c", "summary": "x", name: 1}])
    assert engine.count("c") == 1


@pytest.mark.parametrize(
    ("wild", "other"), [("%", "abc"), ("_", "a"), ("a%", "abc"), ("A", "a"), ("*", "abc"), ("", "a")]
)
def test_wildcards_match_only_themselves(engine: Engine, wild: str, other: str) -> None:
    """A filter value is literal, in every field that has texts."""
    engine.remember("c", "row", key=f"k{other}", tags=[other], session=other, type=other, metadata={"x": other})
    for field in ("tags", "session", "type", "metadata.x"):
        assert engine.count("c", filters={field: wild}) == 0
        assert engine.count("c", filters={field: other}) == 1
    assert engine.count("c", filters={"key": "k%"}) == 0


def test_tables_are_whole_after_hostile_names(engine: Engine, store_path: Path) -> None:
    """After all of them the record is sound: its own check passes, and it holds as many rows as were written."""
    for name in SYNTAX:
        engine.remember(name, f"about {name}", key=name, tags=[name], metadata={name: name})
    engine.close()
    record = sqlite3.connect(store_path / "record.sqlite3")
    try:
        assert record.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert record.execute("SELECT count(*) FROM memory").fetchone() == (len(SYNTAX),)
    finally:
        record.close()
