"""The asynchronous twin: the same verbs, awaited.

Each verb runs in a worker thread, so that the event loop never waits for the disk, a lock or a model. An embedder that
has ``aembed`` is awaited on the loop. A verb that is cancelled is let finish in its thread: a write is then complete,
or absent when it had not begun, and the store stays usable.

Example:
    >>> import asyncio, memkura
    >>> async def main() -> list[str]:
    ...     async with await memkura.open_async(":memory:", embedder=None) as engine:
    ...         await engine.remember("ops", "Deploys go out on Tuesday")
    ...         return [hit.summary for hit in await engine.recall("ops", "deploys")]
    >>> asyncio.run(main())
    ['Deploys go out on Tuesday']
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from memkura import engine as sync
from memkura.context import Context
from memkura.errors import EmbedderFailed

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Sequence
    from concurrent.futures import Future
    from datetime import datetime
    from types import TracebackType
    from typing import Literal, Self

    from memkura.embedders import Kind, Vector
    from memkura.records import EmbedderInfo, ReindexReport

# How often a thread that waits for an embedder looks whether the loop is still there.
_LOOK_SECONDS = 0.25

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")
_Async = Coroutine[Any, Any, Answer]


# The threads of each event loop. Its own executor is for others: a verb that waits in one of its threads for an
# embedder on the loop could wait for a thread that the embedder needs.
_threads: WeakKeyDictionary[asyncio.AbstractEventLoop, ThreadPoolExecutor] = WeakKeyDictionary()


# The loop on which a verb in one of those threads was awaited.
_loop: contextvars.ContextVar[asyncio.AbstractEventLoop] = contextvars.ContextVar("memkura loop")


async def _in_thread(verb: Callable[Arguments, Answer], /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Answer:
    """As :func:`asyncio.to_thread`, in a thread of ours."""
    loop = asyncio.get_running_loop()
    if loop not in _threads:
        _threads[loop] = ThreadPoolExecutor(thread_name_prefix="memkura")
    context = contextvars.copy_context()
    context.run(_loop.set, loop)
    call = functools.partial(context.run, verb, *args, **kwargs)
    return await loop.run_in_executor(_threads[loop], call)


def _awaited(
    verb: Callable[Concatenate[sync.Engine, Arguments], Answer],
) -> Callable[Concatenate[AsyncEngine, Arguments], _Async[Answer]]:
    """`verb` of the engine as a coroutine."""

    @functools.wraps(verb)
    async def in_thread(self: AsyncEngine, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Answer:
        return await _in_thread(verb, self._engine, *args, **kwargs)

    in_thread.__signature__ = inspect.signature(verb)  # type: ignore[attr-defined]
    return in_thread


def _awaited_here(
    verb: Callable[Concatenate[Context, Arguments], Answer],
) -> Callable[Concatenate[AsyncContext, Arguments], _Async[Answer]]:
    """`verb` of the context handle as a coroutine."""

    @functools.wraps(verb)
    async def in_thread(self: AsyncContext, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Answer:
        return await _in_thread(verb, self._context, *args, **kwargs)

    in_thread.__signature__ = inspect.signature(verb)  # type: ignore[attr-defined]
    return in_thread


class AsyncEngine:
    """One open store, its verbs awaited. Made by :func:`memkura.open_async`; see :class:`memkura.Engine`."""

    def __init__(self, engine: sync.Engine) -> None:
        self._engine = engine

    remember = _awaited(sync.Engine.remember)
    remember_many = _awaited(sync.Engine.remember_many)
    update_memory = _awaited(sync.Engine.update_memory)
    forget = _awaited(sync.Engine.forget)
    get = _awaited(sync.Engine.get)
    list = _awaited(sync.Engine.list)
    count = _awaited(sync.Engine.count)
    history = _awaited(sync.Engine.history)
    recall = _awaited(sync.Engine.recall)
    explain = _awaited(sync.Engine.explain)
    create_context = _awaited(sync.Engine.create_context)
    contexts = _awaited(sync.Engine.contexts)
    maintain = _awaited(sync.Engine.maintain)
    compact = _awaited(sync.Engine.compact)
    backup = _awaited(sync.Engine.backup)
    export = _awaited(sync.Engine.export)
    import_file = _awaited(sync.Engine.import_file)
    verify = _awaited(sync.Engine.verify)
    doctor = _awaited(sync.Engine.doctor)
    stats = _awaited(sync.Engine.stats)
    close = _awaited(sync.Engine.close)

    async def reindex(self, embedder: object = None, progress: sync.Progress | None = None) -> ReindexReport:
        """As :meth:`memkura.Engine.reindex`; the embedder may be asynchronous."""
        return await _in_thread(self._engine.reindex, _on_loop(embedder), progress)

    def context(self, context_id: str) -> AsyncContext:
        """A handle that has every verb without ``context_id``."""
        return AsyncContext(self._engine.context(context_id))

    def build_info(self) -> dict[str, str]:
        """Versions of what was built in."""
        return self._engine.build_info()

    @property
    def embedder(self) -> EmbedderInfo:
        """Which embedder the store works with, and whether semantic search is on, as the last verb found it.

        It waits for nothing, so that the event loop does not. ``(await engine.stats()).embedder`` looks anew.
        """
        return self._engine._bound.last_info()  # noqa: SLF001 - the twin

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return repr(self._engine).replace("memkura.Engine", "memkura.AsyncEngine", 1)

    def __reduce__(self) -> object:  # type: ignore[override]
        return self._engine.__reduce__()


class AsyncContext:
    """A handle on one context, its verbs awaited. Made by :meth:`AsyncEngine.context`."""

    def __init__(self, context: Context) -> None:
        self._context = context

    @property
    def context_id(self) -> str:
        """The context's name."""
        return self._context.context_id

    remember = _awaited_here(Context.remember)
    remember_many = _awaited_here(Context.remember_many)
    update_memory = _awaited_here(Context.update_memory)
    forget = _awaited_here(Context.forget)
    get = _awaited_here(Context.get)
    list = _awaited_here(Context.list)
    count = _awaited_here(Context.count)
    history = _awaited_here(Context.history)
    recall = _awaited_here(Context.recall)
    explain = _awaited_here(Context.explain)
    export = _awaited_here(Context.export)
    import_file = _awaited_here(Context.import_file)
    stats = _awaited_here(Context.stats)

    def __repr__(self) -> str:
        return repr(self._context).replace("memkura.Context", "memkura.AsyncContext", 1)


class _OnLoop:
    """An asynchronous embedder for the worker threads: each call is awaited on the loop of the verb that makes it."""

    def __init__(self, embedder: Any) -> None:  # noqa: ANN401 - structural
        self._embedder = embedder
        self.id = embedder.id

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever else the embedder has
        return getattr(self._embedder, name)

    @property
    def dim(self) -> Any:  # noqa: ANN401 - checked where every embedder's is
        """The embedder's own."""
        return self._embedder.dim

    def embed(self, texts: Sequence[str], *, kind: Kind) -> Iterable[Vector]:
        """What ``aembed`` answers."""
        call = self._embedder.aembed(texts, kind=kind)
        try:
            waiting = asyncio.run_coroutine_threadsafe(call, _loop.get())
        except RuntimeError:  # the loop has ended: the write goes on without its vector
            call.close()
            raise
        return _waited_for(waiting, _loop.get())


# Set before the worker threads are waited for: at that time no other sign of the end can be seen. Not public, but it is
# how `concurrent.futures` waits for them.
_ending = threading.Event()
getattr(threading, "_register_atexit", lambda _: None)(_ending.set)


def _waited_for(waiting: Future[Iterable[Vector]], loop: asyncio.AbstractEventLoop) -> Iterable[Vector]:
    """What is being made on `loop`.

    Raises:
        EmbedderFailed: the loop ends before: it is closed, or has stopped and nobody is left to run it again.
    """
    while not wait([waiting], _LOOK_SECONDS).done:
        if loop.is_closed() or (_ending.is_set() and not loop.is_running()):
            raise EmbedderFailed("the event loop ended before it had answered")
    return waiting.result()


def _on_loop(embedder: object) -> object:
    return _OnLoop(embedder) if hasattr(embedder, "aembed") else embedder


async def open_async(
    path: str | os.PathLike[str],
    embedder: object = "auto",
    clock: Callable[[], datetime] | None = None,
    *,
    durability: Literal["power_loss", "process_crash"] = "power_loss",
    busy_timeout: float = 30.0,
    create: bool = True,
    allow_network: bool = False,
    memory_budget: int | None = None,
) -> AsyncEngine:
    """Opens the store at `path` for ``await``.

    Args:
        path: the store's folder.
        embedder: as in :func:`memkura.open`; one with ``aembed`` is awaited on the loop of the verb that needs it.
        clock: as in :func:`memkura.open`, and so are the rest.
        durability: what an acknowledged write survives.
        busy_timeout: seconds to wait while another process writes.
        create: make the store if there is none.
        allow_network: open it on a network file system too.
        memory_budget: bytes of memory that the indexes of contexts may take together, about.

    Returns:
        The engine, an asynchronous context manager.

    Raises:
        MemkuraError: as :func:`memkura.open`.
    """
    engine = await _in_thread(
        sync.open,
        path,
        _on_loop(embedder),
        clock,
        durability=durability,
        busy_timeout=busy_timeout,
        create=create,
        allow_network=allow_network,
        memory_budget=memory_budget,
    )
    return AsyncEngine(engine)


open = open_async  # noqa: A001 - `memkura.aio.open`
