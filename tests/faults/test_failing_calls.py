"""Every call that changes a file may fail: at each position, in each manner, with the process going on or dying.

Only exceptions of ours come out, what was acknowledged is there and found by both legs, and the store takes writes.
"""

from __future__ import annotations

import random
import shutil
import time
from typing import TYPE_CHECKING, Any

import pytest
from children import KILLED, TIMES, Nursery
from oracle import Ledger, check, check_file
from shim import Manner, built_shim
from writing import Writer, opened

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

POSITIONS = 48 * TIMES
FULL_CHECK_EVERY = 10

pytestmark = pytest.mark.timeout(300 * TIMES)


@pytest.fixture(scope="module")
def nursery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    with Nursery(built_shim(tmp_path_factory.mktemp("shim"))) as opened_nursery:
        yield opened_nursery


class Cases:
    """A store as it stands before each case, and what was acknowledged in it; every case gets a copy."""

    def __init__(self, nursery: Nursery, store: Path, lines: Sequence[str] = ()) -> None:
        self.nursery = nursery
        self.store = store
        self.lines = lines
        self.cases = 0

    def ledger(self) -> Ledger:
        """What was acknowledged before any case."""
        ledger = Ledger()
        ledger.read(self.lines)
        return ledger

    def run(self, position: int, manner: Manner, fault: str = "") -> Case:
        """Runs the six operations in a copy."""
        return self._case("shim.fail", position, manner, fault=fault)

    def run_sync(self) -> Case:
        """Lets one sync fail in a copy, and goes on with the handle."""
        return self._case("shim.fail_one_sync")

    def _case(self, work: str, *arguments: Any, **options: Any) -> Case:
        self.cases += 1
        store = self.store.with_name(f"{self.cases}.memkura")
        shutil.copytree(self.store, store)
        return Case(self, store, work, arguments, options)


class Case:
    """What became of one copy."""

    def __init__(self, cases: Cases, store: Path, work: str, arguments: Sequence[Any], options: dict[str, Any]) -> None:
        journal = store.with_suffix(".journal")
        self.store = store
        self.ledger = cases.ledger()
        arguments = [str(store), str(journal), self.ledger.known(), *arguments]
        self.status = cases.nursery.run(work, *arguments, **options)
        self.lines = journal.read_text().splitlines() if journal.exists() else []
        self.ledger.read(self.lines)
        # Calls that change a file, a letter each; nothing of a child that was killed.
        self.calls = next((line.removeprefix("calls ") for line in self.lines if line.startswith("calls ")), "")
        self.was_struck = "struck 1" in self.lines or self.status == KILLED

    def check(self, *, whole: bool) -> None:
        """Looks at what is left, and writes there."""
        with opened(self.store, create=not self.ledger.live) as engine:
            check(engine, self.ledger)
            lines: list[str] = []
            Writer(engine, lines.append, "later", self.ledger.known()).work(3, "ruf")
            assert self.ledger.read(lines) == 3
            check(engine, self.ledger)
        if whole:
            check_file(self.store)
        shutil.rmtree(self.store)


@pytest.fixture(scope="module")
def existing(nursery: Nursery, tmp_path_factory: pytest.TempPathFactory) -> Cases:
    """A store whose writer was killed, so that opening it has something to take back."""
    store = tmp_path_factory.mktemp("existing") / "existing.memkura"
    journal = store.with_suffix(".journal")
    child = nursery.start("writing.write", str(store), str(journal), "existing", verbs="rrrruufc")
    while not journal.exists() or journal.read_text().count("done") < 20:
        time.sleep(0.01)
    nursery.kill(child)
    assert (store / "record.sqlite3-wal").stat().st_size > 0
    return Cases(nursery, store, journal.read_text().splitlines())


@pytest.fixture(scope="module")
def empty(nursery: Nursery, tmp_path_factory: pytest.TempPathFactory) -> Cases:
    """An empty folder, to become a store."""
    store = tmp_path_factory.mktemp("empty") / "empty.memkura"
    store.mkdir()
    return Cases(nursery, store)


def positions(calls: str, manner: Manner, most: int = POSITIONS) -> list[int]:
    """Where to fail: spread over all calls of the kinds that can fail in this manner, the rarer kinds before writes."""
    can_fail = {Manner.HALF_WRITE: "w", Manner.SYNC_EIO: "s", Manner.SYNC_FULL: "s"}.get(manner, set(calls))
    places = [at for at, kind in enumerate(calls, 1) if kind in can_fail]
    rare = [at for at in places if calls[at - 1] != "w"]
    chance = random.Random(manner)
    chosen = set(chance.sample(rare, min(len(rare), most // 2)))
    rest = [at for at in places if at not in chosen]
    step = max(1, len(rest) // (most - len(chosen)))
    return sorted(chosen | set(rest[::step][: most - len(chosen)]))


each_manner = pytest.mark.parametrize(
    "manner", [manner for manner in Manner if manner is not Manner.NONE], ids=lambda manner: manner.name
)


def fail_each(cases: Cases, manner: Manner, positions: Sequence[int]) -> int:
    """Runs and checks a case for each position; returns how many calls did go wrong.

    A child ends with 0 when whatever was raised in it was an exception of ours.
    """
    struck = 0
    for at, position in enumerate(positions):
        case = cases.run(position, manner)
        assert case.status == (KILLED if manner is Manner.KILL and case.was_struck else 0)
        case.check(whole=at % FULL_CHECK_EVERY == 0)
        struck += case.was_struck
    return struck


@each_manner
def test_failing_call_loses_nothing(existing: Cases, manner: Manner) -> None:
    """From the opening to the closing, one position after another."""
    dry = existing.run(0, Manner.NONE)
    assert dry.status == 0
    assert not dry.ledger.failures
    chosen = positions(dry.calls, manner)
    assert fail_each(existing, manner, chosen) >= min(40, len(chosen) - 2)


@each_manner
def test_failing_call_spoils_no_new_store(empty: Cases, manner: Manner) -> None:
    """While a store is made: it is made whole by whoever opens it next."""
    opening = empty.run(0, Manner.NONE).calls[:90]
    assert fail_each(empty, manner, positions(opening, manner, most=12)) >= 5


def test_full_disk_while_sealing_is_called_that(existing: Cases) -> None:
    """Sealing meets a full disk at its first folder, and in the middle of its files."""
    calls = existing.run(0, Manner.NONE).calls
    for position in (calls.index("m") + 1, calls.index("r")):
        case = existing.run(position, Manner.FULL_FROM)
        assert "compact" in {line.split()[1] for line in case.lines if line.startswith("failed")}
        assert set(case.ledger.failures) == {"StorageFull"}


def test_full_disk_while_opening_is_called_that(empty: Cases) -> None:
    """There is no room for the log, or for the memory that its readers share."""
    opening = empty.run(0, Manner.NONE).calls[:30]
    for position in (opening.rindex("o") + 1, opening.index("t") + 1, opening.index("t") + 2):
        assert set(empty.run(position, Manner.FULL_FROM).ledger.failures) == {"StorageFull"}


def test_failed_sync_is_final_for_the_handle(existing: Cases) -> None:
    """The write under way raises, later ones raise StoreFailed and touch no file, reads go on, a new handle writes."""
    case = existing.run_sync()
    assert case.status == 0
    assert case.was_struck
    deeds = [line.split() for line in case.lines if line.startswith(("done", "failed"))]
    assert [deed[0] for deed in deeds] == ["done", "failed", "failed", "failed", "failed"]
    assert [deed[-1] for deed in deeds[2:]] == ["StoreFailed"] * 3
    assert case.calls == ""
    case.check(whole=True)


def test_failed_sync_loses_nothing_and_reads_go_on(existing: Cases) -> None:
    """Whatever becomes of the handle: the write raised, what was acknowledged is there, and was found all along."""
    case = existing.run_sync()
    assert case.status == 0
    assert case.was_struck
    assert [line.split()[0] for line in case.lines if line.startswith(("done", "failed"))][:2] == ["done", "failed"]
    reads = [line for line in case.lines if line.startswith("read")]
    assert len(reads) > 5
    assert set(reads) == {"read True"}
    case.check(whole=True)


@pytest.mark.parametrize("fault", ["acknowledges failures", "raises something else"])
def test_check_finds_a_failure_that_is_hidden(existing: Cases, fault: str) -> None:
    """Planted: a write that failed and is acknowledged, and an exception that is not ours."""
    calls = existing.run(0, Manner.NONE).calls

    def many() -> None:
        for position in positions(calls, Manner.FULL_FROM):
            case = existing.run(position, Manner.FULL_FROM, fault)
            assert case.status == 0, "another exception"
            case.check(whole=False)

    with pytest.raises(AssertionError, match="differ" if fault == "acknowledges failures" else "another exception"):
        many()
