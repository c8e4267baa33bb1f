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
    """Check the record and every index, and say what is off and how to mend it. Changes nothing."""
    with options.open_store(path, embedder) as engine:
        health = engine.doctor()
        info = engine.embedder
        versions = {"python": platform.python_version(), **engine.build_info()}
    if as_json:
        screen.say_json({"versions": versions, **health.as_dict()})
    else:
        screen.pairs(sorted(versions.items()))
        screen.say()
        figures = {**health.stats.as_dict(), "compared": health.compared, "drift": health.drift}
        screen.pairs([(name, value) for name, value in figures.items() if name != "embedder"])
        screen.say()
        screen.say(info.note)
        for problem in health.problems:
            screen.say(f"problem: {problem}")
        for word, advice in health.degraded.items():
            screen.say(f"degraded: {word}: {advice}")
    if not health.is_sound:
        click.get_current_context().exit(exits.STORE_TROUBLE)
    if health.degraded:
        click.get_current_context().exit(exits.DEGRADED)


@click.command(epilog=exits.HELP)
@options.store
@options.as_json
def verify(path: str, *, as_json: bool) -> None:
    """Check the record alone: every page, every index of its database, every reference."""
    with options.open_store(path, "none") as engine:
        problems = engine.verify()
    if as_json:
        screen.say_json({"problems": problems})
    else:
        for problem in problems or ["nothing is wrong"]:
            screen.say(problem)
    if problems:
        click.get_current_context().exit(exits.STORE_TROUBLE)
