"""The contestants at work: who takes part, how each is tuned, and every path of one workload."""

from __future__ import annotations

import functools
import multiprocessing
import sys
from typing import TYPE_CHECKING

from contestants import Ability, Contestant, Memkura, Plain
from measuring import Taken, beside_writer, bytes_on_disk, interleaved, resident_bytes
from paths import LEGS, Fresh, Reading, Truth, ask_widest, remembered, widest
from tables import Table
from workload import Question, Workload, seconds_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

_RECALL = 0.99
_RECALL_WORTH_IT = 0.003
_TUNING_QUESTIONS = 50
_WARM = 10
_OPENINGS = 7
_ROUNDS_BESIDE_WRITER = 3
_QUESTIONS_WHEN_RESIDENT = 20


class Contest:
    """One workload, in the hands of those contestants who took it."""

    def __init__(self, load: Workload, folder: Path, wanted: argparse.Namespace) -> None:
        self.load = load
        self.questions = load.asked()
        self.fresh = Fresh(load)
        self._folder = folder
        self._wanted = wanted
        self._classes: list[type[Contestant]] = []
        self._open: dict[str, Contestant] = {}
        self._efforts: dict[str, int] = {}

    # --- who takes part ---

    def fill(self, classes: Iterable[type[Contestant]], title: str) -> Table:
        """Gives the memories to each, and says how long it took; who cannot take them is out."""
        table = Table(title, ("contestant", "s", "x memkura"))
        taken: dict[str, float] = {}
        for of_kind in classes:
            say(f"filling {of_kind.name}")
            try:
                contestant = of_kind(self._folder / of_kind.__name__)
                taken[of_kind.name] = seconds_of(functools.partial(contestant.fill, self.load))
                self._tune(contestant)
            except Exception as error:  # noqa: BLE001 - one that cannot take part does not stop the others
                table.notes.append(_failed(of_kind.name, error))
                continue
            self._open[of_kind.name] = contestant
            self._classes.append(of_kind)
        for name, of_it in taken.items():
            table.rows.append((name, f"{of_it:.2f}", _times(of_it, taken.get(Memkura.name))))
        return table

    def _tune(self, contestant: Contestant) -> None:
        """Raises its effort until it finds nearly what brute force finds, or more finds no more."""
        questions = self.questions[:_TUNING_QUESTIONS]
        nearest, name, most = LEGS[1], contestant.name, 0.0
        for effort in contestant.efforts:
            contestant.effort = effort
            shared = self.truth.shared(nearest, [nearest.ask(contestant, question) for question in questions])
            if shared >= most + _RECALL_WORTH_IT:
                most, self._efforts[name] = shared, effort
            if shared >= _RECALL:
                break
        contestant.effort = self._efforts.get(name, contestant.effort)

    def efforts(self) -> Mapping[str, int]:
        """What was chosen."""
        return self._efforts

    @functools.cached_property
    def truth(self) -> Truth:
        """What brute force answers."""
        exact = self._open.get(Plain.name)
        if not isinstance(exact, Plain):
            exact = Plain(self._folder / "truth")
            exact.fill(self.load)
        return Truth(exact, self.questions)

    def _able(self, needs: Ability) -> dict[str, Contestant]:
        names = [of_kind.name for of_kind in self._classes if needs in of_kind.can]
        return {name: self._open[name] for name in names if name in self._open}

    def close(self, *, for_good: bool = True) -> None:
        """Closes the contestants; those that could not come back stay, unless it is for good."""
        for name, contestant in [*self._open.items()]:
            if for_good or Ability.REOPEN in contestant.can:
                contestant.close()
                del self._open[name]

    # --- what is measured ---

    def read(self, reading: Reading) -> Table:
        """The times of one reading, and how much of the truth was found."""
        calls = {
            name: functools.partial(reading.ask, contestant) for name, contestant in self._able(reading.needs).items()
        }
        taken = interleaved(calls, self.questions, seconds_max=self._wanted.seconds, warm=_WARM)
        return _times_table(reading.name, taken, lambda name: f"{self.truth.shared(reading, taken[name].answers):.3f}")

    def look_up(self) -> Table:
        """The times of one exact key."""
        step = max(len(self.load) // len(self.questions), 1)
        ordinals = [at * step for at in range(min(len(self.questions), len(self.load)))]
        calls = {
            name: functools.partial(_looked_up, contestant, self.load)
            for name, contestant in self._able(Ability.LOOKUP).items()
        }
        return _times_table("key", interleaved(calls, ordinals, seconds_max=self._wanted.seconds, warm=_WARM))

    def write(self, ability: Ability, title: str) -> Table:
        """The times of writing one memory and finding it."""
        calls = {name: functools.partial(remembered, contestant) for name, contestant in self._able(ability).items()}
        memories = [self.fresh.memory() for _ in self.questions]
        # What was written to warm up cannot be written again.
        warm = [self.fresh.memory() for _ in range(2)]
        failures = {name: of_it.failure for name, of_it in interleaved(calls, warm, seconds_max=1).items()}
        calls = {name: call for name, call in calls.items() if failures[name] is None}
        taken = interleaved(calls, memories, seconds_max=self._wanted.seconds)
        taken |= {name: Taken(failure=failure) for name, failure in failures.items() if failure is not None}
        return _times_table(title, taken)

    def read_beside_writer(self) -> Table:
        """Two threads ask while a third writes; one contestant after the other, in rounds."""
        columns = ("contestant", "asked by", "p50 µs", "p99 µs", "answers/s", "writes/s")
        table = Table("busy: two threads ask while one writes", columns, figures_from=2)
        asking: dict[str, Taken] = {}
        writing: dict[str, Taken] = {}
        able = self._able(Ability.THREADS)
        span = self._wanted.seconds / 10
        for name, contestant in [*able.items()] * _ROUNDS_BESIDE_WRITER:
            both = beside_writer(
                functools.partial(ask_widest, contestant),
                self.questions,
                functools.partial(_written, contestant, self.fresh),
                span,
            )
            for kept, new in zip((asking, writing), both, strict=True):
                kept.setdefault(name, Taken()).add(new)
        for name, contestant in able.items():
            if failure := asking[name].failure or writing[name].failure:
                table.notes.append(f"{name} failed: {failure}")
                continue
            pace = [len(of_it[name].nanoseconds) / span / _ROUNDS_BESIDE_WRITER for of_it in (asking, writing)]
            quantiles = [f"{asking[name].microseconds(quantile):,.0f}" for quantile in (0.5, 0.99)]
            reading = widest(contestant.can)
            legs = reading.name if reading else "key"
            table.rows.append((name, legs, *quantiles, *(f"{each:,.0f}" for each in pace)))
        return table

    # --- what is on disk, once all are closed ---

    def reopen(self, *, durable: bool) -> None:
        """Opens again what was closed."""
        for of_kind in self._classes:
            if of_kind.name not in self._open and Ability.REOPEN in of_kind.can:
                self._open[of_kind.name] = self._opened(of_kind, durable=durable)

    def _opened(self, of_kind: type[Contestant], *, durable: bool = True) -> Contestant:
        contestant = of_kind(self._folder / of_kind.__name__, durable=durable)
        contestant.effort = self._efforts.get(of_kind.name, contestant.effort)
        return contestant

    def sizes(self) -> Table:
        """Bytes on disk and in the memory of a process of its own."""
        table = Table("size", ("contestant", "disk MB", "resident MB", "private MB", "disk x memkura"))
        disk: dict[str, int] = {}
        for of_kind in self._classes:
            if Ability.REOPEN not in of_kind.can:
                continue
            disk[of_kind.name] = bytes_on_disk(self._folder / of_kind.__name__)
            say(f"memory of {of_kind.name}")
            arguments = (of_kind, self._folder / of_kind.__name__, self._efforts.get(of_kind.name))
            try:
                with multiprocessing.get_context("spawn").Pool(1) as pool:
                    grown = pool.apply(resident, (*arguments, self.questions[:_QUESTIONS_WHEN_RESIDENT]))
            except Exception as error:  # noqa: BLE001 - as above
                table.notes.append(_failed(of_kind.name, error))
                continue
            megabytes = [f"{each / 1e6:.1f}" for each in (disk[of_kind.name], *grown)]
            table.rows.append((of_kind.name, *megabytes, _times(disk[of_kind.name], disk.get(Memkura.name))))
        return table

    def open(self, reading: Reading) -> Table:
        """From opening what is on disk to the end of the first answer."""
        opened: dict[str, Contestant] = {}

        def first_answer(of_kind: type[Contestant], question: Question) -> list[int]:
            opened[of_kind.name] = self._opened(of_kind)
            return reading.ask(opened[of_kind.name], question)

        able = [of_kind for of_kind in self._classes if reading.needs | Ability.REOPEN in of_kind.can]
        taken = interleaved(
            {of_kind.name: functools.partial(first_answer, of_kind) for of_kind in able},
            self.questions[:_OPENINGS],
            seconds_max=self._wanted.seconds,
            warm=1,
            tidy=lambda name: opened.pop(name).close() if name in opened else None,
        )
        return _times_table(f"open, then {reading.name}", taken)


def resident(
    of_kind: type[Contestant], folder: Path, effort: int | None, questions: Sequence[Question]
) -> tuple[int, int]:
    """How many bytes a contestant adds to this process, and to what of it is no file's."""
    before = resident_bytes()
    contestant = of_kind(folder)
    contestant.effort = contestant.effort if effort is None else effort
    for question in questions:
        ask_widest(contestant, question)
    after = resident_bytes()
    contestant.close()
    return after[0] - before[0], after[1] - before[1]


def _looked_up(contestant: Contestant, load: Workload, ordinal: int) -> None:
    if contestant.lookup(ordinal) != load.texts[ordinal]:
        raise LookupError("another memory was found")


def _written(contestant: Contestant, fresh: Fresh) -> None:
    contestant.remember(fresh.memory())


def _times_table(title: str, taken: Mapping[str, Taken], found: Callable[[str], str] | None = None) -> Table:
    columns = ("contestant", "p50 µs", "p99 µs", "x memkura", *(("same 10",) if found else ()), "asked")
    table = Table(title, columns)
    for name, of_it in taken.items():
        if of_it.failure is not None:
            table.notes.append(f"{name} failed: {of_it.failure}")
            continue
        middle = of_it.microseconds(0.5)
        ours = taken.get(Memkura.name)
        times = _times(middle, ours.microseconds(0.5) if ours and ours.nanoseconds else None)
        asked = str(len(of_it.nanoseconds))
        table.rows.append(
            (
                name,
                f"{middle:,.1f}",
                f"{of_it.microseconds(0.99):,.1f}",
                times,
                *([found(name)] if found else []),
                asked,
            )
        )
    return table


def _times(value: float, ours: float | None) -> str:
    return f"{value / ours:.2f}" if ours else "-"


def _failed(name: str, error: Exception) -> str:
    return f"{name} failed: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"


def say(what: str) -> None:
    """Tells whoever waits what is done now."""
    print(f"{what} …", file=sys.stderr, flush=True)
