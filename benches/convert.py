"""From the files of public evaluation sets to the form that ``memkura eval`` reads.

    python benches/convert.py DATA_FOLDER OUT_FOLDER [SET …]

Each set is a folder with ``corpus.jsonl`` and ``queries.jsonl``. Sets of conversations name a conversation (a context)
and a session; the others are taken as they are. The sets themselves are under licences of their own, and not here.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    Row = dict[str, Any]

VECTORS = "me5s-q4"
"""The embeddings that the sets come with: multilingual-e5-small, 4 bit, 384 components."""


def sets(data: Path) -> list[str]:
    """The names of the sets in the folder."""
    return sorted(path.parent.name for path in data.glob("*/corpus.jsonl") if (path.parent / "queries.jsonl").exists())


def corpus(folder: Path) -> Iterator[Row]:
    """A set's passages in the evaluation's form, in the order of its file."""
    convert = _PASSAGES.get(folder.name, _as_it_is)
    return (convert(row) for row in _rows(folder / "corpus.jsonl"))


def queries(folder: Path) -> Iterator[Row]:
    """A set's questions in the evaluation's form, in the order of its file."""
    convert = _QUESTIONS.get(folder.name, _as_it_is)
    return (convert(row) for row in _rows(folder / "queries.jsonl"))


def vector_files(folder: Path) -> tuple[Path, Path] | None:
    """The set's embeddings of passages and questions, if it has them."""
    files = (folder / "emb" / f"{VECTORS}.corpus.npy", folder / "emb" / f"{VECTORS}.queries.npy")
    return files if all(file.exists() for file in files) else None


def write(rows: Iterable[Row], path: Path) -> int:
    """Writes rows as JSONL; how many."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        return sum(1 for row in rows if file.write(json.dumps(row, ensure_ascii=False) + "\n"))


def _rows(path: Path) -> Iterator[Row]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def _as_it_is(row: Row) -> Row:
    """The row; an empty passage, of which Cranfield has one, keeps its place and says so."""
    return row if row.get("question") or row.get("title") or row["text"].strip() else {**row, "text": "(empty)"}


def _locomo_passage(row: Row) -> Row:
    """A turn of a chat. Who, when and what a picture shows belong to what is said."""
    picture = f" [image: {row['caption']}]" if row.get("caption") else ""
    return {
        "id": f"{row['conv']}/{row['dia_id']}",
        "context": row["conv"],
        "session": str(row["session"]),
        "text": f"{row['speaker']}: {row['text']}{picture}",
        "tags": [row["date"]],
    }


def _locomo_question(row: Row) -> Row:
    return {**_question(row), "category": row["category"]}


def _beam_passage(row: Row) -> Row:
    return {
        "id": f"{row['conv']}/{row['id']}",
        "context": row["conv"],
        "session": str(row["batch"]),
        "text": f"{row['role']}: {row['text']}",
        "tags": [row["date"]] if row.get("date") else [],
    }


def _beam_question(row: Row) -> Row:
    return {**_question(row), "category": row["ability"]}


def _question(row: Row) -> Row:
    rel = [f"{row['conv']}/{answer}" for answer in row["evidence"]]
    return {"qid": row["qid"], "context": row["conv"], "question": row["question"], "rel": rel}


_PASSAGES: dict[str, Callable[[Row], Row]] = {"locomo": _locomo_passage, "beam100k": _beam_passage}
_QUESTIONS: dict[str, Callable[[Row], Row]] = {"locomo": _locomo_question, "beam100k": _beam_question}


def main() -> None:
    """Converts the sets of a folder into another one."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("names", nargs="*", metavar="SET")
    wanted = parser.parse_args()
    for name in wanted.names or sets(wanted.data):
        folder = wanted.data / name
        passages = write(corpus(folder), wanted.out / name / "corpus.jsonl")
        questions = write(queries(folder), wanted.out / name / "queries.jsonl")
        print(f"{name}: {passages:,} passages, {questions:,} questions")


if __name__ == "__main__":
    main()
