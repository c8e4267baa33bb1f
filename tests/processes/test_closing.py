"""Opening for the first time, and closing for good."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import memkura
from memkura import errors
from memkura.testing import ToyEmbedder


def test_closing_lets_go_of_every_file(store_path: Path) -> None:
    """A closed store keeps no file open or mapped, can be closed again, and refuses every later call."""
    engine = memkura.open(store_path, embedder=ToyEmbedder())
    engine.remember_many([{"context_id": "c", "summary": f"word{at}"} for at in range(50)])
    engine.compact()
    engine.recall("c", "word1")
    engine.close()
    engine.close()
    # The link of the folder that is being listed is gone by the time it is read.
    links = [link for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
    assert not [link for link in links if str(store_path) in str(link.readlink())]
    assert str(store_path) not in Path("/proc/self/maps").read_text()
    for verb in (lambda: engine.count("c"), lambda: engine.recall("c", "x"), lambda: engine.remember("c", "x")):
        with pytest.raises(errors.StoreClosed):
            verb()


@pytest.mark.parametrize("turn", range(5))
def test_many_may_open_a_new_store_at_once(tmp_path: Path, turn: int) -> None:
    """Hosts start a server twice: whoever opens a store that another is just making gets it, whole."""
    path = tmp_path / f"s{turn}.memkura"
    faults: list[BaseException] = []
    together = threading.Barrier(6)

    def work(name: str) -> None:
        try:
            together.wait()
            with memkura.open(path, embedder=None) as engine:
                engine.remember("c", name)
        except BaseException as fault:  # noqa: BLE001 - shown below
            faults.append(fault)

    threads = [threading.Thread(target=work, args=(f"word{at}",)) for at in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults
    with memkura.open(path, embedder=None) as engine:
        assert engine.count("c") == 6


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_threads_that_fork_together_harm_nobody(store_path: Path) -> None:
    """Two threads fork at once, again and again, beside one that writes: no child hangs and none misses its own row."""
    results: list[int] = []
    with memkura.open(store_path, embedder=None) as engine:
        engine.recall("c", "warm")

        def fork_often(name: str) -> None:
            for turn in range(8):
                child = os.fork()
                if child == 0:
                    try:
                        engine.remember("c", f"{name}x{turn}")
                        os._exit(0 if engine.recall("c", f"{name}x{turn}", legs=["text"]) else 1)
                    except BaseException:  # noqa: BLE001 - the child must not go on as a test run
                        os._exit(2)
                results.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

        threads = [threading.Thread(target=fork_often, args=(name,)) for name in ("ann", "ben")]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            engine.remember("other", "busy")
        assert results == [0] * 16
        assert engine.count("c") == 16


LEAVING = """
import io, sys, threading, time, memkura
from datetime import UTC, datetime

path, verb = sys.argv[1:]
begun = threading.Semaphore(0)

def busy():
    begun.release()
    for _ in range(20_000):
        pass

class Slow(list):
    def __iter__(self):
        busy()
        return super().__iter__()

class Stream(io.RawIOBase):
    def write(self, data):
        busy()
        return len(data)

class Embedder:
    id, dim = "busy", 3
    def embed(self, texts, *, kind):
        busy()
        return [[1.0, 2.0, 3.0] for _ in texts]

def clock():
    busy()
    return datetime.now(UTC)

class Last:
    def __del__(self, sleep=time.sleep):
        sleep(0.2)  # the interpreter is ending, and others may have it

def export():
    busy()
    engine.export(f"{path}.{threading.get_ident()}.jsonl")

engine = memkura.open(path, embedder=None, clock=clock if verb == "clock" else None)
engine.remember_many({"context_id": "c", "summary": f"memory {at}"} for at in range(300))
engine.export(f"{path}.jsonl")
verbs = {
    "clock": lambda: engine.count("c"),
    "export": export,
    "stream": lambda: engine.export(Stream()),
    "tags": lambda: engine.remember("c", "more", tags=Slow(["a"])),
    "embedding": lambda: engine.remember("c", "more", embedding=Slow(["a"])),
    "reindex": lambda: engine.reindex(Embedder(), progress=lambda *_: busy()),
    "import": lambda: (busy(), engine.import_file(f"{path}.jsonl", again=True)),
}

def work():
    while True:
        try:
            verbs[verb]()
        except memkura.MemkuraError:
            pass

sys.modules["__last"] = Last()
for _ in range(4):
    threading.Thread(target=work, daemon=True).start()
for _ in range(8):
    begun.acquire()
"""


@pytest.mark.parametrize("verb", ["clock", "export", "stream", "tags", "embedding", "reindex", "import"])
def test_interpreter_ends_beside_verbs_of_daemon_threads(store_path: Path, verb: str) -> None:
    """Whatever of Python they are calling just then. The store is whole afterwards."""
    ended = subprocess.run(
        [sys.executable, "-c", LEAVING, store_path, verb], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    with memkura.open(store_path, embedder=None) as engine:
        assert engine.count("c") >= 300
        assert engine.verify() == []
