"""Commands that move memories in and out of JSONL files: import, export."""

from __future__ import annotations

import os
import tempfile
import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from memkura.cli import exits, options, screen
from memkura.cli.interrupts import Interrupts
from memkura.errors import InvalidInput, KeyTaken, TextRepaired
from memkura.jsonl import read_objects, to_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from memkura.cli.rows import Row, Rows
    from memkura.engine import Engine
    from memkura.records import Remembered

_PAGE = 1_000


@click.command("import", epilog=exits.HELP)
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.option("--context", "context_id", metavar="NAME", envvar="MEMKURA_CONTEXT", help="For rows that name none.")
@click.option("--again", is_flag=True, help="Bring rows back that were forgotten or purged here.")
@options.store
@options.embedder
@options.as_json
def import_file(file: str, context_id: str | None, path: str, embedder: str, *, again: bool, as_json: bool) -> None:
    """Remember every row of FILE, a JSONL file as export writes it, or with id and text.

    The file is taken whole or not at all. A row that was imported before adds nothing, and one that was forgotten or
    purged since stays so, unless --again. What comes in this way is external, and pins are not taken over.
    """
    from memkura.cli.rows import Rows

    rows = Rows(read_objects(file), context_id)
    with (
        Interrupts() as interrupts,
        options.open_store(path, embedder, create=True, door="import") as engine,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", TextRepaired)  # counted below
        standing = {row.number: row.standing(engine) for row in rows}
        new = [row for row in rows if standing[row.number] == "new" or (again and standing[row.number] == "gone")]
        items = [row.item for row in new]
        bar = screen.Bar(f"importing {len(new):,}")
        try:
            vectors = engine._embedded(items, bar)  # noqa: SLF001 - one batch, one package
            interrupts.hold()
            remembered = engine._remember_drafts(items, vectors)  # noqa: SLF001 - likewise
        except (InvalidInput, KeyTaken) as error:
            raise rows.with_line(error, new) from None
        finally:
            bar.end()
        gone = {
            at for at, row in enumerate(new) if not remembered[at].created and _is_gone(engine, row, remembered[at])
        }
        if again and gone:
            # The word by which such a row is known names the memory that is gone.
            items = [{**items[at], "idempotency_key": None} for at in sorted(gone)]
            back = engine._remember_drafts(items, [vectors[at] for at in sorted(gone)])  # noqa: SLF001 - likewise
            remembered = [*(memory_id for at, memory_id in enumerate(remembered) if at not in gone), *back]
            gone = set()
        stay = len(gone) + (0 if again else sum(one == "gone" for one in standing.values()))
        _tell(rows, remembered, stay, as_json=as_json)
        if interrupts.came:
            screen.aside("the interruption came too late: every row is in the store")


def _is_gone(engine: Engine, row: Row, memory_id: Remembered) -> bool:
    """Whether the row was known, and its memory is in no read any more."""
    return not memory_id.created and engine.get(row.item["context_id"], memory_id) is None


def _tell(rows: Rows, remembered: Sequence[Remembered], gone: int, *, as_json: bool) -> None:
    added = sum(memory_id.created for memory_id in remembered)
    repaired = sum(bool(memory_id.warnings) for memory_id in remembered)
    known = len(rows) - added
    if as_json:
        counts = {"rows": len(rows), "added": added, "known": known, "unpinned": rows.unpinned, "repaired": repaired}
        screen.say_json({**counts, "gone": gone, "contexts": rows.contexts})
        return
    into = f", into {options.listed(rows.contexts)}" if rows.contexts else ""
    screen.say(f"{len(rows):,} rows: {added:,} added, {known:,} known already{into}")
    if gone:
        screen.say(f"{gone:,} of those known were forgotten or purged here, and stay so; --again brings them back")
    if rows.unpinned:
        screen.say(f"{rows.unpinned:,} were pinned where they came from; pin them here if you want that")
    if repaired:
        screen.say(f"{repaired:,} held characters that cannot be stored, and were mended")


@click.command(epilog=exits.HELP)
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="A file, made readable for you alone.")
@click.option("--all-contexts", is_flag=True, help="Every context.")
@options.filters
@options.context_or_all
@options.store
def export(output: str | None, filters: str | None, context_id: str | None, path: str, *, all_contexts: bool) -> None:
    """Write memories as JSONL, one a line, to standard output or a file."""
    if all_contexts:
        context_id = None  # which the environment may have named
    elif context_id is None:
        raise click.UsageError("give either --context or --all-contexts")
    wanted = options.parsed(filters)
    with options.open_store(path, "none") as engine:
        if context_id is not None:
            names = [options.known(engine, context_id)]
        else:
            names = [row["context_id"] for row in engine.contexts()]
        memories = (memory for name in names for memory in _memories(engine, name, wanted))
        if output is None:
            for memory in memories:
                click.echo(to_line(memory))
            return
        with _private_file(Path(output)) as file:
            count = sum(1 for memory in memories if file.write(to_line(memory) + "\n"))
    screen.say(f"{count:,} memories written to {output}")


def _memories(engine: Engine, context_id: str, filters: Mapping[str, Any] | None) -> Iterator[dict[str, Any]]:
    """Each memory once: a page begins at the instant at which the one before it ended, whatever happens before that."""
    wanted = [filters] if filters else []
    since: dict[str, Any] = {"exists": True}
    instant, seen = None, 0  # of the last memory, and how many of that instant there were
    while page := engine.list(context_id, filters={"and": [*wanted, {"created_at": since}]}, limit=_PAGE, offset=seen):
        yield from (memory.as_dict() for memory in page)
        last = page[-1].created_at
        seen = sum(memory.created_at == last for memory in page) + (seen if last == instant else 0)
        instant = last
        since = {"gte": last}


@contextmanager
def _private_file(path: Path) -> Iterator[IO[str]]:
    """A new file in the place of `path`, mode 0600, complete or not there at all."""
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii", newline="\n") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
