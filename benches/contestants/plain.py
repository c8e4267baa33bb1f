"""What needs next to nothing: ``rank_bm25`` with numpy, and the SQLite that comes with Python."""

from __future__ import annotations

import pickle
import sqlite3
import threading
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from contestants.contract import Ability, Contestant, key
from workload import analysed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from workload import Matrix, Memory, Question, Workload

_BUSY_SECONDS = 10


def best(scores: Matrix, k: int, among: Matrix | None = None) -> list[int]:
    """The ordinals of the `k` largest scores, of those `among` which are asked for; equal ones by ordinal."""
    of = scores if among is None else scores[among]
    if len(of) > k:
        found = np.argpartition(-of, k - 1)[:k]
        found = found[np.lexsort((found, -of[found]))]
    else:
        found = np.argsort(-of, kind="stable")
    places: list[int] = (found if among is None else among[found]).tolist()
    return places


class Plain(Contestant):
    """The usual few lines: BM25 in Python, a matrix product, a mask, reciprocal ranks. Exact, so it is the truth."""

    name = "rank_bm25 + numpy"
    requires = ("rank_bm25", "numpy")
    setup = "BM25Okapi, an exact product in float32, masks; pickled, and vectors as a mapped .npy"
    can = Ability.TEXT | Ability.VECTOR | Ability.FILTER | Ability.REOPEN

    def __init__(self, folder: Path, *, durable: bool = True) -> None:
        super().__init__(folder, durable=durable)
        self._file = folder / "bm25.pickle"
        self._vectors_file = folder / "vectors.npy"
        if self._file.exists():
            with self._file.open("rb") as file:
                self._bm25, self._tagged = pickle.load(file)  # noqa: S301 - written below
            self._vectors = np.load(self._vectors_file, mmap_mode="r")

    def fill(self, load: Workload) -> None:
        """In memory and on disk."""
        from rank_bm25 import BM25Okapi

        self._bm25 = BM25Okapi([analysed(text).split() for text in load.texts])
        self._tagged = tagged(load.tags)
        self._vectors = load.vectors
        with self._file.open("wb") as file:
            pickle.dump((self._bm25, self._tagged), file, protocol=5)
        np.save(self._vectors_file, load.vectors)

    def text(self, question: Question, k: int, tag: str | None = None) -> list[int]:
        """All scores, then the best that are any."""
        scores = self.text_scores(question)
        return [at for at in best(scores, k, self.among(tag)) if scores[at] > 0]

    def vector(self, question: Question, k: int, tag: str | None = None) -> list[int]:
        """All products, or those of the memories with the tag."""
        among = self.among(tag)
        if among is None:
            return best(self.vector_scores(question), k)
        near: list[int] = among[best(self._vectors[among] @ question.vector, k)].tolist()
        return near

    def text_scores(self, question: Question) -> Matrix:
        """The BM25 of every memory."""
        scores: Matrix = self._bm25.get_scores(question.words.split())
        return scores

    def vector_scores(self, question: Question) -> Matrix:
        """The cosine of every memory."""
        scores: Matrix = self._vectors @ question.vector
        return scores

    def among(self, tag: str | None) -> Any:  # noqa: ANN401 - an array of ordinals
        """The memories with the tag."""
        return None if tag is None else self._tagged[tag]


def tagged(tags: list[list[str]]) -> dict[str, Any]:
    """The ordinals under each tag, as arrays."""
    places: dict[str, list[int]] = {}
    for at, own in enumerate(tags):
        for tag in own:
            places.setdefault(tag, []).append(at)
    return {tag: np.array(at) for tag, at in places.items()}


class SqliteWords(Contestant):
    """FTS5 and an indexed key, in one database with a write-ahead log."""

    name = "sqlite3 + FTS5"
    requires: ClassVar[tuple[str, ...]] = ("sqlite3",)
    setup = "Python's sqlite3; WAL, synchronous=FULL or OFF; FTS5 unicode61; a prepared select by unique key"
    can = Ability.TEXT | Ability.LOOKUP | Ability.DURABLE | Ability.RELAXED | Ability.REOPEN | Ability.THREADS

    def __init__(self, folder: Path, *, durable: bool = True) -> None:
        super().__init__(folder, durable=durable)
        self._of_thread = threading.local()
        self._closing: list[Callable[[], object]] = []
        self.execute("PRAGMA journal_mode = WAL")
        self.execute("CREATE TABLE IF NOT EXISTS memory (id INTEGER PRIMARY KEY, key TEXT UNIQUE, summary TEXT)")
        self.execute("CREATE TABLE IF NOT EXISTS tagged (tag TEXT, id INTEGER, PRIMARY KEY (tag, id)) WITHOUT ROWID")
        self.execute("CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5(summary, content='', tokenize='unicode61')")

    def execute(self, statement: str, values: tuple[object, ...] = ()) -> Any:  # noqa: ANN401 - rows
        """By this thread's own connection."""
        if not hasattr(self._of_thread, "execute"):
            connection = self.connect(self.folder / "memories.sqlite3")
            connection.execute(f"PRAGMA synchronous = {'FULL' if self.durable else 'OFF'}")
            self._closing.append(connection.close)
            self._of_thread.execute = connection.execute
        return self._of_thread.execute(statement, values)

    def connect(self, path: Path) -> Any:  # noqa: ANN401 - of either module
        """A connection."""
        return sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=_BUSY_SECONDS)

    def fill(self, load: Workload) -> None:
        """In one transaction."""
        self.execute("BEGIN")
        for at, (text, tags, vector) in enumerate(zip(load.texts, load.tags, load.vectors, strict=True)):
            self.insert(at, text, tags, vector)
        self.execute("INSERT INTO words(words) VALUES ('optimize')")
        self.execute("COMMIT")

    def insert(self, at: int, text: str, tags: list[str], vector: Matrix) -> None:  # noqa: ARG002 - for those with vectors
        """Every row of one memory."""
        self.execute("INSERT INTO memory VALUES (?, ?, ?)", (at, key(at), text))
        self.execute("INSERT INTO words(rowid, summary) VALUES (?, ?)", (at, analysed(text)))
        for tag in tags:
            self.execute("INSERT INTO tagged VALUES (?, ?)", (tag, at))

    def text(self, question: Question, k: int, tag: str | None = None) -> list[int]:
        """Any of the words, ordered by FTS5's own BM25."""
        terms = " OR ".join(f'"{word}"' for word in question.words.split())
        if tag is None:
            rows = self.execute("SELECT rowid FROM words WHERE words MATCH ? ORDER BY rank LIMIT ?", (terms, k))
        else:
            rows = self.execute(
                "SELECT rowid FROM words WHERE words MATCH ? "
                "AND EXISTS (SELECT 1 FROM tagged WHERE tag = ? AND id = words.rowid) ORDER BY rank LIMIT ?",
                (terms, tag, k),
            )
        return [at for (at,) in rows]

    def lookup(self, ordinal: int) -> str:
        """One select that the module keeps prepared."""
        ((summary,),) = self.execute("SELECT summary FROM memory WHERE key = ?", (key(ordinal),))
        return str(summary)

    def remember(self, memory: Memory) -> None:
        """In a transaction of its own."""
        self.execute("BEGIN IMMEDIATE")
        self.insert(memory.ordinal, memory.text, memory.tags, memory.vector)
        self.execute("COMMIT")

    def close(self) -> None:
        """Closes every thread's connection."""
        for close in self._closing:
            close()
