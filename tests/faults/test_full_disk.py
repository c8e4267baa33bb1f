"""A full disk: every failure says so, nothing acknowledged is lost, and the same handle goes on when there is room."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from children import Nursery
from oracle import Ledger, check, check_file
from writing import CONTEXT, opened

from memkura import errors

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from memkura import Engine

DISK_BYTES = 4 << 20
BALLAST_BYTES = 1 << 20
FILE_BYTES_MAX = 2 << 20
ROWS = 1_000

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="neither small file systems nor limits of files")


class Full:
    """What a child that filled its disk had to say."""

    def __init__(self, store: Path, folder: Path, limit: int, fault: str = "") -> None:
        store.parent.joinpath("ballast").write_bytes(bytes(BALLAST_BYTES))
        journal = folder / "journal"
        with Nursery() as nursery:
            ballast = str(store.parent / "ballast")
            self.status = nursery.run("writing.fill", str(store), str(journal), ballast, limit, fault=fault)
        lines = journal.read_text().splitlines()
        self.ledger = Ledger()
        self.ledger.read(lines)
        self.before, self.full, self.after = [
            [line.split() for line in part if line.startswith(("done", "failed", "read"))]
            for part in (
                lines[: lines.index("full")],
                lines[lines.index("full") : lines.index("room")],
                lines[lines.index("room") :],
            )
        ]
        self.found: AssertionError | None = None
        with opened(store, create=False) as engine:
            try:
                check(engine, self.ledger)
            except AssertionError as error:
                self.found = error
        check_file(store)


@pytest.fixture(scope="module", params=["file system", "file size"])
def full(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Full]:
    folder = tmp_path_factory.mktemp("full")
    disk = folder / "disk"
    disk.mkdir()
    if request.param == "file size":
        yield Full(disk / "agent.memkura", folder, FILE_BYTES_MAX)
        return
    with mounted(disk, DISK_BYTES):
        yield Full(disk / "agent.memkura", folder, 0)


@contextlib.contextmanager
def mounted(disk: Path, size: int) -> Iterator[None]:
    """A small file system of its own at `disk`."""
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(disk)]
    if sys.platform != "linux" or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("only root can mount a small file system")
    try:
        yield
    finally:
        subprocess.run(["umount", disk], check=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    with mounted(place, 2 * DISK_BYTES):
        yield place


def test_nothing_acknowledged_is_lost(full: Full) -> None:
    """Every memory is there with its last acknowledged text, and both legs find it."""
    assert full.status == 0
    assert full.found is None
    assert len(full.before) > 40


def test_every_failure_says_that_the_disk_is_full(full: Full) -> None:
    """And nothing else."""
    assert set(full.ledger.failures) == {"StorageFull"}


def test_reads_go_on(full: Full) -> None:
    """By id and by text."""
    reads = [deed for deed in full.full if deed[0] == "read"]
    assert len(reads) > 3
    assert reads == [["read", "True"]] * len(reads)


def test_forgetting_works(full: Full) -> None:
    """Retiring and purging take room for a moment, which is there."""
    deeds = [deed[0] for deed in full.full if deed[0] != "read"]
    assert deeds == ["done"] * 6


def test_same_handle_writes_when_there_is_room(full: Full) -> None:
    """With no reopening and no command."""
    assert [deed[0] for deed in full.after] == ["done"] * 10


def test_purging_goes_on_where_forgetting_cannot(disk: Path) -> None:
    """One by one until there is no room for it; every memory can be purged, and then there is room for new ones."""
    with opened(disk / "agent.memkura") as engine:
        items = [{"context_id": CONTEXT, "summary": f"row {at} {'x' * 300}"} for at in range(ROWS)]
        rows = [str(row) for row in engine.remember_many(items)]
        engine.maintain()
        take_all(disk / "ballast")
        with pytest.raises(errors.StorageFull, match="purge"):
            forget_all(engine, rows)
        assert 5 < ROWS - engine.count(CONTEXT) < ROWS
        take_all(disk / "ballast")
        for row in rows:
            engine.forget(CONTEXT, row, purge=True)
        assert engine.count(CONTEXT) == 0
        engine.maintain()
        engine.remember(CONTEXT, "after")
    check_file(disk / "agent.memkura")


def test_purging_goes_on_after_compacting_had_no_room(disk: Path) -> None:
    """An attempt to compact takes nothing of what purging needs, however often it is made."""
    with opened(disk / "agent.memkura") as engine:
        rows: list[str] = []
        with contextlib.suppress(errors.StorageFull):
            while len(rows) < 100_000:
                rows.append(str(engine.remember(CONTEXT, f"row {len(rows)} {'x' * 3_000}")))
        for at in range(3):
            with contextlib.suppress(errors.StorageFull):
                engine.compact()
            engine.forget(CONTEXT, rows[at], purge=True)
    with opened(disk / "agent.memkura") as engine:
        for row in rows[3:]:
            engine.forget(CONTEXT, row, purge=True)
        engine.compact()
        engine.remember(CONTEXT, "after")
        assert engine.count(CONTEXT) == 1
    check_file(disk / "agent.memkura")


def forget_all(engine: Engine, rows: list[str]) -> None:
    """One by one."""
    for row in rows:
        engine.forget(CONTEXT, row)


def take_all(ballast: Path) -> None:
    """Takes the room that is left on a file system."""
    with ballast.open("ab", buffering=0) as file:
        for size in (1 << 20, 1 << 12):
            with contextlib.suppress(OSError):
                while True:
                    file.write(bytes(size))


@pytest.mark.parametrize("fault", ["acknowledges failures", "forgets nothing"])
def test_check_finds_a_writer_that_hides_the_full_disk(tmp_path: Path, fault: str) -> None:
    """Planted: failed writes that are acknowledged, and forgetting that does nothing."""
    disk = tmp_path / "disk"
    disk.mkdir()
    full = Full(disk / "agent.memkura", tmp_path, FILE_BYTES_MAX, fault)
    assert full.found is not None
    assert "differ" in str(full.found)
