"""Verify and doctor see what is wrong; a store of a stranger runs nothing."""

from __future__ import annotations

import itertools
import shutil
import sqlite3
import threading
import time
from typing import TYPE_CHECKING

import pytest

import memkura
from memkura import errors
from memkura.testing import ToyEmbedder

if TYPE_CHECKING:
    from pathlib import Path


def _meddle(store_path: Path, *statements: str) -> None:
    database = sqlite3.connect(store_path / "record.sqlite3")
    database.execute("PRAGMA writable_schema = on")
    with database:
        for statement in statements:
            database.execute(statement)
    database.close()


@pytest.fixture
def filled(store_path: Path) -> Path:
    with memkura.open(store_path, embedder=ToyEmbedder()) as engine:
        engine.remember_many([{"context_id": f"c{at % 3}", "summary": f"memory {at}"} for at in range(60)])
        engine.forget("c0", filters={"tags": {"exists": False}})
    return store_path


def test_sound_store_is_found_sound(filled: Path) -> None:
    """Drift is 0 in every context, grown, sealed and loaded again."""
    for _ in range(2):
        with memkura.open(filled, embedder=ToyEmbedder()) as engine:
            for change in (lambda: None, lambda: engine.remember("c1", "more"), engine.compact):
                change()
                health = engine.doctor()
                assert health.is_sound
                assert (health.drift, health.problems, dict(health.degraded)) == (0, (), {})
                assert health.compared == engine.stats().memories
            assert engine.verify() == []


def test_damage_to_the_record_is_told(filled: Path) -> None:
    """A row that an index of the database does not have, and one that names a context that is not there."""
    _meddle(filled, "PRAGMA foreign_keys = off", "UPDATE memory SET context = 99 WHERE row = 5")
    with memkura.open(filled, embedder=None) as engine:
        (problem,) = engine.verify()
        assert "context" in problem
        assert not engine.doctor().is_sound


def _planted(name: str, what: str, table: str = "memory", sql: str = "{}") -> str:
    """A row of the schema under a name that SQLite keeps for itself."""
    kind = "table" if what.startswith("VIRTUAL") else what.split(maxsplit=1)[0].lower()
    text = sql.format(f"'CREATE {what.format(name)}'")
    return f"INSERT INTO sqlite_schema VALUES ('{kind}', '{name}', '{table}', 0, {text})"  # noqa: S608 - of this test


PURGING = "TRIGGER {} AFTER INSERT ON memory BEGIN DELETE FROM memory; END"


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        (_planted("sqlite_stat8", PURGING), 'trigger "sqlite_stat8"'),
        (_planted("sqlite_stat1", PURGING), 'trigger "sqlite_stat1"'),
        (_planted("sqlite_sequence", PURGING), 'trigger "sqlite_sequence"'),
        (_planted("sqlite_autoindex_memory_2", PURGING), 'trigger "sqlite_autoindex_memory_2"'),
        (_planted("evil", PURGING, sql="CAST({} AS BLOB)"), "schema"),
        (_planted("sqlite_stat9", "VIEW {} AS SELECT * FROM memory", "sqlite_stat9"), 'view "sqlite_stat9"'),
        (_planted("sqlite_stat4", "VIRTUAL TABLE {} USING fts5(x)", "sqlite_stat4"), 'table "sqlite_stat4"'),
        (
            "INSERT INTO sqlite_schema SELECT * FROM sqlite_schema WHERE name = 'sqlite_autoindex_memory_1'",
            'index "sqlite_autoindex_memory_1"',
        ),
        ("CREATE TRIGGER evil AFTER INSERT ON memory BEGIN DELETE FROM memory; END", 'trigger "evil"'),
        ("CREATE VIEW evil AS SELECT * FROM memory", 'view "evil"'),
        ("CREATE INDEX evil ON memory (lower(summary))", 'index "evil"'),
        ("CREATE TABLE evil (x)", 'table "evil"'),
        ("CREATE VIRTUAL TABLE evil USING fts5(x)", 'table "evil'),
        ("ALTER TABLE memory ADD COLUMN evil TEXT", 'table "memory"'),
        ("DROP INDEX memory_context", "index"),
        ("PRAGMA application_id = 7", "application id 7"),
    ],
)
def test_store_of_a_stranger_is_refused(filled: Path, statement: str, named: str) -> None:
    """What was added, changed or taken away is named, and nothing of it runs or is written."""
    if statement.startswith("DROP"):
        database = sqlite3.connect(filled / "record.sqlite3")
        (index,) = database.execute("SELECT name FROM sqlite_schema WHERE type = 'index' AND sql NOT NULL").fetchone()
        database.close()
        statement = f"DROP INDEX {index}"
    _meddle(filled, statement)
    before = {path: path.read_bytes() for path in filled.rglob("*") if path.is_file()}
    with pytest.raises((errors.StoreTampered, errors.NotAStore), match=named):
        memkura.open(filled, embedder=None)
    assert {path: path.read_bytes() for path in filled.rglob("*") if path.is_file()} == before


def test_statistics_of_the_database_are_no_tampering(filled: Path) -> None:
    """``ANALYZE`` adds tables of its own."""
    _meddle(filled, "ANALYZE")
    with memkura.open(filled, embedder=None) as engine:
        assert engine.doctor().is_sound


def test_newer_store_is_not_touched(filled: Path) -> None:
    """The error names both versions; no byte has changed and no side file is there."""
    database = sqlite3.connect(filled / "record.sqlite3")
    database.execute("PRAGMA user_version = 99")
    database.close()
    before = {path: path.read_bytes() for path in filled.rglob("*") if path.is_file()}
    with pytest.raises(errors.SchemaTooNew, match=r"99.*1"):
        memkura.open(filled, embedder=None)
    assert {path: path.read_bytes() for path in filled.rglob("*") if path.is_file()} == before


def test_doctor_sees_drift(filled: Path) -> None:
    """A record that was changed behind the log is not what the loaded index shows."""
    with memkura.open(filled, embedder=None) as engine:
        engine.count("c1")
        _meddle(filled, "UPDATE memory SET summary = 'changed behind', version = version + 1 WHERE row = 2")
        assert engine.doctor().drift == 1


def test_what_others_write_meanwhile_is_no_drift(store_path: Path) -> None:
    """Beside a writer that never stops, in the same process and in another handle."""
    with memkura.open(store_path, embedder=None) as engine, memkura.open(store_path, embedder=None) as other:
        made = engine.remember_many({"context_id": "c", "summary": f"memory {at}"} for at in range(3_000))
        stop = threading.Event()

        def write() -> None:
            for at in itertools.count():
                if stop.is_set():
                    return
                other.remember("c", f"more {at}")
                other.update_memory("c", made[at % 3_000], summary=f"changed {at}")

        writer = threading.Thread(target=write)
        writer.start()
        try:
            found = [engine.doctor() for _ in range(3)]
        finally:
            stop.set()
            writer.join()
        assert [health.drift for health in found] == [0, 0, 0]
        assert all(health.compared >= 3_000 for health in found)
        assert engine.count("c") > 3_003


def test_doctor_writes_no_file(store_path: Path) -> None:
    """Not even a sealed index, which is due in a large context that has none."""
    with memkura.open(store_path, embedder=None) as engine:
        engine.remember_many({"context_id": "c", "summary": f"memory {at}"} for at in range(6_000))
    index = store_path / "index"
    shutil.rmtree(index, ignore_errors=True)
    with memkura.open(store_path, embedder=None) as engine:
        assert engine.doctor().is_sound
        time.sleep(0.5)
        assert not index.exists()
        # It was due, as the next write shows.
        engine.remember("c", "one more")
        until = time.monotonic() + 20
        while not index.exists():
            assert time.monotonic() < until
            time.sleep(0.01)
