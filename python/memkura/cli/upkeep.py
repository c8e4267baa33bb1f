"""Commands that mend what doctor finds: maintain, reindex."""

from __future__ import annotations

import click

from memkura.cli import exits, options, screen


@click.command(epilog=exits.HELP)
@options.store
@options.embedder
@options.as_json
def maintain(path: str, embedder: str, *, as_json: bool) -> None:
    """Embed what waits for its vector, and tidy the files."""
    with options.open_store(path, embedder) as engine:
        done = engine.maintain()
    if as_json:
        screen.say_json(done)
    else:
        screen.pairs(done.items())
    if done["not_embedded"]:
        click.get_current_context().exit(exits.DEGRADED)


@click.command(epilog=exits.HELP)
@options.store
@options.embedder
@options.as_json
def reindex(path: str, embedder: str, *, as_json: bool) -> None:
    """Embed every memory with --embedder, and change over when all are done. Goes on where it stopped."""
    with options.open_store(path, embedder) as engine:
        bar = screen.Bar("embedding")
        report = engine.reindex(progress=bar)
        bar.end()
    if as_json:
        screen.say_json(report.as_dict())
    else:
        screen.say(f"{report.state}: {report.done:,} of {report.total:,} embedded, {report.failed:,} failed")
        for reason in report.reasons:
            screen.say(f"  {reason}")
    if report.state != "complete":
        click.get_current_context().exit(exits.DEGRADED)
