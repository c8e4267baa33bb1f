"""Makes a store as the present build writes it, and what it tells, to be kept for every later build to read.

    python tests/formats/make.py

Run it once for each new version of the schema; folders that are there are never written again.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import memkura
from memkura.testing import FrozenClock, ToyEmbedder

if TYPE_CHECKING:
    from memkura import Engine

HERE = Path(__file__).parent
NOW = datetime(2030, 1, 1, tzinfo=UTC)


def told(engine: Engine) -> dict[str, Any]:
    """Everything that a store tells, in a form for JSON."""
    said: dict[str, Any] = {"stats": {"memories": engine.stats().memories, "contexts": engine.stats().contexts}}
    for context in engine.contexts():
        name = context["context_id"]
        memories = engine.list(name)
        hits = engine.recall(name, "tea 検索 deploy", k=20, include_superseded=True)
        said[name] = {
            "origin": context["origin"],
            "memories": [memory.as_dict() for memory in memories],
            "histories": [engine.history(name, memory.memory_id) for memory in memories],
            "hits": [(hit.memory_id, round(hit.score, 6)) for hit in hits],
        }
    again: dict[str, Any] = json.loads(json.dumps(said, default=str))
    return again


def fill(engine: Engine, clock: FrozenClock) -> None:
    """One of everything."""
    engine.remember("ops", "Deploys go out on Tuesday", tags=["deploy"], key="deploy.day", metadata={"n": 2**53 + 1})
    engine.remember("ops", "Deploys go out on Monday", key="Deploy.Day", metadata={"list": [1, 1.0, True, None, "1"]})
    engine.remember("ops", "週次レビューで検索の再現率を確認した", "本文", type="fact", session="s1", event_time=NOW)
    old = engine.remember("ops", "tea is brewed at 80 degrees", importance=0.9, decay_rate=0.5)
    engine.remember("ops", "tea is brewed at 70 degrees", supersedes=old, derived_from=[old], confidence=1.0)
    engine.remember("ops", "this expires", expires_at=NOW + timedelta(days=365))
    engine.remember("ops", "always at hand", delivery_mode="always", proof="said so", idempotency_key="once")
    engine.forget("ops", engine.remember("ops", "forgotten tea"))
    engine.forget("ops", engine.remember("ops", "purged tea"), purge=True)
    clock.advance(60)
    engine.update_memory("ops", engine.list("ops")[1].memory_id, summary="レビュー、検索")
    engine.create_context("web", origin="external")
    engine.remember("web", "a page about tea")


def main() -> None:
    """Makes the folder of the present version, unless it is there."""
    clock = FrozenClock(NOW)
    making = HERE / "making"
    with memkura.open(making, embedder=ToyEmbedder(), clock=clock) as engine:
        fill(engine, clock)
        expected = told(engine)
    database = sqlite3.connect(making / "record.sqlite3")
    (version,) = database.execute("PRAGMA user_version").fetchone()
    database.close()
    kept = HERE / str(version)
    if kept.exists():
        shutil.rmtree(making)
        raise SystemExit(f"{kept} is there already")
    making.rename(kept)
    (kept / "reserve").unlink(missing_ok=True)
    (HERE / f"{version}.json").write_text(json.dumps(expected, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
