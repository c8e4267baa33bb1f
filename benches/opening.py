"""How long it takes from opening a store to its first recall: sealed, from nothing, and beside pickle and numpy.

    python benches/opening.py [--memories 100000] [--runs 7] [--smoke]

Synthetic memories and unit vectors, seeded, as in ``speed.py``. Every run opens anew, in turn: the sealed store for a
recall by words and for a hybrid one, a copy of it without an index, and what the usual few lines keep (a pickled
``rank_bm25`` index, and the vectors as a mapped ``.npy``). All files are in the page cache, for all sides. Medians are
printed, and ratios to the hybrid recall of the sealed store.
"""

from __future__ import annotations

import argparse
import fcntl
import shutil
import tempfile
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import memkura
from contestants import Plain
from memkura.embedders.given import Given
from workload import DIM, Workload, scattered, seconds_of

if TYPE_CHECKING:
    from collections.abc import Callable

_BATCH = 10_000


def _fill(store: Path, load: Workload) -> None:
    items = load.items()
    with memkura.open(store, embedder=_given(), busy_timeout=600) as engine:
        for at in range(0, len(items), _BATCH):
            engine.remember_many(items[at : at + _BATCH])
        engine.recall("c", load.questions[0], legs=["text"])
        engine.compact()


def _given() -> Given:
    return Given(DIM, "synthetic")


def _first_recall(store: Path, load: Workload, legs: list[str] | None) -> list[str]:
    with memkura.open(store, embedder=_given()) as engine:
        vector = None if legs else load.question_vectors[0]
        return [hit.summary for hit in engine.recall("c", load.questions[0], embedding=vector, legs=legs, k=10)]


def _usual_first_recall(folder: Path, load: Workload) -> list[int]:
    return Plain(folder).hybrid(load.asked()[0], 10)


def _copy_without_index(sealed: Path, bare: Path) -> None:
    shutil.copytree(sealed, bare, ignore=shutil.ignore_patterns("index"))
    (bare / "index" / "1").mkdir(parents=True, mode=0o700)


def _without_index(bare: Path, load: Workload) -> float:
    # Whoever holds the lock is the one who seals: so the copy stays without an index.
    with (bare / "index" / "1" / "LOCK").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return seconds_of(lambda: _first_recall(bare, load, None))


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--memories", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--smoke", action="store_true", help="small sizes, to see that it runs")
    wanted = parser.parse_args()
    memories, runs = (500, 2) if wanted.smoke else (wanted.memories, wanted.runs)
    load = scattered(memories, 20)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sealed = folder / "sealed.memkura"
        _fill(sealed, load)
        Plain(folder).fill(load)
        _copy_without_index(sealed, folder / "bare.memkura")
        cases: dict[str, Callable[[], float]] = {
            "sealed, recall by words": lambda: seconds_of(lambda: _first_recall(sealed, load, ["text"])),
            "sealed, hybrid recall": lambda: seconds_of(lambda: _first_recall(sealed, load, None)),
            "from nothing, hybrid recall": lambda: _without_index(folder / "bare.memkura", load),
            "pickled rank_bm25, mapped numpy": lambda: seconds_of(lambda: _usual_first_recall(folder, load)),
        }
        seconds: dict[str, list[float]] = {case: [] for case in cases}
        for _ in range(runs + 1):
            for case, call in cases.items():
                seconds[case].append(call())
    base = median(seconds["sealed, hybrid recall"][1:])
    print(f"from opening {memories:,} memories x {DIM} to the end of the first recall, median of {runs} (least)")
    for case, taken in seconds.items():
        middle, least = median(taken[1:]), min(taken[1:])
        print(f"{case:32} {middle * 1e3:9.1f} ms ({least * 1e3:.1f})  x {middle / base:.1f}")


if __name__ == "__main__":
    main()
