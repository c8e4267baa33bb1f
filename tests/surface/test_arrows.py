"""The crates' dependencies: py → engine → {store, index} → model, never back and never sideways."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FLOORS = [{"memkura-model"}, {"memkura-store", "memkura-index"}, {"memkura-engine"}, {"memkura-py"}]
FLOOR = {crate: number for number, crates in enumerate(FLOORS) for crate in crates}


def _dependencies() -> dict[str, set[str]]:
    """Each crate of the workspace with those of our crates that it names, for tests and builds too."""
    command = ["cargo", "metadata", "--no-deps", "--offline", "--format-version", "1"]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    packages = json.loads(answer)["packages"]
    return {
        package["name"]: {one["name"] for one in package["dependencies"] if one["name"].startswith("memkura-")}
        for package in packages
    }


@pytest.mark.skipif(shutil.which("cargo") is None, reason="needs cargo")
def test_arrows_point_down() -> None:
    """A crate knows only crates of lower floors; store and index, on one floor, do not know each other."""
    dependencies = _dependencies()
    assert set(dependencies) == set(FLOOR)
    upwards = [
        f"{crate} → {other}"
        for crate, others in dependencies.items()
        for other in others
        if FLOOR[other] >= FLOOR[crate]
    ]
    assert not upwards
    assert {"memkura-store", "memkura-index"} <= dependencies["memkura-engine"]


def test_only_the_door_knows_python_and_only_the_store_speaks_sql() -> None:
    """pyo3 is named by one crate, rusqlite by one, xxhash-rust by one."""
    manifests = sorted((ROOT / "rust").glob("*/Cargo.toml"))
    assert len(manifests) == len(FLOOR)
    for library, home in [("pyo3", "py"), ("rusqlite", "store"), ("xxhash-rust", "index")]:
        users = {path.parent.name for path in manifests if f"\n{library}." in path.read_text(encoding="utf-8")}
        assert users == {home}
