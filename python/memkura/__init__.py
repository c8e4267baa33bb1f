"""Embedded long-term memory for AI agents: a Rust engine in your own process, no server.

Not a vector database and not a framework: one store is one folder, opened with one call, and what was remembered is
durable and findable when ``remember`` returns.

Example:
    >>> import memkura
    >>> engine = memkura.open(":memory:", embedder=None)
    >>> memory_id = engine.remember("ops", "Deploys go out on Tuesday", tags=["deploy"])
    >>> [hit.summary for hit in engine.recall("ops", "when do deploys go out")]
    ['Deploys go out on Tuesday']
    >>> engine.close()

Names are loaded when they are first used, so that ``import memkura`` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memkura._core import Hit, Memory
    from memkura.aio import AsyncContext, AsyncEngine, open_async
    from memkura.context import Context
    from memkura.embedders import Embedder
    from memkura.engine import Engine, build_info, restore
    from memkura.engine import open as open  # noqa: A004 - the verb of this package is `memkura.open`
    from memkura.errors import (
        EmbedderError,
        EmbedderFailed,
        EmbedderUnavailable,
        EmptyQuery,
        InternalError,
        InvalidFilter,
        InvalidInput,
        InvalidVector,
        KeyTaken,
        LimitExceeded,
        MemkuraError,
        NotAStore,
        NotFound,
        NothingSelected,
        SchemaTooNew,
        StorageFull,
        StoreBusy,
        StoreClosed,
        StoreDamaged,
        StoreError,
        StoreFailed,
        StoreReadOnly,
        StoreTampered,
        TextRepaired,
        TextTooLong,
        UnknownField,
    )
    from memkura.hits import Hits
    from memkura.records import EmbedderInfo, ExportReport, Health, ImportReport, ReindexReport, Remembered, Stats

_HOMES = {
    "_core": ("Hit", "Memory"),
    "aio": ("AsyncContext", "AsyncEngine", "open_async"),
    "context": ("Context",),
    "embedders": ("Embedder",),
    "engine": ("Engine", "build_info", "open", "restore"),
    "errors": (
        "EmbedderError",
        "EmbedderFailed",
        "EmbedderUnavailable",
        "EmptyQuery",
        "InternalError",
        "InvalidFilter",
        "InvalidInput",
        "InvalidVector",
        "KeyTaken",
        "LimitExceeded",
        "MemkuraError",
        "NotAStore",
        "NotFound",
        "NothingSelected",
        "SchemaTooNew",
        "StorageFull",
        "StoreBusy",
        "StoreClosed",
        "StoreError",
        "StoreDamaged",
        "StoreFailed",
        "StoreReadOnly",
        "StoreTampered",
        "TextRepaired",
        "TextTooLong",
        "UnknownField",
    ),
    "hits": ("Hits",),
    "records": ("EmbedderInfo", "ExportReport", "Health", "ImportReport", "ReindexReport", "Remembered", "Stats"),
}
_MODULES = ("aio", "embedders", "errors", "evaluation", "testing")
_HOME = {name: module for module, names in _HOMES.items() for name in names}

# Without `open`: a star import must not take Python's own away.
__all__ = [
    "AsyncContext",
    "AsyncEngine",
    "Context",
    "Embedder",
    "EmbedderError",
    "EmbedderFailed",
    "EmbedderInfo",
    "EmbedderUnavailable",
    "EmptyQuery",
    "Engine",
    "ExportReport",
    "Health",
    "Hit",
    "Hits",
    "ImportReport",
    "InternalError",
    "InvalidFilter",
    "InvalidInput",
    "InvalidVector",
    "KeyTaken",
    "LimitExceeded",
    "MemkuraError",
    "Memory",
    "NotAStore",
    "NotFound",
    "NothingSelected",
    "ReindexReport",
    "Remembered",
    "SchemaTooNew",
    "Stats",
    "StorageFull",
    "StoreBusy",
    "StoreClosed",
    "StoreDamaged",
    "StoreError",
    "StoreFailed",
    "StoreReadOnly",
    "StoreTampered",
    "TextRepaired",
    "TextTooLong",
    "UnknownField",
    "build_info",
    "open_async",
    "restore",
]


# Not for type checkers, which would take every name for one of ours.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name in _MODULES:
            return import_module(f"memkura.{name}")
        home = _HOME.get(name)
        if home is None:
            raise AttributeError(f"module 'memkura' has no attribute {name!r}")
        value = getattr(import_module(f"memkura.{home}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME, *_MODULES})
