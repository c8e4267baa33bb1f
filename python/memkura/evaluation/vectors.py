"""Matrices in numpy's ``.npy`` files, read without numpy.

Format: ``numpy/lib/format.py``, versions 1 to 3: a magic word, a header that is a Python literal, then the numbers.
"""

from __future__ import annotations

import array
import ast
import struct
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from memkura.errors import InvalidInput

if TYPE_CHECKING:
    import os
    from typing import BinaryIO

_MAGIC = b"\x93NUMPY"
_HEADER_BYTES_MAX = 10_000
_SIZES = {"<f2": 2, "<f4": 4, "<f8": 8}


def read_npy(path: str | os.PathLike[str]) -> list[array.array[float]]:
    """The rows of the matrix in the file, each as an ``array('f')``.

    Args:
        path: a ``.npy`` file with a two-dimensional array of little-endian float16, float32 or float64, in C order.

    Raises:
        InvalidInput: the file holds something else, or is cut short.
    """
    with Path(path).open("rb") as file:
        kind, count, width = _header(file, str(path))
        rows = []
        row_bytes = width * _SIZES[kind]
        # Before anything is read by a size that is only claimed.
        if Path(path).stat().st_size - file.tell() < count * row_bytes:
            raise _refused(str(path), "is cut short")
        for _ in range(count):
            read = file.read(row_bytes)
            if len(read) != row_bytes:
                raise _refused(str(path), "is cut short")
            rows.append(_row(read, kind, width))
        return rows


def _header(file: BinaryIO, path: str) -> tuple[str, int, int]:
    magic = file.read(len(_MAGIC) + 2)
    if magic[: len(_MAGIC)] != _MAGIC or len(magic) < len(_MAGIC) + 2:
        raise _refused(path, "is not a .npy file")
    size = file.read(2 if magic[len(_MAGIC)] == 1 else 4)
    length = int.from_bytes(size, "little")
    if length > _HEADER_BYTES_MAX:
        raise _refused(path, "has a header that is too long")
    try:
        header = ast.literal_eval(file.read(length).decode("utf-8"))
        kind, (count, width), fortran = header["descr"], header["shape"], header["fortran_order"]
        is_known = kind in _SIZES and not fortran and count >= 0 and width > 0
        is_known = is_known and isinstance(count, int) and isinstance(width, int)
    except (ValueError, KeyError, TypeError, SyntaxError, RecursionError) as error:
        raise _refused(path, "has a header that cannot be read") from error
    if not is_known:
        raise _refused(path, "holds something else than rows of float16, float32 or float64, in C order")
    return kind, count, width


def _row(read: bytes, kind: str, width: int) -> array.array[float]:
    if kind == "<f4":
        row = array.array("f", read)
        if sys.byteorder == "big":
            row.byteswap()
        return row
    return array.array("f", struct.unpack(f"<{width}{'e' if kind == '<f2' else 'd'}", read))


def _refused(path: str, why: str) -> InvalidInput:
    return InvalidInput(f"the file {why}", field="vectors", value=repr(path), advice="Save it with numpy.save")
