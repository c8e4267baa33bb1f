"""The workflows: they parse, run the gate, and build every wheel that the documents name."""

from __future__ import annotations

import itertools
import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".github" / "workflows"
WORKFLOWS = sorted(FOLDER.glob("*.yml"))


def _jobs(name: str) -> dict[str, Any]:
    found = yaml.safe_load((FOLDER / name).read_text(encoding="utf-8"))
    jobs: dict[str, Any] = found["jobs"]
    return jobs


def _steps(job: dict[str, Any]) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = job["steps"]
    return steps


def test_workflows_are_where_they_are_looked_for() -> None:
    """A guard over no files would hold nothing."""
    assert [path.name for path in WORKFLOWS] == ["ci.yml", "wheels.yml"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflow_is_bounded_and_may_only_read(path: Path) -> None:
    """Every job ends by itself, is given no right but to read, and names a version of each action."""
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    # YAML 1.1 reads the bare word `on` as true.
    assert workflow[True]
    for name, job in workflow["jobs"].items():
        assert job["timeout-minutes"] <= 90, name
        for step in _steps(job):
            assert ("uses" in step) != ("run" in step), name
            assert re.fullmatch(r"[\w./-]+@v\d+", step.get("uses", "a/b@v1")), name


def test_gate_is_the_one_on_the_desk() -> None:
    """The gate runs `.ci/run` and nothing of its own; the other systems run both test suites."""
    jobs = _jobs("ci.yml")
    assert [step["run"] for step in _steps(jobs["gate"]) if "run" in step][-1] == ".ci/run"
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    others = "\n".join(step.get("run", "") for step in _steps(jobs["other-systems"]))
    assert "cargo test" in others
    assert "pytest" in others
    assert {system.split("-")[0] for system in jobs["other-systems"]["strategy"]["matrix"]["os"]} == {
        "ubuntu",
        "macos",
        "windows",
    }


def test_wheels_cover_every_platform() -> None:
    """Two Linux kinds on two processors, macOS on two, Windows on one; the last job counts them."""
    jobs = _jobs("wheels.yml")
    matrix = jobs["linux"]["strategy"]["matrix"]
    linux = set(itertools.product(matrix["manylinux"], (platform["target"] for platform in matrix["platform"])))
    assert linux == set(itertools.product(["manylinux_2_28", "musllinux_1_2"], ["x86_64", "aarch64"]))
    assert {row["target"] for row in jobs["macos"]["strategy"]["matrix"]["platform"]} == {"x86_64", "aarch64"}
    assert jobs["windows"]["steps"][-2]["with"]["target"] == "x86_64"
    assert jobs["sdist"]["steps"][-2]["with"]["command"] == "sdist"
    assert "-eq 7" in _steps(jobs["count"])[-1]["run"]
    assert set(jobs["count"]["needs"]) == set(jobs) - {"count"}
