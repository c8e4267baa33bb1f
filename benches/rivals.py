"""memkura beside what people would use instead, in the same process and the same run.

    python benches/rivals.py [--memories 10000 100000] [--questions 200] [--only NAME …] [--paths NAME …] [--smoke]
        [--markdown]

``pip install --group rivals --group rivals-torch`` installs the rivals; one that is not installed is left out, and so
said. ``--only`` and ``--paths`` take beginnings of names. Data flows from ``workload.py`` to ``contestants/``, which
keep it and answer the questions of ``paths.py``; ``contest.py`` has them asked in turn by ``measuring.py``, and makes
``tables.py`` of it. What is measured in which order is said here.

What is fair about it, and what is not:

- Contestants are asked twenty questions in turn, in another order each time, so a busy machine slows all alike, and
  each comes after any other. The first question of a turn is asked twice and counted once: caches are warm. Each
  library may use one thread for an answer (environment and its own settings), and files are in the page cache.
- Memories lie around 200 topics, and questions near them. Vectors have length one; the question's vector is given. Text
  contestants get words between spaces (Japanese: overlapping pairs of characters, made beforehand) and order by BM25
  with their own constants; memkura analyses the text itself, in its own time.
- Graphs have M 16 and ef_construction 128. ``ef``, ``nprobe`` and their like are raised, for each contestant, from its
  lowest value until recall@10 without a filter is 0.99 or more finds no more; what was chosen is printed, and recall
  stands beside every time. Under a filter that keeps at most 10,000 and a quarter, hnswlib, usearch and faiss multiply
  the vectors that are left exactly, with numpy: it is quicker than their own way, and loses nothing.
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
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from contest import Contest, say
from contestants import ALL, Ability, Contestant, Memkura
from paths import LEGS, READINGS, Reading
from tables import Table
from workload import clustered

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

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
            say(path)
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


def _versions(of_kind: type[Contestant]) -> str:
    of_module = importlib.metadata.packages_distributions()
    names = sorted({of_module[module][0] for module in of_kind.requires if module in of_module})
    return ", ".join(f"{name} {importlib.metadata.version(name)}" for name in names) or "-"


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
