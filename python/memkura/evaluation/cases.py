"""Corpora and questions as JSONL files hold them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from memkura.errors import InvalidInput
from memkura.jsonl import read_objects

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

DEFAULT_CONTEXT = "evaluation"
# Longer texts have their beginning as summary and the whole as content.
_SUMMARY_CHARS = 8_000


@dataclass(frozen=True, slots=True)
class Passage:
    """One row of a corpus: the id that questions name, and what to remember."""

    pid: str
    context_id: str
    item: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Case:
    """One question and its answers.

    Attributes:
        qid: its id.
        context_id: the context to ask; ``None`` for the corpus's only one.
        question: what to ask.
        grades: ids of passages that answer it, with their grades; those above 0 are relevant.
        category: the part of the report that it counts in.
        filters: passed to the recall.
    """

    qid: str
    context_id: str | None
    question: str
    grades: Mapping[str, float]
    category: str = ""
    filters: Mapping[str, Any] | None = field(default=None)


def read_corpus(path: str | os.PathLike[str]) -> list[Passage]:
    """The passages in the file, in its order.

    A row has ``id`` or ``pid``; ``text``, or ``summary`` and perhaps ``content``; and may have ``title``, ``context``
    (or ``conv``), ``session``, ``tags``, ``metadata``, ``type``, ``importance``, ``key``, ``scope``, ``event_time``
    (ISO 8601) and ``embedding``.

    Raises:
        InvalidInput: a line is not such a row; the message names the line.
    """
    passages = []
    seen = set()
    for number, row in read_objects(path):
        where = f"line {number}"
        pid = _id(row, ("id", "pid"), where)
        context_id = str(row.get("context", row.get("conv", DEFAULT_CONTEXT)))
        if (context_id, pid) in seen:
            raise InvalidInput("the same id stands on an earlier line", field=where, value=repr(pid))
        seen.add((context_id, pid))
        passages.append(Passage(pid, context_id, _item(row, context_id, where)))
    return passages


def read_queries(path: str | os.PathLike[str]) -> list[Case]:
    """The questions in the file, in its order.

    A row has ``qid`` (or ``id``), ``question`` (or ``query``) and ``rel``, a list of ids or a mapping from id to
    grade; and may have ``context`` (or ``conv``), ``category`` (or ``kind``) and ``filters``.

    Raises:
        InvalidInput: a line is not such a row; the message names the line.
    """
    cases = []
    for number, row in read_objects(path):
        where = f"line {number}"
        question = row.get("question", row.get("query"))
        if not isinstance(question, str):
            raise InvalidInput("has no text under question", field=where)
        context = row.get("context", row.get("conv"))
        cases.append(
            Case(
                qid=_id(row, ("qid", "id"), where),
                context_id=None if context is None else str(context),
                question=question,
                grades=_grades(row.get("rel"), where),
                category=str(row.get("category", row.get("kind", ""))),
                filters=row.get("filters"),
            )
        )
    return cases


def _id(row: Mapping[str, Any], names: tuple[str, ...], where: str) -> str:
    for name in names:
        if isinstance(row.get(name), str | int):
            return str(row[name])
    raise InvalidInput(f"has none of {', '.join(names)}", field=where)


def _grades(rel: object, where: str) -> dict[str, float]:
    if isinstance(rel, list):
        return {str(answer): 1.0 for answer in rel}
    if isinstance(rel, dict):
        try:
            return {str(answer): float(grade) for answer, grade in rel.items()}
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidInput("rel has a grade that is no number", field=where) from error
    raise InvalidInput("rel is neither a list of ids nor grades by id", field=where)


def _item(row: Mapping[str, Any], context_id: str, where: str) -> dict[str, Any]:
    item: dict[str, Any] = {"context_id": context_id, **text_of(row, where)}
    kept = ("tags", "metadata", "type", "importance", "key", "scope", "embedding")
    item |= {name: row[name] for name in kept if row.get(name) is not None}
    if row.get("session") is not None:
        item["session"] = str(row["session"])
    if row.get("event_time") is not None:
        try:
            item["event_time"] = datetime.fromisoformat(row["event_time"])
        except (TypeError, ValueError) as error:
            raise InvalidInput("event_time is no ISO 8601 time", field=where, value=repr(row["event_time"])) from error
    return item


def text_of(row: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The row's ``summary`` and ``content``, made of ``title`` and ``text`` where it has those."""
    if isinstance(row.get("summary"), str):
        return {"summary": row["summary"], "content": row.get("content")}
    text, title = row.get("text"), row.get("title")
    if not isinstance(text, str):
        raise InvalidInput("has neither summary nor text", field=where)
    if not isinstance(title, str | None):
        raise InvalidInput("is not a text", field=f"{where}, title", value=repr(title))
    if title:
        return {"summary": title, "content": text}
    if len(text) > _SUMMARY_CHARS:
        return {"summary": text[:_SUMMARY_CHARS], "content": text}
    return {"summary": text}
