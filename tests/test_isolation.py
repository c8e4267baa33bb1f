# ruff: noqa: RUF001 - full-width letters are what is tested
"""Contexts isolate: nothing of one shows in another, their names are literal, and a foreign id is an unknown id."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import memkura
from asking import LEGS, each_leg, each_life, ids
from memkura import errors
from memkura.testing import FrozenClock, ToyEmbedder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from asking import Look
    from memkura import Engine

UNKNOWN = "01b8dac5-b400-7000-8000-000000000000"
MARK = "Acme"


@pytest.fixture
def two(engine: Engine) -> tuple[Engine, str]:
    """Ann's bank and Ben's tea, and the id of Ann's row."""
    bank = engine.remember(
        "ann", "Ann's bank is Acme", "account 7", key="bank", tags=["bank"], metadata={"bank": "Acme"}, session="s"
    )
    engine.remember("ben", "Ben likes tea", session="s")
    return engine, bank


READS: dict[str, Callable[[Engine, str, str], Any]] = {
    "recall by text": lambda e, c, _: e.recall(c, "bank", legs=["text"], explain=True).as_dicts(),
    "recall by vector": lambda e, c, _: e.recall(c, "Ann's bank is Acme", legs=["vector"], explain=True).as_dicts(),
    "recall by key": lambda e, c, _: e.recall(c, "bank", legs=["key"]).as_dicts(),
    "recall": lambda e, c, _: e.recall(c, "Ann's bank is Acme", k=50, include_superseded=True).as_dicts(),
    "recall as of": lambda e, c, _: e.recall(c, "Ann's bank is Acme", as_of=FrozenClock()()).as_dicts(),
    "recall by id filter": lambda e, c, i: e.recall(c, "bank", filters={"memory_id": i}).as_dicts(),
    "recall by tag": lambda e, c, _: e.recall(c, "bank", filters={"tags": "bank"}).as_dicts(),
    "get": lambda e, c, i: e.get(c, i),
    "get by key": lambda e, c, _: e.get(c, key="bank"),
    "list": lambda e, c, _: [row.as_dict() for row in e.list(c, limit=1000)],
    "list by id": lambda e, c, i: [row.as_dict() for row in e.list(c, filters={"memory_id": i})],
    "list by metadata": lambda e, c, _: e.list(c, filters={"metadata.bank": {"exists": True}}),
    "stats": lambda e, c, _: e.stats(c).as_dict(),
}


@pytest.mark.parametrize("read", READS.values(), ids=list(READS))
def test_no_read_of_one_context_shows_another(two: tuple[Engine, str], read: Callable[..., Any]) -> None:
    """Asked for Ben, no verb contains Ann's row, by words, vector, key, filter or id."""
    engine, bank = two
    for _ in range(2):
        shown = repr(read(engine, "ben", bank))
        assert MARK not in shown
        assert bank not in shown
        assert MARK in repr(read(engine, "ann", bank)) or "memories" in shown
        engine.compact()


@each_life
def test_counts_and_answers_stay_apart(two: tuple[Engine, str], store_path: Path, look: Look) -> None:
    """Counts, lists and legs of one context are its own, in every life of the store."""
    engine, bank = two
    answers = look(engine, store_path, "ben", "bank tea", [bank], k=50)
    assert answers["count"] == 1
    assert bank not in json.dumps({**answers, "get": None})
    assert answers["get"] == {bank: None}


def test_counting_by_filter_counts_no_foreign_row(two: tuple[Engine, str]) -> None:
    """Counting by anything that Ann's row has gives 0 for Ben."""
    engine, bank = two
    for filters in ({"memory_id": bank}, {"tags": "bank"}, {"key": "bank"}, {"metadata.bank": "Acme"}):
        assert engine.count("ben", filters=filters) == 0
        assert engine.count("ann", filters=filters) == 1


# Every verb that takes an id, as (context, id) -> what happened.
BY_ID: dict[str, Callable[[Engine, str, str], Any]] = {
    "get": lambda e, c, i: e.get(c, i),
    "update": lambda e, c, i: e.update_memory(c, i, summary="changed by Ben"),
    "update of a field": lambda e, c, i: e.update_memory(c, i, importance=0.1),
    "forget": lambda e, c, i: e.forget(c, i),
    "purge": lambda e, c, i: e.forget(c, i, purge=True),
    "forget by filter": lambda e, c, i: e.forget(c, filters={"memory_id": i}),
    "history": lambda e, c, i: e.history(c, i),
    "explain": lambda e, c, i: e.explain(c, "bank", i),
    "derived_from": lambda e, c, i: e.remember(c, "derived", derived_from=[i]),
    "supersedes": lambda e, c, i: e.remember(c, "newer", supersedes=i),
    "derived_from in a batch": lambda e, c, i: e.remember_many(
        [{"context_id": c, "summary": "good"}, {"context_id": c, "summary": "derived", "derived_from": [i]}]
    ),
}


@pytest.mark.parametrize("verb", BY_ID.values(), ids=list(BY_ID))
@pytest.mark.parametrize("context_id", ["ben", "never written"])
def test_foreign_id_is_an_unknown_id(two: tuple[Engine, str], verb: Callable[..., Any], context_id: str) -> None:
    """A foreign id gets the very answer of one that never existed; nothing is written and nothing counted."""
    engine, bank = two
    before = _everything(engine)

    def answer(memory_id: str) -> tuple[str, str]:
        try:
            said = verb(engine, context_id, memory_id)
        except errors.NotFound as error:
            said = f"{type(error).__name__}: {error} {error.field} {error.value} {error.advice}"
        return "ok", repr(said).replace(memory_id, "ID")

    assert answer(bank) == answer(UNKNOWN)
    assert _everything(engine) == before


def _everything(engine: Engine) -> Any:
    rows = {name: [row.as_dict() for row in engine.list(name)] for name in ("ann", "ben")}
    histories = {
        row["memory_id"]: len(engine.history(name, row["memory_id"])) for name, some in rows.items() for row in some
    }
    return rows, histories, engine.stats().memories, engine.contexts()


def test_word_of_one_context_does_not_answer_in_another(engine: Engine) -> None:
    """An idempotency key, a key or an equal text of Ann's is no duplicate of Ben's."""
    ann = engine.remember("ann", "deploy finished", idempotency_key="evt-512", dedup="exact", key="k")
    ben = engine.remember("ben", "deploy finished", idempotency_key="evt-512", dedup="exact", key="k")
    assert ann != ben
    assert (ben.created, ben.duplicates, ben.version) == (True, (), 1)
    assert engine.remember("ann", ann, idempotency_key=ann).created
    assert engine.remember("ben", ann, idempotency_key=ann).created


@pytest.mark.parametrize(
    "context_id", ["", " ", "\u3000", None, 7, ["ann"], "a\nb", "a\x00b", "memkura:x", "\ud800"], ids=ascii
)
def test_missing_or_reserved_context_is_an_error(engine: Engine, context_id: Any) -> None:
    """No context, a blank one or a reserved name raises in every verb and never means all of them."""
    row = engine.remember("ann", "tea")
    for verb in (
        lambda: engine.remember(context_id, "tea"),
        lambda: engine.remember_many([{"context_id": context_id, "summary": "tea"}]),
        lambda: engine.recall(context_id, "tea"),
        lambda: engine.list(context_id),
        lambda: engine.count(context_id),
        lambda: engine.get(context_id, row),
        lambda: engine.history(context_id, row),
        lambda: engine.update_memory(context_id, row, summary="x"),
        lambda: engine.forget(context_id, row),
        lambda: engine.forget(context_id, everything=True),
        lambda: engine.create_context(context_id),
    ):
        with pytest.raises(errors.InvalidInput):
            verb()
    assert [one["context_id"] for one in engine.contexts()] == ["ann"]
    assert engine.count("ann") == 1


def test_item_without_a_context_is_refused(engine: Engine) -> None:
    """A batch does not fall back to some context."""
    with pytest.raises(errors.InvalidInput, match="context_id"):
        engine.remember_many([{"summary": "tea"}])
    assert engine.contexts() == []


LITERAL = [
    "a_b",
    "aXb",
    "a%b",
    "a\\b",
    "a/b",
    "a/bc",
    "a/",
    "A_B",
    "a b",
    "あ_い",
    "user_1",
    "user_10",
    "*",
    "%",
    "_",
    ".",
    "..",
    "../x",
    "'; DROP TABLE memory;--",
    '"',
    "a.b",
    "$.a[*]",
    "CON",
    "é",
    "e\u0301",
    "ｅ",
    "x" * 512,
    "-",
    "--",
    "null",
    "0",
]


@each_life
def test_names_of_contexts_are_literal(engine: Engine, store_path: Path, look: Look) -> None:
    """Wildcards, separators, case and composition in a name are letters: each context has its own row alone."""
    rows = {name: engine.remember(name, f"the row of number {at}") for at, name in enumerate(LITERAL)}
    assert sorted(one["context_id"] for one in engine.contexts()) == sorted(LITERAL)
    for name in ("a_b", "%", "e\u0301", "a/", "A_B"):
        with memkura.open(store_path, embedder=ToyEmbedder(), clock=FrozenClock()) as opened:
            answers = look(opened, store_path, name, "the row of number", k=50)
        assert [answers[leg] for leg in (*LEGS, "list")] == [[rows[name]]] * 4
    with memkura.open(store_path, embedder=ToyEmbedder(), clock=FrozenClock()) as opened:
        for name, row in rows.items():
            assert ids(opened.recall(name, "the row of number", k=50)) == [row]
        assert opened.count("ax_b") == opened.count("a_%") == opened.count("user_") == 0


@pytest.mark.parametrize("purge", [False, True], ids=["retired", "purged"])
def test_forgetting_a_literal_name_touches_no_other(engine: Engine, purge: bool) -> None:  # noqa: FBT001
    """Emptying `a_b`, `%` or `a/` leaves every other context's row."""
    for at, name in enumerate(LITERAL):
        engine.remember(name, f"row {at}")
    for gone in ("a_b", "%", "a/", "*", "..", "A_B"):
        assert len(engine.forget(gone, everything=True, purge=purge)) == 1
        left = [name for name in LITERAL if engine.count(name)]
        assert gone not in left
    assert len(left) == len(LITERAL) - 6


QUERIES = [
    "tea",
    "green tea",
    "how is tea brewed",
    "soft water",
    "80 degrees",
    "cup 3",
    "the brew",
    "kettle",
    "お茶",
    "of",
]


def _answers(engine: Engine, k: int = 50) -> list[Any]:
    return [
        (hit.memory_id, hit.score, {name: value for name, value in hit.explanation.items() if name != "plan"})
        for query in QUERIES
        for legs in LEGS.values()
        for hit in engine.recall("b", query, k=k, legs=legs, explain=True)
    ]


@pytest.mark.parametrize("emptied", ["forget", "purge"])
def test_statistics_do_not_travel_between_contexts(engine: Engine, store_path: Path, emptied: str) -> None:
    """A thousand rows with the same words and vectors elsewhere change no id, order, score or explanation."""
    for number in range(20):
        engine.remember("b", f"cup {number % 7} of green tea, brewed with soft water of {number * 10} degrees お茶")
    before = _answers(engine)
    assert len(before) > 300
    engine.remember_many(
        {"context_id": "a", "summary": f"cup {number % 9} of green tea, tea, brewed with kettle water お茶を"}
        for number in range(1000)
    )
    assert _answers(engine) == before
    engine.compact()
    assert _as_close(_answers(engine), before)
    engine.forget("a", everything=True, purge=emptied == "purge")
    assert _as_close(_answers(engine), before)
    with memkura.open(store_path, embedder=ToyEmbedder(), clock=FrozenClock()) as again:
        assert _as_close(_answers(again), before)


def _as_close(one: list[Any], other: list[Any]) -> bool:
    assert [memory_id for memory_id, _, _ in one] == [memory_id for memory_id, _, _ in other]
    for (_, score, said), (_, wanted, was) in zip(one, other, strict=True):
        assert score == pytest.approx(wanted, abs=1e-12)
        for leg, name in (("text", "score"), ("vector", "cosine")):
            assert said[leg][name] == pytest.approx(was[leg][name], abs=1e-12)
    return True


@each_leg
def test_sessions_of_the_same_name_stay_apart(engine: Engine, legs: Sequence[str] | None) -> None:
    """A neighbour's words count within a context alone, though another has a session of that name."""
    for context_id, words in (("ann", "the secret bank"), ("ben", "something else")):
        engine.remember(context_id, words, session="s")
        engine.remember(context_id, "the next turn", session="s")
    hits = engine.recall("ben", "secret bank", legs=legs, neighbours=True)
    if legs == ("text",):
        assert ids(hits) == []
    assert "secret" not in repr([hit.as_dict() for hit in hits])
