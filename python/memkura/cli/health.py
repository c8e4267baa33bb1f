"""Commands that tell how a store is: stats, doctor."""

from __future__ import annotations

import platform

import click

from memkura.cli import exits, options, screen


@click.command(epilog=exits.HELP)
@options.store
@options.context_or_all
@options.embedder
@options.as_json
def stats(path: str, context_id: str | None, embedder: str, *, as_json: bool) -> None:
    """Count what the store holds."""
    with options.open_store(path, embedder) as engine:
        figures = engine.stats(None if context_id is None else options.known(engine, context_id)).as_dict()
    if as_json:
        screen.say_json(figures)
        return
    embedder_state = figures.pop("embedder")
    screen.pairs([*figures.items(), ("embedder", embedder_state["note"])])


@click.command(epilog=exits.HELP)
@options.store
@options.embedder
@options.as_json
def doctor(path: str, embedder: str, *, as_json: bool) -> None:
    """Check the store and say what is off, and how to mend it."""
    with options.open_store(path, embedder) as engine:
        figures = engine.stats()
        info = engine.embedder
        versions = {"python": platform.python_version(), **engine.build_info()}
    degraded = _degraded(info.state, figures.unembedded)
    if as_json:
        screen.say_json({"versions": versions, "stats": figures.as_dict(), "degraded": degraded})
    else:
        screen.pairs(sorted(versions.items()))
        screen.say()
        screen.pairs([(name, value) for name, value in figures.as_dict().items() if name != "embedder"])
        screen.say()
        screen.say(info.note)
        for word, advice in degraded.items():
            screen.say(f"degraded: {word}: {advice}")
    if degraded:
        click.get_current_context().exit(exits.DEGRADED)


def _degraded(state: str, unembedded: int) -> dict[str, str]:
    """Words for what is not as it should be. Text alone, when nothing else was asked for, is as it should be."""
    found = {}
    if state == "changed":
        found["vector:embedder_changed"] = (
            "the store holds another embedder's vectors; run memkura reindex, or open it with that one"
        )
    if state == "failing":
        found["vector:embedder_failed"] = "the embedder does not work; memories are kept and found by text"
    if unembedded and state not in {"off", "changed"}:
        found["vector:unembedded"] = f"{unembedded:,} memories wait for their vectors; run memkura maintain"
    return found
