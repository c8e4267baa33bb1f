"""Children to be killed: a process that has memkura loaded, and forks one for each piece of work.

Starting an interpreter takes longer than what most children live for.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import time
import traceback
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Self

if sys.platform == "win32":
    import pytest

    pytest.skip("there is neither fork nor SIGKILL", allow_module_level=True)

KILLED = -signal.SIGKILL
PATIENCE_SECONDS = 60
TIMES = 20 if os.environ.get("MEMKURA_FAULTS") == "long" else 1


class Nursery:
    """Starts children and waits for them. With `shim`, every child has that library between itself and libc."""

    def __init__(self, shim: Path | None = None) -> None:
        environment = dict(os.environ)
        if shim is not None:
            environment["LD_PRELOAD"] = environment["MEMKURA_SHIM"] = str(shim)
        self.process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def start(self, work: str, *arguments: Any, **options: Any) -> int:
        """The process id of a new child that runs `work`, which is ``"module.function"``."""
        return int(self._ask("start", [work, arguments, options]))

    def wait(self, child: int) -> int:
        """How the child ended: its exit status, or the signal's number below zero. One that hangs is a failure."""
        status = self._ask("wait", child)
        assert status is not None, f"a child was at work for more than {PATIENCE_SECONDS} s"
        return int(status)

    def run(self, work: str, *arguments: Any, **options: Any) -> int:
        """Starts a child and waits for it."""
        return self.wait(self.start(work, *arguments, **options))

    def kill(self, child: int) -> None:
        """Kills a child with SIGKILL; its process id stays its own until then."""
        os.kill(child, signal.SIGKILL)
        assert self.wait(child) == KILLED, "the child had ended by itself"

    def _ask(self, verb: str, what: Any) -> Any:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps([verb, what]) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self.process:
            assert self.process.stdin
            self.process.stdin.close()


def _start(work: str, arguments: list[Any], options: dict[str, Any]) -> int:
    module, _, function = work.rpartition(".")
    found = getattr(importlib.import_module(module), function)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            # The pipes are the nursery's own.
            sys.stdin.close()
            os.dup2(2, 1)
            found(*arguments, **options)
            status = 0
        except BaseException:  # noqa: BLE001 - shown, and told by the status
            traceback.print_exc()
        finally:
            os._exit(status)
    return child


def _wait(child: int) -> int | None:
    until = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < until:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def main() -> None:
    """Does what is asked on standard input, a line at a time."""
    importlib.import_module("memkura")
    importlib.import_module("memkura._core")
    for line in sys.stdin:
        verb, what = json.loads(line)
        answer = _start(*what) if verb == "start" else _wait(what)
        print(json.dumps(answer), flush=True)  # noqa: T201 - to the test


if __name__ == "__main__":
    main()
