"""Files with one JSON object a line, from others: bounded, and refused with the number of the line."""

from __future__ import annotations

import json
import math
import re
import reprlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from memkura.errors import InvalidInput, LimitExceeded

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

# Twice the largest memory with its metadata and a wide embedding written out in decimals.
LINE_BYTES_MAX = 16 << 20
# More values than the widest embedding of the longest memory has; each costs up to 32 bytes when it is read.
VALUES_MAX = 1 << 20
# More objects and lists than the largest metadata holds; each costs a hundred bytes and more when it is read.
HOLDERS_MAX = 1 << 16
# A row is an object with metadata, which is nested less deeply.
DEPTH_MAX = 64

# A text; at the end of a broken line, what was begun of one.
_TEXT = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_BRACKET = re.compile(rb"[\[{\]}]")


class KeyTwice(ValueError):  # noqa: N818 - it says what is wrong with the object
    """An object that names a key twice: whoever reads it takes one or the other."""


def read_objects(path: str | os.PathLike[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Each object in the file with the number of its line, from 1. Blank lines and a byte order mark are skipped.

    Raises:
        InvalidInput: a line is not a JSON object, or names a key twice; the message names the line.
        LimitExceeded: a line is longer than ``LINE_BYTES_MAX``, or holds more than it may.
    """
    with Path(path).open("rb") as file:
        yield from objects_in(file)


def objects_in(file: IO[bytes]) -> Iterator[tuple[int, dict[str, Any]]]:
    """As :func:`read_objects`, of an open file."""
    number = 0
    while line := file.readline(LINE_BYTES_MAX + 1):
        number += 1
        if len(line) > LINE_BYTES_MAX:
            raise too_much("bytes", LINE_BYTES_MAX, f"line {number}")
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        if line.strip():
            yield number, _object(line, number)


def _object(line: bytes, number: int) -> dict[str, Any]:
    where = f"line {number}"
    _bounded(line, where)
    try:
        row = json.loads(line, parse_constant=_refuse, parse_float=_finite, object_pairs_hook=unique)
    except KeyTwice as error:
        raise InvalidInput(str(error), field=where) from None
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"is not JSON: {error}", field=where) from None
    if not isinstance(row, dict):
        raise InvalidInput("is not a JSON object", field=f"line {number}")
    return row


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of these pairs.

    Raises:
        KeyTwice: a key is there twice.
    """
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise KeyTwice(f"names {reprlib.repr(twice)} twice in one object")
    return found


def _bounded(line: bytes, where: str) -> None:
    """Refuses, before anything is made of it, a line that would take many times its own size in memory."""
    holders = line.count(b"[") + line.count(b"{")
    if holders <= DEPTH_MAX and holders + line.count(b",") <= VALUES_MAX:
        return
    bare = _TEXT.sub(b"", line)
    holders = bare.count(b"[") + bare.count(b"{")
    if holders > HOLDERS_MAX:
        raise too_much("objects and lists", HOLDERS_MAX, where)
    if holders + bare.count(b",") > VALUES_MAX:
        raise too_much("values", VALUES_MAX, where)
    depth = 0
    for bracket in _BRACKET.findall(bare) if holders > DEPTH_MAX else ():
        depth += 1 if bracket in b"[{" else -1
        if depth > DEPTH_MAX:
            raise too_much("levels", DEPTH_MAX, where)


def too_much(what: str, most: int, where: str) -> LimitExceeded:
    """The refusal of a row that has more than `most` of something."""
    return LimitExceeded(f"has more than {most:,} {what}", field=where)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON number")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"{digits} is larger than a number can be")
    return number


def to_line(row: Mapping[str, Any]) -> str:
    """`row` as one line of plain ASCII, which every terminal and pipe carries and every reader gives back exactly."""
    return json.dumps(row, ensure_ascii=True, allow_nan=False, default=plain)


def plain(value: object) -> object:
    """What stands in a file for a value that has no form of its own there."""
    isoformat = getattr(value, "isoformat", None)
    if isoformat is not None:
        return isoformat()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, tuple | set | frozenset):
        return list(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")
