"""The engine against a plain dictionary, over restarts, compactions and rebuilds."""

from __future__ import annotations

import shutil
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import memkura
from memkura.testing import FrozenClock, ToyEmbedder

_WORDS = [
    "deploy",
    "tuesday",
    "getUserById",
    "3.11.7",
    "港の灯台は赤い",
    "再現率",
    "배포는",
    "coffee",
    "the",
    "GB/s",
    "茶",
]
_CONTEXTS = ["a", "b"]
_QUESTIONS: list[dict[str, Any]] = [
    {},
    {"legs": ["text"]},
    {"legs": ["vector"]},
    {"fusion": "rrf"},
    {"filters": {"tags": "q"}},
    {"filters": {"metadata.n": {"gte": 1}}, "k": 3},
    {"neighbours": False},
]

texts = st.lists(st.sampled_from(_WORDS), min_size=1, max_size=7).map(" ".join)
contexts = st.sampled_from(_CONTEXTS)


class Model(RuleBasedStateMachine):
    """Every verb is done to the engine and to a dictionary."""

    @initialize()
    def begin(self) -> None:
        """An empty store on disk."""
        self.folder = Path(tempfile.mkdtemp())
        self.clock = FrozenClock()
        self.engine = self.opened()
        self.known: dict[str, dict[str, dict[str, Any]]] = {context: {} for context in _CONTEXTS}

    def opened(self) -> memkura.Engine:
        """A handle of its own on the store."""
        return memkura.open(self.folder / "s.memkura", embedder=ToyEmbedder(), clock=self.clock)

    def teardown(self) -> None:
        """Leaves nothing behind."""
        if hasattr(self, "folder"):
            self.engine.close()
            shutil.rmtree(self.folder)

    def live(self, context: str) -> dict[str, dict[str, Any]]:
        """What has not expired."""
        now = self.clock()
        return {key: row for key, row in self.known[context].items() if row["end"] is None or now < row["end"]}

    @rule(context=contexts, text=texts, session=st.sampled_from([None, "s"]), lifetime=st.sampled_from([None, 50]))
    def remember(self, context: str, text: str, session: str | None, lifetime: int | None) -> None:
        """A new memory."""
        self.clock.advance(1)
        end = None if lifetime is None else self.clock() + timedelta(seconds=lifetime)
        memory_id = self.engine.remember(
            context, text, session=session, expires_at=end, metadata={"n": len(text) % 3}, tags=["t"]
        )
        self.known[context][memory_id] = {"summary": text, "tags": ("t",), "end": end}

    @rule(context=contexts, text=texts, key=st.sampled_from(["K1", "\uff4b1", "k2"]))
    def put_key(self, context: str, text: str, key: str) -> None:
        """A keyed memory, written over if the key is known in any form."""
        self.clock.advance(1)
        memory_id = self.engine.remember(context, text, key=key)
        self.known[context][memory_id] = {"summary": text, "tags": (), "end": None}
        assert self.engine.get(context, key=key.upper()).memory_id == memory_id  # type: ignore[union-attr]

    @precondition(lambda self: any(self.live(context) for context in _CONTEXTS))
    @rule(data=st.data(), text=texts, is_text=st.booleans())
    def update(self, data: st.DataObject, text: str, is_text: bool) -> None:  # noqa: FBT001
        """A change of text, or of tags alone."""
        self.clock.advance(1)
        context = data.draw(st.sampled_from([context for context in _CONTEXTS if self.live(context)] or _CONTEXTS))
        if not self.live(context):
            return
        memory_id = data.draw(st.sampled_from(sorted(self.live(context))))
        if is_text:
            self.engine.update_memory(context, memory_id, summary=text)
            self.known[context][memory_id]["summary"] = text
        else:
            self.engine.update_memory(context, memory_id, tags=["q"])
            self.known[context][memory_id]["tags"] = ("q",)

    @precondition(lambda self: any(self.known[context] for context in _CONTEXTS))
    @rule(data=st.data(), purge=st.booleans())
    def forget(self, data: st.DataObject, purge: bool) -> None:  # noqa: FBT001
        """A memory that goes, expired or not."""
        context = data.draw(st.sampled_from([context for context in _CONTEXTS if self.known[context]]))
        memory_id = data.draw(st.sampled_from(sorted(self.known[context])))
        assert self.engine.forget(context, memory_id, purge=purge) == [memory_id]
        del self.known[context][memory_id]

    @rule()
    def compact(self) -> None:
        """Everything sealed and shrunk."""
        self.engine.compact()

    @rule()
    def restart(self) -> None:
        """Another handle takes over."""
        self.engine.close()
        self.engine = self.opened()

    @invariant()
    def rows_are_those_of_the_dictionary(self) -> None:
        """Lists and counts show what was written, no more and no less."""
        if not hasattr(self, "engine"):
            return
        for context in _CONTEXTS:
            listed = {memory.memory_id: memory for memory in self.engine.list(context, limit=1000)}
            assert {key: (row.summary, row.tags) for key, row in listed.items()} == {
                key: (row["summary"], row["tags"]) for key, row in self.live(context).items()
            }
            assert self.engine.count(context) == len(listed)

    @rule(context=contexts, query=texts)
    def built_equals_grown(self, context: str, query: str) -> None:
        """An index built from the record answers as the one that grew: ids, order and scores."""
        with self.opened() as built:
            for options in _QUESTIONS:
                answers = [
                    [(hit.memory_id, hit.score) for hit in engine.recall(context, query, **{"k": 20, **options})]
                    for engine in (self.engine, built)
                ]
                assert answers[0] == answers[1], options
                assert all(0 <= score < 10 for _, score in answers[0])


Model.TestCase.settings = settings(max_examples=20, stateful_step_count=30, deadline=None)
TestModel = Model.TestCase
