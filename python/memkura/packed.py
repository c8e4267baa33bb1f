"""Files of msgpack, one map after the other, from others: bounded, and refused with the number of the item.

A header of msgpack can claim more than the file holds, and whoever believes it makes room first. So each item is walked
along before it is unpacked: it is whole, within bounds, and holds nothing but what JSON has.
"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any

from memkura.errors import InvalidInput
from memkura.jsonl import DEPTH_MAX, HOLDERS_MAX, LINE_BYTES_MAX, VALUES_MAX, KeyTwice, plain, too_much, unique

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

# An item has the bounds of a line of JSON.
_ITEM_BYTES_MAX = LINE_BYTES_MAX
_PIECE_BYTES = 64 << 10

_VALUE, _LIST, _MAP = "value", "list", "map"
_BYTES = "holds bytes, which are no text"
_EXTENSION = "holds an extension type, which nothing here reads"
# By the first byte of a value: what it is, its length in bytes or items, and how many bytes that follow say it instead.
_HEADS = (
    [(_VALUE, 0, 0)] * 0x80  # small numbers
    + [(_MAP, length, 0) for length in range(16)]
    + [(_LIST, length, 0) for length in range(16)]
    + [(_VALUE, length, 0) for length in range(32)]  # texts
    + [(_VALUE, 0, 0), ("holds a byte that begins no value", 0, 0), (_VALUE, 0, 0), (_VALUE, 0, 0)]  # nil and truths
    + [(_BYTES, 0, width) for width in (1, 2, 4)]
    + [(_EXTENSION, 0, width) for width in (1, 2, 4)]
    + [(_VALUE, length, 0) for length in (4, 8, 1, 2, 4, 8, 1, 2, 4, 8)]  # floats and whole numbers
    + [(_EXTENSION, length, 0) for length in (1, 2, 4, 8, 16)]
    + [(_VALUE, 0, width) for width in (1, 2, 4)]  # texts
    + [(_LIST, 0, width) for width in (2, 4)]
    + [(_MAP, 0, width) for width in (2, 4)]
    + [(_VALUE, 0, 0)] * 32  # small negative numbers
)
# Values that each item of a holder has.
_HOLDERS = {_LIST: 1, _MAP: 2}
# A list that is long enough to be looked at as a run of floats first: a vector.
_RUN_MIN = 16
_FLOATS = {0xCA: 5, 0xCB: 9}


class _MoreNeeded(Exception):  # noqa: N818 - no error, a request
    """The item goes on after what was read."""


def items_in(file: IO[bytes]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Each map in the file with its number, from 1.

    Raises:
        InvalidInput: an item is not a whole map of what JSON has; the message names the item.
        LimitExceeded: an item is larger than it may be.
    """
    unpack = _unpacker()
    data, at, number = b"", 0, 0
    while True:
        if at == len(data):
            data, at = file.read(_PIECE_BYTES), 0
            if not data:
                return
        number += 1
        where = f"item {number}"
        if not is_map(data[at]):
            raise _refused("is not a map", where)
        while True:
            try:
                end = _end(data, at, where)
                break
            except _MoreNeeded:
                # Twice as much each time: what is walked along again is never more than that.
                more = file.read(max(_PIECE_BYTES, len(data) - at))
                if not more:
                    raise _refused("ends before its end", where) from None
                data, at = data[at:] + more, 0
        yield number, unpack(data[at:end], where)
        at = end


def packer() -> Callable[[Mapping[str, Any]], bytes]:
    """Packs a row as one item."""
    msgpack = _msgpack()
    pack: Callable[[Mapping[str, Any]], bytes] = msgpack.Packer(default=plain).pack
    return pack


def is_map(head: int) -> bool:
    """Whether an item that begins with this byte is a map, which no text begins with."""
    return _HEADS[head][0] == _MAP


def _msgpack() -> Any:  # noqa: ANN401 - the module
    try:
        import msgpack
    except ImportError:
        advice = "Install it with pip install 'memkura[msgpack]', or use jsonl"
        raise InvalidInput(
            "needs a package that is not installed", field="format", value="msgpack", advice=advice
        ) from None
    return msgpack


def _unpacker() -> Callable[[bytes, str], dict[str, Any]]:
    msgpack = _msgpack()

    def unpack(item: bytes, where: str) -> dict[str, Any]:
        try:
            found: dict[str, Any] = msgpack.unpackb(item, object_pairs_hook=unique)
        except KeyTwice as error:
            raise _refused(str(error), where) from None
        except (ValueError, TypeError, msgpack.UnpackException) as error:
            raise _refused(f"is not what JSON has: {error}", where) from None
        return found

    return unpack


def _end(data: bytes, at: int, where: str) -> int:
    """Where the item that begins at `at` ends.

    Raises:
        _MoreNeeded: not within `data`.
    """
    begin = at
    values, holders = 1, 0
    left = [1]  # values that each level still waits for, the item itself first
    while left:
        if not left[-1]:
            left.pop()
            continue
        left[-1] -= 1
        if at >= len(data):
            raise _MoreNeeded
        kind, length, width = _HEADS[data[at]]
        at += 1
        if width:
            length, at = _length(data, at, width)
        if kind == _VALUE:
            at += length
        elif kind in _HOLDERS:
            count = length * _HOLDERS[kind]
            values, holders = values + count, holders + 1
            _see_bounds(values, holders, len(left), where)
            run = _run(data, at, count) if kind == _LIST and count >= _RUN_MIN else 0
            if run:
                at += run
            else:
                left.append(count)
        else:
            raise _refused(kind, where)
        if at - begin > _ITEM_BYTES_MAX:
            raise too_much("bytes", _ITEM_BYTES_MAX, where)
    if at > len(data):
        raise _MoreNeeded
    return at


def _see_bounds(values: int, holders: int, depth: int, where: str) -> None:
    if values > VALUES_MAX:
        raise too_much("values", VALUES_MAX, where)
    if holders > HOLDERS_MAX:
        raise too_much("maps and arrays", HOLDERS_MAX, where)
    if depth > DEPTH_MAX:
        raise too_much("levels", DEPTH_MAX, where)


def _length(data: bytes, at: int, width: int) -> tuple[int, int]:
    if at + width > len(data):
        raise _MoreNeeded
    return int.from_bytes(data[at : at + width], "big"), at + width


def _run(data: bytes, at: int, length: int) -> int:
    """The bytes of `length` floats of one kind from `at` on; 0 when something else is there."""
    width = _FLOATS.get(data[at]) if at < len(data) else None
    if width is None or at + length * width > len(data):
        return 0
    heads = data[at : at + length * width : width]
    return length * width if heads == heads[:1] * length else 0


def _refused(problem: str, where: str) -> InvalidInput:
    return InvalidInput(problem, field=where)
