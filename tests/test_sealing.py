"""Sealed text indexes: copies that are never believed against the record."""

from __future__ import annotations

import fcntl
import shutil
from typing import TYPE_CHECKING

import pytest

import memkura
from memkura import errors
from memkura.testing import FrozenClock, ToyEmbedder

if TYPE_CHECKING:
    from pathlib import Path


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.mark.parametrize("sealed_before", [False, True])
def test_purged_text_leaves_every_file(store_path: Path, sealed_before: bool) -> None:  # noqa: FBT001
    """After a purge and `compact` no byte of the text is in any file, and the rest of the store is there."""
    with memkura.open(store_path, embedder=ToyEmbedder()) as engine:
        engine.remember_many([{"context_id": "c", "summary": f"filler {at}"} for at in range(100)])
        secret = engine.remember(
            "c", "kanpo7731 it is", content="kanpo7731", tags=["kanpo7731"], idempotency_key="kanpo7731"
        )
        engine.update_memory("c", secret, summary="the marker was kanpo7731")
        engine.recall("c", "warm")
        if sealed_before:
            engine.compact()
            assert any(b"kanpo7731" in path.read_bytes() for path in _files(store_path))
        engine.forget("c", secret, purge=True)
        engine.compact()
        assert not [path for path in _files(store_path) if b"kanpo7731" in path.read_bytes()]
        assert not len(engine.recall("c", "kanpo7731", legs=["text"]))
        assert engine.count("c") == 100
        assert [entry["action"] for entry in engine.history("c", secret)] == ["purge"]


def test_compact_does_not_pass_over_a_busy_sealer(store_path: Path) -> None:
    """While somebody else seals, `compact` waits and then says that it could not, instead of leaving purged words."""
    with memkura.open(store_path, embedder=None, busy_timeout=0.2) as engine:
        engine.remember("c", "one")
        engine.recall("c", "one")
        engine.compact()
        engine.remember("c", "two")
        (lock,) = store_path.glob("index/*/LOCK")
        with lock.open("w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            with pytest.raises(errors.StoreBusy):
                engine.compact()
        engine.compact()
        assert engine.stats().more["fresh_texts"] == 0


def test_index_of_another_past_is_not_believed(store_path: Path, tmp_path: Path) -> None:
    """When an older record is put back, a sealed index that knows later texts under the same row numbers is left."""
    with memkura.open(store_path, embedder=None) as engine:
        engine.remember("c", "first")
        engine.recall("c", "first")
        engine.compact()
    shutil.copy(store_path / "record.sqlite3", tmp_path / "older")
    with memkura.open(store_path, embedder=None) as engine:
        engine.remember("c", "zebra")
        engine.compact()
        assert engine.stats().more["sealed_texts"] == 2
    shutil.copy(tmp_path / "older", store_path / "record.sqlite3")
    with memkura.open(store_path, embedder=None) as engine:
        giraffe = engine.remember("c", "giraffe")
    with memkura.open(store_path, embedder=None) as engine:
        assert [hit.memory_id for hit in engine.recall("c", "giraffe")] == [giraffe]
        assert not len(engine.recall("c", "zebra"))


@pytest.mark.parametrize("harm", ["flipped", "cut", "removed", "folder-removed"])
def test_damaged_index_is_built_again(store_path: Path, clock: FrozenClock, harm: str) -> None:
    """A file of the index that lost or changed bytes changes no answer: the index is made again from the record."""
    with memkura.open(store_path, embedder=None, clock=clock) as engine:
        engine.remember_many([{"context_id": "c", "summary": f"word{at} common"} for at in range(200)])
        engine.recall("c", "warm")
        engine.compact()
        assert _files(store_path / "index")
        expected = [(hit.memory_id, hit.score) for hit in engine.recall("c", "word7 common")]
    for path in _files(store_path / "index"):
        whole = path.read_bytes()
        if harm == "flipped" and len(whole) > 4:
            path.write_bytes(
                whole[: len(whole) // 2] + bytes([whole[len(whole) // 2] ^ 0xFF]) + whole[len(whole) // 2 + 1 :]
            )
        elif harm == "cut":
            path.write_bytes(whole[: len(whole) // 2])
        elif harm == "removed" and path.suffix in {".idx", ".term"}:
            path.unlink()
    if harm == "folder-removed":
        shutil.rmtree(store_path / "index")
    with memkura.open(store_path, embedder=None, clock=clock) as engine:
        assert [(hit.memory_id, hit.score) for hit in engine.recall("c", "word7 common")] == expected
        engine.compact()
    with memkura.open(store_path, embedder=None, clock=clock) as engine:
        assert [(hit.memory_id, hit.score) for hit in engine.recall("c", "word7 common")] == expected
        assert engine.stats().more["sealed_texts"] == 200
