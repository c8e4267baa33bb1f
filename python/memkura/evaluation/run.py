"""Asking the questions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memkura.errors import InvalidInput
from memkura.evaluation.cases import read_corpus, read_queries
from memkura.evaluation.metrics import MEASURES
from memkura.evaluation.report import Report

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Collection, Mapping, Sequence

    from memkura.engine import Engine
    from memkura.evaluation.cases import Case, Passage

    Source = str | os.PathLike[str]
    Ids = Mapping[str, str]


def load(
    engine: Engine,
    corpus: Sequence[Passage],
    *,
    vectors: Sequence[object] | None = None,
    progress: Callable[[int, int | None], object] | None = None,
) -> dict[str, str]:
    """Remembers a corpus.

    Args:
        engine: an open store, best a new one.
        corpus: the passages.
        vectors: the embedding of each, if it is not the engine's embedder that makes them.
        progress: as in :meth:`memkura.Engine.remember_many`.

    Returns:
        The passage's id by memory id.
    """
    if vectors is not None and len(vectors) != len(corpus):
        raise InvalidInput(f"there are {len(vectors)} vectors for {len(corpus)} passages", field="vectors")
    items: list[Mapping[str, Any]] = [passage.item for passage in corpus]
    if vectors is not None:
        items = [{**item, "embedding": vector} for item, vector in zip(items, vectors, strict=True)]
    memory_ids = engine.remember_many(items, progress=progress)
    return {str(memory_id): passage.pid for memory_id, passage in zip(memory_ids, corpus, strict=True)}


def evaluate(
    engine: Engine,
    corpus: Source | Sequence[Passage],
    queries: Source | Sequence[Case],
    k: int = 10,
    *,
    vectors: tuple[Sequence[object], Sequence[object]] | None = None,
    ids: Ids | None = None,
    progress: Callable[[int, int | None], object] | None = None,
    **recall: Any,  # noqa: ANN401 - the arguments of `recall`
) -> Report:
    """Remembers `corpus`, asks every question, and measures the answers.

    Questions without a relevant answer are counted and left out of the means.

    Args:
        engine: an open store, best a new one.
        corpus: a JSONL file, or passages from :func:`read_corpus`.
        queries: a JSONL file, or cases from :func:`read_queries`.
        k: how many hits count.
        vectors: embeddings of the passages and of the questions, in their order.
        ids: what :func:`load` returned, when the corpus is in the store already.
        progress: called with how many questions are answered and how many there are.
        recall: passed to every recall, such as ``legs=["text"]``.

    Returns:
        A report by category and overall.
    """
    passages = corpus if isinstance(corpus, list | tuple) else read_corpus(corpus)  # type: ignore[arg-type]
    cases = queries if isinstance(queries, list | tuple) else read_queries(queries)  # type: ignore[arg-type]
    if vectors is not None and len(vectors[1]) != len(cases):
        raise InvalidInput(f"there are {len(vectors[1])} vectors for {len(cases)} questions", field="vectors")
    if ids is None:
        ids = load(engine, passages, vectors=None if vectors is None else vectors[0])
    contexts = {passage.context_id for passage in passages}
    report = Report(k)
    for at, case in enumerate(cases):
        if not any(grade > 0 for grade in case.grades.values()):
            report.left_out += 1
            continue
        embedding = None if vectors is None else vectors[1][at]
        hits = engine.recall(
            _context(case, contexts), case.question, embedding=embedding, k=k, filters=case.filters, **recall
        )
        ranking = [ids.get(hit.memory_id, hit.memory_id) for hit in hits]
        report.add(case.category, {name: measure(ranking, case.grades, k) for name, measure in MEASURES.items()})
        report.degraded.update(hits.degraded)
        if progress is not None:
            progress(at + 1, len(cases))
    return report


def _context(case: Case, contexts: Collection[str]) -> str:
    """The context to ask. One that holds nothing would score 0, and nobody would know why."""
    named = case.context_id
    if named is None and len(contexts) == 1:
        return next(iter(contexts))
    if named is None or named not in contexts:
        raise InvalidInput(
            "names no context of the corpus",
            field=f"question {case.qid}",
            value=repr(named),
            advice="Give it the context of the passages that answer it",
        )
    return named
