"""The shim of shim.c: making it, driving it, and children that work under it."""

from __future__ import annotations

import ctypes
import enum
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from writing import CONTEXT, Journal, Say, Writer, opened

from memkura import errors

if TYPE_CHECKING:
    from collections.abc import Sequence

# Sixty operations; every fifteenth seals the index and moves the record's pages. The store is opened twice.
DEEDS = "|".join(["rrurufrurufruuc" * 2] * 2)


class Manner(enum.IntEnum):
    """How a call goes wrong, in the order of `enum manner`."""

    NONE = 0
    EIO_ONCE = 1
    FULL_FROM = 2
    HALF_WRITE = 3
    KILL = 4
    SYNC_EIO = 5
    SYNC_FULL = 6


def built_shim(folder: Path, name: str = "shim") -> Path:
    """A compiled shim; skips the test where there can be none."""
    if sys.platform != "linux":
        pytest.skip("the shim is made for Linux")
    library = folder / f"{name}.so"
    source = Path(__file__).with_name(f"{name}.c")
    try:
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-lpthread"], check=True)
    except FileNotFoundError:
        pytest.skip("there is no C compiler")
    return library


def watching(folder: str) -> ctypes.CDLL:
    """The shim under which this child runs, watching `folder`."""
    library = ctypes.CDLL(os.environ["MEMKURA_SHIM"])
    library.shim_kinds.restype = ctypes.c_char_p
    library.shim_fail.argtypes = [ctypes.c_long, ctypes.c_int]
    library.shim_watch(folder.encode())
    return library


def marking(shim: ctypes.CDLL, writer: str) -> Say:
    """A journal that stands among the calls."""
    return lambda line: shim.shim_mark(f"{writer}|{line}".encode())


def record(
    folder: str,
    log: str,
    seed: str,
    known: Sequence[tuple[str, str]],
    *,
    fault: str = "",
    swallow: bool = False,
    durability: str = "power_loss",
    deeds: str = DEEDS,
    position: int = 0,
    manner: int = Manner.NONE,
    threads: int = 1,
) -> None:
    """A child that writes down every call below `folder` while it works on the store there.

    Each of the `threads` has memories of its own, and its marks begin with its name and a bar.
    """
    shim = watching(folder)
    shim.shim_record(log.encode())
    shim.shim_swallow(swallow)
    shim.shim_fail(position, manner)
    store = Path(folder) / "agent.memkura"
    for at, life in enumerate(deeds.split("|")):
        with opened(store, durability=durability) as engine, ThreadPoolExecutor(threads) as pool:
            writers = [
                Writer(engine, marking(shim, name), f"{seed}-{name}", known[thread::threads], fault)
                for thread, name in enumerate(f"{at}-{thread}" for thread in range(threads))
            ]
            for done in [pool.submit(writer.operate_all, life) for writer in writers]:
                done.result()
            known = [one for writer in writers for one in writer.known.items()]
    shim.shim_mark(b"end")
    # The log ends with what every folder lists, so that what is rebuilt from it can be compared with what is there.
    for path, _, _ in os.walk(folder):
        handle = os.open(path, os.O_RDONLY)
        os.fsync(handle)
        os.close(handle)


# Each verb, with a sealing between them.
SIX = "rufcru"


def fail(
    store: str, journal: str, known: Sequence[tuple[str, str]], position: int, manner: int, *, fault: str = ""
) -> None:
    """A child that opens a store and does six operations, while the call at `position` goes wrong."""
    shim = watching(store)
    say = Journal(journal)
    shim.shim_fail(position, manner)
    try:
        with opened(store) as engine:
            writer = Writer(engine, say, "six", known, fault)
            for deed in SIX:
                writer.operate(deed)
    except errors.MemkuraError as error:
        say(f"failed open - - {type(error).__name__}")
    struck = shim.shim_struck()
    say(f"calls {shim.shim_kinds().decode()}")
    say(f"struck {struck}")


def fail_one_sync(store: str, journal: str, known: Sequence[tuple[str, str]]) -> None:
    """A child in which the sync of one write fails, and which then goes on writing and reading."""
    shim = watching(store)
    say = Journal(journal)
    with opened(store) as engine:
        writer = Writer(engine, say, "sync", known)
        writer.operate("r")
        shim.shim_fail(1, Manner.SYNC_EIO)
        writer.operate("r")
        say(f"struck {shim.shim_struck()}")
        shim.shim_fail(0, Manner.NONE)
        for deed in "ruf":
            writer.operate(deed)
        say(f"calls {shim.shim_kinds().decode()}")
        for memory_id, word in writer.known.items():
            memory = engine.get(CONTEXT, memory_id)
            hits = engine.recall(CONTEXT, word, legs=["text"])
            say(f"read {memory is not None and [hit.memory_id for hit in hits] == [memory_id]}")
