"""Files with one JSON object a line, from others: bounded, and refused with the number of the line."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memkura.errors import InvalidInput, LimitExceeded

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

# Twice the largest memory with its metadata and a wide embedding written out in decimals.
LINE_BYTES_MAX = 16 << 20


def read_objects(path: str | os.PathLike[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Each object in the file with the number of its line, from 1. Blank lines and a byte order mark are skipped.

    Raises:
        InvalidInput: a line is not a JSON object; the message names the line.
        LimitExceeded: a line is longer than ``LINE_BYTES_MAX``.
    """
    with Path(path).open("rb") as file:
        number = 0
        while line := file.readline(LINE_BYTES_MAX + 1):
            number += 1
            if len(line) > LINE_BYTES_MAX:
                raise LimitExceeded(f"is longer than {LINE_BYTES_MAX} bytes", field=f"line {number}")
            if number == 1:
                line = line.removeprefix(b"\xef\xbb\xbf")
            if line.strip():
                yield number, _object(line, number)


def _object(line: bytes, number: int) -> dict[str, Any]:
    try:
        row = json.loads(line, parse_constant=_refuse, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"is not JSON: {error}", field=f"line {number}", advice="Nothing was imported") from None
    if not isinstance(row, dict):
        raise InvalidInput("is not a JSON object", field=f"line {number}", advice="Nothing was imported")
    return row


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON number")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"{digits} is larger than a number can be")
    return number


def to_line(row: Mapping[str, Any]) -> str:
    """`row` as one line of plain ASCII, which every terminal and pipe carries and every reader gives back exactly."""
    return json.dumps(row, ensure_ascii=True, allow_nan=False, default=_plain)


def _plain(value: object) -> object:
    isoformat = getattr(value, "isoformat", None)
    if isoformat is not None:
        return isoformat()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, tuple | set | frozenset):
        return list(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")
