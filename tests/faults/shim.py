"""The shim of shim.c: making it, driving it, and children that work under it."""

from __future__ import annotations

import ctypes
import enum
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from writing import Writer, opened

if TYPE_CHECKING:
    from collections.abc import Sequence

# Sixty operations; every fifteenth seals the index and moves the record's pages.
DEEDS = "rrurufrurufruuc" * 4


class Manner(enum.IntEnum):
    """How a call goes wrong, in the order of `enum manner`."""

    NONE = 0
    EIO_ONCE = 1
    FULL_FROM = 2
    HALF_WRITE = 3
    KILL = 4
    SYNC_EIO = 5


def built_shim(folder: Path) -> Path:
    """The compiled shim; skips the test where there can be none."""
    if sys.platform != "linux":
        pytest.skip("the shim is made for Linux")
    library = folder / "shim.so"
    source = Path(__file__).with_name("shim.c")
    try:
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-lpthread"], check=True)
    except FileNotFoundError:
        pytest.skip("there is no C compiler")
    return library


def loaded() -> ctypes.CDLL:
    """The shim under which this child runs."""
    library = ctypes.CDLL(os.environ["MEMKURA_SHIM"])
    library.shim_kinds.restype = ctypes.c_char_p
    library.shim_fail.argtypes = [ctypes.c_long, ctypes.c_int]
    return library


def record(
    folder: str,
    log: str,
    seed: str,
    known: Sequence[tuple[str, str]],
    *,
    fault: str = "",
    swallow: bool = False,
    durability: str = "power_loss",
) -> None:
    """A child that writes down every call below `folder` while it works on the store there, opening it twice."""
    shim = loaded()
    shim.shim_watch(folder.encode())
    shim.shim_record(log.encode())
    shim.shim_swallow(swallow)
    store = Path(folder) / "agent.memkura"
    for half in (DEEDS[:30], DEEDS[30:]):
        with opened(store, durability=durability) as engine:
            writer = Writer(engine, lambda line: shim.shim_mark(line.encode()), f"{seed}{len(known)}", known, fault)
            for deed in half:
                writer.operate(deed)
            known = list(writer.known.items())
    shim.shim_mark(b"end")
    # The log ends with what every folder lists, so that what is rebuilt from it can be compared with what is there.
    for path, _, _ in os.walk(folder):
        handle = os.open(path, os.O_RDONLY)
        os.fsync(handle)
        os.close(handle)
