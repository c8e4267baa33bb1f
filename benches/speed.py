"""How quick recall and remember are, beside ``rank_bm25`` and numpy in the same process.

    python benches/speed.py [--memories 10000] [--smoke]

Synthetic memories and unit vectors, seeded. Both sides answer the same question with the same filter; the calls are
interleaved, so that a busy machine slows both alike; medians are printed, and their ratio.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import memkura
from contestants import Plain
from memkura.embedders.given import Given
from workload import DIM, TAGS, Workload, scattered, seconds_of


def _recalls(engine: memkura.Engine, rival: Plain, load: Workload) -> tuple[list[float], list[float]]:
    ours, theirs = [], []
    for at, question in enumerate(load.asked()):
        text, vector, tag = question.text, question.vector, f"tag{at % TAGS}"
        ours.append(
            seconds_of(lambda: engine.recall("c", text, embedding=vector, filters={"tags": tag}, k=10))  # noqa: B023
        )
        theirs.append(seconds_of(lambda: rival.hybrid(question, 10, tag)))  # noqa: B023
    return ours, theirs


def _written_then_found(engine: memkura.Engine, load: Workload, times: int) -> list[float]:
    seconds = []
    for at in range(times):
        begun = time.perf_counter()
        memory_id = engine.remember("c", f"fresh{at} {load.texts[at]}", embedding=load.vectors[at])
        hits = engine.recall("c", f"fresh{at}", embedding=load.vectors[at], k=1)
        seconds.append(time.perf_counter() - begun)
        if hits[0].memory_id != memory_id:
            raise SystemExit(f"memory {at} was not found right after it was written")
    return seconds


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--smoke", action="store_true", help="small sizes, to see that it runs")
    wanted = parser.parse_args()
    memories, questions = (500, 20) if wanted.smoke else (wanted.memories, wanted.questions)
    load = scattered(memories, questions)
    with tempfile.TemporaryDirectory() as folder:
        rival = Plain(Path(folder))
        rival.fill(load)
        with memkura.open(Path(folder, "bench.memkura"), embedder=Given(DIM, "synthetic")) as engine:
            items = load.items()
            importing = seconds_of(lambda: engine.remember_many(items))
            _recalls(engine, rival, load)  # both sides warm
            ours, theirs = _recalls(engine, rival, load)
            fresh = _written_then_found(engine, load, 10 if wanted.smoke else 100)
        reopening = seconds_of(lambda: _first_recall(folder, load))
    print(f"import memkura                             {_import_seconds('memkura') * 1e3:8.1f} ms")
    print(f"import numpy                               {_import_seconds('numpy') * 1e3:8.1f} ms")
    print(f"import of {memories:,} memories with vectors    {importing:8.2f} s")
    print(f"recall, hybrid, top 10, one tag in {TAGS}      {median(ours) * 1e3:8.3f} ms  p99 {_p99(ours):.3f} ms")
    print(f"the same with rank_bm25 and numpy          {median(theirs) * 1e3:8.3f} ms  p99 {_p99(theirs):.3f} ms")
    print(f"ratio                                      {median(theirs) / median(ours):8.1f}")
    print(f"remember, then recall it                   {median(fresh) * 1e3:8.3f} ms")
    print(f"open, then the first recall                {reopening * 1e3:8.1f} ms")


def _import_seconds(name: str) -> float:
    """What an import takes beyond the start of the interpreter."""
    code = f"import time; t = time.perf_counter(); import {name}; print(time.perf_counter() - t)"
    command = [sys.executable, "-c", code]
    runs = [subprocess.run(command, capture_output=True, check=True).stdout for _ in range(5)]  # noqa: S603 - ours
    return median(map(float, runs))


def _first_recall(folder: str, load: Workload) -> None:
    with memkura.open(Path(folder, "bench.memkura"), embedder=Given(DIM, "synthetic")) as engine:
        engine.recall("c", load.questions[0], embedding=load.question_vectors[0])


def _p99(seconds: list[float]) -> float:
    return sorted(seconds)[int(len(seconds) * 0.99)] * 1e3


if __name__ == "__main__":
    main()
