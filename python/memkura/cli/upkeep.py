"""Commands that mend what doctor finds, and that keep copies: maintain, reindex, compact, backup, restore."""

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


@click.command(epilog=exits.HELP)
@options.store
@options.as_json
def compact(path: str, *, as_json: bool) -> None:
    """Give room back to the disk, and remove the last bytes of what was forgotten or purged."""
    with options.open_store(path, "none") as engine:
        done = engine.compact()
    if as_json:
        screen.say_json(done)
    else:
        screen.pairs(done.items())


@click.command(epilog=exits.HELP)
@click.argument("destination", type=click.Path(dir_okay=False))
@options.store
def backup(destination: str, path: str) -> None:
    """Write the whole store into one new file, DESTINATION, while others go on writing."""
    with options.open_store(path, "none") as engine:
        engine.backup(destination)
    screen.say(f"backed up to {destination}")


@click.command(epilog=exits.HELP)
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@options.store
def restore(file: str, path: str) -> None:
    """Make a new store of FILE, which backup wrote. What is there already is never overwritten."""
    from memkura.engine import restore as restored

    restored(file, path)
    screen.say(f"restored to {path}")
