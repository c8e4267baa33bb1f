"""Values come back with the value and the type they had, or are refused by their path before anything is written."""

from __future__ import annotations

import dataclasses
import decimal
import enum
import math
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import pytest

import memkura
from asking import ids
from memkura import errors
from memkura.testing import FrozenClock, ToyEmbedder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from memkura import Engine


class Colour(enum.IntEnum):
    RED = 1


@dataclasses.dataclass
class Point:
    x: int = 1


class Text(str):
    __slots__ = ()


KEPT: list[Any] = [
    9007199254740993,
    -(2**63),
    2**63 - 1,
    True,
    False,
    1,
    0,
    1.0,
    -0.0,
    0.1,
    1e308,
    5e-324,
    1e16,
    1.7976931348623157e308,
    "1",
    "",
    "\u3000",
    "😀é",
    "e\u0301",
    None,
    [],
    {},
    [[]],
    [None, True, 1, 1.0, "1", [], {}],
    {"": 1, "a.b": 2, "a": {"b": 3}, "\u30d1": {"$": [1]}},
    {"z": 1, "a": 2, "m": 3},
]


def _same(one: Any, other: Any) -> bool:
    """Equal, and of equal types all the way down; a negative zero stays one."""
    if type(one) is not type(other):
        return False
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(one[name], other[name]) for name in one)
    if isinstance(one, float):
        return one == other and math.copysign(1, one) == math.copysign(1, other)
    return bool(one == other)


@pytest.mark.parametrize("value", KEPT, ids=ascii)
def test_metadata_comes_back_with_value_and_type(engine: Engine, store_path: Path, value: Any) -> None:
    """From get, list, recall, history and after an update, in the same handle and a later one."""
    given = {"x": value, "deep": {"list": [value, {"x": value}]}}
    row = engine.remember("c", "tea", metadata=given)
    changed = engine.remember("c", "coffee", metadata={"x": 0})
    engine.update_memory("c", changed, metadata=given)
    with memkura.open(store_path, embedder=ToyEmbedder(), clock=FrozenClock()) as again:
        for opened in (engine, again):
            memory = opened.get("c", row)
            assert memory is not None
            answers = [
                memory.metadata,
                memory.as_dict()["metadata"],
                opened.list("c")[1].metadata,
                opened.recall("c", "tea", legs=["text"])[0].metadata,
                opened.recall("c", "tea", legs=["text"])[0].as_dict()["metadata"],
                opened.history("c", row)[0]["metadata"],
            ]
            assert all(_same(answer, given) for answer in answers)


class OwnList(list[int]):
    pass


REFUSED: list[tuple[Any, str]] = [
    ({1: "a"}, ""),
    ({None: "a"}, ""),
    ({True: "a"}, ""),
    ({("a",): 1}, ""),
    ({b"a": 1}, ""),
    (math.nan, ""),
    (math.inf, ""),
    (-math.inf, ""),
    (datetime(2030, 1, 1, tzinfo=UTC), ""),
    (date(2030, 1, 1), ""),
    (b"bytes", ""),
    (bytearray(b"x"), ""),
    ({1, 2}, ""),
    (frozenset("a"), ""),
    ((1, 2), ""),
    (2**63, ""),
    (-(2**63) - 1, ""),
    (10**400, ""),
    (decimal.Decimal("1.5"), ""),
    (1j, ""),
    (Point(), ""),
    (Colour.RED, ""),
    (object(), ""),
    (lambda: None, ""),
    (range(3), ""),
    ("half \ud800", ""),
    ("nul \x00", ""),
    ({"half \ud800": 1}, ""),
    ([1, math.nan], "[1]"),
    ([[{"y": 2**63}]], "[0][0].y"),
    ({"y": [0, {"z": {1}}]}, ".y[1].z"),
    ({"y": {"z": (1,)}}, ".y.z"),
]


@pytest.mark.parametrize(("value", "path"), REFUSED, ids=lambda part: ascii(part)[:40])
def test_value_that_cannot_come_back_is_refused_with_its_path(engine: Engine, value: Any, path: str) -> None:
    """The error names where it stands; no verb writes anything, and a batch is refused whole."""
    row = engine.remember("c", "tea", metadata={"x": 1})
    verbs: list[Callable[[Any], Any]] = [
        lambda metadata: engine.remember("c", "coffee", metadata=metadata),
        lambda metadata: engine.update_memory("c", row, metadata=metadata),
        lambda metadata: engine.remember_many(
            [{"context_id": "c", "summary": "good"}, {"context_id": "c", "summary": "bad", "metadata": metadata}]
        ),
    ]
    for verb in verbs:
        with pytest.raises(errors.InvalidInput) as caught:
            verb({"good": 1, "x": value})
        assert caught.value.field is not None
        assert caught.value.field.removeprefix("[1].").removeprefix("items[1].") == f"metadata.x{path}"
    assert ids(engine.list("c")) == [row]
    memory = engine.get("c", row)
    assert memory is not None
    assert (memory.metadata, memory.version) == ({"x": 1}, 1)


@pytest.mark.parametrize("metadata", [[], "x", 1, [("a", 1)], {1: 2}], ids=repr)
def test_metadata_that_is_no_object_is_refused(engine: Engine, metadata: Any) -> None:
    """Only a mapping with text keys is metadata."""
    with pytest.raises(errors.InvalidInput) as caught:
        engine.remember("c", "tea", metadata=metadata)
    assert (caught.value.field or "").startswith("metadata")
    assert engine.count("c") == 0


@pytest.mark.parametrize("name", ["trust_tier", "provenance", "source_type", "trust"])
def test_metadata_cannot_speak_about_trust(engine: Engine, name: str) -> None:
    """A name that claims trust is refused by that name, in writing and updating."""
    row = engine.remember("c", "tea")
    with pytest.raises(errors.InvalidInput) as caught:
        engine.remember("c", "coffee", metadata={name: "trusted"})
    assert caught.value.field == f"metadata.{name}"
    with pytest.raises(errors.InvalidInput) as caught:
        engine.update_memory("c", row, metadata={name: "trusted"})
    assert caught.value.field == f"metadata.{name}"
    assert engine.count("c") == 1


def test_self_containing_value_is_refused(engine: Engine) -> None:
    """A list or dictionary that holds itself is refused, and does not end the process."""
    endless: list[Any] = []
    endless.append(endless)
    loop: dict[str, Any] = {}
    loop["x"] = loop
    for value in (endless, loop):
        with pytest.raises(errors.InvalidInput):
            engine.remember("c", "tea", metadata={"x": value})
        with pytest.raises(errors.InvalidInput):
            engine.count("c", filters={"metadata.x": value})
    assert engine.count("c") == 0


def test_what_was_given_is_not_shared(engine: Engine) -> None:
    """Changing the caller's dictionary, or the one that came back, changes no memory."""
    given = {"x": [1]}
    row = engine.remember("c", "tea", metadata=given, tags=["a"])
    given["x"].append(2)
    memory = engine.get("c", row)
    assert memory is not None
    memory.metadata["x"] = "changed"
    again = engine.get("c", row)
    assert again is not None
    assert again.metadata == {"x": [1]}


def test_batch_with_unstorable_text_is_kept_mended(engine: Engine) -> None:
    """Half a surrogate pair becomes U+FFFD and a NUL goes, each with a warning; all rows are there."""
    items = [{"context_id": "c", "summary": f"text number {number}"} for number in range(98)]
    items.insert(10, {"context_id": "c", "summary": "half \ud83d pair"})
    items.insert(50, {"context_id": "c", "summary": "a \x00 nul", "content": "\x00more"})
    with pytest.warns(errors.TextRepaired) as caught:
        rows = engine.remember_many(items)
    assert len(caught) >= 2
    assert engine.count("c") == len(set(rows)) == 100
    assert [len(row.warnings) > 0 for row in rows].count(True) == 2
    mended = [engine.get("c", rows[at]) for at in (10, 50)]
    assert [memory and memory.summary for memory in mended] == ["half \ufffd pair", "a  nul"]
    assert mended[1] is not None
    assert mended[1].content == "more"
    assert ids(engine.recall("c", "half pair", legs=["text"], k=1)) == [rows[10]]
    assert all(row.embedded for row in rows)


@pytest.mark.parametrize("field", ["context_id", "key", "scope", "session", "type", "idempotency_key", "tags"])
@pytest.mark.parametrize("bad", ["\ud800", "a\x00b", "a\nb"], ids=ascii)
def test_unstorable_name_is_refused_and_never_mended(engine: Engine, field: str, bad: str) -> None:
    """A name is compared literally, so it is refused rather than changed."""
    draft: dict[str, Any] = {"context_id": "c", "summary": "tea", "key": "k"}
    draft[field] = [bad] if field == "tags" else bad
    with pytest.raises(errors.InvalidInput) as caught:
        engine.remember_many([draft])
    assert field in str(caught.value.field)
    assert engine.contexts() == []


@pytest.mark.parametrize(
    "text",
    [
        "\u200b",
        "\ufeffbom",
        "a\r\nb",
        "\x1b[2J",
        "\x7f\x80",
        "\u202eevil\u202c",
        "e\u0301",
        "\ufffd",
        "\U0010ffff",
        "\ufdd0",
        " lead and trail ",
        "می‌خواهم",
        "👨‍👩‍👧",
        "\t",
    ],
    ids=ascii,
)
def test_text_comes_back_code_point_by_code_point(engine: Engine, text: str) -> None:
    """Nothing else about a text is changed: no trimming, composing or stripping."""
    row = engine.remember("c", f"x{text}", text, tags=[f"x{text}"] if text.isprintable() else [])
    memory = engine.get("c", row)
    assert memory is not None
    assert (memory.summary, memory.content) == (f"x{text}", text)


def test_subclasses_of_text_are_text(engine: Engine) -> None:
    """An id is a subclass of str; such texts are taken wherever a text is."""
    row = engine.remember(Text("c"), Text("tea"), metadata={Text("x"): Text("y")}, tags=[Text("t")])
    assert engine.count("c", filters={"metadata.x": Text("y"), "tags": Text("t"), "memory_id": row}) == 1
