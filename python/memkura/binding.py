"""A store and the embedder that it works with."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from memkura import forking
from memkura.embedders import resolve
from memkura.embedders.naming import AUTO_OFF, CHOSEN_OFF
from memkura.errors import EmbedderFailed, NotAStore
from memkura.vectors import Embedded, Vectors

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from memkura import _core
    from memkura.embedders import Embedder
    from memkura.records import EmbedderInfo

    Fingerprint = tuple[str, int]
    OpenCore = Callable[..., _core.Engine]


class Binding:
    """An open core and its embedder; knows when a vector is of use, and makes it.

    Args:
        open_core: opens the store; takes the ``embedder``'s fingerprint, and ``create``.
        named: the embedder as the caller named it.
    """

    def __init__(self, open_core: OpenCore, named: object) -> None:
        self._off_note = AUTO_OFF if named == "auto" else CHOSEN_OFF
        embedder = resolve(named)
        try:
            self.vectors = self.vectors_of(embedder)
        except EmbedderFailed as error:
            self.vectors = _by_record(open_core, embedder, error)
        # The embedder has been asked by then: it is somebody else's code, and may take its time or open another store.
        with forking.held():
            self.core = open_core(embedder=self.vectors.fingerprint)
        self._recorded = self.core.bound_embedder()

    def vectors_of(self, named: object) -> Vectors:
        """What another embedder would make; the binding stays as it is."""
        return Vectors(resolve(named), off_note=self._off_note)

    def info(self) -> EmbedderInfo:
        """The embedder and its state."""
        return self.vectors.info(self._bound_embedder())

    def last_info(self) -> EmbedderInfo:
        """As :meth:`info`, as it was found last: waits for no lock and reads nothing."""
        return self.vectors.info(self._recorded)

    def _bound_embedder(self) -> Fingerprint | None:
        self._recorded = self.core.bound_embedder()
        return self._recorded

    def is_ready(self) -> bool:
        """Whether the embedder's vectors are of use to the store: it holds no other one's."""
        fingerprint = self.vectors.fingerprint
        return fingerprint is not None and self._bound_embedder() in {None, fingerprint}

    def may_fill_in(self) -> bool:
        """Whether the memories that wait for a vector wait for this embedder's; binds a store that has none yet.

        While another embedder's vectors are being built, it is those that are waited for.
        """
        fingerprint = self.vectors.fingerprint
        if fingerprint is None:
            return False
        recorded = self.core.embedder()
        if recorded is None:
            self.core.begin_reindex(*fingerprint)
            return True
        building = recorded.get("building")
        return building == fingerprint[0] if building is not None else (recorded["id"], recorded["dim"]) == fingerprint

    def asks_embedder(self, query: str | None, legs: Sequence[str] | None) -> bool:
        """Whether a recall needs the query's vector. A blank query is left to the core, which refuses it."""
        wanted = legs is None or (
            isinstance(legs, Collection) and any(isinstance(leg, str) and leg == "vector" for leg in legs)
        )
        return wanted and isinstance(query, str) and bool(query.strip()) and self.is_ready()

    def of_texts(self, rows: Sequence[Mapping[str, Any]]) -> list[Embedded]:
        """The embedding of each row's ``summary`` and ``content``; odd types are the core's to refuse."""
        usable = [isinstance(row.get("summary"), str) and isinstance(row.get("content"), str | None) for row in rows]
        if not any(usable) or not self.is_ready():
            return [Embedded() for _ in rows]
        texts = [(row["summary"], row.get("content")) for row, good in zip(rows, usable, strict=True) if good]
        answers = iter(self.vectors.of_memories(texts))
        return [next(answers) if good else Embedded() for good in usable]

    def of_items(self, items: Sequence[Mapping[str, Any]]) -> list[Embedded]:
        """The embedding that each item brings, or that is made of its text."""
        vectors = [Embedded(item.get("embedding")) for item in items]
        missing = [at for at, given in enumerate(vectors) if given.embedding is None]
        for at, made in zip(missing, self.of_texts([items[at] for at in missing]), strict=True):
            vectors[at] = made
        return vectors


def _by_record(open_core: OpenCore, embedder: Embedder | None, error: EmbedderFailed) -> Vectors:
    """An embedder that cannot be asked for its dimension, with the one that the store has on record; else raises."""
    try:
        with forking.held():
            core = open_core(embedder=None, create=False)
            recorded = core.bound_embedder()
            core.close()
    except NotAStore:
        raise error from error.__cause__
    if embedder is None or recorded is None or recorded[0] != embedder.id:
        raise error
    vectors = Vectors(embedder, dim=recorded[1])
    vectors.last_error = str(error.__cause__)
    return vectors
