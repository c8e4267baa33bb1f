"""What verbs answer with: frozen, picklable where it makes sense, and safe to show."""

from __future__ import annotations

import json
import pickle
import warnings
from typing import TYPE_CHECKING

import pytest

import memkura
from memkura import errors
from memkura.visible import visible

if TYPE_CHECKING:
    from memkura import Engine
    from memkura.testing import FrozenClock, ToyEmbedder

NASTY = "\x1b[2J\x1b]52;c;aGk=\x07<script>alert(1)</script>\x9b\r\b[bold]x[/bold]"


def test_remembered_is_the_id_and_more(engine: Engine) -> None:
    """A ``str`` that works as one everywhere, and cannot be changed."""
    memory_id = engine.remember("c", "tea is brewed at 80 degrees")
    assert isinstance(memory_id, str)
    assert memory_id == str(memory_id)
    assert hash(memory_id) == hash(str(memory_id))
    assert json.loads(json.dumps(memory_id)) == memory_id
    assert (memory_id.created, memory_id.version, memory_id.warnings) == (True, 1, ())
    with pytest.raises(AttributeError):
        memory_id.version = 2
    with pytest.raises(AttributeError):
        del memory_id.version
    again = pickle.loads(pickle.dumps(memory_id))  # noqa: S301 - our own
    assert (again, again.version, again.embedded) == (memory_id, 1, memory_id.embedded)


def test_idempotency_key_and_dedup_say_what_they_did(engine: Engine) -> None:
    """The same word is the same memory; the same text folds only when asked."""
    first = engine.remember("c", "deadline is 15 October", idempotency_key="evt-512")
    again = engine.remember("c", "deadline is 15 October", idempotency_key="evt-512")
    assert (again, again.created) == (first, False)
    twice = engine.remember("c", "deadline is 15 October")
    assert twice != first
    folded = engine.remember("c", "deadline is  15 October", dedup="exact")
    assert folded in {first, twice}
    assert not folded.created
    other = engine.remember("c", "deadline is 16 October", dedup="exact")
    assert other.created
    assert engine.count("c") == 3


def test_repaired_text_warns_at_the_callers_line(engine: Engine) -> None:
    """A NUL is removed, half a surrogate pair becomes U+FFFD, both with a warning."""
    with pytest.warns(errors.TextRepaired) as caught:
        memory_id = engine.remember("c", "half \ud800 pair")
    assert caught[0].filename == __file__
    memory = engine.get("c", memory_id)
    assert memory is not None
    assert memory.summary == "half \ufffd pair"
    texts = [f"text {number}" for number in range(100)]
    texts[50] += " nul \0"
    with pytest.warns(errors.TextRepaired):
        ids = engine.remember_many([{"context_id": "c", "summary": text} for text in texts])
    assert len(ids) == 100
    assert [bool(memory_id.warnings) for memory_id in ids].count(True) == 1


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({1: 2}, "metadata"),
        ({"x": float("nan")}, "metadata.x"),
        ({"x": [float("inf")]}, "metadata.x"),
        ({"x": {"y": b"bytes"}}, "metadata.x.y"),
        ({"x": {1, 2}}, "metadata.x"),
        ({"x": 2**64}, "metadata.x"),
    ],
)
def test_metadata_that_could_not_come_back_is_refused(engine: Engine, value: dict[str, object], path: str) -> None:
    """Nothing is written, and the error names the path."""
    with pytest.raises(errors.InvalidInput) as caught:
        engine.remember("c", "tea", metadata=value)
    assert str(caught.value.field).startswith(path)
    assert engine.count("c") == 0


def test_metadata_comes_back_with_the_same_types(engine: Engine) -> None:
    """Value and type."""
    given = {"a": 9007199254740993, "b": -(2**63), "c": True, "d": 1, "e": 1.0, "f": "1", "g": None, "h": [], "i": {}}
    memory = engine.get("c", engine.remember("c", "tea", metadata=given))
    assert memory is not None
    assert memory.metadata == given
    assert [type(value) for value in memory.metadata.values()] == [type(value) for value in given.values()]


def test_batches_refuse_unknown_names_whole(engine: Engine) -> None:
    """A misspelt name is never ignored, and a batch is kept whole or not at all."""
    with pytest.raises(errors.UnknownField):
        engine.remember_many([{"context_id": "c", "summary": "tea"}, {"context_id": "c", "sumary": "tea"}])
    with pytest.raises(errors.InvalidInput, match=r"\[0\]"):
        engine.remember_many(["tea"])  # type: ignore[list-item]
    assert engine.contexts() == []


def test_batches_tell_their_progress(engine: Engine) -> None:
    """Done and total; no total for an iterator."""
    items = [{"context_id": "c", "summary": f"tea {number}"} for number in range(5)]
    seen: list[tuple[int, int | None]] = []
    engine.remember_many(items, progress=lambda done, total: seen.append((done, total)), batch_size=2)
    engine.remember_many(iter(items), progress=lambda done, total: seen.append((done, total)), batch_size=4)
    assert seen == [(2, 5), (4, 5), (5, 5), (4, None), (5, None)]
    assert engine.count("c") == 10


def test_hits_are_a_frozen_sequence(engine: Engine) -> None:
    """Indexes, slices, iterates and lists like a tuple; nothing can be set."""
    engine.remember_many([{"context_id": "c", "summary": f"tea number {number}"} for number in range(5)])
    hits = engine.recall("c", "tea", k=4)
    assert len(hits) == 4
    assert hits[0].memory_id == next(iter(hits)).memory_id
    assert isinstance(hits[1:], memkura.Hits)
    assert hits[1:].mode == hits.mode
    assert [row["memory_id"] for row in hits.as_dicts()] == [hit.memory_id for hit in hits]
    assert hits.degraded == []
    hits.degraded.append("not kept")
    assert hits.degraded == []
    with pytest.raises(AttributeError):
        hits.mode = "other"  # type: ignore[misc]
    with pytest.raises(AttributeError):
        hits[0].summary = "other"  # type: ignore[misc]
    assert repr(hits).startswith("<Hits 4 mode='hybrid'")
    assert len(repr(hits)) < 300


def test_shown_results_obey_nothing(engine: Engine) -> None:
    """Repr, notebook and rich forms hold neither control characters nor markup of the text's own."""
    engine.remember("c", f"tea {NASTY}", tags=["x"])
    hits = engine.recall("c", "tea")
    html = hits._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    for shown in (repr(hits), html, engine.stats()._repr_html_()):
        assert shown == visible(shown)
    console = pytest.importorskip("rich.console").Console(width=200)
    with console.capture() as capture:
        console.print(hits)
        console.print(engine.stats())
    text = capture.get()
    assert "\\x1b[2J" in text
    assert "[bold]" in text
    assert "\x9b" not in text


def test_rerankers_order_the_candidates(engine: Engine) -> None:
    """A callable or an object with ``rerank``; a failing one leaves the order as it was, and is said."""
    ids = engine.remember_many([{"context_id": "c", "summary": f"tea {'x' * number}"} for number in range(1, 9)])
    by_length = lambda query, texts, top_n: [(at, len(text)) for at, text in enumerate(texts)]  # noqa: ARG005, E731
    hits = engine.recall("c", "tea", k=3, reranker=by_length)
    assert [hit.memory_id for hit in hits] == [str(memory_id) for memory_id in ids[:-4:-1]]
    assert [hit.memory_id for hit in engine.recall("c", "tea", k=2, offset=1, reranker=by_length)] == [
        hit.memory_id for hit in hits[1:]
    ]

    def broken(_query: str, _texts: list[str], _top_n: int) -> list[tuple[int, float]]:
        raise OSError("no route")

    plain = engine.recall("c", "tea", k=3)
    hits = engine.recall("c", "tea", k=3, reranker=broken)
    assert [hit.memory_id for hit in hits] == [hit.memory_id for hit in plain]
    assert hits.degraded == ["rerank:failed"]
    assert engine.recall("c", "tea", k=3, reranker=lambda *_: [(99, 1.0)]).degraded == ["rerank:failed"]


def test_explain_tells_why(engine: Engine) -> None:
    """Raw scores and ranks of each leg, for a hit and for one memory."""
    memory_id = engine.remember("c", "tea is brewed at 80 degrees")
    (hit,) = engine.recall("c", "tea", explain=True)
    alone = engine.explain("c", "tea", memory_id)
    for said in (hit.explanation, alone):
        assert said["text"]["score"] > 0
        assert said["text"]["rank"] == said["vector"]["rank"] == 1
        assert 0 < said["vector"]["cosine"] < 1
    assert alone["rank"] == 1
    with pytest.raises(errors.NotFound):
        engine.explain("elsewhere", "tea", memory_id)


def test_order_is_the_same_in_another_process(store_path: object, engine: Engine) -> None:
    """Unchanged data, the same order, equal scores by id."""
    import subprocess
    import sys

    engine.remember_many([{"context_id": "c", "summary": f"tea {number % 3}"} for number in range(30)])
    here = [hit.memory_id for hit in engine.recall("c", "tea 1", k=20)]
    engine.compact()
    assert [hit.memory_id for hit in engine.recall("c", "tea 1", k=20)] == here
    code = (
        "import memkura; from memkura.testing import FrozenClock, ToyEmbedder\n"
        f"engine = memkura.open({str(store_path)!r}, embedder=ToyEmbedder(), clock=FrozenClock())\n"
        "print(*[hit.memory_id for hit in engine.recall('c', 'tea 1', k=20)])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == here


def test_context_handle_has_every_verb(engine: Engine) -> None:
    """The same verbs without ``context_id``; a batch item cannot reach another context."""
    ops = engine.context("ops")
    memory_id = ops.remember("Deploys go out on Tuesday", key="deploy.day")
    assert [hit.memory_id for hit in ops.recall("deploys")] == [memory_id]
    assert ops.count() == 1
    assert ops.update_memory(memory_id, importance=0.9).version == 2
    found = ops.get(key="deploy.day")
    assert found is not None
    assert found.importance == 0.9
    assert len(ops.history(memory_id)) == 2
    assert [memory.memory_id for memory in ops.list()] == [memory_id]
    with pytest.raises(errors.InvalidInput):
        ops.remember_many([{"context_id": "elsewhere", "summary": "x"}])
    assert ops.forget(memory_id) == [memory_id]
    assert ops.stats().memories == 0
    with pytest.raises(errors.NothingSelected):
        ops.forget()


def test_engine_cannot_be_pickled(engine: Engine) -> None:
    """The message says what to do."""
    with pytest.raises(TypeError, match="open the store by its path"):
        pickle.dumps(engine)


def test_closed_engine_says_so(engine: Engine) -> None:
    """A second close is harmless, later verbs raise StoreClosed."""
    engine.close()
    engine.close()
    with pytest.raises(errors.StoreClosed):
        engine.count("c")
    assert "memkura.Engine" in repr(engine)


def test_stats_count(engine: Engine, clock: FrozenClock, toy: ToyEmbedder) -> None:
    """Memories, contexts and the embedder; ready for JSON."""
    engine.remember("a", "tea")
    engine.remember("b", "coffee")
    stats = engine.stats()
    assert (stats.memories, stats.unembedded, stats.contexts) == (2, 0, 2)
    assert stats.embedder.id == toy.id
    assert engine.stats("a").memories == 1
    assert json.loads(json.dumps(stats.as_dict(), default=str))["memories"] == 2
    memory = engine.list("a")[0]
    assert memory.created_at == clock()


def test_forked_child_and_parent_both_go_on(engine: Engine) -> None:
    """Neither hangs, and each sees the other's writes."""
    import os
    import signal

    engine.remember("c", "before the fork")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # forking with threads is what is tested
        child = os.fork()
    if child == 0:
        signal.alarm(20)
        try:
            engine.remember("c", "from the child")
            found = len(engine.recall("c", "fork child"))
            os._exit(0 if found == 2 else 1)
        finally:
            os._exit(2)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    engine.remember("c", "from the parent")
    assert engine.count("c") == 3


def test_warning_that_is_an_error_stops_the_write(engine: Engine) -> None:
    """Nothing is written then: the caller gets no id."""
    row = engine.remember("c", "tea")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for write in (
            lambda: engine.remember("c", "bad \ud800"),
            lambda: engine.remember("c", "bad \0", supersedes=row),
            lambda: engine.remember("c", "fine", proof="seen \0"),
            lambda: engine.remember_many([{"context_id": "c", "summary": "bad \0"}]),
            lambda: engine.update_memory("c", row, summary="bad \ud800"),
        ):
            with pytest.raises(errors.TextRepaired):
                write()
    assert [(memory.summary, memory.version) for memory in engine.list("c")] == [("tea", 1)]


def test_text_that_is_nothing_once_mended_is_refused(engine: Engine) -> None:
    """When it is written and when it is changed."""
    row = engine.remember("c", "tea")
    with pytest.warns(errors.TextRepaired), pytest.raises(errors.InvalidInput, match="blank"):
        engine.update_memory("c", row, summary="\0")
    with pytest.warns(errors.TextRepaired), pytest.raises(errors.InvalidInput, match="blank"):
        engine.remember("c", "\0 \0")


def test_unknown_memory_is_named_by_its_argument(engine: Engine) -> None:
    """Which of them, and in which item."""
    unknown = "00000000-0000-7000-8000-000000000000"
    for field, value in (("supersedes", unknown), ("derived_from", [unknown])):
        with pytest.raises(errors.NotFound) as caught:
            engine.remember("c", "tea", **{field: value})  # type: ignore[arg-type]
        assert caught.value.field == field
        with pytest.raises(errors.NotFound) as caught:
            engine.remember_many(
                [{"context_id": "c", "summary": "x"}, {"context_id": "c", "summary": "y", field: value}]
            )
        assert caught.value.field == f"[1].{field}"


def test_reranker_that_drops_hits_is_not_followed(engine: Engine) -> None:
    """It answers with nothing, or with one hit twice."""
    for number in range(4):
        engine.remember("c", f"tea {number}")
    plain = [hit.memory_id for hit in engine.recall("c", "tea", k=3)]
    for answer in ([], [(0, 1.0), (0, 2.0)]):
        hits = engine.recall("c", "tea", k=3, reranker=lambda *_, answer=answer: answer)
        assert ([hit.memory_id for hit in hits], hits.degraded) == (plain, ["rerank:failed"])


def test_freshness_goes_with_the_type(engine: Engine) -> None:
    """A rate that is the type's own changes with it; one that was given stays; ``None`` gives it up."""
    row, own = engine.remember("c", "tea"), engine.remember("c", "coffee", decay_rate=0.3)
    rates = []
    for changes in ({"type": "rule"}, {"decay_rate": None}, {"type": "note"}):
        for memory_id in (row, own):
            engine.update_memory("c", memory_id, **changes)
            memory = engine.get("c", memory_id)
            assert memory is not None
            rates.append(memory.decay_rate)
    assert rates == [0.0, 0.3, 0.0, 0.0, 0.01, 0.01]
