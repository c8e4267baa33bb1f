"""Fuzzes the parsers: each in a child process, for a time, until an input breaks a promise.

    python tests/fuzz/fuzzing.py                     every parser for a minute
    python tests/fuzz/fuzzing.py --seconds 3600 index backup
    python tests/fuzz/fuzzing.py --input build/fuzz/index-3f2a… index

The first two print a line for each parser: how many inputs were tried and how many of them were taken. An input that
breaks a promise is written to build/fuzz and the command that tries it again is printed; the exit code is then 1. The
seed is printed too: with it, the same inputs come again.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
FOUND = HERE.parents[1] / "build" / "fuzz"
# An input is tried in milliseconds; a thousand times that is a hang.
HANG_SECONDS = 20.0
_BROKEN = 3


@dataclass(frozen=True)
class Run:
    """What came of fuzzing one parser.

    Attributes:
        parser: its name.
        seed: what the inputs were made from.
        cases: inputs that were tried.
        taken: those of them that were taken.
        failure: what went wrong; nothing in a good run.
        again: the command that tries the failing input again.
    """

    parser: str
    seed: int
    cases: int
    taken: int
    failure: str = ""
    again: str = ""

    def __str__(self) -> str:
        said = f"{self.parser}: {self.cases:,} inputs tried, {self.taken:,} taken, seed {self.seed}"
        return f"{said}\n{self.failure}\nto try it again: {self.again}" if self.failure else said


def fuzz(parser: str, seconds: float, *, seed: int, found: Path = FOUND, hang_seconds: float = HANG_SECONDS) -> Run:
    """Tries inputs of `parser` in a child for so many `seconds`."""
    with tempfile.TemporaryDirectory(prefix="memkura-fuzz-") as name:
        folder = Path(name)
        command = [sys.executable, str(HERE / "fuzzing.py"), "--child", str(folder), "--seed", str(seed), parser]
        with (
            (folder / "stderr").open("wb") as errors,
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as child,
        ):
            cases, taken, why = _watched(child, seconds, hang_seconds)
        said = (folder / "stderr").read_text(errors="replace")
        if not why and "panicked at" in said:
            why = "something panicked"
        if not why:
            return Run(parser, seed, cases, taken)
        current = folder / "current"
        data = current.read_bytes() if current.exists() else b""
        found.mkdir(parents=True, exist_ok=True)
        kept = found / f"{parser}-{hashlib.blake2b(data, digest_size=8).hexdigest()}"
        kept.write_bytes(data)
        again = f"{sys.executable} {HERE / 'fuzzing.py'} --input {kept} {parser}"
        return Run(parser, seed, cases, taken, f"{why}\n{said[-4000:]}", again)


def _watched(child: subprocess.Popen[str], seconds: float, hang_seconds: float) -> tuple[int, int, str]:
    """How many inputs the child tried and took, and why it did not come to a good end."""
    assert child.stdout
    # It is killed when it does not say in time that it goes on; the first of its words takes longer.
    beat = threading.Event()
    hung = threading.Event()
    done = threading.Event()

    def watch() -> None:
        patience = max(hang_seconds, HANG_SECONDS)
        while not done.is_set():
            if not beat.wait(patience):
                hung.set()
                child.kill()
                return
            beat.clear()
            patience = hang_seconds

    watcher = threading.Thread(target=watch)
    watcher.start()
    cases = taken = 0
    until = None
    stopped = False
    for line in child.stdout:
        beat.set()
        until = until or time.monotonic() + seconds
        cases += line != "begin\n"
        taken += line == "taken\n"
        if time.monotonic() > until:
            stopped = True
            child.kill()
            break
    status = child.wait()
    done.set()
    beat.set()
    watcher.join()
    if stopped:
        return cases, taken, ""
    if hung.is_set():
        return cases, taken, f"an input hung for {hang_seconds} seconds"
    return cases, taken, "an input broke a promise" if status == _BROKEN else f"the process ended with {status}"


def _child(parser: str, folder: Path, seed: int) -> None:
    """Tries one input after the other, each written down before."""
    from parsers import PARSERS, PLANTED

    tried = (PARSERS | PLANTED)[parser](folder)
    print("begin", flush=True)  # noqa: T201 - to the parent
    at = 0
    while True:
        data = tried.make(random.Random(f"{seed} {at}")) if at >= len(tried.seeds) else tried.seeds[at]
        (folder / "current").write_bytes(data)
        is_taken = _tried(tried, data)
        print("taken" if is_taken else "refused", flush=True)  # noqa: T201 - likewise
        at += 1


def _tried(tried: object, data: bytes) -> bool:
    try:
        taken: bool = tried.run(data)  # type: ignore[attr-defined]
    except BaseException:  # noqa: BLE001 - whatever it is, it is told
        traceback.print_exc()
        sys.stderr.flush()
        raise SystemExit(_BROKEN) from None
    return taken


def main() -> None:
    """The command."""
    from parsers import PARSERS, PLANTED

    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--seconds", type=float, default=60.0, help="for each parser; 60 by default")
    options.add_argument("--seed", type=int, help="of a run that was printed")
    options.add_argument("--input", type=Path, help="try the one input in this file")
    options.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    options.add_argument("parser", nargs="*", help=f"of {', '.join(PARSERS)}; all by default")
    given = options.parse_args()
    if unknown := set(given.parser) - (PARSERS | PLANTED).keys():
        options.error(f"no parser is called {', '.join(unknown)}")
    if given.child:
        _child(given.parser[0], given.child, given.seed)
    if given.input:
        with tempfile.TemporaryDirectory(prefix="memkura-fuzz-") as folder:
            _tried((PARSERS | PLANTED)[given.parser[0]](Path(folder)), given.input.read_bytes())
        return
    seed = random.SystemRandom().randrange(1 << 32) if given.seed is None else given.seed
    runs = []
    for parser in given.parser or PARSERS:
        runs.append(fuzz(parser, given.seconds, seed=seed))
        print(runs[-1], flush=True)  # noqa: T201 - a program
    raise SystemExit(any(run.failure for run in runs))


if __name__ == "__main__":
    main()
