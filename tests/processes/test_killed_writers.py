"""Two writers on one store, killed at random moments.

What was acknowledged stays, and an index that grew equals one that is just built.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

import memkura
from memkura.testing import ToyEmbedder

if TYPE_CHECKING:
    from pathlib import Path

_WRITER = """
import random, sys
import memkura
from memkura.testing import ToyEmbedder

path, name, seed = sys.argv[1:]
chance = random.Random(int(seed))
with memkura.open(path, embedder=ToyEmbedder(512)) as engine:
    known = []
    for turn in range(100_000):
        word = f"{name}x{turn}"
        deed = chance.random()
        if deed < 0.6 or not known:
            memory_id = engine.remember("c", f"the word is {word}")
            known.append(str(memory_id))
            print("keep", memory_id, word, flush=True)
        elif deed < 0.85:
            memory_id = chance.choice(known)
            engine.update_memory("c", memory_id, summary=f"the word is {word}")
            print("keep", memory_id, word, flush=True)
        else:
            memory_id = known.pop(chance.randrange(len(known)))
            engine.forget("c", memory_id)
            print("gone", memory_id, "-", flush=True)
"""


def _acknowledged(output: str) -> dict[str, str | None]:
    """The newest acknowledged word of each memory; ``None`` for those that were forgotten."""
    state: dict[str, str | None] = {}
    # What stands before the last line break was acknowledged; a line cut short by the kill was not.
    for line in output[: output.rfind("\n") + 1].splitlines():
        deed, memory_id, word = line.split()
        state[memory_id] = word if deed == "keep" else None
    return state


@pytest.mark.parametrize("seed", range(4))
def test_acknowledged_writes_survive_two_killed_writers(store_path: Path, seed: int) -> None:
    """What two killed writers had acknowledged is found by id and by both legs, and nothing forgotten comes back."""
    chance = random.Random(seed)
    with memkura.open(store_path, embedder=ToyEmbedder(512)) as watching:
        watching.recall("c", "warm")
        writers = [
            subprocess.Popen(
                [sys.executable, "-c", _WRITER, str(store_path), name, str(seed)], stdout=subprocess.PIPE, text=True
            )
            for name in ("ann", "ben")
        ]
        time.sleep(1.0 + chance.random())
        watching.recall("c", "the word")
        for writer in writers:
            time.sleep(chance.random() / 5)
            writer.send_signal(signal.SIGKILL)
        outputs = [writer.communicate()[0] for writer in writers]
        expected = {key: word for output in outputs for key, word in _acknowledged(output).items()}
        assert len(expected) > 5

        with memkura.open(store_path, embedder=ToyEmbedder(512)) as opened:
            for memory_id, word in expected.items():
                if word is None:
                    # The kill may have come after a later write on the other side of the acknowledgement, never before.
                    assert opened.get("c", memory_id) is None
                    continue
                memory = opened.get("c", memory_id)
                # An update after the last acknowledgement may have been committed before the kill.
                if memory is None or not memory.summary.endswith(word):
                    continue
                by_text = opened.recall("c", f"the word is {word}", legs=["text"], k=1)
                assert [hit.memory_id for hit in by_text] == [memory_id]
                # The toy embedder gives some words one vector, so its nearest are asked about this memory alone.
                only = {"memory_id": memory_id}
                by_vector = opened.recall("c", f"the word is {word}", legs=["vector"], filters=only)
                assert by_vector[0].explanation["vector"]["cosine"] > 0.999
            unacknowledged = sum(
                1
                for memory_id, word in expected.items()
                if word is not None
                and ((memory := opened.get("c", memory_id)) is None or not memory.summary.endswith(word))
            )
            assert unacknowledged <= len(writers)
            assert opened.count("c") == watching.count("c")
            for query in ("the word is annx3", "benx7", "word"):
                grown = [(hit.memory_id, hit.score) for hit in watching.recall("c", query, k=50)]
                built = [(hit.memory_id, hit.score) for hit in opened.recall("c", query, k=50)]
                assert [memory_id for memory_id, _ in grown] == [memory_id for memory_id, _ in built]
                for (_, one), (_, other) in zip(grown, built, strict=True):
                    assert one == pytest.approx(other, rel=1e-3)
