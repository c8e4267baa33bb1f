"""What one builds oneself of the two best parts: tantivy for words, usearch for vectors, reciprocal ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contestants.contract import Ability, Contestant
from contestants.graphs import Usearch
from contestants.lexical import Tantivy

if TYPE_CHECKING:
    from pathlib import Path

    from workload import Memory, Question, Workload


class ByHand(Contestant):
    """Two indexes side by side."""

    name = "tantivy + usearch by hand"
    requires = (*Tantivy.requires, *Usearch.requires)
    setup = "the two as above, fused by reciprocal ranks; a durable write commits one and saves the other whole"
    can = (
        Ability.TEXT | Ability.VECTOR | Ability.FILTER | Ability.LOOKUP | Ability.DURABLE | Ability.REOPEN
    ) | Ability.THREADS
    efforts = Usearch.efforts

    def __init__(self, folder: Path, *, durable: bool = True) -> None:
        super().__init__(folder, durable=durable)
        self._words = Tantivy(folder / "words")
        self._vectors = Usearch(folder / "vectors")

    def fill(self, load: Workload) -> None:
        """One after the other."""
        self._words.fill(load)
        self._vectors.fill(load)

    def text(self, question: Question, k: int, tag: str | None = None) -> list[int]:
        """By tantivy."""
        return self._words.text(question, k, tag)

    def vector(self, question: Question, k: int, tag: str | None = None) -> list[int]:
        """By usearch."""
        self._vectors.effort = self.effort
        return self._vectors.vector(question, k, tag)

    def lookup(self, ordinal: int) -> str:
        """By tantivy."""
        return self._words.lookup(ordinal)

    def remember(self, memory: Memory) -> None:
        """Both are on disk at the end, though not as one."""
        self._words.remember(memory)
        self._vectors.remember(memory)
        self._vectors.save()

    def close(self) -> None:
        """Closes both."""
        self._words.close()
        self._vectors.close()
