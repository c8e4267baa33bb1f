"""Where a store may lie: read-only media are read and not touched, network file systems are refused."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import memkura
from asking import ids
from memkura import errors
from memkura.testing import ToyEmbedder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from memkura import Engine


def _mount(*arguments: object) -> bool:
    command = ["mount", *map(str, arguments)]
    return sys.platform == "linux" and not subprocess.run(command, check=False, capture_output=True).returncode


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small file system of its own, which can be made read-only."""
    disk = tmp_path / "disk #1?%"
    disk.mkdir()
    if not _mount("-t", "tmpfs", "-o", "size=16M", "tmpfs", disk):
        pytest.skip("only root can mount a small file system")
    yield disk
    subprocess.run(["umount", disk], check=True)


def _bytes(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_read_only_media_are_read_and_not_touched(disk: Path) -> None:
    """Every read works, sealed index and all; every write says why not; not a byte is different afterwards."""
    with memkura.open(disk / "s", embedder=ToyEmbedder()) as engine:
        row = engine.remember("c", "tea is brewed at 80 degrees", key="tea")
        engine.remember_many([{"context_id": "c", "summary": f"memory {number}"} for number in range(50)])
        engine.compact()
    assert _mount("-o", "remount,ro", disk)
    before = _bytes(disk)
    with memkura.open(disk / "s", embedder=ToyEmbedder()) as engine:
        for legs in (["text"], ["vector"], None):
            assert ids(engine.recall("c", "tea brewed", k=1, legs=legs)) == [row]
        assert engine.get("c", key="tea") is not None
        assert (engine.count("c"), len(engine.list("c"))) == (51, 51)
        assert len(engine.history("c", row)) == 1
        assert engine.doctor().is_sound
        _refuse_writes(engine, row)
    assert _bytes(disk) == before
    with pytest.raises(errors.StoreError):
        memkura.open(disk / "new", embedder=None)


def test_log_that_cannot_be_read_is_named(disk: Path, tmp_path: Path) -> None:
    """A copy of an open store, without the memory that its processes share, on a file system that nobody writes to."""
    with memkura.open(tmp_path / "s", embedder=None) as engine:
        engine.remember("c", "tea")
        shutil.copytree(tmp_path / "s", disk / "s", ignore=shutil.ignore_patterns("*-shm"))
    assert (disk / "s" / "record.sqlite3-wal").stat().st_size > 0
    assert _mount("-o", "remount,ro", disk)
    with pytest.raises(errors.StoreReadOnly, match="sqlite3-wal cannot be read"):
        memkura.open(disk / "s", embedder=None)


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _dangling(path: Path) -> None:
    path.symlink_to("nowhere")


@pytest.mark.skipif(sys.platform == "win32", reason="no pipes and links among files")
@pytest.mark.parametrize("suffix", ["-journal", "-wal", "-shm"])
@pytest.mark.parametrize("put", [_pipe, Path.mkdir, _dangling])
def test_what_is_no_file_beside_the_record_is_named(tmp_path: Path, suffix: str, put: Callable[[Path], None]) -> None:
    """At once: SQLite would wait for the other end of a pipe."""
    memkura.open(tmp_path / "s", embedder=None).close()
    path = tmp_path / "s" / f"record.sqlite3{suffix}"
    put(path)
    with pytest.raises(errors.NotAStore, match=f"sqlite3{suffix} is no plain file"):
        memkura.open(tmp_path / "s", embedder=None)
    path.rmdir() if path.is_dir() else path.unlink()
    memkura.open(tmp_path / "s", embedder=None).close()


@pytest.mark.skipif(sys.platform == "win32", reason="no pipes among files")
def test_record_that_is_a_pipe_is_named(tmp_path: Path) -> None:
    """The same of the record itself."""
    (tmp_path / "s").mkdir()
    os.mkfifo(tmp_path / "s" / "record.sqlite3")
    with pytest.raises(errors.NotAStore, match="sqlite3 is no plain file"):
        memkura.open(tmp_path / "s", embedder=None)


@pytest.mark.skipif(sys.platform == "win32", reason="no count of names")
def test_record_of_two_folders_is_refused_in_both(tmp_path: Path) -> None:
    """A copy made of hard links: each folder has a log of its own, and takes back what the other has written."""
    place, linked = tmp_path / "s", tmp_path / "linked"
    with memkura.open(place, embedder=None) as engine:
        engine.remember("c", "tea")
    shutil.copytree(place, linked, copy_function=os.link)
    before = _bytes(tmp_path)
    for folder in (place, linked):
        with pytest.raises(errors.StoreError, match=r"record.sqlite3 has another name .*memkura backup"):
            memkura.open(folder, embedder=None)
    assert _bytes(tmp_path) == before
    shutil.copytree(linked, tmp_path / "copy")
    shutil.rmtree(linked)
    for folder in (place, tmp_path / "copy"):
        with memkura.open(folder, embedder=None) as engine:
            assert engine.count("c") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
def test_record_that_is_a_link_is_refused(tmp_path: Path) -> None:
    """Its log would lie beside another file. A link to the whole folder does no harm."""
    with memkura.open(tmp_path / "s", embedder=None) as engine:
        engine.remember("c", "tea")
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "record.sqlite3").symlink_to(tmp_path / "s" / "record.sqlite3")
    with pytest.raises(errors.StoreError, match=r"record.sqlite3 is a link, .*memkura backup"):
        memkura.open(tmp_path / "linked", embedder=None)
    (tmp_path / "folder").symlink_to(tmp_path / "s")
    with memkura.open(tmp_path / "folder", embedder=None) as engine:
        assert engine.count("c") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="no count of names")
def test_restore_killed_at_its_end_leaves_a_store_that_opens(tmp_path: Path) -> None:
    """The copy, which was given the record's name, had kept its own."""
    memkura.open(tmp_path / "s", embedder=None).close()
    left = tmp_path / "s" / "record.sqlite3.0123456789abcdef.incomplete"
    os.link(tmp_path / "s" / "record.sqlite3", left)
    memkura.open(tmp_path / "s", embedder=None).close()
    assert not left.exists()


def test_record_with_two_names_is_read_on_read_only_media(disk: Path) -> None:
    """Nobody writes to either."""
    with memkura.open(disk / "s", embedder=None) as engine:
        engine.remember("c", "tea")
    os.link(disk / "s" / "record.sqlite3", disk / "another")
    assert _mount("-o", "remount,ro", disk)
    with memkura.open(disk / "s", embedder=None) as engine:
        assert engine.count("c") == 1


AS_NOBODY = """
import os, sys, memkura
memkura.open(":memory:", embedder=None).close()
os.setgid(65534)
os.setuid(65534)
try:
    memkura.open(sys.argv[1], embedder=None)
except memkura.StoreReadOnly as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize(
    ("name", "mode", "ended"),
    [
        ("", 0o500, "closed"),
        ("", 0, "closed"),
        ("record.sqlite3", 0o400, "closed"),
        ("record.sqlite3", 0o200, "closed"),
        ("", 0o500, "killed"),
        ("record.sqlite3", 0o400, "killed"),
        ("record.sqlite3-wal", 0o400, "killed"),
        ("record.sqlite3-shm", 0o400, "killed"),
    ],
)
def test_store_that_one_may_not_write_to_is_refused(name: str, mode: int, ended: str) -> None:
    """By the name of what it is that may not be written, and with what to do; not by what SQLite makes of it."""
    end = {"closed": "engine.close()", "killed": "os.kill(os.getpid(), 9)"}[ended]
    begin = f"import os, sys, memkura; engine = memkura.open(sys.argv[1], None); engine.remember('c', 'tea'); {end}"
    with tempfile.TemporaryDirectory() as above:  # pytest's own folders are closed to others
        store = Path(above) / "s"
        subprocess.run([sys.executable, "-c", begin, store], check=False)
        for path in (Path(above), store, *store.rglob("*")):
            os.chown(path, 65534, 65534)
        (store / name).chmod(mode)
        ran = subprocess.run([sys.executable, "-c", AS_NOBODY, store], capture_output=True, text=True, check=True)
        assert ran.stdout.startswith(f"{store / name} may not be read and written by this user. Open it as")


def _refuse_writes(engine: Engine, row: str) -> None:
    for write in (
        lambda: engine.remember("c", "more"),
        lambda: engine.remember("another", "more"),
        lambda: engine.update_memory("c", row, summary="changed"),
        lambda: engine.forget("c", row),
        lambda: engine.forget("c", row, purge=True),
        lambda: engine.create_context("d"),
        lambda: engine.reindex(ToyEmbedder(8)),
        engine.compact,
        engine.maintain,
    ):
        with pytest.raises(errors.StoreReadOnly):
            write()


def test_local_disk_is_no_network(tmp_path: Path) -> None:
    """The switch changes nothing there."""
    for allowed in (False, True):
        with memkura.open(tmp_path / "s", embedder=None, allow_network=allowed) as engine:
            engine.remember("c", "tea")
    assert (tmp_path / "s").exists()


def test_store_stays_where_it_was_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a relative path, in a process that then goes elsewhere."""
    monkeypatch.chdir(tmp_path)
    with memkura.open("s", embedder=None) as engine:
        engine.remember("c", "before")
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        engine.remember("c", "after")
        engine.maintain()
        engine.compact()
        assert engine.count("c") == 2
    assert not list((tmp_path / "elsewhere").iterdir())


def test_store_that_was_replaced_answers_nothing_of_the_other(tmp_path: Path) -> None:
    """Another store is put in the place of an open one: no read shows a row of it."""
    place, moved = tmp_path / "s", tmp_path / "moved"
    with memkura.open(place, embedder=None) as engine:
        engine.remember("c", "mine", key="k")
        place.rename(moved)
        with memkura.open(place, embedder=None) as other:
            other.remember("c", "another's", key="k")

        def look(_: int) -> str | None:
            try:
                memory = engine.get("c", key="k")
            except errors.StoreFailed:
                return None
            return None if memory is None else memory.summary

        with ThreadPoolExecutor(8) as threads:
            assert set(threads.map(look, range(400))) <= {"mine", None}
        with pytest.raises(errors.StoreFailed):
            engine.remember("c", "more")
