"""Backups: one file, whole while others write, from which the same store is made again."""

from __future__ import annotations

import os
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

import memkura
from asking import ids
from memkura import errors
from memkura.testing import FrozenClock, ToyEmbedder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from memkura import Engine

NEVER = "a word that was purged: kanpo-7731"


@pytest.fixture
def backup(engine: Engine, tmp_path: Path) -> Path:
    """Of a store in which everything has happened once."""
    engine.remember("ann", "tea is green", key="tea", tags=["drink"], metadata={"n": 9007199254740993})
    engine.remember("ann", "tea is black", key="tea")
    old = engine.remember("ben", "coffee is hot", event_time=FrozenClock()())
    engine.remember("ben", "coffee is cold", supersedes=old, derived_from=[old])
    engine.forget("ben", engine.remember("ben", "forgotten"))
    engine.forget("ben", engine.remember("ben", NEVER), purge=True)
    engine.backup(tmp_path / "backup")
    return tmp_path / "backup"


def _told(engine: Engine) -> object:
    """Everything that can be asked about the memories of the store."""
    told: list[object] = []
    for context in ("ann", "ben"):
        memories = engine.list(context)
        told.append([memory.as_dict() for memory in memories])
        told.append([engine.history(context, memory.memory_id) for memory in memories])
        told.append(engine.recall(context, "is tea or coffee hot", include_superseded=True, explain=True).as_dicts())
    return told


def test_restored_store_is_the_same(engine: Engine, backup: Path, tmp_path: Path, clock: FrozenClock) -> None:
    """Ids, texts, keys, histories, hits and scores; and it takes writes."""
    memkura.restore(backup, tmp_path / "again")
    with memkura.open(tmp_path / "again", embedder=ToyEmbedder(), clock=clock) as again:
        assert _told(again) == _told(engine)
        assert again.doctor().is_sound
        again.remember("ann", "one more")
        assert again.count("ann") == engine.count("ann") + 1


def test_backup_is_one_private_file(backup: Path, tmp_path: Path) -> None:
    """No side files, for its owner alone, a plain database without a byte of what was purged."""
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    assert {path.name for path in tmp_path.iterdir()} == {"agent.memkura", "backup"}
    assert NEVER.encode() not in backup.read_bytes()
    database = sqlite3.connect(f"file:{backup}?mode=ro", uri=True)
    assert database.execute("PRAGMA journal_mode").fetchone() != ("wal",)
    assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    database.close()


def test_backup_holds_what_was_written_before_it(store_path: Path, tmp_path: Path) -> None:
    """With a writer at work, every row that was acknowledged before the call is in it."""
    written: list[str] = []
    is_done = threading.Event()

    def write() -> None:
        while not is_done.is_set():
            written.append(engine.remember("c", f"memory {len(written)}"))

    with memkura.open(store_path, embedder=None) as engine:
        writer = threading.Thread(target=write)
        writer.start()
        before = []
        for number in range(5):
            while len(written) < 20 * number:
                pass
            before.append(list(written))
            engine.backup(tmp_path / f"backup{number}")
        is_done.set()
        writer.join()
    for number, acknowledged in enumerate(before):
        memkura.restore(tmp_path / f"backup{number}", tmp_path / f"store{number}")
        with memkura.open(tmp_path / f"store{number}", embedder=None) as again:
            kept = ids(again.list("c", limit=10_000))
            assert kept[: len(acknowledged)] == acknowledged
            assert again.verify() == []


def test_nothing_is_overwritten(engine: Engine, backup: Path, store_path: Path, tmp_path: Path) -> None:
    """Neither a file, nor a store, nor a folder with other things."""
    before = backup.read_bytes()
    with pytest.raises(errors.StoreError, match="there already"):
        engine.backup(backup)
    with pytest.raises(errors.StoreError, match="there already"):
        memkura.restore(backup, store_path)
    with pytest.raises(errors.NotAStore, match="other files"):
        memkura.restore(backup, tmp_path)
    assert backup.read_bytes() == before
    assert engine.verify() == []
    assert not [path for path in tmp_path.iterdir() if path.name not in {"agent.memkura", "backup"}]


def test_backup_to_where_nothing_can_be_is_refused(engine: Engine, tmp_path: Path) -> None:
    """The message names the place; nothing is left."""
    for place in (tmp_path / "none" / "backup", tmp_path):
        with pytest.raises(errors.StoreError, match=str(tmp_path)):
            engine.backup(place)
    assert {path.name for path in tmp_path.iterdir()} == {"agent.memkura"}


def test_store_in_memory_is_backed_up_into_a_file(tmp_path: Path) -> None:
    """And restored as any other."""
    with memkura.open(":memory:", embedder=None) as engine:
        row = engine.remember("ann", "tea")
        engine.backup(tmp_path / "back up #1?%")
    assert stat.S_IMODE((tmp_path / "back up #1?%").stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["back up #1?%"]
    memkura.restore(tmp_path / "back up #1?%", tmp_path / "again")
    with memkura.open(tmp_path / "again", embedder=None) as again:
        assert ids(again.list("ann")) == [row]


def test_backup_into_a_store_is_refused(engine: Engine, store_path: Path, tmp_path: Path) -> None:
    """Its own or another one, through a link too, as an export is."""
    (tmp_path / "link").symlink_to(store_path)
    memkura.open(tmp_path / "other", embedder=None).close()
    before = set(tmp_path.rglob("*"))
    for folder in (store_path, store_path / "index", tmp_path / "link", tmp_path / "other"):
        with pytest.raises(errors.InvalidInput, match="lies in a store"):
            engine.backup(folder / "backup")
        with pytest.raises(errors.InvalidInput, match="lies in a store"):
            engine.export(folder / "rows.jsonl")
    assert set(tmp_path.rglob("*")) == before


def test_long_names_leave_room_for_what_is_being_made(engine: Engine, tmp_path: Path) -> None:
    """A name may be as long as the file system takes it."""
    engine.remember("ann", "tea")
    engine.backup(tmp_path / ("b" * 255))
    engine.export(tmp_path / ("e" * 255))
    assert {path.name[:1] for path in tmp_path.iterdir() if len(path.name) == 255} == {"b", "e"}


_RESTORING = "import memkura, sys; memkura.restore(*sys.argv[1:])"


@pytest.fixture
def left(engine: Engine, tmp_path: Path) -> Iterator[tuple[Path, subprocess.Popen[bytes]]]:
    """A folder with what a restore leaves that is stopped at its work, and the process."""
    engine.remember_many({"context_id": "ann", "summary": f"row {at} {'x' * 300}"} for at in range(5_000))
    engine.backup(tmp_path / "large")
    command = [sys.executable, "-c", _RESTORING, str(tmp_path / "large"), str(tmp_path / "again")]
    with subprocess.Popen(command) as restoring:
        while not list(tmp_path.glob("again/*.incomplete")):
            assert restoring.poll() is None
        restoring.send_signal(signal.SIGSTOP)
        yield tmp_path / "again", restoring
        restoring.kill()


def _leavings(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.startswith("record.sqlite3.")]


def _restored(folder: Path) -> None:
    memkura.restore(folder.with_name("large"), folder)


def _opened(folder: Path) -> None:
    memkura.open(folder, embedder=None).close()


@pytest.mark.skipif(sys.platform == "win32", reason="no signals")
@pytest.mark.parametrize("then", [_restored, _opened])
def test_killed_restore_is_in_nobodys_way(
    left: tuple[Path, subprocess.Popen[bytes]], then: Callable[[Path], None]
) -> None:
    """What it has left stays while it is at work, and goes with the next who comes afterwards."""
    folder, restoring = left
    assert len(_leavings(folder)) == 1
    then(folder)
    assert len(_leavings(folder)) == 1
    restoring.kill()
    restoring.wait()
    # As an earlier build named them.
    (folder / "record.sqlite3.0123456789abcdef-journal").write_bytes(b"")
    with memkura.open(folder, embedder=None) as engine:
        assert _leavings(folder) == []
        assert engine.verify() == []


def _newer(file: Path) -> None:
    database = sqlite3.connect(file)
    database.execute("PRAGMA user_version = 99")
    database.close()


def _negative(file: Path) -> None:
    database = sqlite3.connect(file)
    database.execute("PRAGMA user_version = -1")
    database.close()


def _trigger(file: Path) -> None:
    database = sqlite3.connect(file)
    database.execute("CREATE TRIGGER evil AFTER INSERT ON memory BEGIN DELETE FROM purged; END")
    database.close()


def _cut(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def _other(file: Path) -> None:
    file.write_bytes(b"not a database at all" * 1000)


def _empty(file: Path) -> None:
    file.write_bytes(b"")


@pytest.mark.parametrize(
    ("harm", "error"),
    [
        (_newer, errors.SchemaTooNew),
        (_negative, errors.NotAStore),
        (_trigger, errors.StoreTampered),
        (_cut, errors.StoreDamaged),
        (_other, errors.NotAStore),
        (_empty, errors.NotAStore),
    ],
)
def test_harmed_backup_is_refused(
    backup: Path, tmp_path: Path, harm: Callable[[Path], None], error: type[Exception]
) -> None:
    """It is examined whole before a store is made of it; nothing is left behind."""
    harm(backup)
    with pytest.raises(error):
        memkura.restore(backup, tmp_path / "again")
    assert not (tmp_path / "again").exists()
    (tmp_path / "again").mkdir()
    with pytest.raises(error):
        memkura.restore(backup, tmp_path / "again")
    assert not list((tmp_path / "again").iterdir())


@pytest.mark.parametrize("harm", [_negative, _other, _empty])
def test_what_is_no_backup_is_named(backup: Path, tmp_path: Path, harm: Callable[[Path], None]) -> None:
    """With what restore takes."""
    harm(backup)
    with pytest.raises(errors.NotAStore, match=f"{backup} is .*Give a file that backup made"):
        memkura.restore(backup, tmp_path / "again")


@pytest.mark.parametrize("mode", [0o444, 0o644])
def test_restored_store_is_its_owners_alone(backup: Path, tmp_path: Path, mode: int) -> None:
    """Whoever may read the backup."""
    backup.chmod(mode)
    memkura.restore(backup, tmp_path / "again")
    assert stat.S_IMODE((tmp_path / "again" / "record.sqlite3").stat().st_mode) == 0o600


def test_database_of_a_store_is_no_backup(engine: Engine, store_path: Path, tmp_path: Path) -> None:
    """Its latest writes are in the log beside it."""
    engine.remember("ann", "tea")
    with pytest.raises(errors.NotAStore, match="backup"):
        memkura.restore(store_path / "record.sqlite3", tmp_path / "again")
    with pytest.raises(errors.NotAStore, match="is no file"):
        memkura.restore(store_path, tmp_path / "again")
    assert engine.recall("ann", "tea")


def test_link_that_leads_nowhere_is_in_the_way(engine: Engine, tmp_path: Path) -> None:
    """What stands at the destination is not replaced, whatever it is, and a name that cannot be is refused by name."""
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    (tmp_path / "one").symlink_to(tmp_path / "other")
    (tmp_path / "other").symlink_to(tmp_path / "one")
    for name in ("one", "one/within", "n" * 300):
        for write in (engine.backup, engine.export):
            with pytest.raises(errors.MemkuraError, match=name[:3]):
                write(tmp_path / name)
    with pytest.raises(errors.StoreError, match="is there already"):
        engine.backup(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert not (tmp_path / "nowhere").exists()
