"""The design page: every invariant has its place and names tests that exist; decisions and dependencies are listed."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
DESIGN = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
DECISIONS = ROOT / "docs" / "decisions"


def _invariants() -> dict[int, str]:
    parts = re.split(r"^### I(\d+): ", DESIGN.partition("## Known gaps")[0], flags=re.MULTILINE)
    return {int(number): text for number, text in zip(parts[1::2], parts[2::2], strict=True)}


def test_every_invariant_is_held_by_a_test_or_not_built() -> None:
    """I1 to I15, in order."""
    found = _invariants()
    assert list(found) == list(range(1, 16))
    for number, text in found.items():
        has_tests = re.search(r"`[\w./]+::\w+`", text) is not None
        assert has_tests != text.rstrip().endswith("Not built yet."), f"I{number}"
        assert has_tests == ("Kept " in text), f"I{number}"


def test_named_tests_and_files_exist() -> None:
    """A test that was renamed is renamed here too; so is a file."""
    tests = re.findall(r"`([\w./]+\.(?:rs|py))::(\w+)`", DESIGN)
    assert len(tests) > 20
    missing = [
        f"{path}::{name}"
        for path, name in tests
        if not re.search(rf"\b(?:fn|def) {name}\b", (ROOT / path).read_text(encoding="utf-8"))
    ]
    assert not missing
    files = re.findall(r"`((?:rust|python|docs|tests|examples)/[\w./]+)`", DESIGN)
    assert len(files) > 20
    assert [path for path in files if not (ROOT / path).exists()] == []


def test_code_cites_invariants_that_exist() -> None:
    """`(I3)` in a comment leads to a section of the page."""
    sources = [path for folder in ("rust", "python", "tests") for path in (ROOT / folder).rglob("*.[rp][sy]")]
    assert len(sources) > 100
    cited = {
        int(number) for path in sources for number in re.findall(r"\(I(\d+)[,)]", path.read_text(encoding="utf-8"))
    }
    assert {1, 2, 3} <= cited <= set(_invariants())


def test_decisions_are_listed_with_their_question() -> None:
    """Every decision, by number, with the heading of its page."""
    pages = sorted(DECISIONS.glob("0*.md"))
    assert len(pages) >= 6
    index = (DECISIONS / "README.md").read_text(encoding="utf-8")
    for page in pages:
        heading = page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        number = page.name[:4]
        assert f"| [{number}]({page.name}) | {heading.removeprefix(number).strip()} |" in index


def _names(requirements: list[str]) -> set[str]:
    return {re.split(r"[\[<>=!~ ]", requirement)[0] for requirement in requirements}


def test_every_dependency_has_its_reason() -> None:
    """Each crate and package that a manifest names stands in decision 0004, and none that is gone."""
    crates: set[str] = set()
    manifests = sorted((ROOT / "rust").glob("*/Cargo.toml"))
    assert len(manifests) == 5
    for manifest in manifests:
        table: dict[str, Any] = tomllib.loads(manifest.read_text(encoding="utf-8"))
        for part in (table, *table.get("target", {}).values()):
            for kind in ("dependencies", "dev-dependencies", "build-dependencies"):
                crates |= part.get(kind, {}).keys()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    packages = _names(project["build-system"]["requires"]) | _names(project["project"]["dependencies"])
    for extra in project["project"]["optional-dependencies"].values():
        packages |= _names(extra)
    for group in project["dependency-groups"].values():
        packages |= _names(group)
    page = (DECISIONS / "0004-dependencies.md").read_text(encoding="utf-8").partition("## Left out")[0]
    listed = {
        name for cell in re.findall(r"^\| (`.*?`) \|", page, re.MULTILINE) for name in re.findall(r"`([^`]+)`", cell)
    }
    assert listed == packages | {crate for crate in crates if not crate.startswith("memkura-")}
