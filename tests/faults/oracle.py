"""What was acknowledged, and whether a store holds exactly that and finds it."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import pytest
from writing import CONTEXT, fields_of, opened, word_of

from memkura.testing import FrozenClock

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from memkura import Engine, Memory

# Looked for when a store is checked: what changed last, and so many of the rest.
RECENT = 30
SAMPLE = 30
SAME_VECTOR = 0.999
# Exceptions that say that nothing was written. After any other, the operation may have happened.
NOTHING_WRITTEN = ("StorageFull", "StoreBusy")
# The verbs after which a memory is in no read.
GOING = ("forget", "purge")
_INTEGRITY = """
import sqlite3, sys
with sqlite3.connect(sys.argv[1]) as connection:
    print(*(row[0] for row in connection.execute("PRAGMA integrity_check")))
"""


class Operation(NamedTuple):
    """One that began. Forgetting has no word, remembering has no id until it is acknowledged."""

    verb: str
    memory_id: str
    word: str


@dataclass
class Ledger:
    """A store as it was acknowledged: a word for every memory.

    Attributes:
        live: the present word of each memory.
        gone: memories that were forgotten.
        stale: words that were replaced, with their memory.
        open: operations that began and did not end, or not well. Each may have happened or not, and as a whole.
        failures: the exceptions that operations raised, by name.
    """

    live: dict[str, str] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    stale: list[tuple[str, str]] = field(default_factory=list)
    open: list[Operation] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def read(self, lines: Iterable[str]) -> int:
        """Takes in the lines of one writer's journal. Returns how many operations were acknowledged in them."""
        begun: Operation | None = None
        acknowledged = 0
        for line in lines:
            deed, *what = line.split()
            if deed == "begin":
                # One that a killed writer left, before the next one of the same journal began.
                self.open += [] if begun is None else [begun]
                begun = Operation(*what)
            elif deed == "done":
                self.happened(Operation(*what))
                acknowledged += 1
                begun = None
            elif deed == "failed":
                self.failures.append(what.pop())
                if begun is not None and self.failures[-1] not in NOTHING_WRITTEN:
                    self.open.append(begun)
                begun = None
        if begun is not None:
            self.open.append(begun)
        return acknowledged

    def happened(self, operation: Operation) -> None:
        """Notes what the store must show from now on."""
        verb, memory_id, word = operation
        if memory_id in self.live and verb != "remember":
            self.stale.append((memory_id, self.live.pop(memory_id)))
        if verb in GOING:
            self.gone.add(memory_id)
        else:
            self.live[memory_id] = word

    def known(self) -> list[tuple[str, str]]:
        """Memories whose state is certain, for a writer to go on with."""
        uncertain = {operation.memory_id for operation in self.open}
        return [one for one in self.live.items() if one[0] not in uncertain]

    def settle(self, shown: dict[str, Memory]) -> None:
        """Finds out which of the open operations happened: from now on they stand."""
        ids = {word_of(memory.summary): memory_id for memory_id, memory in shown.items()}
        for operation in self.open:
            verb, memory_id, word = operation
            if verb == "remember" and word in ids:
                self.happened(Operation(verb, ids[word], word))
            elif memory_id in self.live and (
                (verb == "update" and ids.get(word) == memory_id) or (verb in GOING and memory_id not in shown)
            ):
                self.happened(operation)
        self.open.clear()


def check(engine: Engine, ledger: Ledger, chance: random.Random | None = None) -> None:
    """The store shows what was acknowledged and nothing else; what changed last, and a sample, both legs find."""
    shown = {memory.memory_id: memory for memory in engine.list(CONTEXT, limit=100_000)}
    ledger.settle(shown)
    words = {memory_id: word_of(memory.summary) for memory_id, memory in shown.items()}
    wrong = {one: (words.get(one), ledger.live.get(one)) for one in words.keys() | ledger.live.keys()}
    wrong = {one: pair for one, pair in wrong.items() if pair[0] != pair[1]}
    assert not wrong, f"what is shown and what was acknowledged differ: {wrong}"
    for memory_id, word in ledger.live.items():
        memory = shown[memory_id]
        assert {"summary": memory.summary, "metadata": memory.metadata} == fields_of(word), f"{memory_id} is torn"
    assert engine.stats().unembedded == 0
    chance = chance or random.Random(0)
    for memory_id, word in _some(list(ledger.live.items()), chance):
        _is_found(engine, memory_id, word)
    for memory_id, word in _some(ledger.stale, chance):
        _is_not_found(engine, memory_id, word, is_live=memory_id in ledger.live)


def _some(everything: Sequence[tuple[str, str]], chance: random.Random) -> list[tuple[str, str]]:
    older = everything[:-RECENT]
    return [*everything[-RECENT:], *chance.sample(older, min(SAMPLE, len(older)))]


def _is_found(engine: Engine, memory_id: str, word: str) -> None:
    fields = fields_of(word)
    memory = engine.get(CONTEXT, memory_id)
    assert memory is not None, f"{memory_id} is not found by id"
    assert memory.summary == fields["summary"]
    by_text = [hit.memory_id for hit in engine.recall(CONTEXT, word, legs=["text"], k=3)]
    assert by_text == [memory_id], f"{word} of {memory_id} is not found by text"
    (by_vector,) = engine.recall(CONTEXT, fields["summary"], legs=["vector"], k=1)
    assert by_vector.memory_id == memory_id, f"{word} of {memory_id} is not found by vector"
    assert by_vector.explanation["vector"]["cosine"] > SAME_VECTOR, f"{memory_id} has another text's vector"


def _is_not_found(engine: Engine, memory_id: str, word: str, *, is_live: bool) -> None:
    hits = engine.recall(CONTEXT, word, legs=["text"], k=3)
    assert not hits, f"the text leg still finds {word}"
    if not is_live:
        assert engine.get(CONTEXT, memory_id) is None
    for hit in engine.recall(CONTEXT, fields_of(word)["summary"], legs=["vector"], k=3):
        assert hit.explanation["vector"]["cosine"] < SAME_VECTOR, f"the vector leg still finds {word}"


def check_file(path: Path) -> None:
    """SQLite finds nothing wrong. In a process of its own: closing the file in this one would drop memkura's locks."""
    record = path / "record.sqlite3"
    checked = subprocess.run(
        [sys.executable, "-ISc", _INTEGRITY, record], capture_output=True, text=True, timeout=60, check=True
    )
    assert checked.stdout.strip() == "ok"


def check_rebuilt(path: Path, ledger: Ledger, chance: random.Random) -> None:
    """A closed store answers as a copy of it does that has to make its indexes again."""
    copy = path.with_name("rebuilt.memkura")
    shutil.copytree(path, copy)
    shutil.rmtree(copy / "index", ignore_errors=True)
    clock = FrozenClock()
    with opened(path, clock=clock) as engine, opened(copy, clock=clock) as rebuilt:
        same_answers(engine, rebuilt, ledger, chance)
    shutil.rmtree(copy)


def same_answers(engine: Engine, other: Engine, ledger: Ledger, chance: random.Random, queries: int = 6) -> None:
    """Both give the same hits in the same order with the same scores."""
    words = [word for _, word in chance.sample(list(ledger.live.items()), min(queries, len(ledger.live)))]
    for word in words:
        # Words of several memories, and one that stands in one alone.
        summary = fields_of(word)["summary"]
        for query in (word, " ".join(summary.split()[1:])):
            for legs in (["text"], ["vector"], None):
                one, two = (each.recall(CONTEXT, query, legs=legs, k=50) for each in (engine, other))
                assert [hit.memory_id for hit in one] == [hit.memory_id for hit in two]
                assert [hit.score for hit in one] == pytest.approx([hit.score for hit in two], abs=1e-9)
