"""Rows of a file: drafts of memories when it is somebody's, states of memories when it is one's own."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from memkura import arguments
from memkura.errors import InvalidInput, MemkuraError, UnknownField
from memkura.evaluation.cases import text_of
from memkura.jsonl import to_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

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
_OUT_OF_USE = {"retired", "archived"}
_PLACE = re.compile(r"^(?:items)?\[(\d+)\]\.?")


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the file: its number, its memory id in the store it came from, and what to remember."""

    number: int
    memory_id: str | None
    item: Mapping[str, Any]


class Rows:
    """The rows of somebody's file, all read and checked before any is kept.

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
        self._place = place
        self._copies: Counter[str] = Counter()
        # An earlier state of a memory tells nothing that is so.
        found = (self._row(number, row, context_id) for number, row in objects if row.get("replaced_at") is None)
        self._rows = [row for row in found if row is not None]

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    def _row(self, number: int, row: dict[str, Any], context_id: str | None) -> Row | None:
        where = f"{self._place} {number}"
        unknown = sorted(row.keys() - _KNOWN)
        if unknown:
            raise UnknownField("is not a field of a memory", field=f"{where}, {unknown[0]}")
        context = row.get("context_id", row.get("context", context_id))
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
        item |= {name: row[name] for name in _KEPT if row.get(name) is not None}
        item |= {name: _time(row[name], f"{where}, {name}") for name in _TIMES if row.get(name) is not None}
        if item.get("delivery_mode") == "always":
            self.unpinned += 1
            del item["delivery_mode"]
        self._identify(item, row, where)
        memory_id = row.get("memory_id")
        return Row(number, memory_id if isinstance(memory_id, str) else None, item)

    def _identify(self, item: dict[str, Any], row: dict[str, Any], where: str) -> None:
        """Gives the row a word by which it is known when it comes again: its id, or else its text and its turn."""
        name = next((name for name in _IDS if row.get(name) is not None), None)
        if name is not None:
            if not isinstance(row[name], str | int):
                raise InvalidInput("is neither a text nor a whole number", field=f"{where}, {name}")
            given = str(row[name])
            metadata = item.get("metadata", {})
            if isinstance(metadata, dict):
                item["metadata"] = {"import_id": given, **metadata}
            # The same id in another file, or beside another text, is another row.
            word = _line({"id": given, "summary": item["summary"], "content": item.get("content")}, where)
        else:
            line = _line(dict(sorted(row.items())), where)
            self._copies[line] += 1
            word = f"{line}#{self._copies[line]}"
        digest = blake2b(word.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
        item["idempotency_key"] = f"import:{digest}"


class Own:
    """The memories of an owner's file, each as it stood, its earlier states before it.

    Args:
        objects: each row's number and object.
        place: what the numbers count.
    """

    unpinned = left_out = 0

    def __init__(self, objects: Iterable[tuple[int, dict[str, Any]]], place: str = "line") -> None:
        self._lives: list[list[Row]] = []
        states: list[Row] = []
        for number, row in objects:
            for name in ("context_id", "memory_id"):
                if not isinstance(row.get(name), str):
                    raise InvalidInput(
                        f"has no {name}",
                        field=f"{place} {number}",
                        advice="Only what export wrote can be taken as one's own",
                    )
            arguments.text(row["context_id"], f"{place} {number}, context_id")
            states.append(Row(number, row["memory_id"], row))
            if row.get("replaced_at") is None:
                self._lives.append(states)
                states = []
        if states:
            raise InvalidInput(
                "is an earlier state of a memory that is not there", field=f"{place} {states[-1].number}"
            )

    def __len__(self) -> int:
        return len(self._lives)

    def __iter__(self) -> Iterator[Row]:
        """The present state of each memory."""
        return (states[-1] for states in self._lives)

    def states(self, wanted: Sequence[bool]) -> list[Row]:
        """All states of the memories that are wanted."""
        return [row for states, good in zip(self._lives, wanted, strict=True) if good for row in states]


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
        advice=". ".join(part for part in (error.advice, "Nothing was imported") if part),
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
