"""The engine: one open store and its verbs."""

from __future__ import annotations

import functools
import itertools
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any, Final, Literal, NoReturn

from memkura import _core, arguments, forking, reindexing
from memkura.binding import Binding
from memkura.errors import EmbedderFailed, InvalidInput, LimitExceeded, TextRepaired
from memkura.hits import Hits
from memkura.records import EmbedderInfo, ExportReport, Health, ImportReport, ReindexReport, Remembered, Stats
from memkura.rerank import RERANK_POOL, reranked
from memkura.vectors import Embedded, without_vectors

if TYPE_CHECKING:
    import builtins
    import os
    from datetime import datetime
    from types import TracebackType
    from typing import Self

    from memkura._core import Memory
    from memkura.context import Context
    from memkura.rerank import Reranker

Filters = Mapping[str, Any]
Progress = Callable[[int, int | None], object]


class _Unset:
    """What an update leaves alone, where ``None`` would clear it."""

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = _Unset()

# The arguments of `update_memory` that are not fields to change.
_NO_FIELDS: Final = {"self", "context_id", "memory_id", "embedding"}

# One transaction, and a short stretch of holding the interpreter lock, for each batch.
_BATCH = 512
_BATCH_MAX = _core.limits()["batch"]
_PROGRESS = "(done, total)"
# Another write may come between reading a text and writing its vector; then it is read again, this often.
_ATTEMPTS = 3


def open(  # noqa: A001 - `memkura.open` is the name that holds
    path: str | os.PathLike[str],
    embedder: object = "auto",
    clock: Callable[[], datetime] | None = None,
    *,
    durability: Literal["power_loss", "process_crash"] = "power_loss",
    busy_timeout: float = 30.0,
    create: bool = True,
    allow_network: bool = False,
    memory_budget: int | None = None,
) -> Engine:
    """Opens the store at `path`.

    Args:
        path: the store's folder, made with its parents if there is none; or ``":memory:"`` for a store that lives as
            long as the engine.
        embedder: ``"auto"`` for a local model if one is installed, else text alone; ``None`` for text alone; or
            anything that :func:`memkura.embedders.resolve` takes. Never downloads or connects unless named.
        clock: a callable that gives the time, aware of its zone; the system's by default.
        durability: what an acknowledged write survives.
        busy_timeout: seconds to wait while another process writes.
        create: make the store if there is none.
        allow_network: open it on a network file system too, where one process at a time may use it.
        memory_budget: bytes of memory that the indexes of contexts may take together, about; 2 GiB by default. Beyond
            it, those that were not used for longest are dropped, and loaded again when they are needed.

    Returns:
        The engine, a context manager. Safe to share between threads; each process opens its own.

    Raises:
        EmbedderUnavailable: the named embedder is unknown or not installed.
        EmbedderFailed: the embedder cannot be asked for its dimension, and the store does not know it.
        InvalidInput: an argument has a value that cannot be taken; no store was made.
        NotAStore: the path holds something else, or nothing and `create` is false.
        SchemaTooNew: a newer memkura wrote the store.
        StoreTampered: its database is not as memkura makes it.
        StoreError: it lies on a network file system, or its record is a link or has a hard link elsewhere.
        StoreReadOnly: this user may not read and write it.

    A store on a file system that cannot be written to is opened for reading; writes raise ``StoreReadOnly``. So does
    opening one that others can write and this user cannot: whoever reads beside them must write, too, what it reads.

    Example:
        >>> import memkura
        >>> with memkura.open(":memory:", embedder=None) as engine:
        ...     _ = engine.remember("ops", "Deploys go out on Tuesday")
        ...     engine.count("ops")
        1
    """
    return Engine(
        path,
        embedder,
        clock,
        durability=durability,
        busy_timeout=busy_timeout,
        create=create,
        allow_network=allow_network,
        memory_budget=memory_budget,
    )


def restore(backup: str | os.PathLike[str], path: str | os.PathLike[str]) -> None:
    """Makes a store of a file that :meth:`Engine.backup` wrote. What is there already is never overwritten.

    Args:
        backup: the file.
        path: the store's folder, which is not there yet or is empty.

    Raises:
        NotAStore: the file is no whole backup of a store, or the folder holds other things.
        SchemaTooNew: a newer memkura wrote it.
        StoreDamaged: it is not whole.
        StoreTampered: somebody changed what its database does.
        StoreError: there is a store at `path`.
    """
    source, folder = arguments.path(backup, "backup"), arguments.path(path)
    with forking.held():
        _core.restore(source, folder)


def build_info() -> dict[str, str]:
    """Versions of what was built in, such as ``{"version": "0.1.0", "sqlite": "3.51.3"}``."""
    return _core.build_info()


class Engine:
    """One open store. Made by :func:`memkura.open`.

    Every verb names the context it works in; :meth:`context` gives a handle that has the same verbs without it. Times
    are ``datetime`` with a zone. An embedder that fails loses no write: see ``stats().unembedded`` and
    :meth:`maintain`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        embedder: object = "auto",
        clock: Callable[[], datetime] | None = None,
        *,
        door: str = "python",
        durability: str = "power_loss",
        busy_timeout: float = 30.0,
        create: bool = True,
        allow_network: bool = False,
        memory_budget: int | None = None,
    ) -> None:
        self._path = arguments.store(path)
        arguments.hook(clock, "clock", "() -> datetime")
        self._door = door
        open_core = functools.partial(
            _core.Engine.open,
            self._path,
            clock=clock,
            durability=durability,
            busy_timeout=busy_timeout,
            create=create,
            allow_network=allow_network,
            memory_budget=memory_budget,
        )
        self._bound = Binding(open_core, embedder)
        self._core = self._bound.core

    # --- writing ---

    def remember(
        self,
        context_id: str,
        summary: str,
        content: str | None = None,
        type: str = "note",
        delivery_mode: str = "on_recall",
        scope: str | None = None,
        key: str | None = None,
        tags: Sequence[str] = (),
        metadata: Mapping[str, Any] | None = None,
        importance: float = 0.5,
        confidence: float | None = None,
        event_time: datetime | None = None,
        expires_at: datetime | None = None,
        derived_from: Sequence[str] = (),
        supersedes: str | None = None,
        session: str | None = None,
        decay_rate: float | None = None,
        trigger: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
        dedup: str | None = None,
        embedding: object = None,
        *,
        proof: str | None = None,
    ) -> Remembered:
        """Keeps a memory. When this returns it is durable, and every later recall of every process sees it.

        Args:
            context_id: the context it belongs to.
            summary: what it says, in a line or a few.
            content: the whole of it, if there is more.
            type: a label such as ``"note"``, ``"fact"``, ``"decision"``.
            delivery_mode: ``"on_recall"``, ``"always"`` or ``"on_trigger"``.
            scope: where `key` is unique; needs a key.
            key: an exact name to :meth:`get` it by. Writing a key again replaces what it names; history keeps the old.
            tags: names to filter by.
            metadata: anything that JSON holds, with string keys; comes back with the same types.
            importance: 0 to 1.
            confidence: 0 to 1; 1 is verified.
            event_time: when what it tells of happened.
            expires_at: when it stops being returned; an instant that has passed is refused.
            derived_from: ids of memories that went into it; it is trusted no more than the least of them.
            supersedes: the id of a memory that it replaces, at once.
            session: the sequence it belongs to, such as a conversation.
            decay_rate: freshness lost in a day, 0 to 1; by default the type's.
            trigger: when an ``"on_trigger"`` memory is due.
            idempotency_key: the same key again returns the first memory and writes nothing.
            dedup: ``"exact"`` keeps nothing new when a memory has the same text (but for spacing), under the same key,
                for as long at least, and trusted no less; its id is returned, and in ``duplicates``.
            embedding: its vector, if you have it; otherwise the store's embedder makes it.
            proof: what shows it to be true.

        Returns:
            The memory's id, a ``str``, with ``created``, ``version``, ``duplicates``, ``warnings`` and ``embedded``.

        Raises:
            InvalidInput: a field cannot be taken; nothing was written.
            LimitExceeded: a field is over its limit, as ``TextTooLong`` is for a text.
            NotFound: `derived_from` or `supersedes` names no memory of this context.
            KeyTaken: a trusted memory has the key or would be superseded, and this writer is from outside.
            StoreBusy: another process wrote for longer than ``busy_timeout``.
            StorageFull: the disk is full; nothing was written.
            StoreReadOnly: the store lies where nothing can be written.
            StoreFailed: a write failed before, or this one did; open the store again.

        Example:
            >>> import memkura
            >>> with memkura.open(":memory:", embedder=None) as engine:
            ...     memory_id = engine.remember("ops", "Rollbacks take 4 minutes", type="fact", tags=["deploy"])
            ...     engine.get("ops", memory_id).tags
            ('deploy',)
        """
        # Every other argument is a field of the draft under the same name.
        draft = _said(locals(), without={"self", "embedding"})
        embedded = Embedded(embedding)
        if embedding is None:
            (embedded,) = self._bound.of_texts([draft])
        receipt = self._core.remember(draft, embedded, door=self._door)
        return Remembered.of(receipt)

    def remember_many(
        self,
        items: Iterable[Mapping[str, Any]],
        *,
        progress: Progress | None = None,
        batch_size: int = _BATCH,
    ) -> builtins.list[Remembered]:
        """Keeps many memories, with one synchronisation a batch. A batch is kept whole or not at all.

        Args:
            items: dictionaries with the names of :meth:`remember`'s arguments, ``embedding`` too; may be an iterator.
            progress: called after each batch with how many are done and how many there are (``None`` if unknown).
            batch_size: memories in one batch.

        Returns:
            What :meth:`remember` would return for each, in order.

        Raises:
            UnknownField: an item has a name that is not an argument of :meth:`remember`.
            InvalidInput: as in :meth:`remember`, like the rest; earlier batches are kept.
            LimitExceeded: an item is over a limit, or a batch over its own.
            NotFound: an item names a memory that is not in its context.
            KeyTaken: an item would replace a trusted memory, and this writer is from outside.
            StoreBusy: another process wrote for longer than ``busy_timeout``.
            StorageFull: the disk is full; nothing was written.
            StoreReadOnly: the store lies where nothing can be written.
            StoreFailed: a write failed before, or this one did; open the store again.
        """
        arguments.hook(progress, "progress", _PROGRESS)
        # One more than a batch may hold, so that one which holds too many is seen to.
        size = min(arguments.count(batch_size, "batch_size", least=1), _BATCH_MAX + 1)
        total = len(items) if isinstance(items, Sequence) else None
        upcoming = arguments.items(items, "items")
        done: list[Remembered] = []
        while batch := list(itertools.islice(upcoming, size)):
            _check_items(batch, len(done))
            done += self._remember_drafts(batch, self._bound.of_items(batch), first=len(done))
            if progress is not None:
                progress(len(done), total)
        return done

    def _remember_drafts(
        self, items: Sequence[Mapping[str, Any]], vectors: Sequence[Embedded], first: int = 0
    ) -> builtins.list[Remembered]:
        """Keeps `items`, the `first` of them at that place of more, in one batch."""
        receipts = self._core.remember_many(without_vectors(items), vectors, first=first, door=self._door)
        return [Remembered.of(receipt) for receipt in receipts]

    def _embed(self, items: Sequence[Mapping[str, Any]], progress: Progress) -> builtins.list[Embedded]:
        """The embedding of each of the `items` of one batch, made and shown in pieces: it is what takes the time."""
        vectors: builtins.list[Embedded] = []
        while len(vectors) < len(items):
            vectors += self._bound.of_items(items[len(vectors) : len(vectors) + _BATCH])
            progress(len(vectors), len(items))
        return vectors

    def update_memory(
        self,
        context_id: str,
        memory_id: str,
        *,
        summary: str | _Unset = UNSET,
        content: str | _Unset | None = UNSET,
        type: str | _Unset = UNSET,
        delivery_mode: str | _Unset = UNSET,
        tags: Sequence[str] | _Unset = UNSET,
        metadata: Mapping[str, Any] | _Unset = UNSET,
        importance: float | _Unset = UNSET,
        confidence: float | _Unset = UNSET,
        proof: str | _Unset | None = UNSET,
        session: str | _Unset | None = UNSET,
        event_time: datetime | _Unset | None = UNSET,
        expires_at: datetime | _Unset | None = UNSET,
        decay_rate: float | _Unset = UNSET,
        trigger: Mapping[str, Any] | _Unset | None = UNSET,
        embedding: object = None,
    ) -> Remembered:
        """Changes fields of a memory; those not given stay, ``None`` clears. History keeps what was.

        A change of text makes a new vector; other changes call no embedder.

        Args:
            context_id: the memory's context.
            memory_id: which memory.
            summary: as in :meth:`remember`, like the other fields.
            content: the whole of it.
            type: the label.
            delivery_mode: when it reaches the agent.
            tags: all tags it shall have.
            metadata: all metadata it shall have.
            importance: 0 to 1.
            confidence: 0 to 1.
            proof: what shows it to be true.
            session: the sequence it belongs to.
            event_time: when it happened.
            expires_at: when it stops being returned; an instant that has passed ends it now.
            decay_rate: freshness lost in a day.
            trigger: when it is due.
            embedding: the vector of the new text, if you have it.

        Returns:
            The id, with the new ``version``.

        Raises:
            NotFound: no such memory in this context.
            InvalidInput: a field cannot be taken; nothing was written.
            LimitExceeded: a field is over its limit, as ``TextTooLong`` is for a text.
            KeyTaken: the memory is trusted, and this writer is from outside.
            StoreBusy: another process wrote for longer than ``busy_timeout``.
            StorageFull: the disk is full; nothing was written.
            StoreReadOnly: the store lies where nothing can be written.
            StoreFailed: a write failed before, or this one did; open the store again.
        """
        # Every other argument is a field, under the same name.
        named = {**locals()}
        changes = {name: value for name, value in named.items() if name not in _NO_FIELDS and value is not UNSET}
        if embedding is not None or not changes.keys() & {"summary", "content"}:
            receipt = self._core.update(context_id, memory_id, changes, Embedded(embedding), door=self._door)
        else:
            receipt = self._update_text(context_id, memory_id, changes)
        return Remembered.of(receipt)

    def _update_text(self, context_id: str, memory_id: str, changes: dict[str, Any]) -> _core.Receipt:
        for _ in range(_ATTEMPTS):
            before = self._core.get(context_id, memory_id=memory_id)
            text = {name: changes.get(name, getattr(before, name, None)) for name in ("summary", "content")}
            (embedded,) = self._bound.of_texts([text])
            expected = None if before is None else before.version
            receipt = self._core.update(context_id, memory_id, changes, embedded, expected=expected, door=self._door)
            if receipt is not None:
                return receipt
        # Whoever writes this memory all the time leaves no moment to embed its text: maintain() will.
        return self._core.update(context_id, memory_id, changes, Embedded(), door=self._door)

    def forget(
        self,
        context_id: str,
        memory_id: str | None = None,
        *,
        filters: Filters | None = None,
        everything: bool = False,
        purge: bool = False,
    ) -> builtins.list[str]:
        """Takes memories out of every read. Says what, or raises: it is never wider than asked.

        Args:
            context_id: where.
            memory_id: one memory.
            filters: all that match, those that have expired too, and to `purge` those that were forgotten before.
            everything: all of the context; the explicit word for it.
            purge: remove the text itself at once, from the file, indexes and history. Otherwise the history stays until
                :meth:`compact`.

        Returns:
            The ids that went.

        Raises:
            NothingSelected: neither a memory, nor filters, nor ``everything=True``.
            InvalidFilter: a filter has the wrong form.
            UnknownField: a filter names a field or an operator that does not exist.
            NotFound: no such memory in this context.
            KeyTaken: a memory is trusted, and this caller is from outside; nothing was forgotten.
            StorageFull: the disk is so full that even the room kept for this is used up.
            StoreBusy: another process wrote for longer than ``busy_timeout``.
            StoreReadOnly: the store lies where nothing can be written.
            StoreFailed: a write failed before, or this one did; open the store again.
        """
        ids = None if memory_id is None else [memory_id]
        return self._core.forget(
            context_id, memory_ids=ids, filters=filters, everything=everything, purge=purge, door=self._door
        )

    # --- reading ---

    def get(
        self, context_id: str, memory_id: str | None = None, *, key: str | None = None, scope: str | None = None
    ) -> Memory | None:
        """One memory by its id or its exact key; ``None`` when there is none, or it lives in another context.

        Args:
            context_id: where to look.
            memory_id: its id.
            key: its key, in any width or case.
            scope: the key's scope.
        """
        return self._core.get(context_id, memory_id=memory_id, key=key, scope=scope)

    def list(
        self,
        context_id: str,
        *,
        filters: Filters | None = None,
        limit: int = 100,
        offset: int = 0,
        order: str = "created_at",
        descending: bool = False,
    ) -> builtins.list[Memory]:
        """Memories in a fixed order, a page at a time.

        Args:
            context_id: where to look.
            filters: which ones; all by default.
            limit: at most so many.
            offset: after so many.
            order: the field to order by; ties go by id.
            descending: the last first.
        """
        return self._core.list(
            context_id, filters=filters, limit=limit, offset=offset, order=order, descending=descending
        )

    def count(self, context_id: str, *, filters: Filters | None = None) -> int:
        """How many memories match `filters`; all by default."""
        return self._core.count(context_id, filters=filters)

    def history(self, context_id: str, memory_id: str) -> builtins.list[dict[str, Any]]:
        """Every revision of a memory, the oldest first, as dictionaries.

        Raises:
            NotFound: no such memory in this context.
        """
        return self._core.history(context_id, memory_id)

    def recall(
        self,
        context_id: str,
        query: str | None = None,
        *,
        embedding: object = None,
        k: int = 10,
        offset: int = 0,
        filters: Filters | None = None,
        legs: Sequence[str] | None = None,
        as_of: datetime | None = None,
        min_similarity: float | None = None,
        fusion: str | None = None,
        weights: Mapping[str, float] | None = None,
        freshness: str | None = None,
        neighbours: bool = True,
        include_superseded: bool = False,
        explain: bool = False,
        reranker: Reranker | None = None,
    ) -> Hits:
        """The memories that best answer `query`.

        Any text is a legal query; it is data, never syntax. Filters hold before the best `k` are chosen.

        Args:
            context_id: where to look.
            query: the question, in any language.
            embedding: the question's vector, if you have it; otherwise the store's embedder makes it.
            k: at most so many hits.
            offset: after so many.
            filters: which memories may be returned.
            legs: of ``"text"``, ``"vector"`` and ``"key"``; all by default.
            as_of: answer as the store stood then.
            min_similarity: leave out what is less similar than this cosine.
            fusion: how the legs are joined, ``"score"`` or ``"rrf"``.
            weights: how much each leg counts, by its name.
            freshness: how it is lost with age, ``"linear"`` or ``"exponential"``.
            neighbours: count the words of a memory's neighbours in its session too.
            include_superseded: return memories that a later one replaced.
            explain: say in each hit's ``explanation`` how its score came about.
            reranker: a callable ``(query, texts, top_n) -> [(index, score), …]``, or an object whose ``rerank`` is
                one; it orders the best candidates anew.

        Returns:
            The hits, best first. ``degraded`` says what was missing, such as ``"vector:embedder_failed"``.

        Raises:
            EmptyQuery: the query is blank.
            InvalidFilter: a filter has the wrong form.
            UnknownField: a filter names a field or an operator that does not exist.

        Example:
            >>> import memkura
            >>> with memkura.open(":memory:", embedder=None) as engine:
            ...     _ = engine.remember("ops", "Deploys go out on Tuesday", tags=["deploy"])
            ...     hits = engine.recall("ops", "deploy day", k=3, filters={"tags": "deploy"})
            ...     (hits[0].summary, hits.mode)
            ('Deploys go out on Tuesday', 'text')
        """
        word = made_by = None
        if embedding is None and self._bound.asks_embedder(query, legs):
            vectors = self._bound.vectors
            embedding, word = vectors.of_query(str(query))
            made_by = vectors.id
        first, size, last = offset, k, 0
        if reranker is not None:
            last = arguments.count(offset, "offset") + arguments.count(k, "k")
            first, size = 0, max(last, RERANK_POOL)
        found, info = self._core.recall(
            context_id,
            query,
            embedding=embedding,
            made_by=made_by,
            k=size,
            offset=first,
            filters=filters,
            legs=legs,
            as_of=as_of,
            min_similarity=min_similarity,
            fusion=fusion,
            weights=weights,
            freshness=freshness,
            neighbours=neighbours,
            include_superseded=include_superseded,
            explain=explain,
        )
        degraded = [*(info.get("degraded") or ())]
        if word is not None:
            degraded = [word, *(other for other in degraded if not other.startswith("vector:"))]
        if reranker is not None:
            found, failed = reranked(reranker, query or "", found, last)
            found = found[offset:]
            degraded += failed
        return Hits(found, degraded=degraded, mode=str(info.get("mode") or ""))

    def explain(
        self,
        context_id: str,
        query: str,
        memory_id: str,
        *,
        filters: Filters | None = None,
        legs: Sequence[str] | None = None,
        min_similarity: float | None = None,
        fusion: str | None = None,
        weights: Mapping[str, float] | None = None,
        freshness: str | None = None,
        neighbours: bool = True,
        include_superseded: bool = False,
    ) -> dict[str, Any]:
        """Why `memory_id` is where it is among the answers to `query`, or why it is not among them.

        Args:
            context_id: where to look.
            query: the question.
            memory_id: the memory to explain.
            filters: as in the recall in question, like the other arguments.
            legs: which kinds of evidence count.
            min_similarity: the least raw cosine.
            fusion: how the legs become one order.
            weights: how much each leg counts.
            freshness: how freshness is lost.
            neighbours: whether turns of a session share in their neighbours' words and meaning.
            include_superseded: whether memories that were replaced count too.

        Returns:
            The hit's ``explanation`` with its ``rank``, or the ``reason`` why there is none.

        Raises:
            NotFound: no such memory in this context.
        """
        vectors = self._bound.vectors
        embedding = vectors.of_query(query)[0] if self._bound.asks_embedder(query, legs) else None
        return self._core.explain(
            context_id,
            memory_id,
            query,
            embedding=embedding,
            made_by=None if embedding is None else vectors.id,
            filters=filters,
            legs=legs,
            min_similarity=min_similarity,
            fusion=fusion,
            weights=weights,
            freshness=freshness,
            neighbours=neighbours,
            include_superseded=include_superseded,
        )

    # --- contexts ---

    def create_context(self, context_id: str, *, origin: str = "trusted") -> None:
        """Makes a context. Contexts of ours are also made by the first write.

        Args:
            context_id: its name.
            origin: ``"trusted"``, or ``"external"`` for what others write: nothing in it is ever trusted.
        """
        self._core.create_context(context_id, origin=origin)

    def contexts(self) -> builtins.list[dict[str, Any]]:
        """Every context by name, as a dictionary with its ``context_id`` and ``origin``."""
        return self._core.contexts()

    def context(self, context_id: str) -> Context:
        """A handle that has every verb without ``context_id``.

        Example:
            >>> import memkura
            >>> with memkura.open(":memory:", embedder=None) as engine:
            ...     ops = engine.context("ops")
            ...     _ = ops.remember("Deploys go out on Tuesday")
            ...     ops.count()
            1
        """
        from memkura.context import Context

        return Context(self, context_id)

    # --- upkeep ---

    @property
    def embedder(self) -> EmbedderInfo:
        """Which embedder the store works with, and whether semantic search is on."""
        return self._bound.info()

    def reindex(self, embedder: object = None, progress: Progress | None = None) -> ReindexReport:
        """Embeds every memory anew, beside the old vectors; recall changes over when all are there.

        Args:
            embedder: the new embedder, in any form that :func:`memkura.open` takes; the engine's own by default.
            progress: called with how many were tried and how many there are.

        Returns:
            How far it came. ``"partial"`` means: run it again.

        Raises:
            EmbedderFailed: there is no embedder.
        """
        arguments.hook(progress, "progress", _PROGRESS)
        vectors = self._bound.vectors if embedder is None else self._bound.vectors_of(embedder)
        if vectors.embedder is None:
            raise EmbedderFailed(
                "there is no embedder to reindex with", field="embedder", advice="Name one: reindex(embedder=…)"
            )
        report = reindexing.reindex(self._core, vectors, progress)
        if report.state == "complete":
            self._bound.vectors = vectors
            self._bound.info()
        return report

    def maintain(self) -> dict[str, Any]:
        """Embeds what an outage left without vectors, then tidies files. Safe at any time, in any process.

        Returns:
            What was done, by name; ``embedded`` and ``not_embedded`` are counts.

        Raises:
            StoreBusy: another process wrote for longer than ``busy_timeout``.
            StorageFull: the disk is full; nothing was written.
            StoreReadOnly: the store lies where nothing can be written.
            StoreFailed: a write failed before, or this one did; open the store again.
        """
        embedded = not_embedded = 0
        if self._bound.may_fill_in():
            embedded, reasons = reindexing.fill_in(self._core, self._bound.vectors)
            not_embedded = sum(reasons.values())
        return {**self._core.maintain(), "embedded": embedded, "not_embedded": not_embedded}

    def backup(self, destination: str | os.PathLike[str]) -> None:
        """Writes the whole store, as it is at this moment, into one new file, while others go on writing.

        The file is for its owner alone (0600), and there when it is complete and durable. :func:`memkura.restore` makes
        a store of it. A process that is killed meanwhile leaves a file whose name begins like it and ends in
        ``.incomplete``, which may be deleted.

        Args:
            destination: where nothing is yet, outside of every store's folder.

        Raises:
            InvalidInput: the destination lies in a store's folder.
            StoreError: something is there already, or the file cannot be written.
            StorageFull: there is no room for it.
        """
        place = arguments.path(destination, "destination")
        arguments.outside_stores(place, "destination")
        self._core.back_up(place)

    def export(
        self,
        path: str | os.PathLike[str] | IO[bytes],
        *,
        context_id: str | None = None,
        filters: Filters | None = None,
        history: bool = False,
        format: Literal["jsonl", "msgpack"] | None = None,
    ) -> ExportReport:
        """Writes memories into a file of rows, all as they are at one moment, while others go on writing.

        A row has every field of its memory, with where it came from and how far it is trusted. Memories that others
        replaced are there too; what was forgotten or has expired is not. The file is for its owner alone (0600), and
        there when it is complete; vectors are made again where it is imported. A process that is killed meanwhile,
        or ends while a daemon thread exports, leaves a file whose name begins like it and ends in ``.incomplete``,
        which may be deleted.

        Args:
            path: the file, which is replaced, outside of every store's folder; or a binary stream, which is written to
                until it has taken everything.
            context_id: one context; all by default.
            filters: which memories; all by default.
            history: write the earlier states of each memory too, before it.
            format: by the ending of the path; ``"jsonl"`` for a stream, or a path that has none.

        Returns:
            Counts of what was written.

        Raises:
            InvalidInput: an argument cannot be taken; msgpack needs ``memkura[msgpack]``.
            NotFound: the store has no such context.
            StoreError: the file cannot be written.
            StorageFull: there is no room for it.

        Example:
            >>> import io, memkura
            >>> with memkura.open(":memory:", embedder=None) as engine:
            ...     _ = engine.remember("ops", "Deploys go out on Tuesday")
            ...     engine.export(io.BytesIO()).memories
            1
        """
        from memkura import transfer

        return transfer.export(self._core, path, context_id=context_id, filters=filters, history=history, format=format)

    def import_file(
        self,
        path: str | os.PathLike[str],
        *,
        context_id: str | None = None,
        as_own: bool = False,
        again: bool = False,
        format: Literal["jsonl", "msgpack"] | None = None,
        progress: Progress | None = None,
    ) -> ImportReport:
        """Takes in the rows of a file, whole or not at all. What is here already adds nothing.

        A row is one that :meth:`export` wrote, or has ``text`` (and ``title``) or ``summary``, and perhaps an ``id``.
        What comes in is external, unpinned, and new here: no row claims otherwise.

        Args:
            path: the file.
            context_id: the context of rows that name none.
            as_own: the file is your own export, unchanged since: its rows keep their ids, times, links, pins and trust.
                Whoever wrote the file is believed, so never say it of a file that others could write to.
            again: bring rows back that were forgotten or purged here.
            format: by the ending of the path, or by what is in the file.
            progress: called with how many rows are embedded and how many there are.

        Returns:
            Counts of what became of the rows, and the ids of those that were purged here.

        Raises:
            InvalidInput: a row cannot be taken; the field names its line or item, and nothing was added.
            UnknownField: a row has a field that no memory has.
            LimitExceeded: the file, or a row of it, is over a limit.
            KeyTaken: a row would change a trusted memory; nothing was added.
            StoreBusy: another process wrote for longer than ``busy_timeout``.
            StorageFull: the disk is full; nothing was written.
            StoreReadOnly: the store lies where nothing can be written.
            StoreFailed: a write failed before, or this one did; open the store again.

        Example:
            >>> import memkura, pathlib, tempfile
            >>> with tempfile.TemporaryDirectory() as folder, memkura.open(":memory:", embedder=None) as engine:
            ...     rows = pathlib.Path(folder, "rows.jsonl")
            ...     _ = rows.write_text('{"text": "Deploys go out on Tuesday"}')
            ...     (engine.import_file(rows, context_id="ops").added, engine.list("ops")[0].trust_tier)
            (1, 'external')
        """
        return self._import(
            path,
            is_alone=False,
            context_id=context_id,
            as_own=as_own,
            again=again,
            format=format,
            progress=progress,
        )

    def _import(
        self,
        path: object,
        *,
        is_alone: bool,
        context_id: str | None,
        as_own: bool,
        again: bool,
        format: str | None,
        progress: Progress | None,
    ) -> ImportReport:
        from memkura import transfer

        arguments.hook(progress, "progress", _PROGRESS)
        return transfer.import_file(
            self._bound,
            path,
            context_id=None if context_id is None else arguments.text(context_id, "context_id"),
            is_alone=is_alone,
            as_own=arguments.truth(as_own, "as_own"),
            again=arguments.truth(again, "again"),
            format=format,
            progress=progress or (lambda _done, _total: None),
            embed=self._embed,
        )

    def verify(self) -> builtins.list[str]:
        """What is wrong with the record, as far as its database can tell: nothing in a sound one. Reads all of it.

        Returns:
            A sentence for each problem; none for a sound record.

        Raises:
            StoreDamaged: the record is damaged so much that it cannot be read.
            StoreTampered: somebody changed what the database does.
        """
        return self._core.verify()

    def doctor(self) -> Health:
        """Examines the store: its record, and every index against one made afresh. Reads all of it; changes nothing.

        The record has no checksums of its own: a bit that flipped inside a text may go unseen.
        What others write meanwhile is left out of the comparison.

        Returns:
            What was found; ``is_sound`` says it in a word.

        Raises:
            StoreDamaged: the record is damaged so much that it cannot be read.
            StoreTampered: somebody changed what the database does.
        """
        return Health.of(self._core.examine(), self.stats())

    def compact(self) -> dict[str, Any]:
        """Gives room back to the disk, and removes the last bytes of what was forgotten, purged or has expired.

        What was forgotten or has expired is purged first: from then on its history is gone, too. The record is put
        together anew in memory, which takes about as much of it as the record is large.

        Returns:
            Figures by name: ``sealed``, the contexts whose index was written anew.

        Raises:
            StoreBusy: another process kept the record busy for longer than ``busy_timeout``.
            StorageFull: there is no room to rewrite the record.
            StoreError: a copy of the record that was left beside it cannot be removed.
            StoreReadOnly: the store lies where nothing can be written.
            StoreFailed: a write failed before, or this one did; open the store again.
        """
        return self._core.compact(door=self._door)

    def stats(self, context_id: str | None = None) -> Stats:
        """What the store holds, or one context of it."""
        return Stats.of(self._core.stats(context_id), self.embedder)

    def build_info(self) -> dict[str, str]:
        """Versions of what was built in."""
        return _core.build_info()

    def close(self) -> None:
        """Lets go of every file. A second call is harmless; any later verb raises ``StoreClosed``."""
        self._core.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<memkura.Engine {self._path!r}, {self._bound.vectors.info(None).note}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("an Engine cannot be pickled: open the store by its path in the other process")


def _said(arguments: Mapping[str, Any], *, without: set[str]) -> dict[str, Any]:
    """The arguments that say something."""
    return {name: value for name, value in arguments.items() if name not in without and value is not None}


def _check_items(items: Sequence[object], first: int) -> None:
    """Refuses, before a text is embedded, what the core would refuse after it."""
    if len(items) > _BATCH_MAX:
        raise LimitExceeded(
            f"is one more than a batch may hold, which is {_BATCH_MAX}",
            field=f"items[{first + _BATCH_MAX}]",
            advice="Send fewer at a time",
        )
    for at, item in enumerate(items, first):
        if not isinstance(item, Mapping):
            raise InvalidInput(
                "is not a dictionary of a memory's fields",
                field=f"items[{at}]",
                value=type(item).__name__,
                advice='Write it as {"context_id": …, "summary": …}',
            )


def warn_of_repairs(texts: Iterable[str]) -> None:
    """One ``TextRepaired`` for each, shown at the caller's line, however many of our own frames lie between."""
    for text in texts:
        level = 2
        frame = sys._getframe(1)  # noqa: SLF001 - the interpreter's documented way to the caller
        while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "memkura":
            frame = frame.f_back
            level += 1
        warnings.warn(text, TextRepaired, stacklevel=level)
