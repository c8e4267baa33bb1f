"""Commands that write: init, remember, forget."""

from __future__ import annotations

import json
import sys
import warnings

import click

from memkura.cli import exits, options, screen
from memkura.errors import InvalidInput, NothingSelected, TextRepaired


@click.command(epilog=exits.HELP)
@options.store
@options.embedder
def init(path: str, embedder: str) -> None:
    """Make a store, or check one that is there."""
    with options.open_store(path, embedder, create=True) as engine:
        screen.say(f"{path} is ready; {engine.embedder.note}")


@click.command(epilog=exits.HELP)
@click.argument("summary")
@click.option("--content", help="The whole text, if there is more to it than the summary; - reads standard input.")
@click.option("--type", "kind", default="note", show_default=True, help="A label such as fact or decision.")
@click.option("--tag", "tags", multiple=True, metavar="NAME", help="A name to filter by; repeat for several.")
@click.option("--key", help="An exact name for it.")
@click.option("--scope", help="Where the key is unique.")
@click.option("--importance", type=float, default=0.5, show_default=True, help="0 to 1.")
@click.option("--metadata", metavar="JSON", help="A JSON object to keep with it.")
@click.option("--pin", is_flag=True, help="Deliver it always.")
@options.store
@options.context
@options.embedder
@options.as_json
def remember(
    summary: str,
    content: str | None,
    kind: str,
    tags: tuple[str, ...],
    key: str | None,
    scope: str | None,
    importance: float,
    metadata: str | None,
    path: str,
    context_id: str,
    embedder: str,
    *,
    pin: bool,
    as_json: bool,
) -> None:
    """Keep a memory."""
    if content == "-":
        content = _standard_input()
    with options.open_store(path, embedder, create=True) as engine, warnings.catch_warnings():
        warnings.simplefilter("ignore", TextRepaired)  # said below
        memory_id = engine.remember(
            context_id,
            summary,
            content,
            type=kind,
            delivery_mode="always" if pin else "on_recall",
            tags=tags,
            key=key,
            scope=scope,
            importance=importance,
            metadata=_object(metadata),
        )
    for warning in memory_id.warnings:
        screen.aside(f"note: {warning}")
    if as_json:
        names = ("created", "version", "duplicates", "warnings", "embedded")
        screen.say_json({"memory_id": str(memory_id), **{name: getattr(memory_id, name) for name in names}})
    else:
        screen.say(memory_id)


def _standard_input() -> str:
    try:
        return sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"is not UTF-8: {error.reason} at byte {error.start}", field="--content") from None


def _object(text: str | None) -> dict[str, object] | None:
    if text is None:
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"is not JSON: {error}", field="--metadata") from None
    if not isinstance(found, dict):
        raise InvalidInput("is not a JSON object", field="--metadata")
    return found


def _ask(question: str) -> None:
    try:
        is_wanted = click.confirm(question, err=True)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        screen.aside("")
        raise click.UsageError("there is no terminal to ask on; add --yes") from None
    if not is_wanted:
        raise click.Abort


@click.command(epilog=exits.HELP)
@click.argument("memory_id", required=False)
@click.option("--everything", is_flag=True, help="All of the context.")
@click.option("--purge", is_flag=True, help="Remove the text from the files too.")
@click.option("--yes", is_flag=True, help="Do not ask before several memories are forgotten.")
@options.filters
@options.store
@options.context
@options.as_json
def forget(
    memory_id: str | None,
    filters: str | None,
    path: str,
    context_id: str,
    *,
    everything: bool,
    purge: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Take memories out of every read: one by its id, those that match, or all."""
    wanted = options.parsed(filters)
    if memory_id is None and not wanted and not everything:
        raise NothingSelected("nothing was named", advice="Give an id, --filter or --everything")
    with options.open_store(path, "none") as engine:
        options.known(engine, context_id)
        if memory_id is None and not yes:
            count = engine.count(context_id, filters=wanted)
            _ask(f"Forget {count:,} memories, and what matches of those that have expired or were replaced")
        gone = engine.forget(context_id, memory_id, filters=wanted, everything=everything, purge=purge)
        if purge:
            engine.compact()
    if as_json:
        screen.say_json({"forgotten": gone})
    else:
        screen.say(f"forgot {len(gone):,}")
    if not gone:
        click.get_current_context().exit(exits.NOTHING_FOUND)
