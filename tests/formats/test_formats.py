"""Stores of every released schema open, and tell what they told when they were made."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path

import pytest
from make import NOW, told

import memkura
from memkura.testing import FrozenClock, ToyEmbedder

HERE = Path(__file__).parent
VERSIONS = sorted(path.stem for path in HERE.glob("*.json"))
assert VERSIONS, "the stores of each version are not there"


@pytest.mark.parametrize("version", VERSIONS)
def test_store_of_a_version_tells_what_it_told(tmp_path: Path, version: str) -> None:
    """Counts, texts, tiers, expiries, histories, hits and scores are the same; it is sound and takes writes."""
    store = tmp_path / "store"
    shutil.copytree(HERE / version, store)
    clock = FrozenClock(NOW)
    clock.advance(60)
    with memkura.open(store, embedder=ToyEmbedder(), clock=clock) as engine:
        assert told(engine) == json.loads((HERE / f"{version}.json").read_text(encoding="utf-8"))
        assert engine.doctor().is_sound
        engine.remember("ops", "one more")
        assert engine.recall("ops", "one more", k=1)[0].summary == "one more"


def test_present_version_is_kept(tmp_path: Path) -> None:
    """A new step of the schema comes with a store of it: run tests/formats/make.py."""
    memkura.open(tmp_path / "s", embedder=None).close()
    database = sqlite3.connect(tmp_path / "s" / "record.sqlite3")
    assert str(database.execute("PRAGMA user_version").fetchone()[0]) in VERSIONS
    database.close()
