"""An open store in a process that forks, spawns, and closes."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import threading
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

import memkura
from memkura import errors
from memkura.testing import ToyEmbedder


def _write_and_find(path: str, word: str) -> bool:
    with memkura.open(path, embedder=ToyEmbedder(512)) as engine:
        engine.remember("c", word)
        return engine.recall("c", word, legs=["text"])[0].summary == word


@pytest.mark.parametrize("busy", [False, True], ids=["alone", "beside-busy-threads"])
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_forked_child_and_parent_go_on(store_path: Path, busy: bool) -> None:  # noqa: FBT001
    """After a fork the child writes and finds its own row, and the parent finds it too, whatever threads were doing."""
    done = threading.Event()
    with memkura.open(store_path, embedder=ToyEmbedder(512)) as engine:

        def work() -> None:
            while not done.is_set():
                engine.remember("other", "thread")
                engine.recall("other", "thread", k=1)

        threads = [threading.Thread(target=work) for _ in range(2 if busy else 0)]
        for thread in threads:
            thread.start()
        for turn in range(20):
            engine.remember("c", f"parent{turn}")
            engine.recall("c", "parent")
            child = os.fork()
            if child == 0:
                # Whatever happens, the child must not go on as a second test run.
                try:
                    engine.remember("c", f"child{turn}")
                    found = engine.recall("c", f"child{turn}", legs=["text"])[0].summary == f"child{turn}"
                    os._exit(0 if found else 1)
                except BaseException:  # noqa: BLE001
                    os._exit(2)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
            engine.remember("c", f"later{turn}")
            for word in (f"parent{turn}", f"child{turn}", f"later{turn}"):
                assert engine.recall("c", word, legs=["text"])[0].summary == word
        done.set()
        for thread in threads:
            thread.join()
        assert engine.count("c") == 60


@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
def test_process_pools_share_a_store(store_path: Path, method: str) -> None:
    """Workers of every start method write to one store, and the parent sees all of it."""
    with memkura.open(store_path, embedder=ToyEmbedder(512)) as engine:
        engine.remember("c", "parent")
        engine.recall("c", "parent")
        words = [f"worker{at}" for at in range(6)]
        with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(method)) as pool:
            assert all(pool.map(_write_and_find, [str(store_path)] * len(words), words))
        assert engine.count("c") == 7
        assert [engine.recall("c", word, legs=["text"])[0].summary for word in words] == words


def test_closing_lets_go_of_every_file(store_path: Path) -> None:
    """A closed store keeps no file open, can be closed again, refuses every later call, and can be made anew."""
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


def test_engine_is_opened_by_path_not_pickled(store_path: Path) -> None:
    """Pickling an engine says to open the store by its path instead."""
    with memkura.open(store_path, embedder=None) as engine, pytest.raises(TypeError, match="path"):
        pickle.dumps(engine)
