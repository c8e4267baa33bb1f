"""Files of msgpack, one map after the other, from others: bounded, and refused with the number of the item.

A header of msgpack can claim more than the file holds, and whoever believes it makes room first. So each item is walked
along before it is unpacked: it is whole, within bounds, and holds nothing but what JSON has.
"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any

from memkura import _core
from memkura.errors import InvalidInput
from memkura.jsonl import LINE_BYTES_MAX, KeyTwice, bounds, out_of_bounds, plain, too_much, unique

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

# An item has the bounds of a line of JSON.
_ITEM_BYTES_MAX = LINE_BYTES_MAX
_PIECE_BYTES = 64 << 10
# Small maps, then longer ones.
_MAPS = frozenset([*range(0x80, 0x90), 0xDE, 0xDF])
# What the core says of values that JSON has not.
_NOT_JSON = {
    "binary": "holds bytes, which are no text",
    "extension": "holds an extension type, which nothing here reads",
    "no value": "holds a byte that begins no value",
}


def items_in(file: IO[bytes], rows_max: int | None = None) -> Iterator[tuple[int, dict[str, Any]]]:
    """Each map in the file with its number, from 1; it may be refused after `rows_max` of them.

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
        if rows_max is not None and number > rows_max:
            raise too_much("items", rows_max, "path")
        if not is_map(data[at]):
            raise _refused("is not a map", where)
        while (end := _end(data, at, where)) > len(data):
            # Twice as much each time: what is walked along again is never more than that.
            so_far = len(data) - at
            more = file.read(max(_PIECE_BYTES, min(so_far, _ITEM_BYTES_MAX - so_far)))
            if not more:
                raise _refused("ends before its end", where)
            data, at = data[at:] + more, 0
        yield number, unpack(memoryview(data)[at:end], where)
        at = end


def packer() -> Callable[[Mapping[str, Any]], bytes]:
    """Packs a row as one item."""
    msgpack = _msgpack()
    pack: Callable[[Mapping[str, Any]], bytes] = msgpack.Packer(default=plain).pack
    return pack


def is_map(head: int) -> bool:
    """Whether an item that begins with this byte is a map, which no text begins with."""
    return head in _MAPS


def _msgpack() -> Any:  # noqa: ANN401 - the module
    try:
        import msgpack
    except ImportError:
        advice = "Install it with pip install 'memkura[msgpack]', or use jsonl"
        raise InvalidInput(
            "needs a package that is not installed", field="format", value="msgpack", advice=advice
        ) from None
    return msgpack


def _unpacker() -> Callable[[memoryview, str], dict[str, Any]]:
    msgpack = _msgpack()

    def unpack(item: memoryview, where: str) -> dict[str, Any]:
        try:
            found: dict[str, Any] = msgpack.unpackb(item, object_pairs_hook=unique)
        except KeyTwice as error:
            raise _refused(str(error), where) from None
        except (ValueError, TypeError, msgpack.UnpackException) as error:
            raise _refused(f"is not what JSON has: {error}", where) from None
        return found

    return unpack


def _end(data: bytes, at: int, where: str) -> int:
    """Where the item that begins at `at` ends; beyond `data` when that does not tell."""
    end, broken = _core.msgpack_end(data, at, _ITEM_BYTES_MAX, bounds())
    if broken in _NOT_JSON:
        raise _refused(_NOT_JSON[broken], where)
    if broken is not None:
        raise out_of_bounds(broken, "maps and arrays", where)
    return end


def _refused(problem: str, where: str) -> InvalidInput:
    return InvalidInput(problem, field=where)
