"""Rows of a file: drafts of memories when it is somebody's, states of memories when it is one's own."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from memkura import _core, arguments
from memkura.errors import InvalidInput, LimitExceeded, MemkuraError, UnknownField
from memkura.evaluation.cases import text_of
from memkura.jsonl import to_line
from memkura.vectors import without_vectors
from memkura.visible import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

_TEXT = {"summary", "content", "text", "title"}
_KEPT = {
    "type",
    "delivery_mode",
    "scope",
    "key",
    "tags",
    "metadata",
    "importance",
    "confidence",
    "session",
    "decay_rate",
    "trigger",
    "proof",
    "embedding",
}
_TIMES = {"event_time", "expires_at"}
_IDS = ("id", "pid", "memory_id")
# What an export says of a memory and the engine alone decides, or what names memories of the other store.
_DROPPED = {
    "access_count",
    "action",
    "created_at",
    "derived_from",
    "door",
    "embedded",
    "last_seen",
    "origin",
    "replaced_at",
    "source_type",
    "status",
    "superseded_by",
    "trust_tier",
    "updated_at",
    "version",
}
_KNOWN = _TEXT | _KEPT | _TIMES | _DROPPED | {*_IDS, "context_id", "context"}
# States that are written together at most; all of them are in memory before the first is.
STATES_MAX = _core.limits()["batch"]
_ID_DIGITS = 32
_HEX = frozenset("0123456789abcdef")
_OUT_OF_USE = {"retired", "archived"}
_NOTHING = "Nothing was imported"
_PLACE = re.compile(r"^(?:items)?\[(\d+)\]\.?")


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the file: its number, its memory id in the store it came from, and what to remember.

    The ``idempotency_key`` of an item is the word by which the row is known when it comes again.
    """

    number: int
    memory_id: str | None
    item: dict[str, Any]


class Rows:
    """The rows of somebody's file, each checked as it is read.

    Args:
        objects: each row's number and object.
        context_id: the context of rows that name none.
        place: what the numbers count.

    Attributes:
        unpinned: rows that were pinned where they came from.
        left_out: memories that others had replaced there.
    """

    def __init__(
        self, objects: Iterable[tuple[int, dict[str, Any]]], context_id: str | None, place: str = "line"
    ) -> None:
        self.unpinned = 0
        self.left_out = 0
        self._objects = objects
        self._context_id = context_id
        self._place = place
        self._copies: Counter[bytes] = Counter()

    def __iter__(self) -> Iterator[list[Row]]:
        """Each memory to be remembered, as a list of its one state."""
        for number, row in self._objects:
            # An earlier state of a memory tells nothing that is so.
            found = self._row(number, row) if row.get("replaced_at") is None else None
            if found is not None:
                yield [found]

    def _row(self, number: int, row: dict[str, Any]) -> Row | None:
        where = f"{self._place} {number}"
        _see_known(row, _KNOWN, where)
        context = row.get("context_id", row.get("context", self._context_id))
        if not isinstance(context, str):
            raise InvalidInput("names no context", field=where, advice="Name one for the rows that name none")
        arguments.text(context, f"{where}, context_id")
        twice = next((name for name in ("text", "title") if row.get("summary") is not None and row.get(name)), None)
        if twice is not None:
            raise InvalidInput(f"has a summary, so {twice} has no place", field=where, advice="Name it content")
        if isinstance(row.get("status"), str) and row["status"] in _OUT_OF_USE:
            self.left_out += 1
            return None
        item: dict[str, Any] = {"context_id": context, **text_of(row, where)}
        for name, value in row.items():
            if name in _KEPT and value is not None:
                item[name] = value
            elif name in _TIMES and value is not None:
                item[name] = _time(value, f"{where}, {name}")
        if item.get("delivery_mode") == "always":
            self.unpinned += 1
            del item["delivery_mode"]
        memory_id = row.get("memory_id")
        found = Row(number, canonical(memory_id) if isinstance(memory_id, str) else None, item)
        # First: its word is made of all that it holds.
        _checked(found, _core.check_drafts, self._place)
        self._identify(item, row, where)
        return found

    def _identify(self, item: dict[str, Any], row: dict[str, Any], where: str) -> None:
        """Gives the row a word by which it is known when it comes again: its id, or else its text and its turn."""
        name = next((name for name in _IDS if row.get(name) is not None), None)
        if name is not None:
            if not isinstance(row[name], str | int):
                raise InvalidInput("is neither a text nor a whole number", field=f"{where}, {name}")
            given = canonical(str(row[name]))
            metadata = item.get("metadata", {})
            if isinstance(metadata, dict):
                item["metadata"] = {"import_id": given, **metadata}
            item["idempotency_key"] = _word(given, item, where)
        else:
            digest = _digest(_line(dict(sorted(row.items())), where))
            self._copies[digest] += 1
            item["idempotency_key"] = f"import:{_digest(f'{digest.hex()}#{self._copies[digest]}').hex()}"


class Own:
    """The memories of an owner's file, each as it stood, its earlier states before it, each checked as it is read.

    Args:
        objects: each row's number and object.
        place: what the numbers count.
    """

    unpinned = left_out = 0

    def __init__(self, objects: Iterable[tuple[int, dict[str, Any]]], place: str = "line") -> None:
        self._objects = objects
        self._place = place

    def __iter__(self) -> Iterator[list[Row]]:
        """The states of each memory, the present one last."""
        states: list[Row] = []
        for number, row in self._objects:
            states.append(self._row(number, row))
            if len(states) > STATES_MAX:
                raise too_many(states[-1], self._place)
            if row.get("replaced_at") is None:
                yield states
                states = []
        if states:
            raise InvalidInput(
                "is an earlier state of a memory that is not there", field=f"{self._place} {states[-1].number}"
            )

    def _row(self, number: int, row: dict[str, Any]) -> Row:
        where = f"{self._place} {number}"
        for name in ("context_id", "memory_id"):
            if not isinstance(row.get(name), str):
                raise InvalidInput(
                    f"has no {name}", field=where, advice="Only what export wrote can be taken as one's own"
                )
        arguments.text(row["context_id"], f"{where}, context_id")
        memory_id = canonical(row["memory_id"])
        found = Row(number, memory_id, {**row, "memory_id": memory_id})
        _checked(found, _core.check_states, self._place)
        # Whoever once imported the same row as a stranger's, and purged it, has purged this text too.
        found.item["idempotency_key"] = _word(memory_id, row, where)
        return found


def canonical(memory_id: str) -> str:
    """An id in the one form that we write, when it is one of ours in another spelling; else what was given."""
    digits = memory_id.strip().replace("-", "").lower()
    if len(digits) != _ID_DIGITS or not set(digits) <= _HEX:
        return memory_id
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _word(memory_id: str, text: Mapping[str, Any], where: str) -> str:
    # The same id in another file, or beside another text, is another row.
    said = {"id": memory_id, "summary": text.get("summary"), "content": text.get("content")}
    return f"import:{_digest(_line(said, where)).hex()}"


def _digest(word: str) -> bytes:
    return blake2b(word.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _see_known(row: Mapping[str, Any], known: AbstractSet[str], where: str) -> None:
    unknown = sorted(row.keys() - known)
    if unknown:
        raise UnknownField(
            "is not a field of a memory",
            field=f"{where}, {one_line(unknown[0], 80)}",
            advice=f"Use {', '.join(sorted(known))}; what is your own goes into metadata",
        )


def _checked(row: Row, check: Callable[[Sequence[Mapping[str, Any]]], None], place: str) -> None:
    """Refuses a row that could not be kept, and makes its vectors small, before the next one is read."""
    try:
        check(without_vectors([row.item]))
        if row.item.get("embedding") is not None:
            row.item["embedding"] = _compact(row.item["embedding"])
    except MemkuraError as error:
        raise located(error, [row], place) from None


def _compact(embedding: object) -> memoryview[float]:
    width, components = _core.compact_vectors(embedding)
    rows = len(components) // (4 * width)
    vectors: memoryview[Any] = memoryview(components)
    return vectors.cast("f", shape=[rows, width])


def too_many(row: Row, place: str) -> LimitExceeded:
    """The refusal of a file at the `row` that is one too many."""
    return LimitExceeded(
        f"is one new row more than an import may bring, which is {STATES_MAX:,}",
        field=f"{place} {row.number}",
        advice="Split the file, by context or filter, or move the store by a backup",
    )


def located(error: MemkuraError, given: Sequence[Row], place: str) -> MemkuraError:
    """`error`, which kept a file out, with the place in the batch that it names turned into the place in the file."""
    field = error.field or ""
    match = _PLACE.match(field)
    if match is not None:
        at, field = int(match[1]), field[match.end() :]
    # A batch of one may have no places.
    if match is not None or (len(given) == 1 and not field.startswith(place)):
        where = f"{place} {given[0 if match is None else at].number}"
        field = f"{where}, {field}" if field else where
    return type(error)(
        error.message,
        field=field or None,
        value=error.value,
        advice=error.advice if _NOTHING in (error.advice or "") else ". ".join(filter(None, (error.advice, _NOTHING))),
    )


def _line(row: Mapping[str, Any], where: str) -> str:
    try:
        return to_line(row)
    except ValueError:  # msgpack has what JSON has not
        raise InvalidInput("holds a number that is not finite", field=where) from None


def _time(text: object, where: str) -> datetime:
    try:
        return datetime.fromisoformat(text)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise InvalidInput("is no ISO 8601 time", field=where, value=repr(text)) from None
