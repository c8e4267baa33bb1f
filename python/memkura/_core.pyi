"""The native engine. Private: use :mod:`memkura`, which adds embedders, typing and defaults."""

import builtins
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, TypeAlias, final, overload

_Json: TypeAlias = Any
_Embedded: TypeAlias = tuple[object, str | None, str | None]

__all__ = [
    "Engine",
    "Hit",
    "Memory",
    "Receipt",
    "build_info",
    "check_drafts",
    "check_states",
    "compact_vectors",
    "embedding_text",
    "limits",
    "msgpack_end",
    "open_engines",
    "plain_json",
    "restore",
    "split_for_embedding",
    "vector_problem",
]

class Memory:
    """One remembered row as it stood when it was read. Frozen; fields are built when read."""

    memory_id: Final[str]
    context_id: Final[str]
    type: Final[str]
    scope: Final[str | None]
    key: Final[str | None]
    summary: Final[str]
    content: Final[str | None]
    tags: Final[tuple[str, ...]]
    metadata: Final[dict[str, _Json]]
    delivery_mode: Final[str]
    trigger: Final[dict[str, _Json] | None]
    importance: Final[float]
    confidence: Final[float]
    proof: Final[str | None]
    status: Final[str]
    source_type: Final[str]
    trust_tier: Final[str]
    derived_from: Final[tuple[str, ...]]
    superseded_by: Final[str | None]
    session: Final[str | None]
    event_time: Final[datetime | None]
    expires_at: Final[datetime | None]
    created_at: Final[datetime]
    updated_at: Final[datetime]
    last_seen: Final[datetime | None]
    access_count: Final[int]
    decay_rate: Final[float]
    version: Final[int]
    embedded: Final[bool]
    def as_dict(self) -> dict[str, _Json]: ...

@final
class Hit(Memory):
    """One result of a recall: the memory's fields, and why it is here."""

    score: Final[float]
    evidence: Final[tuple[str, ...]]
    explanation: Final[dict[str, _Json]]
    def as_dict(self) -> dict[str, _Json]: ...

@final
class Receipt:
    """What one write did."""

    memory_id: Final[str]
    created: Final[bool]
    version: Final[int]
    duplicates: Final[tuple[str, ...]]
    warnings: Final[tuple[str, ...]]
    embedded: Final[bool]

@final
class Engine:
    """One open store."""

    @staticmethod
    def open(
        path: str,
        *,
        clock: Callable[[], datetime] | None = None,
        durability: str,
        busy_timeout: float,
        create: bool,
        allow_network: bool,
        memory_budget: int | None,
        embedder: tuple[str, int] | None = None,
    ) -> Engine: ...
    def close(self) -> None: ...
    def suspend(self) -> None: ...
    def resume(self) -> None: ...
    def resume_in_child(self) -> None: ...
    def remember(
        self,
        draft: Mapping[str, _Json],
        embedded: _Embedded,
        *,
        door: str = "python",
    ) -> Receipt: ...
    def remember_many(
        self,
        drafts: Sequence[Mapping[str, _Json]],
        embedded: Sequence[_Embedded],
        *,
        first: int = 0,
        door: str = "python",
    ) -> list[Receipt]: ...
    def export(
        self,
        sink: Callable[[builtins.list[dict[str, _Json]]], object],
        *,
        context_id: str | None,
        filters: Mapping[str, _Json] | None,
        history: bool,
    ) -> None: ...
    def standings(
        self, rows: Sequence[tuple[str, str | None, Sequence[str], object]]
    ) -> builtins.list[tuple[str, str | None]]: ...
    def import_drafts(
        self,
        drafts: Sequence[Mapping[str, _Json]],
        embedded: Sequence[_Embedded],
        ids: Sequence[str | None],
        again: bool,
    ) -> builtins.list[tuple[str, Receipt]]: ...
    def adopt(
        self, states: Sequence[Mapping[str, _Json]], embedded: Sequence[_Embedded], again: bool
    ) -> builtins.list[tuple[str, Receipt]]: ...
    @overload
    def update(
        self,
        context_id: str,
        memory_id: str,
        changes: Mapping[str, _Json],
        embedded: _Embedded,
        *,
        expected: None = None,
        door: str = "python",
    ) -> Receipt: ...
    @overload
    def update(
        self,
        context_id: str,
        memory_id: str,
        changes: Mapping[str, _Json],
        embedded: _Embedded,
        *,
        expected: int | None,
        door: str = "python",
    ) -> Receipt | None: ...
    def forget(
        self,
        context_id: str,
        *,
        memory_ids: Sequence[str] | None = None,
        filters: Mapping[str, _Json] | None = None,
        everything: bool,
        purge: bool,
        door: str = "python",
    ) -> list[str]: ...
    def get(
        self,
        context_id: str,
        *,
        memory_id: str | None = None,
        key: str | None = None,
        scope: str | None = None,
    ) -> Memory | None: ...
    def list(
        self,
        context_id: str,
        *,
        filters: Mapping[str, _Json] | None = None,
        limit: int | None = None,
        offset: int | None = None,
        order: str | None = None,
        descending: bool,
    ) -> builtins.list[Memory]: ...
    def count(self, context_id: str, *, filters: Mapping[str, _Json] | None = None) -> int: ...
    def history(self, context_id: str, memory_id: str) -> builtins.list[dict[str, _Json]]: ...
    def recall(
        self,
        context_id: str,
        query: str | None = None,
        *,
        embedding: object = None,
        made_by: str | None = None,
        k: int = 10,
        offset: int = 0,
        filters: Mapping[str, _Json] | None = None,
        legs: Sequence[str] | None = None,
        as_of: datetime | None = None,
        min_similarity: float | None = None,
        fusion: str | None = None,
        weights: Mapping[str, float] | None = None,
        freshness: str | None = None,
        neighbours: bool = True,
        include_superseded: bool = False,
        explain: bool = False,
    ) -> tuple[builtins.list[Hit], dict[str, _Json]]: ...
    def explain(
        self,
        context_id: str,
        memory_id: str,
        query: str | None = None,
        *,
        embedding: object = None,
        made_by: str | None = None,
        filters: Mapping[str, _Json] | None = None,
        legs: Sequence[str] | None = None,
        min_similarity: float | None = None,
        fusion: str | None = None,
        weights: Mapping[str, float] | None = None,
        freshness: str | None = None,
        neighbours: bool = True,
        include_superseded: bool = False,
    ) -> dict[str, _Json]: ...
    def create_context(self, context_id: str, *, origin: str | None = None) -> None: ...
    def contexts(self) -> builtins.list[dict[str, _Json]]: ...
    def embedder(self) -> dict[str, _Json] | None: ...
    def bound_embedder(self) -> tuple[str, int] | None: ...
    def begin_reindex(self, embedder_id: str, dim: int) -> dict[str, _Json]: ...
    def pending_embeddings(
        self, embedder_id: str, *, limit: int = 256, after: int = 0
    ) -> builtins.list[tuple[int, int, str]]: ...
    def store_embeddings(self, embedder_id: str, items: Sequence[tuple[int, int, object]]) -> int: ...
    def fail_embeddings(self, embedder_id: str, items: Sequence[tuple[int, int]], reason: str) -> None: ...
    def finish_reindex(self, embedder_id: str) -> dict[str, _Json] | None: ...
    def back_up(self, destination: str) -> None: ...
    def verify(self) -> builtins.list[str]: ...
    def examine(self) -> dict[str, _Json]: ...
    def compact(self, *, door: str = "python") -> dict[str, _Json]: ...
    def maintain(self) -> dict[str, _Json]: ...
    def stats(self, context_id: str | None = None) -> dict[str, _Json]: ...

def build_info() -> dict[str, str]: ...
def limits() -> dict[str, int]: ...
def open_engines() -> list[Engine]: ...
def restore(backup: str, path: str) -> None: ...
def check_drafts(drafts: Sequence[Mapping[str, _Json]]) -> None: ...
def check_states(states: Sequence[Mapping[str, _Json]]) -> None: ...
def embedding_text(summary: str, content: str | None) -> str: ...
def split_for_embedding(text: str) -> list[str]: ...
def vector_problem(vector: object, dim: int) -> str | None: ...
def compact_vectors(value: object) -> tuple[int, bytes]: ...
def plain_json(line: bytes, most: tuple[int, int, int, int, int]) -> tuple[str | None, str | None]: ...
def msgpack_end(
    data: bytes, at: int, bytes_max: int, most: tuple[int, int, int, int, int]
) -> tuple[int, str | None]: ...
