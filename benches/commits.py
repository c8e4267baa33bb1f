"""How many durable writes a second threads make together.

    python benches/commits.py [--seconds 2] [--smoke]

One thread and eight, beside the same texts in a plain SQLite table (write-ahead log, `synchronous = FULL`), where
threads take turns and each text has its own transaction and sync. Interleaved, medians of five.
"""

from __future__ import annotations

import argparse
import sqlite3
import tempfile
import threading
import time
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import memkura

if TYPE_CHECKING:
    from collections.abc import Callable

_THREADS = 8
_ROUNDS = 5
_TEXT = "the lamp of the {} lighthouse is lit at dusk and put out at dawn"


def writes_a_second(write: Callable[[str], object], threads: int, seconds: float) -> float:
    """Writes a second that so many threads make together."""
    counts = [0] * threads
    started = time.perf_counter()

    def work(thread: int) -> None:
        while time.perf_counter() < started + seconds:
            write(_TEXT.format(f"{thread} {counts[thread]}"))
            counts[thread] += 1

    working = [threading.Thread(target=work, args=(thread,)) for thread in range(threads)]
    for thread in working:
        thread.start()
    for thread in working:
        thread.join()
    return sum(counts) / (time.perf_counter() - started)


def sqlite_at(path: Path) -> tuple[sqlite3.Connection, Callable[[str], object]]:
    """A plain table, and the call that writes a row to it durably."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE memory (summary TEXT)")
    turn = threading.Lock()

    def write(text: str) -> None:
        with turn:
            connection.execute("INSERT INTO memory VALUES (?)", (text,))

    return connection, write


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--smoke", action="store_true", help="one short round")
    wanted = parser.parse_args()
    seconds, rounds = (0.2, 1) if wanted.smoke else (wanted.seconds, _ROUNDS)
    found: dict[str, list[float]] = {}
    with (
        tempfile.TemporaryDirectory() as scratch,
        memkura.open(Path(scratch, "store"), embedder=None) as engine,
        closing((plain := sqlite_at(Path(scratch, "plain.sqlite3")))[0]),
    ):
        ways: dict[str, Callable[[str], object]] = {
            "memkura": lambda text: engine.remember("c", text),
            "sqlite": plain[1],
        }
        for _ in range(rounds):
            for name, write in ways.items():
                for threads in (1, _THREADS):
                    found.setdefault(f"{name}, {threads}", []).append(writes_a_second(write, threads, seconds))
    print("| writer, threads | durable writes a second |\n|---|---|")
    for name, paces in found.items():
        print(f"| {name} | {median(paces):.0f} |")
    gains = {name: median(found[f"{name}, {_THREADS}"]) / median(found[f"{name}, 1"]) for name in ways}
    print(", ".join(f"{name}: eight threads make {gain:.1f} times as many as one" for name, gain in gains.items()))


if __name__ == "__main__":
    main()
