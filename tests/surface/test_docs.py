"""The documents: every Python block runs, every `memkura` line runs, every `make` verb and every link is there.

The blocks of one page share a namespace and run in order, in a folder of their own with a copy of the examples in it. A
`text` block right below a Python block is what it prints.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner

from memkura.cli import main

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")])
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MAKE = re.compile(r"(?:`|^)make ([a-z-]+)", re.MULTILINE)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")


class Block(NamedTuple):
    """One fenced block: its language, its text, the line that it begins in, and the output that the page promises."""

    language: str
    text: str
    line: int
    promised: str | None


def blocks(page: Path) -> list[Block]:
    """Every fenced block of a page."""
    text = page.read_text(encoding="utf-8")
    found = list(FENCE.finditer(text))
    out = []
    for at, match in enumerate(found):
        below = found[at + 1] if at + 1 < len(found) else None
        is_output = below is not None and below[1] == "text" and not text[match.end() : below.start()].strip()
        promised = below[2] if below is not None and is_output else None
        out.append(Block(match[1], match[2], text[: match.start()].count("\n") + 2, promised))
    return out


def _name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


WITH_PYTHON = [page for page in PAGES if any(block.language == "python" for block in blocks(page))]
SHELL_LINES = [
    (_name(page), line)
    for page in PAGES
    for block in blocks(page)
    if block.language == "sh"
    for line in block.text.replace("\\\n", "").splitlines()
    if line.strip() and not line.startswith("#")
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own with the examples in it, and no setting of the machine's."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    for name in ("MEMKURA_STORE", "MEMKURA_CONTEXT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MEMKURA_EMBEDDER", "none")
    return tmp_path


def test_there_are_pages_and_blocks() -> None:
    """A runner that found nothing would hold nothing."""
    names = {_name(page) for page in WITH_PYTHON}
    concepts = {f"docs/concepts/{path.name}" for path in (ROOT / "docs" / "concepts").glob("*.md")}
    assert {"README.md", "docs/quickstart.md"} | concepts <= names
    assert len(concepts) >= 6
    assert sum(block.language == "python" for page in WITH_PYTHON for block in blocks(page)) >= 20
    assert sum(line.startswith("memkura ") for _, line in SHELL_LINES) >= 5


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_every_block_says_its_language(page: Path) -> None:
    """A block without a language would be run by nobody, and an unclosed one would hide the rest."""
    assert all(block.language for block in blocks(page))
    assert len(re.findall("^ *```", page.read_text(encoding="utf-8"), re.MULTILINE)) == 2 * len(blocks(page))


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("page", WITH_PYTHON, ids=_name)
def test_python_blocks_run(page: Path) -> None:
    """Every block does what the page says."""
    namespace: dict[str, Any] = {"__name__": "page"}
    for block in blocks(page):
        if block.language != "python":
            continue
        printed = io.StringIO()
        # Line numbers in a traceback are the page's.
        code = compile("\n" * (block.line - 1) + block.text, str(page), "exec")
        with contextlib.redirect_stdout(printed):
            exec(code, namespace)  # noqa: S102 - our own page
        if block.promised is not None:
            assert printed.getvalue() == block.promised, f"{_name(page)}, line {block.line}"


@pytest.mark.usefixtures("folder")
def test_memkura_lines_run() -> None:
    """Every command that a page shows is a command, with options that it has; page by page, in order."""
    pages: dict[str, list[str]] = {}
    for page, line in SHELL_LINES:
        pages.setdefault(page, []).append(line)
    for page, lines in pages.items():
        variables = {"MEMKURA_STORE": f"{page.replace('/', '-')}.memkura"}
        for line in lines:
            words = shlex.split(line, comments=True)
            if words[:1] == ["export"]:
                variables |= dict([words[1].split("=", 1)])
            elif words[:1] == ["memkura"]:
                done = CliRunner().invoke(main, words[1:], env=variables)
                assert done.exit_code in {0, 4}, (page, line, done.output, done.stderr)


def test_make_verbs_are_there() -> None:
    """Every `make` verb that a page names is in the Makefile, and the README names the two that matter."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    verbs = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    named = {verb for page in PAGES for verb in MAKE.findall(page.read_text(encoding="utf-8"))}
    assert {"demo", "test"} <= named <= verbs


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_links_lead_somewhere(page: Path) -> None:
    """Every relative link names a file that is there."""
    links = [link for link in LINK.findall(page.read_text(encoding="utf-8")) if "://" not in link]
    missing = [link for link in links if not link.startswith("mailto:") and not (page.parent / link).exists()]
    assert not missing


def test_every_page_can_be_reached() -> None:
    """From the README, by links."""
    reached: set[Path] = set()
    ahead = [ROOT / "README.md"]
    while ahead:
        page = ahead.pop()
        if page in reached or page.suffix != ".md" or not page.exists():
            continue
        reached.add(page)
        links = LINK.findall(page.read_text(encoding="utf-8"))
        ahead += [(page.parent / link).resolve() for link in links if "://" not in link]
    assert set(PAGES) - reached == set()
