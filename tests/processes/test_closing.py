"""Opening for the first time, and closing for good."""

from __future__ import annotations

import os
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
