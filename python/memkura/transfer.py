"""Memories out into a file, and in from one."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import tempfile
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from memkura import _core, arguments, jsonl, packed
from memkura.errors import InvalidInput, KeyTaken, StorageFull, StoreError
from memkura.records import ExportReport, ImportReport, Remembered
from memkura.rows import STATES_MAX, Own, Rows, located, too_many
from memkura.vectors import without_vectors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from io import BufferedReader

    from memkura.binding import Binding
    from memkura.rows import Row
    from memkura.vectors import Embedded

    Progress = Callable[[int, int | None], object]
    Embed = Callable[[Sequence[Mapping[str, Any]], Progress], list[Embedded]]

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
# All that is new in a file is in memory before the first of it is written: a file is taken whole or not at all.
FILE_BYTES_MAX = 1 << 30
# Five times what can be new, so that a file may tell of much that is known; each costs a look into the store.
ROWS_MAX = 250_000
# States that the store is asked about at once, and of which those that are known are let go of.
_PIECE_STATES = 256
_TAR = (257, b"ustar")
_SPOOLING = ("writing a temporary file", "Free some room for temporary files, or export to a path")
# Of a file system that does not synchronise folders.
_NO_SYNC = {errno.EINVAL, errno.ENOTSUP}
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
    path = None if callable(getattr(target, "write", None)) else _path(target)
    chosen = _format(format) or _by_ending(path) or _by_no_ending(path)
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
        with contextlib.closing(_Spool()) as spool:
            core.export(sink_to(spool.write), **wanted)  # type: ignore[arg-type]
            for part in spool.parts():
                _write_all(target, part)
    else:
        with _private_file(path) as file:
            core.export(sink_to(file.write), **wanted)  # type: ignore[arg-type]
    return ExportReport(format=chosen, **counts)


class _Spool:
    """What an export to a stream is held in until the engine has let go of its rows."""

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(_SPOOL_BYTES)  # noqa: SIM115 - closed by its owner

    def write(self, data: bytes) -> None:
        """Adds `data`."""
        with _typed(*_SPOOLING):
            self._file.write(data)

    def parts(self) -> Iterator[bytes]:
        """All of it, from its beginning."""
        with _typed(*_SPOOLING):
            self._file.seek(0)
            while part := self._file.read(_PART_BYTES):
                yield part

    def close(self) -> None:
        """Lets go of it."""
        # What could not be written is written when it is closed, and fails again.
        with contextlib.suppress(OSError):
            self._file.close()


def _write_all(stream: Any, data: bytes) -> None:  # noqa: ANN401 - whatever has a write
    """Writes until everything is taken: a raw stream may take less than it is given, which its answer alone tells."""
    left = memoryview(data)
    while left:
        taken = stream.write(bytes(left) if len(left) < len(data) else data)
        if taken is None and not isinstance(stream, io.RawIOBase):
            return  # a class of somebody's own that took all
        if not isinstance(taken, int) or not 0 < taken <= len(left):
            raise StoreError(
                f"the stream took {arguments.shown(taken)} of {len(left):,} bytes",
                field="path",
                advice="Give a stream that waits until it can write, or a path",
            )
        left = left[taken:]


@contextlib.contextmanager
def _typed(doing: str, advice: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise StorageFull("the disk is full", advice="Free some room and export again") from None
        raise StoreError(f"{doing}: {error.strerror or error}", advice=advice) from None


def _line(row: Mapping[str, Any]) -> bytes:
    return (jsonl.to_line(row) + "\n").encode("ascii")


def _replaceable(path: Path) -> Path:
    """`path`, through links. A device or a pipe is not replaced by a file, and neither is a file of a store."""
    real = Path(arguments.outside_stores(str(path), "path"))
    with _typed(f"writing {path}", "Name a file in a folder that is there"):
        is_taken = real.exists() and not real.is_file()
    if is_taken:
        advice = "Name a file of its own; to write elsewhere give a stream"
        raise InvalidInput("is no file", field="path", value=str(path), advice=advice)
    return real


@contextlib.contextmanager
def _private_file(path: Path) -> Iterator[IO[bytes]]:
    """A new file in the place of `path`, mode 0600, complete and durable or not there at all."""
    path = _replaceable(path)
    with _typed(f"writing {path}", "Name a file in a folder that is there"):
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
        _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Makes the names in a folder durable, where a folder can be opened for it."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise
    finally:
        os.close(descriptor)


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
        embed: embeds items, saying how far it is.

    Returns:
        What became of the rows.

    Raises:
        InvalidInput: the file cannot be read, or one of its rows cannot be taken; nothing was imported.
        LimitExceeded: it is larger than a file may be, or one of its rows is.
        KeyTaken: a row would take the key of a trusted memory.
    """
    named = _path(path)
    chosen = _Choice(bound.core, again=again)
    place = ""
    try:
        # Opened once: what comes through a pipe cannot be read again.
        with named.open("rb") as file:
            kind, objects = _read(named, file, _format(format))
            place = _PLACES[kind]
            rows = Own(objects, place) if as_own else Rows(objects, context_id, place)
            for lives in _pieces(rows):
                if is_alone:
                    _see_alone(lives, context_id, place)
                chosen.take(lives, place)
    except OSError as error:
        problem = f"cannot be read: {error.strerror or error}"
        advice = "Check the path. Nothing was imported"
        raise InvalidInput(problem, field="path", value=repr(str(named)), advice=advice) from None
    except InvalidInput as error:
        raise located(error, (), place) from None
    given = [state for life in chosen.wanted for state in life]
    write = _adopt if as_own else _remember
    try:
        # Whoever brings nothing new need not wait until others have written.
        taken = write(bound, given, embed, progress, again) if given else []
    except (InvalidInput, KeyTaken) as error:
        raise located(error, given, place) from None
    return chosen.report(rows, taken)


def _pieces(rows: Iterable[list[Row]]) -> Iterator[list[list[Row]]]:
    """The rows a few memories at a time: what is here already is let go of before more is read."""
    piece: list[list[Row]] = []
    states = 0
    for life in rows:
        piece.append(life)
        states += len(life)
        if states >= _PIECE_STATES:
            yield piece
            piece, states = [], 0
    yield piece


class _Choice:
    """What of a file is to be written, and what is known of the rest.

    Attributes:
        wanted: the states of each memory that is to be written.
    """

    def __init__(self, core: _core.Engine, *, again: bool) -> None:
        self.wanted: list[list[Row]] = []
        self._core = core
        self._again = again
        self._states = self._memories = self._expired = 0
        self._gone: dict[str, list[str]] = {"forgotten": [], "purged": []}
        self._contexts: dict[str, None] = {}

    def take(self, lives: Sequence[list[Row]], place: str) -> None:
        """Asks the store what it knows of these memories, and keeps those that are to be written."""
        present = [life[-1] for life in lives]
        try:
            known = self._core.standings([_named(life) for life in lives])
        except InvalidInput as error:
            raise located(error, present, place) from None
        for life, (word, memory_id) in zip(lives, known, strict=True):
            self._memories += 1
            self._contexts[str(life[-1].item["context_id"])] = None
            if word == "new" or (self._again and word in self._gone):
                self.wanted.append(life)
                self._states += len(life)
                if self._states > STATES_MAX:
                    raise too_many(life[-1], place)
            elif word == "expired":
                self._expired += 1
            elif word in self._gone:
                self._gone[word].append(str(memory_id))

    def report(self, rows: Own | Rows, taken: Sequence[tuple[str, _core.Receipt]]) -> ImportReport:
        """What became of the `rows`, of which these were `taken`."""
        added = repaired = 0
        gone = self._gone
        for word, receipt in taken:
            remembered = Remembered.of(receipt)
            added += remembered.created
            repaired += bool(remembered.warnings)
            # Another process may have come between.
            if not remembered.created and word in gone:
                gone[word].append(str(remembered))
        return ImportReport(
            rows=self._memories + rows.left_out,
            added=added,
            known=self._memories - self._expired - added,
            gone=sum(len(ids) for ids in gone.values()),
            purged=tuple(gone["purged"]),
            left_out=rows.left_out + self._expired,
            unpinned=rows.unpinned,
            repaired=repaired,
            contexts=tuple(self._contexts),
        )


def _named(life: Sequence[Row]) -> tuple[str, str | None, list[str], object]:
    """What a memory may be known by: its context, its id, the words of its states and when it ends."""
    row = life[-1]
    words = [state.item["idempotency_key"] for state in reversed(life)]
    return row.item["context_id"], _id(row), words, row.item.get("expires_at")


def _id(row: Row) -> str | None:
    return row.memory_id if row.memory_id and row.memory_id.isascii() else None  # no other is one of ours


def _remember(
    bound: Binding,
    given: Sequence[Row],
    embed: Embed,
    progress: Progress,
    again: bool,  # noqa: FBT001 - within this file
) -> list[tuple[str, _core.Receipt]]:
    items = [row.item for row in given]
    vectors = embed(items, progress)
    return bound.core.import_drafts(without_vectors(items), vectors, [_id(row) for row in given], again=again)


def _adopt(
    bound: Binding,
    given: Sequence[Row],
    embed: Embed,
    progress: Progress,
    again: bool,  # noqa: FBT001 - likewise
) -> list[tuple[str, _core.Receipt]]:
    states = [row.item for row in given]
    # Only a present state is ever recalled.
    present = iter(embed([state for state in states if state.get("replaced_at") is None], progress))
    vectors = [next(present) if state.get("replaced_at") is None else (None, None, None) for state in states]
    return bound.core.adopt(without_vectors(states), vectors, again=again)


def _see_alone(lives: Iterable[list[Row]], context_id: str | None, place: str) -> None:
    for *_, row in lives:
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
    read = packed.items_in if chosen == "msgpack" else jsonl.objects_in
    return chosen, read(bounded, ROWS_MAX)


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


def _by_no_ending(path: Path | None) -> str:
    """What a stream and a file without an ending get. What ends otherwise is expected to be something else."""
    if path is not None and path.suffix:
        known = ", ".join(ending for endings in _ENDINGS.values() for ending in endings)
        raise InvalidInput(
            "ends in the name of no format that is written",
            field="path",
            value=arguments.shown(path.name),
            advice=f"End it in one of {known}, or name the format",
        )
    return "jsonl"


def _by_ending(path: Path | None) -> str | None:
    ending = "" if path is None else path.suffix.lower()
    return next((name for name, endings in _ENDINGS.items() if ending in endings), None)
