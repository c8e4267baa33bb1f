"""The reference page and the glossary say what the code says. A failing test prints the text to paste."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

import memkura
from memkura import _core, errors
from memkura.cli import exits, main

if TYPE_CHECKING:
    from collections.abc import Callable

DOCS = Path(__file__).parents[2] / "docs"

# Why each limit is what it is; the numbers come from the build.
REASONS = {
    "content_bytes": "`content`, as UTF-8; larger things are documents and belong in files",
    "summary_bytes": "`summary`; one that needs more is content",
    "name_bytes": "a name: `context_id`, `key`, `scope`, `session`, `idempotency_key`",
    "type_bytes": "`type`",
    "tag_bytes": "one tag",
    "tags": "tags on one memory",
    "metadata_bytes": "`metadata`, as JSON",
    "metadata_depth": "nesting of `metadata`",
    "metadata_paths_bytes": "all paths in `metadata` together, each as long as a filter would write it",
    "sources": "ids in `derived_from`",
    "proof_bytes": "`proof`",
    "query_bytes": "a query; any stored text can be asked for whole",
    "normalised_bytes": "`content` or a query once normalised for search (NFKC): one character may stand for a phrase",
    "k": "`k`, `offset` and `limit`",
    "batch": "memories in one atomic batch",
    "filter_depth": "nesting of a filter",
    "filter_conditions": "conditions in one filter",
    "filter_values": "values in one `in` list",
    "filter_text_bytes": "a text in a filter",
    "dimensions": "components of one vector",
    "chunks": "vectors of one memory",
}


def section(page: str, name: str) -> str:
    """What stands between `<!-- name -->` and `<!-- end -->` on a page."""
    text = (DOCS / page).read_text(encoding="utf-8")
    found = re.search(rf"<!-- {name} -->\n\n(.*?)\n\n<!-- end -->", text, re.DOTALL)
    assert found, f"{page} has no section {name}"
    return found[1]


def _first_line(documented: object) -> str:
    line = (inspect.getdoc(documented) or "").partition("\n")[0]
    return re.sub(r":\w+:`~?([^`]+)`", r"`\1`", line).replace("``", "`").replace("|", "\\|")


def _call(name: str, verb: object) -> str:
    """The call as it is written: names and defaults, no types."""
    assert callable(verb)
    parameters = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for given, parameter in inspect.signature(verb).parameters.items()
        if given not in {"self", "options"}
    ]
    return f"{name}{inspect.Signature(parameters)}"


def opening() -> str:
    """The functions that open a store."""
    names = ("open", "open_async", "restore", "build_info")
    rows = [
        f"| `memkura.{_call(name, getattr(memkura, name))}` | {_first_line(getattr(memkura, name))} |" for name in names
    ]
    return "\n".join(["| call | |", "| --- | --- |", *rows])


def verbs() -> str:
    """Every verb of the engine."""
    rows = []
    for name, verb in vars(memkura.Engine).items():
        if name.startswith("_"):
            continue
        call = name if isinstance(verb, property) else _call(name, verb)
        rows.append(f"| `{call}` | {_first_line(verb)} |")
    return "\n".join(["| verb | |", "| --- | --- |", *rows])


def names() -> str:
    """Every public name that is neither an exception nor an opening call."""
    rows = [
        f"| `{name}` | {_first_line(getattr(memkura, name))} |"
        for name in memkura.__all__
        if not hasattr(errors, name) and name not in {"open", "open_async", "restore", "build_info"}
    ]
    return "\n".join(["| name | |", "| --- | --- |", *rows])


def limits() -> str:
    """Every limit of the build."""
    rows = [f"| `{name}` | {limit:,} | {REASONS[name]} |" for name, limit in _core.limits().items()]
    return "\n".join(["| limit | at most | of |", "| --- | --- | --- |", *rows])


def exceptions() -> str:
    """Every exception and warning, with its parents and its whole advice."""
    kinds = [kind for kind in vars(errors).values() if inspect.isclass(kind) and kind.__module__ == errors.__name__]
    assert len(kinds) > 20
    rows = []
    for kind in kinds:
        parents = ", ".join(f"`{parent.__name__}`" for parent in kind.__bases__)
        said = " ".join((inspect.getdoc(kind) or "").partition("\n\n")[0].split()).replace("``", "`")
        rows.append(f"| `{kind.__name__}` | {parents} | {said} |")
    return "\n".join(["| exception | is a | what it says, and what to do |", "| --- | --- | --- |", *rows])


def commands() -> str:
    """Every command of the command line."""
    with click.Context(main) as context:
        found = [(name, main.get_command(context, name)) for name in main.list_commands(context)]
    assert len(found) > 10
    rows = [f"| `{name}` | {command.get_short_help_str(200)} |" for name, command in found if command is not None]
    return "\n".join(["| command | |", "| --- | --- |", *rows])


def exit_codes() -> str:
    """Every exit code, by the words of the help."""
    said = re.findall(r"(\d+) ([^;.]+)", exits.HELP)
    real = {value for name, value in vars(exits).items() if name.isupper() and isinstance(value, int)}
    assert {int(code) for code, _ in said} == real
    return "\n".join(["| code | |", "| --- | --- |", *(f"| {code} | {words} |" for code, words in said)])


TABLES = (opening, verbs, names, limits, exceptions, commands, exit_codes)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.__name__)
def test_reference_says_what_the_code_says(table: Callable[[], str]) -> None:
    """Each table of the page is the one that the code gives."""
    made = table()
    assert section("reference.md", table.__name__) == made, f"\n{made}\n"


def test_glossary_defines_every_field_once() -> None:
    """Every field of a memory and of a hit, one meaning each."""
    terms = re.findall(r"^\| `?([^`|]+?)`? \|", (DOCS / "glossary.md").read_text(encoding="utf-8"), re.MULTILINE)
    terms = [term for term in terms if term not in {"field", "word", "---"}]
    assert len(terms) == len(set(terms))
    fields = [
        name
        for kind in (memkura.Memory, memkura.Hit)
        for name in vars(kind)
        if not name.startswith("_") and name != "as_dict"
    ]
    assert len(fields) > 30
    missing = [name for name in fields if name not in terms]
    assert not missing, f"add to the glossary: {missing}"


def test_filter_page_names_every_field() -> None:
    """The fields on the page are those that an unknown one is answered with."""
    with memkura.open(":memory:", embedder=None) as engine, pytest.raises(memkura.UnknownField) as refused:
        engine.recall("ops", "tea", filters={"colour": "red"})
    real = refused.value.advice.removeprefix("Use one of ").split(", ")
    named = re.findall(r"`([\w.<>]+)`", section("concepts/filters.md", "fields"))
    assert sorted([*named, "and", "or", "not"]) == sorted(real)
