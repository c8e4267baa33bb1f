"""What a store leaves on disk, and who may read it."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

import memkura
from memkura.testing import ToyEmbedder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def _no_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.mark.usefixtures("_no_umask")
def test_store_is_for_its_owner_alone(store_path: Path) -> None:
    """Under any umask every file is 0600 and every folder 0700, sealed indexes too, and nothing lies outside."""
    with memkura.open(store_path, embedder=ToyEmbedder()) as engine:
        engine.remember_many([{"context_id": "c", "summary": f"word{at}"} for at in range(50)])
        engine.recall("c", "word")
        engine.compact()
        engine.remember("c", "one more")
        inside = list(store_path.rglob("*"))
        assert any(path.name.endswith("-wal") for path in inside)
        assert any("index" in path.parts for path in inside)
        for path in [store_path, *inside]:
            mode = stat.S_IMODE(path.stat().st_mode)
            assert mode == (0o700 if path.is_dir() else 0o600), path
    assert [path.name for path in store_path.parent.iterdir()] == [store_path.name]


@pytest.mark.parametrize("sealed_before", [False, True])
def test_purged_text_leaves_every_file(store_path: Path, sealed_before: bool) -> None:  # noqa: FBT001
    """After a purge and `compact` no byte of the text is in any file, and the rest of the store is there."""
    with memkura.open(store_path, embedder=ToyEmbedder()) as engine:
        engine.remember_many([{"context_id": "c", "summary": f"filler {at}"} for at in range(100)])
        secret = engine.remember("c", "the marker is kanpo7731", content="kanpo7731 once more", tags=["kanpo7731"])
        engine.update_memory("c", secret, summary="the marker was kanpo7731")
        if sealed_before:
            engine.compact()
            assert any(b"kanpo7731" in path.read_bytes() for path in _files(store_path))
        engine.forget("c", secret, purge=True)
        engine.compact()
        assert not [path for path in _files(store_path) if b"kanpo7731" in path.read_bytes()]
        assert engine.get("c", secret) is None
        assert not len(engine.recall("c", "kanpo7731", legs=["text"]))
        assert engine.count("c") == 100
        assert [entry["action"] for entry in engine.history("c", secret)] == ["purge"]
    with memkura.open(store_path, embedder=ToyEmbedder()) as engine:
        assert engine.count("c") == 100
