"""Others open, read and close the files of a store that is open: a checksum, a copy, a look with SQLite.

On POSIX systems, closing any descriptor of a file drops every lock that the process has on it. SQLite in another
process then takes itself for the last one out, and removes a log that is in use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from children import KILLED, Nursery
from oracle import Ledger, check, check_file
from writing import opened

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ROUNDS = 10


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery() as opened_nursery:
        yield opened_nursery


def meddled(nursery: Nursery, store: Path, **options: Any) -> Ledger:
    """Lets a child write among meddlers until it is killed, and returns what it had acknowledged."""
    journal = store.with_suffix(".journal")
    assert nursery.run("writing.write_beside_meddlers", str(store), str(journal), ROUNDS, **options) == KILLED
    ledger = Ledger()
    assert ledger.read(journal.read_text().splitlines()) + len(ledger.failures) == 10 + 9 * ROUNDS
    assert set(ledger.failures) <= {"StoreFailed"}
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
    """Ten times between acknowledged writes, and then the writer is killed: every one is there, or it had raised."""
    ledger = meddled(nursery, store_path, **meddlers)
    with opened(store_path) as engine:
        check(engine, ledger)
    check_file(store_path)


def test_check_finds_what_is_lost(nursery: Nursery, store_path: Path) -> None:
    """Planted: a writer that acknowledges updates which it does not make."""
    ledger = meddled(nursery, store_path, fault="loses an update")
    with opened(store_path) as engine, pytest.raises(AssertionError, match="differ"):
        check(engine, ledger)
