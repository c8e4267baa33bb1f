"""Every parser for a few seconds, and faults that the driver must find."""

from __future__ import annotations

import os
import shlex
import subprocess
from typing import TYPE_CHECKING

import pytest
from fuzzing import fuzz
from parsers import PARSERS

if TYPE_CHECKING:
    from pathlib import Path

# What contributors wait for; in CI it is longer, and without end by `python tests/fuzz/fuzzing.py`.
SECONDS = float(os.environ.get("MEMKURA_FUZZ_SECONDS", "2"))
SEED = int(os.environ.get("MEMKURA_FUZZ_SEED", "0")) or None

pytestmark = pytest.mark.timeout(120 + SECONDS)


@pytest.mark.parametrize("parser", PARSERS)
def test_no_input_breaks_a_promise(parser: str) -> None:
    """Only exceptions of ours, nothing half-written, the same answers beside a damaged index; a new seed each time."""
    run = fuzz(parser, SECONDS, seed=SEED or int.from_bytes(os.urandom(4), "big"))
    print(run)  # noqa: T201 - shown when it fails, and by -s
    assert not run.failure, run
    assert run.cases > 1
    assert run.taken, "no input was good enough to be taken: the parser was hardly tried"


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("raising", "ValueError: planted"),
        ("hanging", "an input hung for 2"),
        ("aborting", "the process ended with -"),
        ("panicking", "InternalError: planted"),
        ("leaving", "a refused file left something"),
        ("confusing", "another answer"),
    ],
)
def test_planted_fault_is_found(tmp_path: Path, fault: str, said: str) -> None:
    """Each kind of fault is told by its kind, and the printed command shows it again."""
    run = fuzz(fault, 60, seed=7, found=tmp_path, hang_seconds=2)
    assert said in run.failure, run
    (kept,) = tmp_path.iterdir()
    assert str(kept) in run.again
    if fault != "hanging":
        again = subprocess.run(shlex.split(run.again), capture_output=True, text=True, check=False)
        assert again.returncode != 0
        assert said.partition(" with -")[0] in again.stderr or fault == "aborting", again.stderr
