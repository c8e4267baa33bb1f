"""Others open, read and close the files of a store that is open: a checksum, a copy, a look with SQLite.

On POSIX systems, closing any descriptor of a file drops every lock that the process has on it. SQLite in another
process then takes itself for the last one out, and removes a log that is in use; or for the only one at work, and
writes to the log together with us.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest
from children import KILLED, Nursery
from oracle import Ledger, check, check_file
from shim import built_shim
from writing import LONG_ROWS, MEDDLERS, opened

from memkura import errors

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ROUNDS = 10
LONG_ROUNDS = 3
ON_LINUX = sys.platform == "linux"


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery() as opened_nursery:
        yield opened_nursery


@pytest.fixture(scope="module")
def forgetful(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    """Its children have no locks but those that the process loses."""
    with Nursery(built_shim(tmp_path_factory.mktemp("shim"), "process_locks")) as opened_nursery:
        yield opened_nursery


def meddled(nursery: Nursery, store: Path, **options: Any) -> Ledger:
    """Lets a child write among meddlers until it is killed, and returns what it had acknowledged."""
    journal = store.with_suffix(".journal")
    assert nursery.run("writing.write_beside_meddlers", str(store), str(journal), ROUNDS, **options) == KILLED
    ledger = Ledger()
    assert ledger.read(journal.read_text().splitlines()) + len(ledger.failures) == 10 + 9 * ROUNDS
    # Elsewhere it may come to failures, but not to losses.
    assert set(ledger.failures) <= (set() if ON_LINUX else {"StoreFailed"})
    return ledger


@pytest.mark.parametrize(
    "meddlers",
    [
        pytest.param({"mine": True}, id="this process"),
        pytest.param({"theirs": True}, id="another process"),
        pytest.param({"mine": True, "theirs": True}, id="both"),
    ],
)
def test_reading_the_files_of_an_open_store_loses_nothing(
    nursery: Nursery, store_path: Path, meddlers: dict[str, bool]
) -> None:
    """Ten times between acknowledged writes, and then the writer is killed: every one is there, and none had failed."""
    ledger = meddled(nursery, store_path, **meddlers)
    with opened(store_path) as engine:
        check(engine, ledger)
    check_file(store_path)


def written_by_two(nursery: Nursery, store: Path, meddler: str) -> None:
    """Lets two children write at once, one of which meddles in the middle of it, and checks that all is there."""
    opened(store).close()
    journals = [store.with_suffix(f".{name}") for name in ("meddled", "beside")]
    beside = nursery.start("writing.write", str(store), str(journals[1]), "beside", verbs="ru")
    try:
        status = nursery.run("writing.write_at_length", str(store), str(journals[0]), meddler, LONG_ROUNDS)
    finally:
        nursery.kill(beside)
    assert status == KILLED
    ledger = Ledger()
    counts = [ledger.read(journal.read_text().splitlines()) for journal in journals]
    assert ledger.failures == []
    assert counts[0] == LONG_ROUNDS * LONG_ROWS
    assert counts[1] > LONG_ROUNDS
    check_file(store)
    with opened(store) as engine:
        check(engine, ledger)


@pytest.mark.skipif(not ON_LINUX, reason="the locks of the log are kept on Linux alone")
@pytest.mark.parametrize("meddler", list(MEDDLERS))
def test_meddling_during_writes_lets_nobody_write_meanwhile(nursery: Nursery, store_path: Path, meddler: str) -> None:
    """The lock of the writer at work stays where it is: nothing that either process acknowledged is lost or damaged."""
    written_by_two(nursery, store_path, meddler)


def test_check_finds_what_is_lost(nursery: Nursery, store_path: Path) -> None:
    """Planted: a writer that acknowledges updates which it does not make."""
    ledger = meddled(nursery, store_path, fault="loses an update")
    with opened(store_path) as engine, pytest.raises(AssertionError, match="differ"):
        check(engine, ledger)


def test_check_finds_locks_that_are_dropped(forgetful: Nursery, store_path: Path) -> None:
    """Planted: without locks that stay, meddling between writes ends in failures."""
    with pytest.raises(AssertionError, match="StoreFailed"):
        meddled(forgetful, store_path, mine=True, theirs=True)


@pytest.mark.parametrize("meddler", list(MEDDLERS))
def test_check_finds_two_who_write_at_once(forgetful: Nursery, store_path: Path, meddler: str) -> None:
    """Planted: without locks that stay, meddling during writes ends in failures, losses or a damaged record."""
    with pytest.raises((AssertionError, errors.StoreError)):
        written_by_two(forgetful, store_path, meddler)
