"""Rows of an import file as drafts of memories."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Literal

from memkura.errors import InvalidInput, MemkuraError, NotFound, UnknownField
from memkura.evaluation.cases import text_of
from memkura.jsonl import to_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from memkura.engine import Engine

Standing = Literal["new", "here", "gone"]

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
    "created_at",
    "derived_from",
    "embedded",
    "last_seen",
    "source_type",
    "status",
    "superseded_by",
    "trust_tier",
    "updated_at",
    "version",
}
_KNOWN = _TEXT | _KEPT | _TIMES | _DROPPED | {*_IDS, "context_id", "context"}
_PLACE = re.compile(r"^\w*\[(\d+)\]\.?")


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the file: its number, its memory id in the store it came from, and what to remember."""

    number: int
    memory_id: str | None
    item: Mapping[str, Any]

    def standing(self, engine: Engine) -> Standing:
        """Whether the store holds this very memory (the file is its own export), held it once, or never did."""
        if self.memory_id is None:
            return "new"
        context_id = self.item["context_id"]
        try:
            if engine.get(context_id, self.memory_id) is not None:
                return "here"
            engine.history(context_id, self.memory_id)
        except (InvalidInput, NotFound):  # an id of another form, or of another store
            return "new"
        return "gone"


class Rows:
    """The rows of a file, all read and checked before any is kept.

    Args:
        objects: each line's number and object.
        context_id: the context of rows that name none.

    Attributes:
        unpinned: rows that were pinned where they came from.
        contexts: the names of the contexts that they go into, as the file has them.
    """

    def __init__(self, objects: Iterable[tuple[int, dict[str, Any]]], context_id: str | None) -> None:
        self.unpinned = 0
        self._copies: Counter[str] = Counter()
        self._rows = [self._row(number, row, context_id) for number, row in objects]
        self.contexts = list(dict.fromkeys(str(row.item["context_id"]) for row in self._rows))

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    @staticmethod
    def with_line(error: MemkuraError, given: Sequence[Row]) -> MemkuraError:
        """`error`, with the place in the batch that it names turned into the line of the file."""
        field = error.field or ""
        match = _PLACE.match(field)
        if match is not None:
            at, field = int(match[1]), field[match.end() :]
        elif len(given) == 1:  # a batch of one has no places
            at = 0
        else:
            return error
        where = f"line {given[at].number}"
        return type(error)(
            error.message,
            field=f"{where}, {field}" if field else where,
            value=error.value,
            advice=". ".join(part for part in (error.advice, "Nothing was imported") if part),
        )

    def _row(self, number: int, row: dict[str, Any], context_id: str | None) -> Row:
        where = f"line {number}"
        unknown = sorted(row.keys() - _KNOWN)
        if unknown:
            raise UnknownField(
                "is not a field of a memory", field=f"{where}, {unknown[0]}", advice="Nothing was imported"
            )
        context = row.get("context_id", row.get("context", context_id))
        if not isinstance(context, str):
            raise InvalidInput("names no context", field=where, advice="Give --context")
        twice = next((name for name in ("text", "title") if row.get("summary") is not None and row.get(name)), None)
        if twice is not None:
            raise InvalidInput(f"has a summary, so {twice} has no place", field=where, advice="Name it content")
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
            word = to_line({"id": given, "summary": item["summary"], "content": item.get("content")})
        else:
            line = to_line(dict(sorted(row.items())))
            self._copies[line] += 1
            word = f"{line}#{self._copies[line]}"
        digest = blake2b(word.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
        item["idempotency_key"] = f"import:{digest}"


def _time(text: object, where: str) -> datetime:
    try:
        return datetime.fromisoformat(text)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise InvalidInput("is no ISO 8601 time", field=where, value=repr(text)) from None
