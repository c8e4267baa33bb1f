"""The examples: each runs by itself, offline, in a process of its own, and prints what it promises."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
LIGHTHOUSE = EXAMPLES / "lighthouse"

PROMISED = {
    "agent_loop.py": [
        "Deploys go out on Tuesday at 14:00  (rule, found by text and vector)",
        "本番反映は火曜の14時",
        "version 1 by remember: The staging database listens on port 5432",
        "version 2 by update: The staging database listens on port 5433",
    ],
    "own_embedder.py": [
        "semantic search: on (topics-v1, 4 dimensions)",
        "next rollout: We ship on Tuesday (vector)",
        "late payment: Each invoice is due in thirty days (vector)",
    ],
    "two_processes.py": [
        "memories before: 1",
        "the other process finds: Deploys go out on Tuesday",
        "this process finds: The other process checked the backups",
        "memories after: 2",
    ],
}


def _run(*command: str | Path) -> str:
    """What a Python process printed, as UTF-8 whatever the terminal's character set."""
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8", "MEMKURA_EMBEDDER": "none"}
    ran = subprocess.run(
        [sys.executable, *command], capture_output=True, encoding="utf-8", check=False, env=environment, timeout=60
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_every_example_is_known() -> None:
    """An example without a promise would be run by nobody."""
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(PROMISED)


@pytest.mark.parametrize("name", sorted(PROMISED))
def test_example_prints_what_it_promises(name: str) -> None:
    """Every promised line, in order."""
    printed = _run(EXAMPLES / name)
    places = [printed.find(line) for line in PROMISED[name]]
    assert -1 not in places, printed
    assert places == sorted(places), printed


def test_demo_answers_from_the_lighthouse_memories(store_path: Path) -> None:
    """By text alone, and saying so, the memory that answers comes first for questions in both languages."""
    imported = _run("-m", "memkura", "import", LIGHTHOUSE / "memories.jsonl", "--store", store_path)
    assert "382 rows: 382 added" in imported
    printed = _run(LIGHTHOUSE / "demo.py", store_path)
    assert printed.startswith("semantic search: off")
    first = [re.findall(r"^     (lf-\d+)  ", answer, re.MULTILINE)[0] for answer in printed.split("\n\n")[1:]]
    assert first == ["lf-0005", "lf-0095", "lf-0106", "lf-0089", "lf-0001", "lf-0101", "lf-0342"]
    assert "its key is deploy.prod.harbor-api" in printed
    assert "words: 消費" in printed
