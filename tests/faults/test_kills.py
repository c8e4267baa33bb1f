"""Writers killed at random moments, while they write, open or recover.

What they had acknowledged is found by id and by both legs, nothing is torn, stale or back from the dead, and only what
was under way when a writer died may have happened or not.
"""

from __future__ import annotations

import json
import random
import shutil
import time
import zlib
from typing import TYPE_CHECKING

import pytest
from children import PATIENCE_SECONDS, TIMES, Nursery
from oracle import Ledger, check, check_file, check_rebuilt, same_answers
from writing import MIXED, opened, write

from memkura.testing import FrozenClock

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

ROUNDS = 40
KILLS_IN_A_ROUND = 3
FULL_CHECK_EVERY = 8
GANG = 4
GANG_ROUNDS = 20

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery() as opened_nursery:
        yield opened_nursery


class Killer:
    """Lets children write to one store, kills them, and keeps the books."""

    def __init__(self, nursery: Nursery, store: Path, seed: int) -> None:
        self.nursery = nursery
        self.store = store
        self.seed = seed
        self.chance = random.Random(seed)
        self.ledger = Ledger()
        self.kills = 0
        self.acknowledged = 0

    def round(self, writers: int = 1, fault: str = "") -> None:
        """Starts so many writers at once, and kills each in its own time."""
        self.kills += writers
        journals = [self.store.with_name(f"{self.kills}-{at}.journal") for at in range(writers)]
        known = self.ledger.known()
        # Each has memories of its own, so that it is certain what it may have been at when it died.
        children = [
            self.nursery.start(
                "writing.write",
                str(self.store),
                str(journal),
                f"{self.seed} {journal.stem}",
                known[at::writers],
                fault=fault,
            )
            for at, journal in enumerate(journals)
        ]
        # One in three dies while it opens the store, and takes back what the one before left.
        for at in self.chance.sample(range(writers), writers):
            if self.chance.random() < 1 / 3:
                time.sleep(self.chance.uniform(0, 0.01))
            else:
                self.wait_for(journals[at])
                time.sleep(self.chance.uniform(0, 0.25))
            self.nursery.kill(children[at])
        self.read(journals)

    def round_of_threads(self, threads: int) -> None:
        """Starts one writer with so many threads, and kills it."""
        self.kills += 1
        journals = [self.store.with_name(f"{self.kills}-{at}.journal") for at in range(threads)]
        child = self.nursery.start(
            "writing.write_at_once",
            str(self.store),
            [str(journal) for journal in journals],
            f"{self.seed} {self.kills}",
            self.ledger.known(),
        )
        self.wait_for(journals[0])
        time.sleep(self.chance.uniform(0, 0.25))
        self.nursery.kill(child)
        self.read(journals)

    def read(self, journals: Iterable[Path]) -> None:
        """Takes in what the killed had acknowledged."""
        for journal in journals:
            lines = journal.read_text().splitlines() if journal.exists() else []
            self.acknowledged += self.ledger.read(lines)
        assert set(self.ledger.failures) <= {"StoreBusy"}

    def wait_for(self, journal: Path) -> None:
        """Until its writer has begun to write."""
        until = time.monotonic() + PATIENCE_SECONDS
        while not journal.exists() or not journal.stat().st_size:
            assert time.monotonic() < until, "a writer did not begin"
            time.sleep(0.001)

    def check(self) -> None:
        """The quick check, in a new engine."""
        with opened(self.store) as engine:
            check(engine, self.ledger, self.chance)

    def check_all(self) -> None:
        """Everything there is to check in a closed store."""
        self.check()
        check_file(self.store)
        check_rebuilt(self.store, self.ledger, self.chance)


@pytest.mark.parametrize("life", range(TIMES))
def test_killed_writer_loses_nothing(nursery: Nursery, store_path: Path, life: int) -> None:
    """One writer after another is killed, several before anybody looks."""
    killer = Killer(nursery, store_path, seed=life)
    for at in range(ROUNDS):
        for _ in range(KILLS_IN_A_ROUND):
            killer.round()
        killer.check()
        if at % FULL_CHECK_EVERY == FULL_CHECK_EVERY - 1:
            killer.check_all()
    assert killer.kills == ROUNDS * KILLS_IN_A_ROUND
    assert killer.acknowledged > killer.kills


@pytest.mark.parametrize("life", range(TIMES))
def test_four_killed_writers_lose_nothing(nursery: Nursery, store_path: Path, life: int) -> None:
    """Four write at once and are killed one by one, beside a reader that stays and sees what a new one sees."""
    killer = Killer(nursery, store_path, seed=1000 + life)
    watching = opened(store_path, clock=FrozenClock())
    for at in range(GANG_ROUNDS):
        killer.round(GANG)
        check(watching, killer.ledger, killer.chance)
        if at % FULL_CHECK_EVERY == FULL_CHECK_EVERY - 1:
            with opened(store_path, clock=FrozenClock()) as fresh:
                same_answers(watching, fresh, killer.ledger, killer.chance)
            check_file(store_path)
            watching.close()
            killer.check_all()
            watching = opened(store_path, clock=FrozenClock())
    watching.close()
    killer.check_all()
    assert killer.acknowledged > killer.kills


@pytest.mark.parametrize("life", range(TIMES))
def test_killed_threads_lose_nothing(nursery: Nursery, store_path: Path, life: int) -> None:
    """Four threads share transactions, and their process is killed."""
    killer = Killer(nursery, store_path, seed=2000 + life)
    for at in range(GANG_ROUNDS):
        killer.round_of_threads(GANG)
        killer.check()
        if at % FULL_CHECK_EVERY == FULL_CHECK_EVERY - 1:
            killer.check_all()
    assert killer.acknowledged > killer.kills


def test_processes_threads_and_upkeep_at_once_lose_nothing(nursery: Nursery, store_path: Path) -> None:
    """Four processes of four threads remember, beside two that do nothing but upkeep."""
    opened(store_path).close()
    journals = [[store_path.with_name(f"{process}-{at}.journal") for at in range(GANG)] for process in range(GANG)]
    children = [
        nursery.start(
            "writing.write_at_once",
            str(store_path),
            [str(journal) for journal in of_one],
            f"busy {process}",
            operations=25 * TIMES,
            verbs="r",
        )
        for process, of_one in enumerate(journals)
    ]
    children += [nursery.start("writing.maintain", str(store_path), 200 * TIMES) for _ in range(2)]
    assert [nursery.wait(child) for child in children] == [0] * 6
    ledger = Ledger()
    acknowledged = sum(ledger.read(journal.read_text().splitlines()) for of_one in journals for journal in of_one)
    assert (acknowledged, ledger.failures) == (400 * TIMES, [])
    with opened(store_path) as engine:
        check(engine, ledger)
        assert engine.count("c") == 400 * TIMES
        assert engine.doctor().drift == 0
    check_file(store_path)


@pytest.mark.parametrize(
    ("fault", "found"),
    [
        ("acknowledges early", "differ"),
        ("forgets nothing", "differ"),
        ("loses an update", "differ"),
        ("keeps the old vector", "vector"),
        ("tears a text", "torn"),
    ],
)
def test_check_finds_a_writer_that_breaks_a_promise(nursery: Nursery, store_path: Path, fault: str, found: str) -> None:
    """Planted: each of these writers is found out, most of them within a few kills."""
    killer = Killer(nursery, store_path, seed=3)

    def many_rounds() -> None:
        for _ in range(100):
            killer.round(fault=fault)
            killer.check()

    with pytest.raises(AssertionError, match=found):
        many_rounds()


def test_older_index_changes_no_answer(tmp_path: Path) -> None:
    """A sealed index of before, under the manifest of now, is taken for what is still true of it."""
    store, journal = tmp_path / "agent.memkura", tmp_path / "journal"
    ledger = Ledger()
    write(str(store), str(journal), "before", operations=41, verbs=MIXED.replace("c", "u"))
    with opened(store) as engine:
        engine.recall("c", "x")
        engine.compact()
    (older,) = store.glob("index/1/*/manifest.json")
    shutil.copytree(store / "index", tmp_path / "index")
    ledger.read(journal.read_text().splitlines())
    write(str(store), str(journal), "after", ledger.known(), operations=40, verbs=MIXED.replace("c", "u"))
    with opened(store) as engine:
        engine.recall("c", "x")
        engine.compact()
    (manifest,) = store.glob("index/1/*/manifest.json")
    newest = manifest.read_text()
    shutil.rmtree(store / "index")
    shutil.move(tmp_path / "index", store / "index")
    older.write_text(newest)
    ledger = Ledger()
    ledger.read(journal.read_text().splitlines())
    with opened(store) as engine:
        check(engine, ledger)
    check_rebuilt(store, ledger, random.Random(0))


def test_foreign_index_changes_no_answer(tmp_path: Path) -> None:
    """The sealed index of another store, forged until everything that it says of itself is of this one."""
    mine, other = tmp_path / "mine.memkura", tmp_path / "other.memkura"
    for store in (mine, other):
        write(str(store), str(store.with_suffix(".journal")), store.name, operations=20, verbs="r")
        with opened(store) as engine:
            engine.recall("c", "x")
            engine.compact()
    ledger = Ledger()
    ledger.read(mine.with_suffix(".journal").read_text().splitlines())
    check_rebuilt(mine, ledger, random.Random(0))

    (manifest,) = mine.glob("index/1/*/manifest.json")
    true_manifest = json.loads(manifest.read_text())
    shutil.rmtree(mine / "index")
    shutil.copytree(other / "index", mine / "index")
    (manifest,) = mine.glob("index/1/*/manifest.json")
    forged = json.dumps({**true_manifest, "files": json.loads(manifest.read_text())["files"]})
    manifest.write_text(forged)
    crc = zlib.crc32(forged.encode())
    (mine / "index" / "1" / "CURRENT").write_text(f"{manifest.parent.name} {crc:08x}")
    with opened(mine) as engine:
        check(engine, ledger)
    check_rebuilt(mine, ledger, random.Random(0))


def test_check_finds_another_answer(tmp_path: Path) -> None:
    """Planted: an index that shows another store's memories."""
    mine, other = tmp_path / "mine.memkura", tmp_path / "other.memkura"
    for store in (mine, other):
        write(str(store), str(store.with_suffix(".journal")), store.name, operations=20, verbs="r")
    ledger = Ledger()
    ledger.read(mine.with_suffix(".journal").read_text().splitlines())
    with opened(other) as engine, opened(mine) as rebuilt:
        with pytest.raises(AssertionError):
            check(engine, ledger)
        with pytest.raises(AssertionError):
            same_answers(engine, rebuilt, ledger, random.Random(0))
