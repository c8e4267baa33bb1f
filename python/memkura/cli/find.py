"""Commands that read: recall, show, list."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from memkura.cli import exits, options, screen
from memkura.visible import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from memkura._core import Memory

_WIDTH = 100


@click.command(epilog=exits.HELP)
@click.argument("query")
@click.option("-k", "k", type=click.IntRange(min=0), default=10, show_default=True, help="At most so many.")
@click.option("--offset", type=click.IntRange(min=0), default=0, help="After so many.")
@click.option("--leg", "legs", multiple=True, metavar="NAME", help="text, vector or key; repeat for several.")
@click.option("--min-similarity", type=float, help="Leave out what is less similar than this cosine.")
@click.option("--explain", is_flag=True, help="Say how each score came about.")
@options.filters
@options.store
@options.context
@options.embedder
@options.as_json
def recall(
    query: str,
    k: int,
    offset: int,
    legs: tuple[str, ...],
    min_similarity: float | None,
    filters: str | None,
    path: str,
    context_id: str,
    embedder: str,
    *,
    explain: bool,
    as_json: bool,
) -> None:
    """Find the memories that best answer QUERY."""
    wanted = options.parsed(filters)
    with options.open_store(path, embedder) as engine:
        hits = engine.recall(
            options.known(engine, context_id),
            query,
            k=k,
            offset=offset,
            filters=wanted,
            legs=list(legs) or None,
            min_similarity=min_similarity,
            explain=explain,
        )
    if as_json:
        screen.say_json({"hits": hits.as_dicts(), "degraded": hits.degraded, "mode": hits.mode})
    else:
        for place, hit in enumerate(hits, offset + 1):
            screen.say(f"{place}. {hit.score:.4f}  {one_line(hit.summary, _WIDTH)}")
            about = [hit.memory_id, hit.type, hit.trust_tier, "+".join(hit.evidence)]
            screen.say("   " + "  ".join(one_line(part) for part in about if part))
            if explain:
                screen.pairs(hit.explanation.items(), "   ")
        for word in hits.degraded:
            screen.aside(f"degraded: {word}")
        if not hits:
            screen.aside("nothing was found")
    if not hits:
        click.get_current_context().exit(exits.NOTHING_FOUND)


@click.command(epilog=exits.HELP)
@click.argument("memory_id", required=False)
@click.option("--key", help="By its exact key instead.")
@click.option("--scope", help="The key's scope.")
@click.option("--history", is_flag=True, help="Every revision too.")
@options.store
@options.context
@options.as_json
def show(
    memory_id: str | None,
    key: str | None,
    scope: str | None,
    path: str,
    context_id: str,
    *,
    history: bool,
    as_json: bool,
) -> None:
    """Show one memory, by its id or its key."""
    if (memory_id is None) == (key is None):
        raise click.UsageError("give either an id or --key")
    with options.open_store(path, "none") as engine:
        memory = engine.get(options.known(engine, context_id), memory_id, key=key, scope=scope)
        named = memory_id if memory is None else memory.memory_id
        # A memory that was forgotten still has a history; one that never was is not found.
        revisions = engine.history(context_id, named) if history and named is not None else []
    if memory is None and not revisions:
        screen.complain("no such memory in this context")
        click.get_current_context().exit(exits.NOTHING_FOUND)
        return
    document = {"memory_id": named, "in_use": False} if memory is None else memory.as_dict()
    if as_json:
        screen.say_json({**document, "history": revisions} if history else document)
    else:
        screen.pairs((name, value) for name, value in document.items() if value not in (None, [], {}, ()))
        for number, revision in enumerate(revisions, 1):
            screen.say(f"\nrevision {number}")
            screen.pairs((name, value) for name, value in revision.items() if value is not None)


@click.command("list", epilog=exits.HELP)
@click.option("--limit", type=click.IntRange(min=0), default=100, show_default=True, help="At most so many.")
@click.option("--offset", type=click.IntRange(min=0), default=0, help="After so many.")
@click.option("--order", default="created_at", show_default=True, help="The field to order by.")
@click.option("--descending", is_flag=True, help="The last first.")
@options.filters
@options.store
@options.context
@options.as_json
def list_memories(
    limit: int,
    offset: int,
    order: str,
    filters: str | None,
    path: str,
    context_id: str,
    *,
    descending: bool,
    as_json: bool,
) -> None:
    """List memories in a fixed order."""
    wanted = options.parsed(filters)
    with options.open_store(path, "none") as engine:
        memories = engine.list(
            options.known(engine, context_id),
            filters=wanted,
            limit=limit,
            offset=offset,
            order=order,
            descending=descending,
        )
        total = engine.count(context_id, filters=wanted)
    if as_json:
        screen.say_json({"memories": [memory.as_dict() for memory in memories], "total": total})
        return
    _lines(memories)
    if len(memories) < total:
        screen.aside(f"{len(memories):,} of {total:,}")


def _lines(memories: Iterable[Memory]) -> None:
    for memory in memories:
        screen.say(f"{memory.memory_id}  {one_line(memory.type)}  {one_line(memory.summary, _WIDTH)}")
