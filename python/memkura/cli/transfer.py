"""Commands that move memories in and out of files: import, export."""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING

import click

from memkura.cli import exits, options, screen
from memkura.cli.interrupts import Interrupts
from memkura.errors import TextRepaired

if TYPE_CHECKING:
    from memkura.records import ImportReport

file_format = click.option(
    "--format", "file_format", type=click.Choice(["jsonl", "msgpack"]), help="By the file's ending, or jsonl."
)


@click.command("import", epilog=exits.HELP)
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.option("--context", "context_id", metavar="NAME", envvar="MEMKURA_CONTEXT", help="For rows that name none.")
@click.option("--again", is_flag=True, help="Bring rows back that were forgotten or purged here.")
@click.option("--as-own", is_flag=True, help="FILE is your own export: keep ids, times, links, pins and trust.")
@file_format
@options.store
@options.embedder
@options.as_json
def import_file(
    file: str,
    context_id: str | None,
    path: str,
    embedder: str,
    file_format: str | None,
    *,
    again: bool,
    as_own: bool,
    as_json: bool,
) -> None:
    """Remember every row of FILE, as export writes it, or JSONL with id and text.

    The file is taken whole or not at all. A row that was imported before adds nothing, and one that was forgotten or
    purged since stays so, unless --again. What comes in this way is external, and pins are not taken over, unless
    --as-own says that nobody but you could write to FILE.
    """
    with (
        Interrupts() as interrupts,
        options.open_store(path, embedder, create=True) as engine,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", TextRepaired)  # counted below
        bar = screen.Bar("importing")

        def progress(done: int, total: int | None) -> None:
            bar(done, total)
            if done == total:  # what follows is the write
                interrupts.hold()

        try:
            report = engine.import_file(
                file,
                context_id=context_id,
                as_own=as_own,
                again=again,
                format=file_format,  # type: ignore[arg-type]
                progress=progress,
            )
        finally:
            bar.end()
        _tell(report, as_json=as_json)
        if interrupts.came:
            screen.aside("the interruption came too late: every row is in the store")


def _tell(report: ImportReport, *, as_json: bool) -> None:
    if as_json:
        screen.say_json(report.as_dict())
        return
    into = f", into {options.listed(report.contexts)}" if report.contexts else ""
    screen.say(f"{report.rows:,} rows: {report.added:,} added, {report.known:,} known already{into}")
    if report.gone:
        screen.say(
            f"{report.gone:,} of those known were forgotten or purged here, and stay so; --again brings them back"
        )
    if report.purged:
        screen.say(f"purged: {options.listed(report.purged)}")
    if report.left_out:
        screen.say(f"{report.left_out:,} were replaced where they came from, and were left out")
    if report.unpinned:
        screen.say(f"{report.unpinned:,} were pinned where they came from; pin them here if you want that")
    if report.repaired:
        screen.say(f"{report.repaired:,} held characters that cannot be stored, and were mended")


@click.command(epilog=exits.HELP)
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="A file, made readable for you alone.")
@click.option("--all-contexts", is_flag=True, help="Every context.")
@click.option("--history", is_flag=True, help="The earlier states of each memory too.")
@file_format
@options.filters
@options.context_or_all
@options.store
def export(
    output: str | None,
    filters: str | None,
    context_id: str | None,
    path: str,
    file_format: str | None,
    *,
    all_contexts: bool,
    history: bool,
) -> None:
    """Write memories as rows, JSONL or msgpack, to standard output or a file."""
    if all_contexts:
        context_id = None  # which the environment may have named
    elif context_id is None:
        raise click.UsageError("give either --context or --all-contexts")
    wanted = options.parsed(filters)
    with options.open_store(path, "none") as engine:
        if context_id is not None:
            options.known(engine, context_id)
        target = sys.stdout.buffer if output is None else output
        report = engine.export(
            target,
            context_id=context_id,
            filters=wanted,
            history=history,
            format=file_format,  # type: ignore[arg-type]
        )
    if output is not None:
        screen.say(f"{report.memories:,} memories written to {output}")
