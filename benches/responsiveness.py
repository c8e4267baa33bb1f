"""How much of the interpreter memkura leaves to others.

    python benches/responsiveness.py [--memories 10000] [--smoke]

Prints what a counting thread keeps of its pace beside an import, and beside zlib in the same run, which needs the
interpreter not at all: less than that is the machine's; how late a 10 ms ticker comes beside an awaited import and a
slow embedder; and what eight recalling threads gain over one. Interleaved, medians.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import threading
import time
import zlib
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import memkura
from memkura.testing import ToyEmbedder
from workload import scattered

if TYPE_CHECKING:
    from collections.abc import Callable

    from memkura import Engine
    from workload import Workload

_TICK_SECONDS = 0.01
_THREADS = 8


def pace(work: Callable[[], object]) -> float:
    """Steps a second of a counting thread while `work` runs."""
    steps = 0
    is_done = False

    def count() -> None:
        nonlocal steps
        while not is_done:
            steps += 1

    counting = threading.Thread(target=count)
    started = time.perf_counter()
    counting.start()
    work()
    is_done = True
    counting.join()
    return steps / (time.perf_counter() - started)


def kept_paces(load: Workload, folder: Path) -> tuple[float, float]:
    """The shares of its idle pace that a counting thread keeps beside an import, and beside zlib."""
    noise = os.urandom(20 << 20)
    with memkura.open(folder, embedder=None) as engine:
        items = load.items()
        idle = pace(lambda: time.sleep(1.0))
        return pace(lambda: engine.remember_many(items)) / idle, pace(lambda: zlib.compress(noise)) / idle


async def worst_lag(load: Workload, folder: Path) -> float:
    """Seconds by which a ticker came late, at worst, beside an awaited import and a recall with a slow embedder."""
    lags = [0.0]
    is_done = False

    async def tick() -> None:
        while not is_done:
            before = time.perf_counter()
            await asyncio.sleep(_TICK_SECONDS)
            lags.append(time.perf_counter() - before - _TICK_SECONDS)

    embedder = ToyEmbedder(load.vectors.shape[1], delay=0.3)
    async with await memkura.open_async(folder, embedder=embedder) as engine:
        ticking = asyncio.create_task(tick())
        await asyncio.gather(engine.remember_many(load.items()), engine.recall("c", load.questions[0]))
        is_done = True
        await ticking
    return max(lags)


def recalls_a_second(engine: Engine, load: Workload, threads: int, seconds: float) -> float:
    """Recalls a second that so many threads make together."""
    until = time.perf_counter() + seconds
    counts = [0] * threads

    def recall(thread: int) -> None:
        while time.perf_counter() < until:
            at = (thread + counts[thread]) % len(load.questions)
            engine.recall("c", load.questions[at], embedding=load.question_vectors[at], k=10)
            counts[thread] += 1

    recalling = [threading.Thread(target=recall, args=(number,)) for number in range(threads)]
    for thread in recalling:
        thread.start()
    for thread in recalling:
        thread.join()
    return sum(counts) / seconds


def main() -> None:
    """Prints the three figures."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--smoke", action="store_true", help="small and short: only that it runs")
    wanted = parser.parse_args()
    memories, rounds, seconds = (500, 1, 0.2) if wanted.smoke else (wanted.memories, 5, 1.0)
    load = scattered(memories, questions=50)
    kept, lags, gains = [], [], []
    with tempfile.TemporaryDirectory() as folder, memkura.open(Path(folder, "recalled"), embedder=None) as engine:
        engine.remember_many(load.items())
        for number in range(rounds):
            kept.append(kept_paces(load, Path(folder, f"import{number}")))
            lags.append(asyncio.run(worst_lag(load, Path(folder, f"async{number}"))))
            one, several = (recalls_a_second(engine, load, threads, seconds) for threads in (1, _THREADS))
            gains.append(several / one)
    ours, floor = (median(shares) for shares in zip(*kept, strict=True))
    print(f"counting thread beside an import of {memories:,}: keeps {ours:.0%} of its pace; beside zlib {floor:.0%}")
    print(f"10 ms ticker beside an awaited import and a slow embedder: {median(lags) * 1e3:.0f} ms late at worst")
    print(f"{_THREADS} recalling threads: {median(gains):.2f} times as many recalls as one")


if __name__ == "__main__":
    main()
