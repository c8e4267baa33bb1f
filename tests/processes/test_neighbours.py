"""Two processes on one store: each sees the other's writes, in every leg, without opening again."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

import memkura
from asking import LEGS, ids, seen
from memkura import errors

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from memkura import Engine

PROGRAM = """
import json, sys, memkura
from memkura.testing import FrozenClock, ToyEmbedder
engine = memkura.open(sys.argv[1], embedder=ToyEmbedder(), clock=FrozenClock())
for line in sys.stdin:
    verb, args, kwargs = json.loads(line)
    answer = getattr(engine, verb)(*args, **kwargs)
    if verb == "recall":
        answer = [hit.memory_id for hit in answer]
    elif verb == "list":
        answer = [row.memory_id for row in answer]
    elif verb in ("compact", "maintain"):
        answer = None
    print(json.dumps(answer), flush=True)
"""


class Neighbour:
    """Another process with the store open, told what to do."""

    def __init__(self, path: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __call__(self, verb: str, *args: Any, **kwargs: Any) -> Any:
        """Its answer."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps([verb, args, kwargs]) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self) -> None:
        """Lets it end."""
        with self.process:
            assert self.process.stdin
            self.process.stdin.close()
            self.process.wait(30)


@pytest.fixture
def neighbour(engine: Engine, store_path: Path) -> Iterator[Neighbour]:
    """With this process's indexes warm, before the other one writes."""
    engine.remember("c", "the meter is read in May")
    engine.recall("c", "meter")
    other = Neighbour(store_path)
    yield other
    other.close()


def test_neighbours_rows_are_seen_by_the_next_recall(engine: Engine, neighbour: Neighbour) -> None:
    """What another process remembered is found by each leg, listed, counted and got, right away."""
    for number in range(10):
        row = neighbour("remember", "c", f"the boiler {number} hums")
        answers = seen(engine, "c", f"the boiler {number} hums", [row], k=1)
        assert [answers[leg] for leg in LEGS] == [[row]] * 3
        assert row in answers["list"]
        assert answers["count"] == number + 2
        assert answers["get"][row] == f"the boiler {number} hums"


def test_neighbours_update_is_seen_by_the_next_recall(engine: Engine, neighbour: Neighbour) -> None:
    """The new text is found by each leg, the old words by none."""
    row = engine.remember("c", "the cat sleeps on the sofa")
    engine.recall("c", "the cat sleeps on the sofa")
    neighbour("update_memory", "c", row, summary="invoices are paid on the 25th")
    answers = seen(engine, "c", "invoices are paid", [row], k=1)
    assert [answers[leg] for leg in LEGS] == [[row]] * 3
    assert ids(engine.recall("c", "cat sofa", legs=["text"])) == []
    neighbour("update_memory", "c", row, tags=["billing"])
    assert engine.count("c", filters={"tags": "billing"}) == 1


@pytest.mark.parametrize("purge", [False, True], ids=["retired", "purged"])
def test_neighbours_forget_is_seen_by_the_next_recall(engine: Engine, neighbour: Neighbour, purge: bool) -> None:  # noqa: FBT001
    """What another process forgot takes no place here."""
    row, kept = engine.remember("c", "tea is brewed at 80 degrees"), engine.remember("c", "tea with soft water")
    engine.recall("c", "tea is brewed")
    assert neighbour("forget", "c", row, purge=purge) == [row]
    answers = seen(engine, "c", "tea is brewed at 80 degrees", [row], k=1)
    assert [answers[leg] for leg in LEGS] == [[kept]] * 3
    assert (answers["count"], answers["get"]) == (2, {row: None})
    assert neighbour("forget", "c", everything=True, purge=purge)
    assert engine.count("c") == 0
    assert list(engine.recall("c", "tea")) == []


def test_neighbours_key_and_replacement_are_seen(engine: Engine, neighbour: Neighbour) -> None:
    """A key overwritten and a memory superseded elsewhere have one current truth here."""
    row = engine.remember("c", "vegetarian", key="diet")
    assert neighbour("remember", "c", "eats everything", key="DIET") == row
    memory = engine.get("c", key="diet")
    assert memory is not None
    assert (memory.summary, memory.version) == ("eats everything", 2)
    newer = neighbour("remember", "c", "eats nothing", supersedes=row)
    assert ids(engine.recall("c", "eats", legs=["text"])) == [newer]


def test_both_compact_and_go_on(engine: Engine, neighbour: Neighbour) -> None:
    """Tidying in one process disturbs no read or write in the other."""
    for number in range(6):
        mine = engine.remember("c", f"mine {number}")
        theirs = neighbour("remember", "c", f"theirs {number}")
        (neighbour if number % 2 else lambda verb: getattr(engine, verb)())("compact")
        for ask in (lambda *q, **k: ids(engine.recall(*q, **k)), lambda *q, **k: neighbour("recall", *q, **k)):
            for leg in ("text", "vector"):
                assert ask("c", f"mine {number}", legs=[leg], k=1) == [mine]
                assert ask("c", f"theirs {number}", legs=[leg], k=1) == [theirs]
        neighbour("maintain")
    assert neighbour("list", "c") == ids(engine.list("c"))


def test_neighbours_batch_and_new_context_are_seen(engine: Engine, neighbour: Neighbour) -> None:
    """A context that another process makes, with many rows at once, is there for this one."""
    assert engine.count("new") == 0
    assert list(engine.recall("new", "tea")) == []
    rows = neighbour("remember_many", [{"context_id": "new", "summary": f"tea {number}"} for number in range(700)])
    assert ids(engine.list("new", limit=1000)) == rows
    assert ids(engine.recall("new", "tea 699", k=1)) == [rows[699]]
    assert {one["context_id"] for one in engine.contexts()} == {"c", "new"}


@contextmanager
def _held(store: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process inside a write transaction, until it is sent a line."""
    hold = (
        "import sqlite3, sys\nrecord = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "record.execute('BEGIN IMMEDIATE')\nprint('held', flush=True)\ninput()\nrecord.execute('COMMIT')\n"
    )
    command = [sys.executable, "-c", hold, str(store / "record.sqlite3")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holding:
        assert holding.stdout
        assert holding.stdout.readline() == "held\n"
        yield holding
        holding.kill()


def test_neighbour_in_a_write_keeps_nobody_from_opening_and_reading(store_path: Path) -> None:
    """Only a write waits for it, and goes on when it has committed."""
    with memkura.open(store_path, embedder=None) as engine:
        engine.remember("c", "before")
    with (
        _held(store_path) as holding,
        memkura.open(store_path, embedder=None) as engine,
        ThreadPoolExecutor(1) as threads,
    ):
        assert engine.recall("c", "before")[0].summary == "before"
        writing = threads.submit(engine.remember, "c", "after")
        assert engine.count("c") == 1
        assert holding.poll() is None
        assert not writing.done()
        holding.communicate("\n")
        assert writing.result().created
        assert engine.count("c") == 2


def test_threads_wait_for_a_neighbour_together(store_path: Path) -> None:
    """Each waits its own patience for another process's write, not that of the threads before it as well."""
    with memkura.open(store_path, embedder=None, busy_timeout=1.0) as engine:
        engine.remember("c", "before")
        with _held(store_path):

            def waited(number: int) -> float:
                begun = time.monotonic()
                with pytest.raises(errors.StoreBusy):
                    engine.remember("c", f"row {number}")
                return time.monotonic() - begun

            alone = waited(0)
            with ThreadPoolExecutor(6) as threads:
                together = list(threads.map(waited, range(6)))
        assert max(together) < 3 * alone, "six threads waited one after the other"
        assert engine.count("c") == 1
        engine.remember("c", "after")
