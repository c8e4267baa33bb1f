"""Memories out into a file, and in from one."""

from __future__ import annotations

import errno
import io
import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from memkura import _core, arguments, jsonl, packed
from memkura.errors import InvalidInput, KeyTaken, StorageFull, StoreError
from memkura.records import ExportReport, ImportReport, Remembered
from memkura.rows import Own, Rows, located
from memkura.vectors import without_vectors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from io import BufferedReader

    from memkura.binding import Binding
    from memkura.rows import Row
    from memkura.vectors import Embedded

    Progress = Callable[[int, int | None], object]
    Embed = Callable[[Sequence[Mapping[str, Any]], Callable[[Any], None], Progress], list[Embedded]]

# Each format with the endings of its files' names, and what its rows are counted in.
_ENDINGS = {"jsonl": (".jsonl", ".ndjson", ".json"), "msgpack": (".msgpack", ".mpk")}
_PLACES = {"jsonl": "line", "msgpack": "item"}
# What no file of rows begins with, and what to do with one that does.
_FOREIGN = {
    b"\x1f\x8b": ("a gzip archive", "Unpack it yourself"),
    b"PK\x03\x04": ("a zip archive", "Unpack it yourself"),
    b"PK\x05\x06": ("a zip archive", "Unpack it yourself"),
    b"BZh": ("a bzip2 archive", "Unpack it yourself"),
    b"\xfd7zXZ\x00": ("an xz archive", "Unpack it yourself"),
    b"\x28\xb5\x2f\xfd": ("a zstandard archive", "Unpack it yourself"),
    b"7z\xbc\xaf\x27\x1c": ("a 7z archive", "Unpack it yourself"),
    b"SQLite format 3\x00": ("a database", "A backup becomes a store with memkura restore"),
    **{bytes([0x80, protocol]): ("a pickle", "Nothing is ever unpickled") for protocol in range(2, 6)},
}
_HEAD_BYTES = 512
# Up to this an export to a stream is held in memory; beyond it in a file without a name.
_SPOOL_BYTES = 64 << 20
_PART_BYTES = 1 << 20
# Of the name of a file that is being written: what is put after it must fit, too.
_BEGUN_CHARACTERS = 40
# All rows of a file are in memory before the first is written: a file is taken whole or not at all.
FILE_BYTES_MAX = 1 << 30
_TAR = (257, b"ustar")
_FULL = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}


def export(
    core: _core.Engine,
    target: object,
    *,
    context_id: str | None,
    filters: Mapping[str, Any] | None,
    history: bool,
    format: str | None,
) -> ExportReport:
    """Writes rows to `target`; see :meth:`memkura.Engine.export`."""
    write = getattr(target, "write", None)
    path = None if callable(write) else _path(target)
    chosen = _format(format) or _by_ending(path) or "jsonl"
    pack = packed.packer() if chosen == "msgpack" else _line
    counts = {"memories": 0, "superseded": 0, "revisions": 0}

    def sink_to(write: Callable[[bytes], object]) -> Callable[[list[dict[str, Any]]], None]:
        def sink(rows: list[dict[str, Any]]) -> None:
            write(b"".join([pack(row) for row in rows]))
            for row in rows:
                counts["memories" if row.get("replaced_at") is None else "revisions"] += 1
                counts["superseded"] += row.get("replaced_at") is None and row["superseded_by"] is not None

        return sink

    wanted = {"context_id": context_id, "filters": filters, "history": history}
    if path is None:
        # A stream is somebody else's code, which may wait for ever, or for the engine: it is given the rows afterwards.
        with tempfile.SpooledTemporaryFile(_SPOOL_BYTES) as spool:
            core.export(sink_to(spool.write), **wanted)  # type: ignore[arg-type]
            spool.seek(0)
            while part := spool.read(_PART_BYTES):
                write(part)  # type: ignore[misc]
    else:
        with _private_file(path) as file:
            core.export(sink_to(file.write), **wanted)  # type: ignore[arg-type]
    return ExportReport(format=chosen, **counts)


def _line(row: Mapping[str, Any]) -> bytes:
    return (jsonl.to_line(row) + "\n").encode("ascii")


def _replaceable(path: Path) -> Path:
    """`path`, through links. A device or a pipe is not replaced by a file, and neither is a file of a store."""
    if path.exists() and not path.is_file():
        advice = "Name a file of its own; to write elsewhere give a stream"
        raise InvalidInput("is no file", field="path", value=str(path), advice=advice)
    return Path(arguments.outside_stores(str(path), "path"))


@contextmanager
def _private_file(path: Path) -> Iterator[IO[bytes]]:
    """A new file in the place of `path`, mode 0600, complete or not there at all."""
    path = _replaceable(path)
    try:
        begun = f"{path.name[:_BEGUN_CHARACTERS]}."
        descriptor, name = tempfile.mkstemp(prefix=begun, suffix=".incomplete", dir=path.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        if error.errno in _FULL:
            raise StorageFull("the disk is full", advice="Free some room and export again") from None
        raise StoreError(
            f"writing {path}: {error.strerror or error}", advice="Name a file in a folder that is there"
        ) from None


def import_file(
    bound: Binding,
    path: object,
    *,
    context_id: str | None,
    is_alone: bool,
    as_own: bool,
    again: bool,
    format: str | None,
    progress: Progress,
    embed: Embed,
) -> ImportReport:
    """Takes in the rows of the file at `path`; see :meth:`memkura.Engine.import_file`.

    Args:
        bound: the store and its embedder.
        path: the file.
        context_id: the context of rows that name none.
        is_alone: whether rows that name another context are refused.
        as_own: keep them as they stood.
        again: bring back what is gone.
        format: the file's.
        progress: called with how many are embedded.
        embed: embeds items, once the function given to it has found nothing wrong with any.

    Returns:
        What became of the rows.

    Raises:
        InvalidInput: the file cannot be read, or one of its rows cannot be taken; nothing was imported.
        LimitExceeded: it is larger than a file may be, or one of its rows is.
        KeyTaken: a row would take the key of a trusted memory.
    """
    given: Sequence[Row] = []
    place = ""
    try:
        chosen, rows = _rows(_path(path), context_id, _format(format), as_own=as_own)
        place = _PLACES[chosen]
        given = list(rows)
        if is_alone:
            _see_alone(given, context_id, place)
        known = bound.core.standings([_named(row) for row in given])
        wanted = [word == "new" or (again and word in {"forgotten", "purged"}) for word, _ in known]
        given = (
            rows.states(wanted)
            if isinstance(rows, Own)
            else [row for row, good in zip(given, wanted, strict=True) if good]
        )
        write = _adopt if as_own else _remember
        taken = write(bound, given, embed, progress, again)
    except (InvalidInput, KeyTaken) as error:
        raise located(error, given, place) from None
    return _report(rows, known, wanted, taken)


def _rows(path: Path, context_id: str | None, given: str | None, *, as_own: bool) -> tuple[str, Own | Rows]:
    """The file's format and its rows, all read."""
    try:
        # Opened once: what comes through a pipe cannot be read again.
        with path.open("rb") as file:
            chosen, objects = _read(path, file, given)
            place = _PLACES[chosen]
            return chosen, Own(objects, place) if as_own else Rows(objects, context_id, place)
    except OSError as error:
        raise InvalidInput(f"cannot be read: {error.strerror or error}", field="path", value=repr(str(path))) from None


def _named(row: Row) -> tuple[str, str | None, str | None]:
    memory_id = row.memory_id if row.memory_id and row.memory_id.isascii() else None  # no other is one of ours
    return row.item["context_id"], memory_id, row.item.get("idempotency_key")


def _remember(
    bound: Binding,
    given: Sequence[Row],
    embed: Embed,
    progress: Progress,
    again: bool,  # noqa: FBT001 - within this file
) -> list[tuple[str, _core.Receipt]]:
    items = [row.item for row in given]
    vectors = embed(items, _core.check_drafts, progress)
    ids = [_named(row)[1] for row in given]
    return bound.core.import_drafts(without_vectors(items), vectors, ids, again=again)


def _adopt(
    bound: Binding,
    given: Sequence[Row],
    embed: Embed,
    progress: Progress,
    again: bool,  # noqa: FBT001 - likewise
) -> list[tuple[str, _core.Receipt]]:
    states = [row.item for row in given]
    _core.check_states(without_vectors(states))
    # Only a present state is ever recalled.
    present = iter(embed([state for state in states if state.get("replaced_at") is None], lambda _: None, progress))
    vectors = [next(present) if state.get("replaced_at") is None else (None, None, None) for state in states]
    return bound.core.adopt(without_vectors(states), vectors, again=again)


def _report(
    rows: Own | Rows,
    known: Sequence[tuple[str, str | None]],
    wanted: Sequence[bool],
    taken: Sequence[tuple[str, _core.Receipt]],
) -> ImportReport:
    written = iter(taken)
    added, repaired = 0, 0
    gone: dict[str, list[str]] = {"forgotten": [], "purged": []}
    for (word, memory_id), good in zip(known, wanted, strict=True):
        if good:
            # Another process may have come between.
            word, receipt = next(written)  # noqa: PLW2901 - what was so when it was written
            remembered = Remembered.of(receipt)
            added += remembered.created
            repaired += bool(remembered.warnings)
            memory_id = None if remembered.created else str(remembered)  # noqa: PLW2901 - likewise
        if memory_id is not None and word in gone:
            gone[word].append(memory_id)
    return ImportReport(
        rows=len(rows) + rows.left_out,
        added=added,
        known=len(rows) - added,
        gone=sum(len(ids) for ids in gone.values()),
        purged=tuple(gone["purged"]),
        left_out=rows.left_out,
        unpinned=rows.unpinned,
        repaired=repaired,
        contexts=tuple(dict.fromkeys(str(row.item["context_id"]) for row in rows)),
    )


def _see_alone(given: Iterable[Row], context_id: str | None, place: str) -> None:
    for row in given:
        if row.item["context_id"] != context_id:
            raise InvalidInput(
                "names another context than the handle's",
                field=f"{place} {row.number}",
                value=repr(row.item["context_id"]),
                advice="Use engine.import_file",
            )


def _read(path: Path, file: BufferedReader, given: str | None) -> tuple[str, Iterator[tuple[int, dict[str, Any]]]]:
    """The file's format and its rows."""
    head = file.peek(_HEAD_BYTES)
    at, mark = _TAR
    found = next((said for sign, said in _FOREIGN.items() if head.startswith(sign)), None)
    if found is None and head[at:].startswith(mark):
        found = ("a tar archive", "Unpack it yourself")
    if found is not None:
        kind, advice = found
        raise InvalidInput(f"{path.name} is {kind}, and no file of rows", field="path", advice=advice)
    if os.fstat(file.fileno()).st_size > FILE_BYTES_MAX:
        raise jsonl.too_much("bytes", FILE_BYTES_MAX, "path")
    chosen = given or _by_ending(path) or ("msgpack" if head and packed.is_map(head[0]) else "jsonl")
    # A pipe does not say how much will come.
    bounded = io.BufferedReader(_Bounded(file))
    return chosen, (packed.items_in(bounded) if chosen == "msgpack" else jsonl.objects_in(bounded))


class _Bounded(io.RawIOBase):
    """A file that ends in an exception after ``FILE_BYTES_MAX`` bytes."""

    def __init__(self, file: BufferedReader) -> None:
        self._file = file
        self._left = FILE_BYTES_MAX

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - whatever has the buffer protocol
        read = self._file.readinto1(buffer)
        self._left -= read
        if self._left < 0:
            raise jsonl.too_much("bytes", FILE_BYTES_MAX, "path")
        return read


def _path(given: object) -> Path:
    named = arguments.path(given)
    if "\0" in named:
        raise InvalidInput("holds U+0000", field="path", value=repr(named), advice="No file has such a name")
    return Path(named)


def _format(given: object) -> str | None:
    if given is None or (isinstance(given, str) and given in _ENDINGS):
        return given
    raise InvalidInput(
        "is not known", field="format", value=arguments.shown(given), advice=f"Use one of {', '.join(_ENDINGS)}"
    )


def _by_ending(path: Path | None) -> str | None:
    ending = "" if path is None else path.suffix.lower()
    return next((name for name, endings in _ENDINGS.items() if ending in endings), None)
