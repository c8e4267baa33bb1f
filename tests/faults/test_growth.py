"""Nothing grows without bound: neither the log, nor memory."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from children import PATIENCE_SECONDS, TIMES, Nursery
from writing import CONTEXT, opened

if TYPE_CHECKING:
    from collections.abc import Iterator

WRITES = 3_000 * TIMES
LOG_BYTES_MAX = 64 << 20
LOG_BYTES_AT_REST = 4 << 20
RECALLS_WARM = 5_000
RECALLS = 20_000
GROWTH_BYTES_MAX = 10 << 20

pytestmark = pytest.mark.timeout(300 * TIMES)


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery() as opened_nursery:
        yield opened_nursery


def test_log_stays_short_beside_a_busy_reader(nursery: Nursery, store_path: Path) -> None:
    """One process recalls in a loop, another writes; afterwards `maintain` leaves next to nothing."""
    journal = store_path.with_name("journal")
    log = store_path / "record.sqlite3-wal"
    with opened(store_path) as engine:
        engine.remember(CONTEXT, "the first of all")
        child = nursery.start("writing.write", str(store_path), str(journal), "growth", operations=WRITES, verbs="ru")
        most, done, until = 0, 0, time.monotonic() + PATIENCE_SECONDS * TIMES
        while done < WRITES:
            engine.recall(CONTEXT, "first", k=3)
            most = max(most, log.stat().st_size)
            done = journal.read_bytes().count(b"\ndone") if journal.exists() else 0
            assert time.monotonic() < until, f"{done} writes"
        assert 0 < most < LOG_BYTES_MAX
        assert nursery.wait(child) == 0
        engine.maintain()
        assert log.stat().st_size <= LOG_BYTES_AT_REST


def test_log_stays_short_beside_readers_that_overlap(nursery: Nursery, store_path: Path) -> None:
    """Two processes read all of the store in a loop, so that somebody always reads; the log grows, and begins anew."""
    log = store_path / "record.sqlite3-wal"
    batch = [{"context_id": CONTEXT, "summary": f"row {at}", "metadata": {"pad": "x" * 8_000}} for at in range(500)]
    with opened(store_path) as engine:
        engine.remember_many(batch)
        readers = [nursery.start("writing.export", str(store_path), f"{store_path}.{at}.jsonl") for at in range(2)]
        sizes: list[int] = []
        # In the log it takes a third more.
        while len(sizes) * len(batch) * 8_000 < LOG_BYTES_MAX:
            engine.remember_many({**item, "summary": f"row {at} of {len(sizes)}"} for at, item in enumerate(batch))
            sizes.append(log.stat().st_size)
        for reader in readers:
            nursery.kill(reader)
        assert LOG_BYTES_AT_REST < max(sizes) < LOG_BYTES_MAX


def test_recalls_leave_no_memory_behind(store_path: Path) -> None:
    """The process is as large after many recalls as after some."""
    statm = Path("/proc/self/statm")
    if not statm.exists():
        pytest.skip("only Linux says how large a process is")

    def resident() -> int:
        return int(statm.read_text().split()[1]) * 4096

    with opened(store_path) as engine:
        engine.remember_many({"context_id": CONTEXT, "summary": f"row {at} of the store"} for at in range(100))
        sizes: list[int] = []
        for at in range(RECALLS + 1):
            engine.recall(CONTEXT, f"row {at % 150}", k=5, explain=at % 2 == 0)
            if at in (RECALLS_WARM, RECALLS):
                sizes.append(resident())
    assert sizes[1] - sizes[0] <= GROWTH_BYTES_MAX
