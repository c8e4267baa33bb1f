"""The command that measures recall: eval."""

from __future__ import annotations

import click

from memkura.cli import exits, options, screen


@click.command("eval", epilog=exits.HELP)
@click.argument("corpus", type=click.Path(exists=True, dir_okay=False))
@click.argument("queries", type=click.Path(exists=True, dir_okay=False))
@click.option("-k", "k", type=click.IntRange(min=1), default=10, show_default=True, help="How many hits count.")
@click.option("--leg", "legs", multiple=True, metavar="NAME", help="text, vector or key; repeat for several.")
@click.option("--neighbours/--no-neighbours", default=True, help="Count neighbours in a session.")
@click.option(
    "--vectors",
    nargs=2,
    metavar="CORPUS.npy QUERIES.npy",
    type=click.Path(exists=True, dir_okay=False),
    help="Embeddings, row for line.",
)
@options.embedder
@options.as_json
def evaluate(
    corpus: str,
    queries: str,
    k: int,
    legs: tuple[str, ...],
    vectors: tuple[str, str] | None,
    embedder: str,
    *,
    neighbours: bool,
    as_json: bool,
) -> None:
    """Measure recall: remember CORPUS in a store that is thrown away, and ask QUERIES.

    Both are JSONL files. A corpus row has id and text; a question has question and rel, the ids that answer it.
    """
    from memkura import evaluation
    from memkura.embedders.given import Given
    from memkura.engine import open as open_engine

    passages, cases = evaluation.read_corpus(corpus), evaluation.read_queries(queries)
    given = None
    chosen: object = embedder
    if vectors is not None:
        given = (evaluation.read_npy(vectors[0]), evaluation.read_npy(vectors[1]))
        chosen = Given(len(given[0][0]) if given[0] else 1)
    with open_engine(":memory:", chosen) as engine:
        loading, asking = screen.Bar("remembering"), screen.Bar("asking     ")
        ids = evaluation.load(engine, passages, vectors=None if given is None else given[0], progress=loading)
        loading.end()
        report = evaluation.evaluate(
            engine,
            passages,
            cases,
            k,
            vectors=given,
            ids=ids,
            progress=asking,
            legs=list(legs) or None,
            neighbours=neighbours,
        )
        asking.end()
        note = engine.embedder.note
    if as_json:
        screen.say_json(report.as_dict())
    else:
        screen.say(report.table())
        screen.aside(note)
