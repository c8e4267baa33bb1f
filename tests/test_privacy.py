"""Private by default: whatever the umask, nobody else can read a store, and nothing is made outside of it."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import memkura
from memkura.testing import FrozenClock, ToyEmbedder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.skipif(os.name != "posix", reason="file modes are POSIX")


@pytest.fixture(params=[0o000, 0o022, 0o077], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    """What the process would leave open."""
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def _open_to_others(folder: Path) -> list[str]:
    """Every file that is not 0600 and every folder that is not 0700."""
    wrong = []
    paths = [folder, *folder.rglob("*")]
    assert len(paths) > 2
    for path in paths:
        mode = stat.S_IMODE(path.lstat().st_mode)
        if mode != (0o700 if path.is_dir() else 0o600):
            wrong.append(f"{path.relative_to(folder)} {mode:o}")
    return wrong


@pytest.mark.usefixtures("umask")
def test_every_file_of_a_store_is_private(tmp_path: Path) -> None:
    """After each use (writes, log, indexes, compact, reindex, purge, reopening) files are 0600 and folders 0700."""
    path = tmp_path / "agent.memkura"
    with memkura.open(path, embedder=ToyEmbedder(), clock=FrozenClock()) as engine:
        assert _open_to_others(path) == []
        rows = engine.remember_many([{"context_id": "c", "summary": f"tea of lot {number}"} for number in range(600)])
        engine.remember("another", "context")
        engine.recall("c", "tea")
        assert _open_to_others(path) == []
        engine.compact()
        engine.recall("c", "tea")
        assert (path / "index").is_dir()
        assert _open_to_others(path) == []
        engine.forget("c", rows[0], purge=True)
        engine.forget("c", filters={"memory_id": {"in": [str(row) for row in rows[1:300]]}})
        engine.maintain()
        engine.reindex(ToyEmbedder(12))
        engine.compact()
        assert _open_to_others(path) == []
    assert _open_to_others(path) == []
    with memkura.open(path, embedder=ToyEmbedder(12), clock=FrozenClock()) as engine:
        engine.recall("c", "tea")
        assert _open_to_others(path) == []
    assert [entry.name for entry in tmp_path.iterdir()] == ["agent.memkura"]


@pytest.mark.usefixtures("umask")
def test_folders_on_the_way_are_private(tmp_path: Path) -> None:
    """Parent folders that opening has to make are nobody else's either."""
    path = tmp_path / "deep" / "er" / "agent.memkura"
    memkura.open(path, embedder=None).close()
    for folder in (tmp_path / "deep", tmp_path / "deep" / "er", path):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_nothing_is_made_outside_the_store(tmp_path: Path) -> None:
    """Home, temporary folder and working directory stay as they were."""
    places = {name: tmp_path / name for name in ("home", "tmp", "work")}
    for place in places.values():
        place.mkdir()
    program = (
        "import sys, memkura\n"
        "with memkura.open(sys.argv[1], embedder=None) as engine:\n"
        "    engine.remember_many([{'context_id': 'c', 'summary': f'tea {n}'} for n in range(600)])\n"
        "    engine.recall('c', 'tea'); engine.compact(); engine.maintain()\n"
    )
    subprocess.run(
        [sys.executable, "-B", "-c", program, str(tmp_path / "store")],
        check=True,
        timeout=60,
        cwd=places["work"],
        env={"HOME": str(places["home"]), "TMPDIR": str(places["tmp"]), "PATH": ""},
    )
    for place in places.values():
        assert list(place.iterdir()) == []
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["home", "store", "tmp", "work"]
