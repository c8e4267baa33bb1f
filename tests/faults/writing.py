"""What children do: operations on a store, each written into a journal when it begins and when it was acknowledged."""

from __future__ import annotations

import contextlib
import os
import random
import resource
import signal
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import memkura
from memkura import errors
from memkura.testing import ToyEmbedder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from memkura import Engine

CONTEXT = "c"
DIMENSIONS = 256

# Without vowels and endings, a word has one form in the index; of twelve letters, no two are alike.
_LETTERS = "bcfhjklmnpqrtvwx"
_WORD = 12


def new_word(chance: random.Random) -> str:
    """A word that occurs in one version of one memory and nowhere else."""
    return "".join(chance.choices(_LETTERS, k=_WORD))


def fields_of(word: str) -> dict[str, Any]:
    """What a memory with `word` says, all of it: a memory that says anything else was torn."""
    chance = random.Random(word)
    filler = ["".join(chance.choices(_LETTERS, k=6)) for _ in range(chance.choice((8, 12, 100)))]
    # Now and then more than a page of the record holds.
    pad = word * chance.choice((0, 0, 0, 600))
    return {"summary": " ".join([word, *filler]), "metadata": {"pad": pad}}


def word_of(summary: str) -> str:
    """The word of a summary."""
    return summary[:_WORD]


class Journal:
    """Lines that are in the file when `say` returns, whatever becomes of the process."""

    def __init__(self, path: str | Path) -> None:
        self.file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self.failures = 0

    def __call__(self, line: str) -> None:
        self.failures += line.startswith("failed")
        os.write(self.file, f"{line}\n".encode())


Say: TypeAlias = "Callable[[str], object]"
# Operations as they are drawn, by their letters. Compacting takes as long as all the others together.
MIXED = "r" * 20 + "u" * 13 + "f" * 6 + "c"
# Planted faults. Each breaks one promise, and the check that is for it must fail.
FAULTS = (
    "acknowledges early",
    "acknowledges failures",
    "forgets nothing",
    "keeps the old vector",
    "loses an update",
    "raises something else",
    "tears a text",
)


class Writer:
    """Remembers, updates and forgets at random, its own memories alone."""

    def __init__(
        self, engine: Engine, say: Say, seed: str, known: Sequence[tuple[str, str]] = (), fault: str = ""
    ) -> None:
        assert not fault or fault in FAULTS
        self.engine = engine
        self.say = say
        self.chance = random.Random(seed)
        self.known: dict[str, str] = dict(known)
        self.fault = fault
        self.failures_hidden = 0

    def work(self, operations: int, verbs: str = MIXED) -> None:
        """So many operations, their verbs drawn from the letters of `verbs`."""
        for _ in range(operations):
            self.operate(self.chance.choice(verbs))

    def operate_all(self, verbs: str) -> None:
        """One operation for each letter of `verbs`."""
        for verb in verbs:
            self.operate(verb)

    def operate(self, verb: str) -> None:
        """One operation: (r)emember, (u)pdate, (f)orget, (p)urge or (c)ompact."""
        word = new_word(self.chance)
        if verb == "c":
            self.compact()
        elif verb == "r" or not self.known:
            self.acknowledged("remember", "-", word, lambda: self.remember(word))
        else:
            memory_id = self.chance.choice(list(self.known))
            if verb == "u":
                self.acknowledged("update", memory_id, word, lambda: self.update(memory_id, word))
            elif verb == "p":
                self.acknowledged("purge", memory_id, "-", lambda: self.forget(memory_id, purge=True))
            else:
                self.acknowledged("forget", memory_id, "-", lambda: self.forget(memory_id))

    def acknowledged(self, verb: str, memory_id: str, word: str, call: Callable[[], str]) -> None:
        """Says that it begins, does it, and says how it ended."""
        self.say(f"begin {verb} {memory_id} {word}")
        is_early = self.fault == "acknowledges early" and verb != "remember"
        if is_early:
            self.say(f"done {verb} {memory_id} {word}")
        try:
            done = call()
        except errors.MemkuraError as error:
            if self.fault == "raises something else":
                raise OSError(str(error)) from None
            if self.fault == "acknowledges failures":
                self.failures_hidden += 1
                new = f"00000000-0000-7000-8000-{self.failures_hidden:012}"
                self.say(f"done {verb} {new if verb == 'remember' else memory_id} {word}")
            else:
                self.say(f"failed {verb} {memory_id} {word} {type(error).__name__}")
        else:
            if not is_early:
                self.say(f"done {verb} {done} {word}")

    def remember(self, word: str) -> str:
        fields = fields_of(word)
        if self.fault == "tears a text":
            fields["summary"] = fields["summary"][:-6]
        memory_id = str(self.engine.remember(CONTEXT, **fields))
        self.known[memory_id] = word
        return memory_id

    def update(self, memory_id: str, word: str) -> str:
        old = fields_of(self.known[memory_id])["summary"]
        if self.fault == "keeps the old vector":
            (vector,) = ToyEmbedder(DIMENSIONS).embed([old], kind="document")
            self.engine.update_memory(CONTEXT, memory_id, **fields_of(word), embedding=vector)
        elif self.fault != "loses an update":
            self.engine.update_memory(CONTEXT, memory_id, **fields_of(word))
        self.known[memory_id] = word
        return memory_id

    def forget(self, memory_id: str, *, purge: bool = False) -> str:
        if self.fault != "forgets nothing":
            self.engine.forget(CONTEXT, memory_id, purge=purge)
        del self.known[memory_id]
        return memory_id

    def compact(self) -> None:
        """Seals the index and moves the record's pages, between a word before and one after."""
        try:
            # Only a context that is loaded is sealed.
            self.engine.recall(CONTEXT, "x")
            self.engine.compact()
            self.say("compacted")
        except errors.MemkuraError as error:
            self.say(f"failed compact - - {type(error).__name__}")


def opened(path: str | Path, **options: Any) -> Engine:
    """The store at `path`, with the embedder that all of these tests share."""
    return memkura.open(path, embedder=ToyEmbedder(DIMENSIONS), **options)


def write(
    path: str,
    journal: str,
    seed: str,
    known: Sequence[tuple[str, str]] = (),
    *,
    operations: int = 1_000_000,
    verbs: str = MIXED,
    fault: str = "",
) -> None:
    """A child that writes until it is killed, or so many operations."""
    with opened(path) as engine:
        Writer(engine, Journal(journal), seed, known, fault).work(operations, verbs)


def write_at_once(
    path: str,
    journals: Sequence[str],
    seed: str,
    known: Sequence[tuple[str, str]] = (),
    *,
    operations: int = 1_000_000,
    verbs: str = MIXED,
) -> None:
    """A child whose threads write until it is killed, or so many operations; each has its own memories and journal."""
    with opened(path) as engine, ThreadPoolExecutor(len(journals)) as threads:
        writers = [
            Writer(engine, Journal(journal), f"{seed} {at}", known[at :: len(journals)])
            for at, journal in enumerate(journals)
        ]
        for done in [threads.submit(writer.work, operations, verbs) for writer in writers]:
            done.result()


def maintain(path: str, times: int) -> None:
    """A child that does the store's upkeep again and again."""
    with opened(path) as engine:
        for _ in range(times):
            engine.maintain()


def export(path: str, target: str) -> None:
    """A child that reads the whole store, as it is at one moment, again and again until it is killed."""
    with opened(path) as engine:
        while True:
            engine.export(target)


def fill(store: str, journal: str, ballast: str, limit: int, *, fault: str = "") -> None:
    """A child that writes until the disk is full, goes on with reading and forgetting, gets room, and writes again.

    Full is when the file system is, and room comes from removing `ballast`; or with a `limit`, when a file has so many
    bytes, and room comes from raising it.
    """
    say = Journal(journal)
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    if limit:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, most))
    with opened(store) as engine:
        writer = Writer(engine, say, "fill", fault=fault)
        while say.failures + writer.failures_hidden < 5:
            writer.operate("r")
        say("full")
        for memory_id, word in list(writer.known.items())[::10]:
            hits = engine.recall(CONTEXT, word, legs=["text"])
            memory = engine.get(CONTEXT, memory_id)
            say(f"read {memory is not None and [hit.memory_id for hit in hits] == [memory_id]}")
        for _ in range(5):
            writer.operate("f")
        writer.operate("p")
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        Path(ballast).unlink()
        say("room")
        writer.work(10, "ruf")


def read_files(store: str) -> None:
    """What a checksum or a copy does: opens, reads and closes every file."""
    for path in Path(store).rglob("*"):
        # The index's own files come and go while another process seals.
        with contextlib.suppress(FileNotFoundError):
            if path.is_file():
                path.read_bytes()


def look_in(store: str) -> None:
    """What a curious person does: looks into the record with SQLite."""
    connection = sqlite3.connect(Path(store) / "record.sqlite3")
    connection.execute("SELECT count(*) FROM memory").fetchone()
    connection.close()


def meddle(store: str) -> None:
    """Both of these."""
    read_files(store)
    look_in(store)


MEDDLERS = {"reads the files": read_files, "looks in with SQLite": look_in}
LONG_ROWS = 2_000


def write_at_length(store: str, journal: str, meddler: str, rounds: int) -> None:
    """A child that writes many memories in one transaction, meddling all the while, so many times, and is killed."""
    say = Journal(journal)
    chance = random.Random("at length")
    with opened(store) as engine, ThreadPoolExecutor(1) as threads:
        for _ in range(rounds):
            words = [new_word(chance) for _ in range(LONG_ROWS)]
            items = [{"context_id": CONTEXT, **fields_of(word)} for word in words]
            writing = threads.submit(engine.remember_many, items, batch_size=LONG_ROWS)
            while not writing.done():
                MEDDLERS[meddler](store)
            try:
                for word, memory_id in zip(words, writing.result(), strict=True):
                    say(f"done remember {memory_id} {word}")
            except errors.MemkuraError as error:
                say(f"failed remember - - {type(error).__name__}")
        os.kill(os.getpid(), signal.SIGKILL)


def write_beside_meddlers(
    store: str, journal: str, rounds: int, *, mine: bool = False, theirs: bool = False, fault: str = ""
) -> None:
    """A child that writes, meddles with the files itself or lets another process do so in between, and is killed."""
    say = Journal(journal)
    with opened(store) as engine:
        writer = Writer(engine, say, "meddled", fault=fault)
        writer.work(10, "r")
        for _ in range(rounds):
            writer.work(3, "rruf")
            if mine:
                meddle(store)
            writer.work(3, "rruf")
            if theirs:
                subprocess.run([sys.executable, __file__, store], check=True)
            writer.work(3, "rruf")
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    meddle(sys.argv[1])
