"""Looking at a store in every way there is: each read verb, each leg, now and in later lives of the store."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import memkura
from memkura.testing import FrozenClock, ToyEmbedder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from memkura import Engine

    Look = Callable[..., dict[str, Any]]

HERE = Path(__file__).parent
LEGS: dict[str, tuple[str, ...] | None] = {"text": ("text",), "vector": ("vector",), "fused": None}
# Each leg on its own, and all together.
each_leg = pytest.mark.parametrize("legs", list(LEGS.values()), ids=list(LEGS))


def ids(found: Iterable[Any]) -> list[str]:
    """The ids of hits or memories, in order."""
    return [one.memory_id for one in found]


def texts(found: Iterable[Any]) -> list[str]:
    """The summaries of hits or memories, in order."""
    return [one.summary for one in found]


def seen(engine: Engine, context_id: str, query: str, known: Sequence[str] = (), k: int = 10) -> dict[str, Any]:
    """What every read verb shows: ids per leg, listed ids, the count, and the summary of each `known` id."""
    answers: dict[str, Any] = {leg: ids(engine.recall(context_id, query, k=k, legs=legs)) for leg, legs in LEGS.items()}
    answers["list"] = ids(engine.list(context_id, limit=1000))
    answers["count"] = engine.count(context_id)
    answers["get"] = {}
    for memory_id in known:
        memory = engine.get(context_id, memory_id)
        answers["get"][str(memory_id)] = None if memory is None else memory.summary
    return answers


def at_once(engine: Engine, store_path: Path, *question: Any, **more: Any) -> dict[str, Any]:
    """Through the same handle."""
    del store_path
    return seen(engine, *question, **more)


def after_compacting(engine: Engine, store_path: Path, *question: Any, **more: Any) -> dict[str, Any]:
    """Through the same handle, when room was given back."""
    del store_path
    engine.compact()
    return seen(engine, *question, **more)


def after_reopening(engine: Engine, store_path: Path, *question: Any, **more: Any) -> dict[str, Any]:
    """Through a new handle, with the old one closed."""
    engine.close()
    with memkura.open(store_path, embedder=ToyEmbedder(), clock=FrozenClock()) as again:
        return seen(again, *question, **more)


def without_indexes(engine: Engine, store_path: Path, *question: Any, **more: Any) -> dict[str, Any]:
    """Through a new handle that has to make its indexes again."""
    engine.compact()
    engine.close()
    shutil.rmtree(store_path / "index", ignore_errors=True)  # made on use
    with memkura.open(store_path, embedder=ToyEmbedder(), clock=FrozenClock()) as again:
        return seen(again, *question, **more)


def from_another_process(engine: Engine, store_path: Path, *question: Any, **more: Any) -> dict[str, Any]:
    """Through the handle of another process, with this one open."""
    del engine
    asked = json.dumps({"path": str(store_path), "question": question, "more": more})
    child = subprocess.run(
        [sys.executable, __file__], input=asked, capture_output=True, text=True, timeout=60, check=False
    )
    assert child.returncode == 0, child.stderr
    answers: dict[str, Any] = json.loads(child.stdout)
    return answers


LIVES = [at_once, after_compacting, after_reopening, without_indexes, from_another_process]
# The same store seen now and in each of its later lives.
each_life = pytest.mark.parametrize("look", LIVES, ids=[life.__name__ for life in LIVES])


def files_with(store_path: Path, *needles: bytes) -> list[str]:
    """The files below `store_path` that hold any of these bytes, in any letter case."""
    found = []
    files = [path for path in store_path.rglob("*") if path.is_file()]
    assert files
    for path in files:
        held = path.read_bytes().lower()
        found += [f"{path.name}: {needle!r}" for needle in needles if needle.lower() in held]
    return found


def main() -> None:
    """Answers one question from standard input, for `from_another_process`."""
    asked = json.load(sys.stdin)
    with memkura.open(asked["path"], embedder=ToyEmbedder(), clock=FrozenClock()) as engine:
        json.dump(seen(engine, *asked["question"], **asked["more"]), sys.stdout)


if __name__ == "__main__":
    main()
