"""memkura beside what people would use instead, in the same process and the same run.

    python benches/rivals.py [--memories 10000 100000] [--questions 200] [--only NAME …] [--paths NAME …] [--smoke]
        [--markdown]

``pip install --group rivals`` installs the rivals; one that is not installed is left out, and so said. ``--only`` and
``--paths`` take beginnings of names. Data flows ``workload.py`` → ``contestants/`` (which keep it, and answer) →
``measuring.py`` (which asks in turn) → tables here.

What is fair about it, and what is not:

- Every question is asked of all contestants in turn, another first each time, so a busy machine slows all alike. Each
  library may use one thread for an answer (environment and its own settings); all are warm, and files are in the page
  cache.
- Memories lie around 200 topics, and questions near them. Vectors have length one; the question's vector is given. Text
  contestants get words between spaces (Japanese: overlapping pairs of characters, made beforehand) and order by BM25
  with their own constants; memkura analyses the text itself, in its own time.
- Graphs have M 16 and ef_construction 128. ``ef``, ``nprobe`` and their like are raised, for each contestant, from its
  lowest value until recall@10 without a filter is 0.99 or its values end; what was chosen is printed, and recall stands
  beside every time. Under a filter that keeps at most 10,000 and a quarter, the bare graphs (hnswlib, usearch, faiss
  HNSW) multiply the vectors that are left exactly, with numpy: it is quicker than their own way, and loses nothing.
- ``same 10`` is the share of an answer that brute force gives too: for vectors that is recall@10; for texts and both it
  compares with ``rank_bm25``, and fused by reciprocal ranks, so another BM25 alone makes it less than 1.
- memkura gives whole memories with evidence; rivals here give no more than ordinals. That is to their favour.
- Filters are tags. ``random`` ones say nothing of the topic; ``correlated`` ones keep whole topics, most of them far
  from the question.
- ``remember`` ends when the next question would find the memory, which it asks. *Durable* rivals sync as they ship
  or as their documents say, which is not always to the disk; their line in the list of contestants says how.
- A contestant that takes too long is asked fewer questions; the table says how many.
- Resident memory is what importing the library, opening what was kept and answering 20 questions adds to a process of
  its own; *private* is the part that is no file's.
"""

from __future__ import annotations

import argparse
import functools
import importlib.metadata
import multiprocessing
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from contestants import ALL, Ability, Contestant, Memkura, Plain
from measuring import Taken, beside_writer, bytes_on_disk, interleaved, resident_bytes
from paths import LEGS, READINGS, Fresh, Reading, Truth, ask_widest, remembered
from tables import Table
from workload import Question, Workload, clustered, seconds_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

_RECALL = 0.99
_RECALL_WORTH_IT = 0.003
_TUNING_QUESTIONS = 50
_WARM = 10
_OPENINGS = 7
_ROUNDS_BESIDE_WRITER = 3
_QUESTIONS_WHEN_RESIDENT = 20
# Each library reads its own; they are set before any is imported.
_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "RAYON_NUM_THREADS": "1",
    "TOKIO_WORKER_THREADS": "1",
    "LANCE_CPU_THREADS": "1",  # LANCE_IO_THREADS of 1 makes an index that never ends
    # And none tells anybody of it, or asks for a model.
    "ANONYMIZED_TELEMETRY": "False",
    "MEM0_TELEMETRY": "False",
    "HF_HUB_OFFLINE": "1",
    "LANCEDB_LOG": "error",
}


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
            _say(f"filling {of_kind.name}")
            try:
                contestant = of_kind(self._folder / of_kind.__name__)
                taken[of_kind.name] = seconds_of(functools.partial(contestant.fill, self.load))
            except Exception as error:  # noqa: BLE001 - one that cannot take part does not stop the others
                table.notes.append(_failed(of_kind.name, error))
                continue
            self._open[of_kind.name] = contestant
            self._classes.append(of_kind)
        for name, of_it in taken.items():
            table.rows.append((name, f"{of_it:.2f}", _times(of_it, taken.get(Memkura.name))))
        return table

    def tune(self) -> None:
        """Raises each contestant's effort until it finds nearly what brute force finds, or more finds no more."""
        questions = self.questions[:_TUNING_QUESTIONS]
        nearest = LEGS[1]
        for name, contestant in self._able(nearest.needs).items():
            most = 0.0
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
        columns = ("contestant", "p50 µs", "p99 µs", "answers/s", "writes/s")
        table = Table("busy: two threads ask by what they have while one writes", columns)
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
        for name in able:
            if failure := asking[name].failure or writing[name].failure:
                table.notes.append(f"{name} failed: {failure}")
                continue
            pace = [len(of_it[name].nanoseconds) / span / _ROUNDS_BESIDE_WRITER for of_it in (asking, writing)]
            quantiles = [f"{asking[name].microseconds(quantile):,.0f}" for quantile in (0.5, 0.99)]
            table.rows.append((name, *quantiles, *(f"{each:,.0f}" for each in pace)))
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
            _say(f"memory of {of_kind.name}")
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
            tidy=lambda name: opened.pop(name).close(),
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


# --- what is printed ---


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


def _versions(of_kind: type[Contestant]) -> str:
    of_module = importlib.metadata.packages_distributions()
    names = sorted({of_module[module][0] for module in of_kind.requires if module in of_module})
    return ", ".join(f"{name} {importlib.metadata.version(name)}" for name in names) or "-"


def _say(what: str) -> None:
    print(f"{what} …", file=sys.stderr, flush=True)


# --- the order of a run ---


class Run:
    """One size, path after path: each table is printed when it is there."""

    def __init__(self, memories: int, classes: Sequence[type[Contestant]], wanted: argparse.Namespace) -> None:
        self._memories = memories
        self._classes = classes
        self._wanted = wanted

    def all_paths(self, folder: Path) -> None:
        """Reads first, then what is on disk, then writes."""
        contest = Contest(clustered(self._memories, self._wanted.questions), folder / "english", self._wanted)
        loads = contest.fill(self._classes, f"load: {self._memories:,} memories, indexed and kept")
        contest.tune()
        self._show(_line_up(self._classes, contest.efforts(), loads.notes))
        self._measure("load", lambda: loads)
        for reading in READINGS:
            self._measure(reading.name, functools.partial(contest.read, reading))
        self._measure("key", contest.look_up)
        contest.close(for_good=False)
        self._measure("size", contest.sizes)
        for reading in LEGS:
            self._measure(f"open, then {reading.name}", functools.partial(contest.open, reading))
        contest.reopen(durable=True)
        self._measure("remember, durable", functools.partial(contest.write, Ability.DURABLE, "remember, durable"))
        self._measure("busy", contest.read_beside_writer)
        contest.close(for_good=False)
        contest.reopen(durable=False)
        self._measure("remember, no syncs", functools.partial(contest.write, Ability.RELAXED, "remember, no syncs"))
        contest.close()
        self._measure("japanese", functools.partial(self._japanese, folder / "japanese"))

    def _japanese(self, folder: Path) -> Table:
        contest = Contest(clustered(self._memories, self._wanted.questions, japanese=True), folder, self._wanted)
        contest.fill([of_kind for of_kind in self._classes if Ability.TEXT in of_kind.can], "")
        table = contest.read(Reading("japanese text", "text"))
        contest.close()
        return table

    def _measure(self, path: str, make: Callable[[], Table]) -> None:
        if not self._wanted.paths or path.startswith(tuple(self._wanted.paths)):
            _say(path)
            self._show(make())

    def _show(self, table: Table) -> None:
        if table.rows or table.notes:
            print(table.text(markdown=self._wanted.markdown), flush=True)


def _line_up(classes: Iterable[type[Contestant]], efforts: Mapping[str, int], failures: list[str]) -> Table:
    table = Table("contestants", ("contestant", "version", "effort", "set up with"), figures_from=4)
    for of_kind in classes:
        table.rows.append((of_kind.name, _versions(of_kind), str(efforts.get(of_kind.name, "-")), of_kind.setup))
    table.notes += failures
    table.notes += [f"{each.name} is not installed ({', '.join(each.missing())})" for each in ALL if each.missing()]
    return table


def _wanted() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--memories", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="contestants beside memkura")
    parser.add_argument("--paths", nargs="+", default=[], metavar="NAME", help="paths, by the beginning of their names")
    parser.add_argument("--seconds", type=float, default=10.0, help="how long one contestant may take on one path")
    parser.add_argument("--smoke", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--markdown", action="store_true")
    wanted = parser.parse_args()
    if wanted.smoke:
        wanted.memories, wanted.questions, wanted.seconds = [500], 10, 0.2
    return wanted


def main() -> None:
    """Prints the tables."""
    if any(os.environ.get(name) != value for name, value in _ENVIRONMENT.items()):
        os.execve(sys.executable, sys.orig_argv, {**os.environ, **_ENVIRONMENT})  # noqa: S606 - this program again
    wanted = _wanted()
    names = tuple(wanted.only)
    classes = [
        of_kind
        for of_kind in ALL
        if not of_kind.missing() and (not names or of_kind is Memkura or of_kind.name.startswith(names))
    ]
    for memories in wanted.memories:
        with tempfile.TemporaryDirectory() as folder:
            Run(memories, classes, wanted).all_paths(Path(folder))


if __name__ == "__main__":
    main()
