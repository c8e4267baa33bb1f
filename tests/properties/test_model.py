"""A store against a plain dictionary: whatever is done in whatever order, it shows exactly what it should."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, multiple, rule

import memkura
from asking import LEGS, ids
from memkura import Engine, errors
from memkura.testing import FrozenClock, ToyEmbedder

CONTEXTS = ("ann", "ben")
WORDS = [
    "tea",
    "boiler",
    "getUserById",
    "ORA-01555",
    "検索",
    "再現率",
    "备份",
    "배포",
    "meter",
    "v1.2",
    "C++",
    "conf.d/x",
]
KEYS = ["diet", "Deploy.Prod", "ﾃﾞｰﾀ"]
FOLDED = {"diet": "diet", "Deploy.Prod": "deploy.prod", "ﾃﾞｰﾀ": "データ"}
TAGS = ["a", "b", "a_b"]

contexts = st.sampled_from(CONTEXTS)
sentences = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join)
tags = st.lists(st.sampled_from(TAGS), max_size=2, unique=True).map(tuple)
queries = st.lists(st.sampled_from(WORDS), min_size=1, max_size=2).map(" ".join)


@dataclass(frozen=True)
class Row:
    """What the model knows of a memory."""

    summary: str
    content: str | None = None
    tags: tuple[str, ...] = ()
    key: str | None = None
    importance: float = 0.5
    session: str | None = None
    version: int = field(default=1)


class Store(RuleBasedStateMachine):
    """Verbs in any order, in two contexts, with reopening and compacting between them."""

    rows = Bundle("rows")

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="memkura-model-"))
        self.clock = FrozenClock()
        self.engine = self.opened()
        self.model: dict[str, dict[str, Row]] = {name: {} for name in CONTEXTS}
        self.gone: list[tuple[str, str]] = []

    def opened(self) -> Engine:
        return memkura.open(self.folder / "store", embedder=ToyEmbedder(), clock=self.clock)

    def teardown(self) -> None:
        self.engine.close()
        shutil.rmtree(self.folder)

    @initialize(target=rows)
    def begin(self) -> Any:
        return multiple()

    @rule(
        target=rows,
        context_id=contexts,
        summary=sentences,
        content=st.none() | sentences,
        tags=tags,
        importance=st.sampled_from([0.1, 0.5, 0.9]),
        session=st.none() | st.sampled_from(["s1", "s2"]),
    )
    def remember(self, context_id: str, **fields: Any) -> tuple[str, str]:
        row = self.engine.remember(context_id, **fields)
        assert (row.created, row.version, row.embedded) == (True, 1, True)
        self.model[context_id][str(row)] = Row(**fields)
        return context_id, str(row)

    @rule(target=rows, context_id=contexts, summaries=st.lists(sentences, min_size=1, max_size=6))
    def remember_many(self, context_id: str, summaries: list[str]) -> Any:
        done = self.engine.remember_many([{"context_id": context_id, "summary": text} for text in summaries])
        self.model[context_id].update({str(row): Row(text) for row, text in zip(done, summaries, strict=True)})
        return multiple(*((context_id, str(row)) for row in done))

    @rule(target=rows, context_id=contexts, key=st.sampled_from(KEYS), summary=sentences)
    def write_key(self, context_id: str, key: str, summary: str) -> tuple[str, str]:
        held = [one for one, row in self.model[context_id].items() if row.key and FOLDED[row.key] == FOLDED[key]]
        row = self.engine.remember(context_id, summary, key=key)
        if held:
            assert [str(row)] == held
            assert not row.created
            before = self.model[context_id][held[0]]
            self.model[context_id][held[0]] = Row(summary, key=key, version=before.version + 1)
        else:
            assert row.created
            self.model[context_id][str(row)] = Row(summary, key=key)
        assert row.version == self.model[context_id][str(row)].version
        return context_id, str(row)

    @rule(target=rows, old=rows, summary=sentences)
    def supersede(self, old: tuple[str, str], summary: str) -> Any:
        context_id, memory_id = old
        if memory_id not in self.model[context_id]:
            with pytest.raises(errors.NotFound):
                self.engine.remember(context_id, summary, supersedes=memory_id)
            return multiple()
        row = self.engine.remember(context_id, summary, supersedes=memory_id)
        del self.model[context_id][memory_id]
        self.model[context_id][str(row)] = Row(summary)
        return context_id, str(row)

    @rule(
        row=rows,
        changes=st.fixed_dictionaries(
            {},
            optional={
                "summary": sentences,
                "content": st.none() | sentences,
                "tags": tags,
                "importance": st.sampled_from([0.1, 0.5, 0.9]),
                "session": st.none() | st.sampled_from(["s1", "s2"]),
            },
        ).filter(bool),
    )
    def update(self, row: tuple[str, str], changes: dict[str, Any]) -> None:
        context_id, memory_id = row
        if memory_id not in self.model[context_id]:
            with pytest.raises(errors.NotFound):
                self.engine.update_memory(context_id, memory_id, **changes)
            return
        before = self.model[context_id][memory_id]
        receipt = self.engine.update_memory(context_id, memory_id, **changes)
        assert receipt.version == before.version + 1
        self.model[context_id][memory_id] = replace(before, version=receipt.version, **changes)

    @rule(row=consumes(rows), purge=st.booleans())
    def forget(self, row: tuple[str, str], purge: bool) -> None:  # noqa: FBT001
        context_id, memory_id = row
        if memory_id not in self.model[context_id]:
            return
        assert self.engine.forget(context_id, memory_id, purge=purge) == [memory_id]
        del self.model[context_id][memory_id]
        self.gone.append(row)

    @rule(context_id=contexts, tag=st.sampled_from(TAGS))
    def forget_by_tag(self, context_id: str, tag: str) -> None:
        matching = {one for one, row in self.model[context_id].items() if tag in row.tags}
        assert set(self.engine.forget(context_id, filters={"tags": tag})) == matching
        for one in matching:
            del self.model[context_id][one]
            self.gone.append((context_id, one))

    @rule(context_id=contexts, purge=st.booleans())
    def forget_everything(self, context_id: str, purge: bool) -> None:  # noqa: FBT001
        went = self.engine.forget(context_id, everything=True, purge=purge)
        assert set(went) >= self.model[context_id].keys()
        self.gone += [(context_id, one) for one in self.model[context_id]]
        self.model[context_id].clear()

    @rule(row=rows)
    def use_in_the_other_context(self, row: tuple[str, str]) -> None:
        context_id, memory_id = row
        other = CONTEXTS[1 - CONTEXTS.index(context_id)]
        assert self.engine.get(other, memory_id) is None
        with pytest.raises(errors.NotFound):
            self.engine.update_memory(other, memory_id, importance=0.3)
        with pytest.raises(errors.NotFound):
            self.engine.forget(other, memory_id)

    @rule()
    def reopen(self) -> None:
        self.engine.close()
        self.engine = self.opened()

    @rule()
    def compact(self) -> None:
        self.engine.compact()

    @rule()
    def lose_the_indexes(self) -> None:
        self.engine.close()
        shutil.rmtree(self.folder / "store" / "index", ignore_errors=True)
        self.engine = self.opened()

    @rule(context_id=contexts, query=queries, tag=st.none() | st.sampled_from(TAGS), k=st.sampled_from([1, 3, 100]))
    def recall(self, context_id: str, query: str, tag: str | None, k: int) -> None:
        """A grown engine answers as a freshly opened one, with rows that are there and match, and as many as can be."""
        filters = None if tag is None else {"tags": tag}
        matching = {one for one, row in self.model[context_id].items() if tag is None or tag in row.tags}
        with self.opened() as fresh:
            for legs in (*LEGS.values(), ("key",)):
                grown = self.engine.recall(context_id, query, legs=legs, k=k, filters=filters, explain=True)
                again = fresh.recall(context_id, query, legs=legs, k=k, filters=filters, explain=True)
                assert ids(grown) == ids(again), legs
                assert [hit.score for hit in grown] == pytest.approx([hit.score for hit in again], abs=1e-9)
                assert len(set(ids(grown))) == len(grown)
                assert set(ids(grown)) <= matching
                for hit in grown:
                    row = self.model[context_id][hit.memory_id]
                    assert (hit.summary, hit.content, set(hit.tags)) == (row.summary, row.content, set(row.tags))
                if legs == ("vector",):
                    assert len(grown) == min(k, len(matching))
        whole = ids(self.engine.recall(context_id, query, legs=["text"], k=100, filters=filters, neighbours=False))
        assert set(whole) <= matching
        literal = {
            one
            for one in matching
            if query in (row := self.model[context_id][one]).summary.split(" ")
            or query in (row.content or "").split(" ")
        }
        assert literal <= set(whole)

    @rule(context_id=contexts, key=st.sampled_from(KEYS))
    def get_by_key(self, context_id: str, key: str) -> None:
        held = [one for one, row in self.model[context_id].items() if row.key and FOLDED[row.key] == FOLDED[key]]
        memory = self.engine.get(context_id, key=key)
        assert ([] if memory is None else [memory.memory_id]) == held
        assert self.engine.count(context_id, filters={"key": key}) == len(held)

    @invariant()
    def shows_what_the_model_holds(self) -> None:
        for context_id, rows in self.model.items():
            listed = self.engine.list(context_id, limit=10_000)
            assert self.engine.count(context_id) == len(rows) == len(listed)
            shown = {
                memory.memory_id: Row(
                    memory.summary,
                    memory.content,
                    tuple(memory.tags),
                    memory.key,
                    memory.importance,
                    memory.session,
                    memory.version,
                )
                for memory in listed
            }
            assert {one: replace(row, tags=tuple(sorted(row.tags))) for one, row in shown.items()} == {
                one: replace(row, tags=tuple(sorted(row.tags))) for one, row in rows.items()
            }
        for context_id, memory_id in self.gone[-3:]:
            if memory_id not in self.model[context_id]:
                assert self.engine.get(context_id, memory_id) is None
        assert self.engine.stats().unembedded == 0


Store.TestCase.settings = settings(
    max_examples=25,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
TestStore = Store.TestCase
