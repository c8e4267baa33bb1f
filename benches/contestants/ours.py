"""memkura, through its public interface."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contestants.contract import Ability, Contestant, key, ordinal
from workload import DIM

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import Any

    from workload import Memory, Question, Workload

_CONTEXT = "c"
_BATCH = 10_000


class Memkura(Contestant):
    """Answers are whole memories with their evidence; only their keys are read here."""

    name = "memkura"
    requires = ("memkura",)
    setup = "defaults, fusion='rrf'; compacted after the bulk load; syncs off is durability='process_crash'"
    can = (
        Ability.TEXT
        | Ability.VECTOR
        | Ability.FILTER
        | Ability.LOOKUP
        | Ability.DURABLE
        | Ability.RELAXED
        | Ability.REOPEN
        | Ability.THREADS
    )

    def __init__(self, folder: Path, *, durable: bool = True) -> None:
        super().__init__(folder, durable=durable)
        import memkura
        from memkura.embedders.given import Given

        self._engine = memkura.open(
            folder / "store",
            embedder=Given(DIM, "synthetic"),
            durability="power_loss" if durable else "process_crash",
            busy_timeout=600,
        )

    def fill(self, load: Workload) -> None:
        """In batches, with the sealed index made at the end."""
        items = [{**item, "key": key(at)} for at, item in enumerate(load.items())]
        self._engine.remember_many(items, batch_size=_BATCH)
        self._engine.recall(_CONTEXT, load.questions[0], legs=["text"])
        self._engine.compact()

    def text(self, question: Question, k: int, tag: str | None = None) -> list[int]:
        """By BM25."""
        return self._recalled(question.text, k, tag, legs=["text"])

    def vector(self, question: Question, k: int, tag: str | None = None) -> list[int]:
        """By cosine."""
        return self._recalled(None, k, tag, embedding=question.vector, legs=["vector"])

    def hybrid(self, question: Question, k: int, tag: str | None = None) -> list[int]:
        """By all legs."""
        return self._recalled(question.text, k, tag, embedding=question.vector, fusion="rrf")

    def _recalled(
        self,
        text: str | None,
        k: int,
        tag: str | None,
        *,
        embedding: object = None,
        legs: Sequence[str] | None = None,
        fusion: str | None = None,
    ) -> list[int]:
        filters: dict[str, Any] | None = None if tag is None else {"tags": tag}
        hits = self._engine.recall(_CONTEXT, text, embedding=embedding, k=k, filters=filters, legs=legs, fusion=fusion)
        return [ordinal(hit.key) for hit in hits if hit.key is not None]

    def lookup(self, ordinal: int) -> str:
        """By the memory's key."""
        memory = self._engine.get(_CONTEXT, key=key(ordinal))
        if memory is None:
            raise LookupError(key(ordinal))
        return memory.summary

    def remember(self, memory: Memory) -> None:
        """Durable, or not, as the store was opened."""
        self._engine.remember(_CONTEXT, memory.text, key=key(memory.ordinal), tags=memory.tags, embedding=memory.vector)

    def close(self) -> None:
        """Closes the store."""
        self._engine.close()
