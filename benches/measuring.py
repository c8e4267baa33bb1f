"""How contestants are asked in turn, and what is kept of it."""

from __future__ import annotations

import gc
import random
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

T = TypeVar("T")
Answer = TypeVar("Answer")

_SEED = 7
# Questions that one is asked before it is another's turn: few, so that a busy machine slows all alike.
_TURN = 20
# However slow a contestant is, it is asked so often.
_TIMES_MIN = 5
_NANOSECONDS = 1e9


@dataclass
class Taken:
    """What one contestant did on one path: nanoseconds a call, what it answered, and how it failed if it did."""

    nanoseconds: list[int] = field(default_factory=list)
    answers: list[object] = field(default_factory=list)
    failure: str | None = None

    def add(self, more: Taken) -> None:
        """Takes in what it did later."""
        self.nanoseconds += more.nanoseconds
        self.failure = self.failure or more.failure

    def microseconds(self, quantile: float) -> float:
        """The time below which so large a share of the calls were."""
        return sorted(self.nanoseconds)[min(int(len(self.nanoseconds) * quantile), len(self.nanoseconds) - 1)] / 1e3

    def is_tired(self, seconds_max: float) -> bool:
        """Whether it has had its share of time."""
        if self.failure is not None:
            return True
        return len(self.nanoseconds) >= _TIMES_MIN and sum(self.nanoseconds) > seconds_max * _NANOSECONDS


def interleaved(
    calls: Mapping[str, Callable[[T], object]],
    questions: Sequence[T],
    *,
    seconds_max: float,
    warm: int = 0,
    tidy: Callable[[str], object] = lambda _name: None,
) -> dict[str, Taken]:
    """Asks every contestant some questions in turn, in another order each time, until all were asked all of them.

    With `warm`, caches are: the first so many questions are asked before everything, and the first of each turn once
    more; neither is counted. A contestant that has taken `seconds_max` is asked no more. One that raises is out of this
    path, and what it raised is kept. `tidy` is called after each, with its name, in nobody's time.
    """
    taken = {name: Taken() for name in calls}
    for name, call in calls.items():
        warming = Taken()
        for question in questions[:warm]:
            if not warming.is_tired(seconds_max / 4):
                _ask(warming, call, question)
                tidy(name)
        taken[name].failure = warming.failure
    chance = random.Random(_SEED)  # noqa: S311 - an order, not a secret
    gc.collect()
    gc.disable()  # or one contestant would pay for what another left
    try:
        for turn in (questions[at : at + _TURN] for at in range(0, len(questions), _TURN)):
            for name in chance.sample([*calls], len(calls)):
                if warm and not taken[name].is_tired(seconds_max):
                    _ask(Taken(), calls[name], turn[0])
                    tidy(name)
                for question in turn:
                    if not taken[name].is_tired(seconds_max):
                        _ask(taken[name], calls[name], question)
                        tidy(name)
    finally:
        gc.enable()
    return taken


def _ask(taken: Taken, call: Callable[[T], object], question: T) -> None:
    begun = time.perf_counter_ns()
    try:
        answer = call(question)
    except Exception as error:  # noqa: BLE001 - a rival's failure is a figure of its own
        taken.failure = f"{type(error).__name__}: {error}".splitlines()[0]
        return
    taken.nanoseconds.append(time.perf_counter_ns() - begun)
    taken.answers.append(answer)


def beside_writer(
    ask: Callable[[T], object], questions: Sequence[T], write: Callable[[], object], seconds: float
) -> tuple[Taken, Taken]:
    """What two threads that ask and one that writes take, all as fast as they can for so long."""
    asking, writing = (Taken(), Taken()), Taken()
    until = time.perf_counter() + seconds

    def keep_asking(thread: int) -> None:
        at = thread
        while time.perf_counter() < until and asking[thread].failure is None:
            _ask(asking[thread], ask, questions[at % len(questions)])
            at += len(asking)

    def keep_writing() -> None:
        while time.perf_counter() < until and writing.failure is None:
            _ask(writing, lambda _: write(), None)

    threads = [threading.Thread(target=keep_asking, args=(number,)) for number in range(len(asking))]
    threads.append(threading.Thread(target=keep_writing))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    both = Taken(
        asking[0].nanoseconds + asking[1].nanoseconds,
        asking[0].answers + asking[1].answers,
        asking[0].failure or asking[1].failure,
    )
    return both, writing


def bytes_on_disk(folder: Path) -> int:
    """The length of all files under `folder`."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def resident_bytes() -> tuple[int, int]:
    """What of this process is in memory: all, and what of it no file backs."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    kibibytes = {name: value.split()[0] for name, _, value in (line.partition(":") for line in lines) if value.strip()}
    return int(kibibytes["VmRSS"]) * 1024, int(kibibytes["RssAnon"]) * 1024
