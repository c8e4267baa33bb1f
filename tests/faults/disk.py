"""A folder as a loss of power would leave it, rebuilt from the log of the calls that wrote to it.

The strict model: what a file holds is on disk once the file was synced, and that it is there under its name (or is no
longer) once its folder was synced. Of the rest any part may be there: of each folder's changes those up to some moment,
of each file's writes any, whole or in pieces of a sector. Kinder file systems keep a new file's name when the file is
synced; relying on that is what this model finds.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator
    from pathlib import Path

SECTOR = 512
# What the number of an event says: of an opening (in bits), and of a sync.
CREATED, CUT = 1, 2
LISTING, FAILED = 1, 2
_HEADER = struct.Struct("<Bqq2I")


class Event(NamedTuple):
    """A call that succeeded, or a mark that the child set. See `enum kind` in shim.c."""

    kind: str
    ino: int
    number: int
    path: str
    data: bytes


def events(log: bytes) -> Iterator[Event]:
    """The log's events in order."""
    at = 0
    while at < len(log):
        kind, ino, number, path_bytes, data_bytes = _HEADER.unpack_from(log, at)
        at += _HEADER.size
        path, data = log[at : at + path_bytes], log[at + path_bytes : at + path_bytes + data_bytes]
        at += path_bytes + data_bytes
        yield Event(chr(kind), ino, number, path.decode(), data)


class Piece(NamedTuple):
    """A write, or with no data a change of the file's size to `offset`."""

    offset: int
    data: bytes | None

    def onto(self, held: bytearray) -> None:
        """Applies it; a gap reads as zeros."""
        if self.data is None:
            del held[self.offset :]
        held.extend(bytes(max(0, self.offset - len(held))))
        if self.data is not None:
            held[self.offset : self.offset + len(self.data)] = self.data

    def torn(self, chance: random.Random) -> Iterator[Piece]:
        """Some of the sectors of a write."""
        if self.data is None:
            yield self
            return
        at = 0
        while at < len(self.data):
            end = at + SECTOR - (self.offset + at) % SECTOR
            if chance.random() < 0.5:
                yield Piece(self.offset + at, self.data[at:end])
            at = end


@dataclass(eq=False)
class File:
    """What of a file is on disk, and what was written to it since."""

    durable: bytearray = field(default_factory=bytearray)
    pending: list[Piece] = field(default_factory=list)

    def sync(self, *, failed: bool = False) -> None:
        """Puts on disk what is pending. When that fails, the system takes it for written, and no later sync tries."""
        for piece in [] if failed else self.pending:
            piece.onto(self.durable)
        self.pending.clear()

    def image(self, chance: random.Random | None) -> bytes:
        held = bytearray(self.durable)
        share = chance.choice((0.2, 0.8, 1.0)) if chance else 0.0
        for piece in self.pending if chance else ():
            if chance and chance.random() < share:
                for part in [piece] if chance.random() < 0.7 else piece.torn(chance):
                    part.onto(held)
        return bytes(held)


@dataclass(eq=False)
class Folder:
    """What a folder lists on disk, what was changed since, and what it lists now."""

    durable: dict[str, File | Folder] = field(default_factory=dict)
    pending: list[dict[str, File | Folder | None]] = field(default_factory=list)
    entries: dict[str, File | Folder] = field(default_factory=dict)

    def change(self, change: dict[str, File | Folder | None]) -> None:
        """One change: names that are there from now on, or no longer."""
        self.pending.append(change)
        _apply(self.entries, change)

    def sync(self) -> None:
        self.durable = dict(self.entries)
        self.pending.clear()

    def image(self, chance: random.Random | None) -> dict[str, File | Folder]:
        held = dict(self.durable)
        for change in self.pending[: chance.randint(0, len(self.pending)) if chance else 0]:
            _apply(held, change)
        return held


def _apply(entries: dict[str, File | Folder], change: dict[str, File | Folder | None]) -> None:
    for name, node in change.items():
        if node is None:
            entries.pop(name, None)
        else:
            entries[name] = node


class Disk:
    """The folder `root`, which is taken to be on disk as it stands, and then follows a log."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.by_number: dict[int, File | Folder] = {}
        self.top = self._load(root)

    def _load(self, path: Path) -> Folder:
        folder = Folder()
        for entry in path.iterdir():
            node = self._load(entry) if entry.is_dir() else File(bytearray(entry.read_bytes()))
            self.by_number[entry.stat().st_ino] = node
            folder.entries[entry.name] = node
        folder.sync()
        return folder

    def follow(self, event: Event) -> None:
        """Takes in one event of the log."""
        match event.kind:
            case "o":
                self._open(event)
            case "w":
                self._file(event).pending.append(Piece(event.number, event.data))
            case "t":
                self._file(event).pending.append(Piece(event.number, None))
            case "s" if event.number == LISTING:
                self._sync_folder(event)
            case "s":
                self._file(event).sync(failed=event.number == FAILED)
            case "r":
                self._rename(event.path, event.data.decode())
            case "u":
                folder, name = self._place(event.path)
                folder.change({name: None})
            case "m":
                folder, name = self._place(event.path)
                folder.change({name: Folder()})
            case "l":
                folder, name = self._place(event.path)
                to, new = self._place(event.data.decode())
                to.change({new: folder.entries[name]})

    def image(self, path: Path, chance: random.Random | None = None) -> None:
        """Writes the folder as it would be found: with `chance`, with a random part of what was not synced."""
        self._write(self.top, path, chance)

    def _write(self, folder: Folder, path: Path, chance: random.Random | None) -> None:
        path.mkdir(mode=0o700)
        for name, node in folder.image(chance).items():
            if isinstance(node, Folder):
                self._write(node, path / name, chance)
            else:
                (path / name).write_bytes(node.image(chance))

    def now(self) -> dict[str, bytes]:
        """What every file holds now, by its path."""
        return dict(self._now(self.top, ""))

    def _now(self, folder: Folder, above: str) -> Iterator[tuple[str, bytes]]:
        for name, node in folder.entries.items():
            if isinstance(node, Folder):
                yield from self._now(node, f"{above}{name}/")
            else:
                held = bytearray(node.durable)
                for piece in node.pending:
                    piece.onto(held)
                yield above + name, bytes(held)

    def _open(self, event: Event) -> None:
        folder, name = self._place(event.path)
        if event.number & CREATED:
            self.by_number[event.ino] = File()
            folder.change({name: self.by_number[event.ino]})
        elif event.number & CUT:
            self._file(event).pending.append(Piece(0, None))

    def _sync_folder(self, event: Event) -> None:
        folder = self.top if event.path == str(self.root) else self._child(event.path)
        listed: dict[str, File | Folder] = {}
        for line in event.data.decode().split("\0")[:-1]:
            number, _, name = line.partition(" ")
            known = folder.entries.get(name)
            listed[name] = known if isinstance(known, Folder) else self.by_number[int(number)]
        # What was renamed without the shim's knowledge.
        unseen: dict[str, File | Folder | None] = {name: None for name in folder.entries if name not in listed}
        unseen |= {name: node for name, node in listed.items() if folder.entries.get(name) is not node}
        if unseen:
            folder.change(unseen)
        folder.sync()

    def _rename(self, old_path: str, new_path: str) -> None:
        old_folder, old = self._place(old_path)
        new_folder, new = self._place(new_path)
        node = old_folder.entries[old]
        if old_folder is new_folder:
            old_folder.change({old: None, new: node})
        else:
            new_folder.change({new: node})
            old_folder.change({old: None})

    def _file(self, event: Event) -> File:
        node = self.by_number[event.ino]
        assert isinstance(node, File)
        return node

    def _child(self, path: str) -> Folder:
        above, name = self._place(path)
        node = above.entries[name]
        assert isinstance(node, Folder)
        return node

    def _place(self, path: str) -> tuple[Folder, str]:
        """The folder that a path lies in, and its name there."""
        *above, name = path.removeprefix(f"{self.root}/").split("/")
        folder = self.top
        for step in above:
            node = folder.entries[step]
            assert isinstance(node, Folder)
            folder = node
        return folder, name
