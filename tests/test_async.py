"""The asynchronous twin: the same surface, an event loop that never waits, and cancellation that harms nothing."""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

import memkura
from memkura import aio
from memkura.binding import Binding
from memkura.testing import ToyEmbedder

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from memkura.embedders import Kind, Vector

# Not verbs: properties and handles, the same in both.
PLAIN = {"build_info", "context", "embedder", "engine", "context_id"}


def _public(cls: type) -> dict[str, object]:
    return {name: value for name, value in inspect.getmembers(cls) if not name.startswith("_")}


@pytest.mark.parametrize(
    ("sync", "twin"), [(memkura.Engine, memkura.AsyncEngine), (memkura.Context, memkura.AsyncContext)]
)
def test_surfaces_agree(sync: type, twin: type) -> None:
    """Every public name is in both; every verb has the same arguments and is awaited in the twin."""
    verbs = _public(sync)
    assert len(verbs) > 9
    assert verbs.keys() - PLAIN == _public(twin).keys() - PLAIN
    for name in verbs.keys() - PLAIN:
        one, other = getattr(sync, name), getattr(twin, name)
        assert inspect.iscoroutinefunction(other), name
        assert list(inspect.signature(one).parameters) == list(inspect.signature(other).parameters), name
        assert other.__doc__


def test_context_has_the_engines_verbs_without_context_id() -> None:
    """Each verb that names a context is on the handle, with the other arguments the same."""
    for name, verb in _public(memkura.Engine).items():
        if not callable(verb) or "context_id" not in inspect.signature(verb).parameters:
            continue
        if name in {"context", "create_context"}:
            continue
        here = [part for part in inspect.signature(verb).parameters if part != "context_id"]
        assert list(inspect.signature(getattr(memkura.Context, name)).parameters) == here, name


def test_open_takes_what_open_takes() -> None:
    """`memkura.open`, `memkura.open_async` and `memkura.aio.open`."""
    assert aio.open is memkura.open_async

    async def main() -> None:
        async with await aio.open(":memory:", None, None, busy_timeout=1.0) as engine:
            assert await engine.count("c") == 0
            assert "AsyncEngine" in repr(engine)

    asyncio.run(main())


def test_verbs_and_handles_work(store_path: Path) -> None:
    """The ordinary round."""

    async def main() -> None:
        async with await memkura.open_async(store_path, embedder=ToyEmbedder()) as engine:
            ops = engine.context("ops")
            ids = await asyncio.gather(*(ops.remember(f"tea number {number}") for number in range(20)))
            assert len(set(ids)) == 20
            hits = await ops.recall("tea number 7", k=1)
            assert hits[0].memory_id == ids[7]
            report = await engine.reindex(ToyEmbedder(32))
            assert report.state == "complete"
            await engine.maintain()
        with pytest.raises(memkura.StoreClosed):
            await engine.count("ops")

    asyncio.run(main())


def test_embedder_is_told_without_waiting(store_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the last verb found it: the event loop neither reads the record nor waits for a lock."""

    async def main() -> None:
        async with await memkura.open_async(store_path, embedder=ToyEmbedder()) as engine:
            assert engine.embedder.state == "ready"
            await engine.remember("c", "tea")
        async with await memkura.open_async(store_path, embedder=ToyEmbedder(32)) as engine:
            with monkeypatch.context() as patched:
                patched.setattr(Binding, "_bound_embedder", lambda _: pytest.fail("the loop read the record"))
                assert engine.embedder.state == "changed"
            assert (await engine.reindex()).state == "complete"
            assert engine.embedder == (await engine.stats()).embedder
            assert engine.embedder.state == "ready"

    asyncio.run(main())


class AsyncToy(ToyEmbedder):
    """Awaited on the loop; its synchronous half must not be called."""

    async def aembed(self, texts: Sequence[str], *, kind: Kind) -> Iterable[Vector]:
        """As ``embed``, awaited."""
        await asyncio.sleep(0.01)
        return super().embed(texts, kind=kind)

    def embed(self, texts: Sequence[str], *, kind: Kind) -> Iterable[Vector]:  # noqa: ARG002 - never called
        raise AssertionError("the asynchronous half is there")


def test_asynchronous_embedder_is_awaited() -> None:
    """For writes and questions alike."""

    async def main() -> None:
        toy = AsyncToy()
        async with await memkura.open_async(":memory:", embedder=toy) as engine:
            memory_id = await engine.remember("c", "tea")
            assert memory_id.embedded
            assert (await engine.recall("c", "tea", legs=["vector"]))[0].memory_id == memory_id
            assert toy.calls == 2

    asyncio.run(main())


def test_embedder_that_needs_the_loops_threads_gets_them() -> None:
    """However many verbs wait for it at once."""

    class Threaded(AsyncToy):
        async def aembed(self, texts: Sequence[str], *, kind: Kind) -> Iterable[Vector]:
            return await asyncio.to_thread(ToyEmbedder().embed, texts, kind=kind)

    async def main() -> None:
        async with await memkura.open_async(":memory:", embedder=Threaded()) as engine:
            writes = [engine.remember("c", f"memory {number}") for number in range(100)]
            written = await asyncio.wait_for(asyncio.gather(*writes), 60)
            assert all(memory_id.embedded for memory_id in written)

    asyncio.run(main())


def test_loop_that_ends_during_an_embedding_leaves_the_write() -> None:
    """The waiting thread is woken, and the memory is kept without its vector."""
    kept: list[memkura.AsyncEngine] = []

    class Endless(AsyncToy):
        async def aembed(self, texts: Sequence[str], *, kind: Kind) -> Iterable[Vector]:
            await asyncio.Event().wait()
            return await super().aembed(texts, kind=kind)

    async def main() -> None:
        engine = await memkura.open_async(":memory:", embedder=Endless())
        kept.append(engine)
        task = asyncio.create_task(engine.remember("c", "tea"))
        await asyncio.sleep(0.1)
        task.cancel()

    asyncio.run(main())
    engine = kept[0]._engine  # noqa: SLF001 - its loop has ended
    until = time.monotonic() + 30
    while not engine.count("c") and time.monotonic() < until:
        time.sleep(0.01)
    assert engine.count("c") == 1
    assert engine.stats().unembedded == 1
    engine.close()


LEFT = """
import asyncio, sys, memkura

class Endless:
    id, dim = "endless", 3
    def embed(self, texts, *, kind):
        raise AssertionError
    async def aembed(self, texts, *, kind):
        await asyncio.Event().wait()

async def main():
    engine = await memkura.open_async(sys.argv[1], embedder=Endless())
    task = asyncio.create_task(engine.remember("c", "tea"))
    await asyncio.sleep(0.1)
    return engine, task

loop = asyncio.new_event_loop()
kept = loop.run_until_complete(main())
if sys.argv[2] == "closed":
    loop.close()
"""


@pytest.mark.parametrize("how", ["stopped", "closed"])
def test_process_ends_with_a_loop_that_was_left(store_path: Path, how: str) -> None:
    """Nobody runs the embedder to its end any more. The memory is kept without its vector."""
    subprocess.run([sys.executable, "-c", LEFT, store_path, how], stderr=subprocess.DEVNULL, timeout=20, check=True)
    with memkura.open(store_path, embedder=None) as engine:
        assert engine.count("c") == 1
        assert engine.stats().unembedded == 1


def test_loop_that_goes_on_later_has_its_answer(store_path: Path) -> None:
    """Between two runs of a loop its embedder is waited for, however long that takes."""
    loop = asyncio.new_event_loop()
    engine = loop.run_until_complete(memkura.open_async(store_path, embedder=AsyncToy()))
    task = loop.create_task(engine.remember("c", "tea"))
    loop.run_until_complete(asyncio.sleep(0))
    time.sleep(1)
    assert loop.run_until_complete(task).embedded
    loop.run_until_complete(engine.close())
    loop.close()


def test_handle_works_on_the_next_loop(store_path: Path) -> None:
    """An asynchronous embedder is awaited on the loop of whoever asks."""
    kept: list[memkura.AsyncEngine] = []

    async def begin() -> None:
        kept.append(await memkura.open_async(store_path, embedder=AsyncToy()))
        assert (await kept[0].remember("c", "tea")).embedded

    async def go_on() -> None:
        assert (await kept[0].remember("c", "coffee")).embedded
        assert not (await kept[0].recall("c", "tea")).degraded
        await kept[0].close()

    asyncio.run(begin())
    asyncio.run(go_on())
