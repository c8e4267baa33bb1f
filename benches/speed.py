"""How quick recall and remember are, beside ``rank_bm25`` and numpy in the same process.

    python benches/speed.py [--memories 10000] [--smoke]

Synthetic memories and unit vectors, seeded. Both sides answer the same question with the same filter; the calls are
interleaved, so that a busy machine slows both alike; medians are printed, and their ratio.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
from rank_bm25 import BM25Okapi

import memkura
from memkura.embedders.given import Given

if TYPE_CHECKING:
    from collections.abc import Callable

    Matrix = np.ndarray[Any, np.dtype[np.float32]]

_SEED = 7
_DIM = 384
_WORDS = 5_000
_TAGS = 10
_DEPTH = 100
_RRF = 60
_CONSONANTS = "bdfgklmnrt"
_VOWELS = "aeiou"


class Workload:
    """Texts, tags, vectors and questions."""

    def __init__(self, memories: int, questions: int) -> None:
        chance = random.Random(_SEED)  # noqa: S311 - a workload, not a secret
        words = [_word(chance, number) for number in range(_WORDS)]
        # Few words are frequent and most are rare, as in any language.
        weights = [1 / (rank + 2) for rank in range(_WORDS)]
        self.texts = [" ".join(chance.choices(words, weights, k=chance.randint(8, 40))) for _ in range(memories)]
        self.tags = [f"tag{chance.randrange(_TAGS)}" for _ in range(memories)]
        self.questions = [" ".join(chance.choices(words, weights, k=6)) for _ in range(questions)]
        generator = np.random.default_rng(_SEED)
        self.vectors = _unit(generator.standard_normal((memories, _DIM), dtype=np.float32))
        self.question_vectors = _unit(generator.standard_normal((questions, _DIM), dtype=np.float32))

    def items(self) -> list[dict[str, Any]]:
        """As ``remember_many`` takes them."""
        rows = zip(self.texts, self.tags, self.vectors, strict=True)
        return [{"context_id": "c", "summary": text, "tags": [tag], "embedding": vector} for text, tag, vector in rows]


class Rival:
    """The usual few lines: BM25 in Python, a matrix product, a mask, reciprocal ranks."""

    def __init__(self, load: Workload) -> None:
        self._bm25 = BM25Okapi([text.split() for text in load.texts])
        self._vectors = load.vectors
        self._tags = np.array(load.tags)

    def recall(self, question: str, vector: Matrix, tag: str, k: int) -> list[int]:
        """The ordinals of the best `k` with the tag."""
        matching = np.flatnonzero(self._tags == tag)
        legs = (self._bm25.get_scores(question.split())[matching], (self._vectors @ vector)[matching])
        fused: dict[int, float] = {}
        for scores in legs:
            for rank, at in enumerate(np.argsort(-scores)[:_DEPTH], 1):
                fused[int(matching[at])] = fused.get(int(matching[at]), 0.0) + 1 / (_RRF + rank)
        return sorted(fused, key=lambda at: (-fused[at], at))[:k]


def _word(chance: random.Random, number: int) -> str:
    """A word of letters that no other number gives: its digits as syllables, and one more by chance."""
    syllables = [
        _CONSONANTS[int(digit)] + _VOWELS[(number + place) % len(_VOWELS)] for place, digit in enumerate(str(number))
    ]
    return "".join([*syllables, chance.choice(_CONSONANTS)])


def _unit(matrix: Matrix) -> Matrix:
    unit: Matrix = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    return unit


def _seconds(call: Callable[[], object]) -> float:
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


def _recalls(engine: memkura.Engine, rival: Rival, load: Workload) -> tuple[list[float], list[float]]:
    ours, theirs = [], []
    for at, question in enumerate(load.questions):
        vector, tag = load.question_vectors[at], f"tag{at % _TAGS}"
        ours.append(
            _seconds(lambda: engine.recall("c", question, embedding=vector, filters={"tags": tag}, k=10))  # noqa: B023
        )
        theirs.append(_seconds(lambda: rival.recall(question, vector, tag, 10)))  # noqa: B023
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
    load = Workload(memories, questions)
    rival = Rival(load)
    with tempfile.TemporaryDirectory() as folder:
        with memkura.open(Path(folder, "bench.memkura"), embedder=Given(_DIM, "synthetic")) as engine:
            items = load.items()
            importing = _seconds(lambda: engine.remember_many(items))
            _recalls(engine, rival, load)  # both sides warm
            ours, theirs = _recalls(engine, rival, load)
            fresh = _written_then_found(engine, load, 10 if wanted.smoke else 100)
        reopening = _seconds(lambda: _first_recall(folder, load))
    print(f"import memkura                             {_import_seconds('memkura') * 1e3:8.1f} ms")
    print(f"import numpy                               {_import_seconds('numpy') * 1e3:8.1f} ms")
    print(f"import of {memories:,} memories with vectors    {importing:8.2f} s")
    print(f"recall, hybrid, top 10, one tag in {_TAGS}      {median(ours) * 1e3:8.3f} ms  p99 {_p99(ours):.3f} ms")
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
    with memkura.open(Path(folder, "bench.memkura"), embedder=Given(_DIM, "synthetic")) as engine:
        engine.recall("c", load.questions[0], embedding=load.question_vectors[0])


def _p99(seconds: list[float]) -> float:
    return sorted(seconds)[int(len(seconds) * 0.99)] * 1e3


if __name__ == "__main__":
    main()
