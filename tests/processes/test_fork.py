"""Fork, spawn, pools and pickles: nobody hangs, nobody loses a row, and a handle does not travel."""

from __future__ import annotations

import concurrent.futures
import contextlib
import copy
import inspect
import itertools
import multiprocessing
import os
import pickle
import shutil
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import memkura
from asking import ids
from memkura import errors
from memkura.embedders.function import Function
from memkura.testing import FrozenClock, ToyEmbedder

if TYPE_CHECKING:
    from memkura import Engine

GUARD_SECONDS = 20
has_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
# Python warns of any fork beside threads; that this one is safe is what is tested.
beside_threads = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")


def _in_child(work: Any) -> None:
    """Forks, runs `work` in the child, and fails if it hangs, raises or dies."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        except BaseException as error:  # noqa: BLE001 - told to the parent by the status
            print(f"child: {type(error).__name__}: {error}", file=sys.stderr, flush=True)  # noqa: T201
        finally:
            os._exit(status)
    guard = threading.Timer(GUARD_SECONDS, os.kill, (child, 9))
    guard.start()
    _, status = os.waitpid(child, 0)
    guard.cancel()
    assert os.waitstatus_to_exitcode(status) == 0


@has_fork
@beside_threads
def test_forked_child_remembers_and_recalls_with_the_parents_handle(engine: Engine, store_path: Path) -> None:
    """Again and again: the child's row, the parent's and a later one of the parent are all there for both."""
    texts = []
    for number in range(100):
        mine, theirs, later = (f"{who} {number}" for who in ("parent", "child", "later"))
        engine.remember("c", mine)
        assert engine.recall("c", mine, k=1)[0].summary == mine

        def work(mine: str = mine, theirs: str = theirs) -> None:
            engine.remember("c", theirs)
            assert engine.recall("c", theirs, k=1)[0].summary == theirs
            assert engine.recall("c", mine, k=1)[0].summary == mine

        _in_child(work)
        engine.remember("c", later)
        texts += [mine, theirs, later]
    assert sorted(row.summary for row in engine.list("c", limit=1000)) == sorted(texts)
    for text in texts[-6:]:
        for leg in ("text", "vector"):
            # Toy vectors are coarse: some texts share one.
            assert text in {hit.summary for hit in engine.recall("c", text, legs=[leg], k=9)}
    with memkura.open(store_path, embedder=ToyEmbedder(), clock=FrozenClock()) as again:
        assert again.count("c") == len(texts)
        assert again.stats().unembedded == 0


@has_fork
@beside_threads
def test_fork_beside_busy_threads_harms_nobody(engine: Engine) -> None:
    """Threads that write and recall while the process forks go on, and the child works."""
    stop = threading.Event()
    failures: list[BaseException] = []
    written: list[str] = []

    def busy(name: str) -> None:
        number = 0
        try:
            while not stop.is_set():
                written.append(engine.remember("c", f"{name} {number}"))
                engine.recall("c", f"{name} {number}")
                number += 1
        except BaseException as error:  # noqa: BLE001 - told below
            failures.append(error)

    threads = [threading.Thread(target=busy, args=(f"thread{at}",)) for at in range(3)]
    for thread in threads:
        thread.start()
    try:
        for number in range(10):
            text = f"child {number}"

            def work(text: str = text) -> None:
                engine.remember("c", text)
                assert engine.recall("c", text, k=1)[0].summary == text

            _in_child(work)
    finally:
        stop.set()
        for thread in threads:
            thread.join(GUARD_SECONDS)
    assert failures == []
    assert not any(thread.is_alive() for thread in threads)
    assert engine.count("c") == len(written) + 10


@has_fork
@beside_threads
def test_child_need_not_wait_for_an_embedder_that_the_parent_is_in() -> None:
    """A lock of an embedder that a thread holds as the process forks is open in the child, which lacks that thread."""
    entered, go_on, parent = threading.Event(), threading.Event(), os.getpid()

    def slow(texts: list[str]) -> list[list[float]]:
        if os.getpid() == parent:
            entered.set()
            assert go_on.wait(GUARD_SECONDS)
        return [[1.0, 2.0] for _ in texts]

    embedder = Function(slow, name="slow-v1")
    with concurrent.futures.ThreadPoolExecutor() as pool:
        dimensions = pool.submit(lambda: embedder.dim)
        assert entered.wait(GUARD_SECONDS)

        def work() -> None:
            assert embedder.dim == 2

        _in_child(work)
        go_on.set()
        assert dimensions.result() == 2


@has_fork
def test_fork_inside_an_embedder_harms_nobody() -> None:
    """A function that forks while it is asked goes on in both."""
    children: list[int] = []

    def forking(texts: list[str]) -> list[list[float]]:
        children.append(os.fork())
        return [[1.0, 2.0] for _ in texts]

    embedder = Function(forking, name="forking-v1")
    try:
        assert embedder.dim == 2
        assert embedder.dim == 2
    except BaseException:
        if children == [0]:
            os._exit(1)
        raise
    if children == [0]:
        os._exit(0)
    _, status = os.waitpid(children[0], 0)
    assert os.waitstatus_to_exitcode(status) == 0


@has_fork
@beside_threads
def test_child_may_close_what_the_parent_uses(engine: Engine) -> None:
    """Closing in the child leaves the parent's handle open, and a closed one stays closed in a child."""
    row = engine.remember("c", "tea")
    _in_child(engine.close)
    assert ids(engine.recall("c", "tea")) == [row]
    engine.close()

    def work() -> None:
        with pytest.raises(errors.StoreClosed):
            engine.count("c")

    _in_child(work)


def _is_sealing() -> bool:
    """Whether a thread of this process seals."""
    for name in Path("/proc/self/task").glob("*/comm"):
        with contextlib.suppress(OSError):  # it ended meanwhile
            if "memkura-seal" in name.read_text():
                return True
    return False


@has_fork
@beside_threads
@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="looks into /proc")
def test_fork_lets_go_of_an_engine_that_only_its_sealing_thread_holds(store_path: Path) -> None:
    """A child gets no open file of a store whose engine was let go of while it was being sealed."""
    with memkura.open(store_path, embedder=None) as engine:
        engine.remember_many([{"context_id": "c", "summary": f"note {at} word{at % 97}"} for at in range(5_000)])

    def holds_nothing() -> None:
        open_files = [os.path.realpath(file) for file in Path("/proc/self/fd").iterdir()]
        assert not [file for file in open_files if file.startswith(str(store_path.resolve()))]
        with memkura.open(store_path, embedder=None) as engine:
            engine.remember("c", "child")

    met = 0
    for _ in range(20):
        shutil.rmtree(store_path / "index", ignore_errors=True)
        engine = memkura.open(store_path, embedder=None)
        engine.recall("c", "note 7")
        del engine
        met += _is_sealing()
        _in_child(holds_nothing)
    assert met > 0
    with memkura.open(store_path, embedder=None) as engine:
        assert engine.count("c") == 5_020


@has_fork
@beside_threads
def test_fork_beside_a_restore_harms_nobody(store_path: Path, tmp_path: Path) -> None:
    """A child of a process that makes a store of a backup in another thread works."""
    backup = tmp_path / "backup"
    with memkura.open(store_path, embedder=None) as engine:
        engine.remember_many([{"context_id": "c", "summary": f"note {at}"} for at in range(2_000)])
        engine.backup(backup)
    stop, failures = threading.Event(), []

    def restoring() -> None:
        try:
            for number in itertools.takewhile(lambda _: not stop.is_set(), itertools.count()):
                memkura.restore(backup, tmp_path / f"restored{number}")
        except BaseException as error:  # noqa: BLE001 - told below
            failures.append(error)

    def work() -> None:
        with memkura.open(":memory:", embedder=None) as engine:
            engine.remember("c", "child")
            assert engine.count("c") == 1

    thread = threading.Thread(target=restoring)
    thread.start()
    try:
        for _ in range(20):
            _in_child(work)
    finally:
        stop.set()
        thread.join(GUARD_SECONDS)
    assert failures == []


@has_fork
def test_fork_does_not_go_over_to_another_record(store_path: Path, tmp_path: Path) -> None:
    """ISO-1, DUR-4: a store restored in the place of the open one has other contexts under the same numbers."""
    with memkura.open(tmp_path / "other", embedder=None) as other:
        other.remember("bob", "bob's cherry")
        other.remember("alice", "alice's date")
        other.backup(tmp_path / "backup")
    with memkura.open(store_path, embedder=None) as engine:
        engine.remember("alice", "alice's apple")
        engine.remember("bob", "bob's banana")
        shutil.rmtree(store_path)
        memkura.restore(tmp_path / "backup", store_path)

        def refused() -> None:
            for verb in (
                lambda: engine.list("alice"),
                lambda: engine.recall("alice", "cherry"),
                lambda: engine.remember("alice", "new"),
            ):
                with pytest.raises(errors.StoreFailed):
                    verb()

        _in_child(refused)
        refused()
    with memkura.open(store_path, embedder=None) as engine:
        assert [row.summary for row in engine.list("alice")] == ["alice's date"]


@has_fork
@beside_threads
def test_grandchildren_work(engine: Engine) -> None:
    """A fork of a fork is as good."""
    engine.remember("c", "generation 0")

    def grandchild() -> None:
        engine.remember("c", "generation 2")

    def child() -> None:
        engine.remember("c", "generation 1")
        _in_child(grandchild)
        assert engine.count("c") == 3

    _in_child(child)
    assert sorted(row.summary for row in engine.list("c")) == ["generation 0", "generation 1", "generation 2"]


def _worker(path: str, number: int) -> str:
    with memkura.open(path, embedder=ToyEmbedder(), clock=FrozenClock()) as engine:
        row = engine.remember("c", f"worker {number}")
        assert engine.recall("c", f"worker {number}", k=1)[0].memory_id == row
        return str(row)


@pytest.mark.parametrize(
    "how", [how for how in ("spawn", "forkserver", "fork") if how in multiprocessing.get_all_start_methods()]
)
@beside_threads
def test_process_pool_of_every_kind_works(engine: Engine, store_path: Path, how: str) -> None:
    """Workers that open the store by its path remember and recall beside the parent's open handle."""
    parent = engine.remember("c", "parent")
    context = multiprocessing.get_context(how)
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
        rows = [pool.submit(_worker, str(store_path), number) for number in range(6)]
        written = [row.result(timeout=GUARD_SECONDS * 3) for row in rows]
    later = engine.remember("c", "later")
    assert set(ids(engine.list("c"))) == {parent, later, *written}
    for number, row in enumerate(written):
        assert ids(engine.recall("c", f"worker {number}", k=1)) == [row]


@pytest.mark.parametrize("copying", [pickle.dumps, copy.copy, copy.deepcopy], ids=["pickle", "copy", "deepcopy"])
def test_handle_does_not_travel(engine: Engine, copying: Any) -> None:
    """Pickling or copying an engine, or a context's handle, raises a TypeError that says what to do."""
    with pytest.raises(TypeError, match="path"):
        copying(engine)
    with pytest.raises(TypeError, match="path"):
        pickle.dumps(engine.context("c"))


def _exceptions() -> list[type[errors.MemkuraError]]:
    found = [one for _, one in inspect.getmembers(errors, inspect.isclass) if issubclass(one, errors.MemkuraError)]
    assert len(found) > 10
    return found


@pytest.mark.parametrize("kind", _exceptions())
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_exception_survives_pickling(kind: type[errors.MemkuraError], protocol: int) -> None:
    """Type, message and fields come through."""
    error = kind("is wrong", field="metadata.x", value="7", advice="Say it again")
    again = pickle.loads(pickle.dumps(error, protocol))  # noqa: S301 - our own
    assert type(again) is kind
    assert str(again) == str(error)
    assert (again.message, again.field, again.value, again.advice) == ("is wrong", "metadata.x", "7", "Say it again")
    assert again.args == error.args


def _fails(path: str) -> None:
    with memkura.open(path, embedder=None) as engine:
        engine.remember("c", "tea", metadata={"x": float("nan")})


def test_exception_of_the_engine_comes_through_a_pool(store_path: Path) -> None:
    """One that a worker raised arrives whole."""
    with multiprocessing.get_context("spawn").Pool(1) as pool, pytest.raises(errors.InvalidInput) as caught:
        pool.apply(_fails, (str(store_path),))
    assert caught.value.field == "metadata.x"
    assert caught.value.advice
