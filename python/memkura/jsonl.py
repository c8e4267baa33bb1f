"""Files with one JSON object a line, from others: bounded, and refused with the number of the line."""

from __future__ import annotations

import functools
import json
import math
import reprlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from memkura.errors import InvalidInput, LimitExceeded

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator
    from types import ModuleType

# The largest memory with its metadata, every character escaped; or a usual one with a wide embedding in decimals.
LINE_BYTES_MAX = 12 << 20
# More values than a wide embedding of the longest memory has; each costs up to 40 bytes when it is read.
VALUES_MAX = 1 << 20
# More objects and lists than the largest metadata holds; each costs a hundred bytes and more when it is read.
HOLDERS_MAX = 1 << 16
# More texts, names included, than the largest metadata holds; each costs sixty bytes and more when it is read.
TEXTS_MAX = 1 << 16
# More text than the longest memory with its metadata has; each byte may cost four when it is read.
TEXT_BYTES_MAX = 2 << 20
# A row is an object with metadata, which is nested less deeply.
DEPTH_MAX = 64

# What other encodings of Unicode begin with.
_MARKS = (b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff")


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


def objects_in(file: IO[bytes], rows_max: int | None = None) -> Iterator[tuple[int, dict[str, Any]]]:
    """As :func:`read_objects`, of an open file; it may be refused after `rows_max` lines."""
    number = 0
    while line := file.readline(LINE_BYTES_MAX + 1):
        number += 1
        if rows_max is not None and number > rows_max:
            raise too_much("lines", rows_max, "path")
        if len(line) > LINE_BYTES_MAX:
            raise too_much("bytes", LINE_BYTES_MAX, f"line {number}")
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        if line.strip():
            where = f"line {number}"
            text = _plain(line, where)
            # The text is what is read from here on, and both may be large.
            del line
            yield number, _object(text, where)


def _plain(line: bytes, where: str) -> str:
    """The line as a text of ASCII, within every bound. In encodings but UTF-8 nothing could be counted."""
    if line.startswith(_MARKS) or b"\0" in line:
        raise InvalidInput("is UTF-16 or UTF-32, or holds zero bytes", field=where, advice="Save the file as UTF-8")
    text: str | None
    text, broken = _core().plain_json(line, bounds())
    if broken == "utf8":
        raise InvalidInput("is not UTF-8", field=where, advice="Save the file as UTF-8")
    if broken == "json":
        raise InvalidInput("is not JSON: a backslash escapes what has no escape", field=where)
    if text is None:
        raise out_of_bounds(str(broken), "objects and lists", where)
    return text


def bounds() -> tuple[int, int, int, int, int]:
    """The most that a row may hold, as the core asks for it."""
    return VALUES_MAX, HOLDERS_MAX, TEXTS_MAX, TEXT_BYTES_MAX, DEPTH_MAX


def out_of_bounds(word: str, holders: str, where: str) -> LimitExceeded:
    """The refusal of a row that has too much of what the core says in a `word`; `holders` are its format's."""
    said = {
        "values": ("values", VALUES_MAX),
        "holders": (holders, HOLDERS_MAX),
        "texts": ("texts", TEXTS_MAX),
        "text bytes": ("bytes of text", TEXT_BYTES_MAX),
        "levels": ("levels", DEPTH_MAX),
        "bytes": ("bytes", LINE_BYTES_MAX),
    }
    what, most = said[word]
    return too_much(what, most, where)


def _object(line: str, where: str) -> dict[str, Any]:
    try:
        row = _decoder().decode(line)
    except KeyTwice as error:
        raise InvalidInput(str(error), field=where) from None
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"is not JSON: {error}", field=where) from None
    if not isinstance(row, dict):
        raise InvalidInput("is not a JSON object", field=where)
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


def too_much(what: str, most: int, where: str) -> LimitExceeded:
    """The refusal of a row that has more than `most` of something."""
    return LimitExceeded(f"has more than {most:,} {what}", field=where)


def _core() -> ModuleType:
    # `memkura --help` needs no engine.
    from memkura import _core

    return _core


@functools.cache
def _decoder() -> json.JSONDecoder:
    return json.JSONDecoder(parse_constant=_refuse, parse_float=_finite, object_pairs_hook=unique)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON number")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"{digits} is larger than a number can be")
    return number


def to_line(row: Mapping[str, Any]) -> str:
    """`row` as one line of plain ASCII, which every terminal and pipe carries and every reader gives back exactly."""
    return _encoder().encode(row)


@functools.cache
def _encoder() -> json.JSONEncoder:
    return json.JSONEncoder(ensure_ascii=True, allow_nan=False, default=plain)


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
