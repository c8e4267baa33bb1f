"""Thousands of operations in two contexts by two processes, against a plain dictionary.

Between them the store is closed, compacted and robbed of its indexes. Every so often three look at it: the process that
did the half of it, the other one, and a copy that has to make its indexes from nothing. They give the same hits in the
same order with the same scores (I3), of memories that say what the dictionary says.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from children import TIMES

import memkura
from memkura import errors
from memkura.testing import FrozenClock, ToyEmbedder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from memkura import Engine

# Three minutes where changes are let in, seconds at a desk.
OPERATIONS = (20_000 if os.environ.get("CI") or TIMES > 1 else 2_000) * min(TIMES, 5)
LOOK_EVERY = 500
QUERIES = 50
CONTEXTS = ("ann", "ben")
TAGS = ("a", "b", "c")
KEYS = tuple(f"key.{at}" for at in range(12))
_STEMS = (
    "tea",
    "boiler",
    "deploys",
    "getUserById",
    "ORA-01555",
    "meter",
    "検索",
    "再現率を",
    "备份数据",
    "배포",
    "v1.2",
)
# Some words stand in many memories and some in few.
WORDS = [*_STEMS * 3, *(f"{stem}{at}" for at in range(40) for stem in _STEMS)]
LEGS: tuple[list[str] | None, ...] = (None, ["text"], ["vector"], ["key"])

pytestmark = pytest.mark.timeout(900 * TIMES)

Row = dict[str, Any]
FIELDS = ("summary", "content", "tags", "key", "importance", "session")


def opened(store: str | Path) -> Engine:
    return memkura.open(store, embedder=ToyEmbedder(), clock=FrozenClock(), durability="process_crash")


def told(engine: Engine, verb: str, *arguments: Any, **options: Any) -> Any:
    """Does one thing and answers with what JSON holds."""
    answer = getattr(engine, verb)(*arguments, **options)
    if verb == "recall":
        return [[hit.memory_id, hit.score, hit.summary] for hit in answer]
    if verb == "list":
        return [[one.memory_id, {name: getattr(one, name) for name in FIELDS}] for one in answer]
    return answer if verb in ("remember", "remember_many", "forget", "count") else None


class Here:
    """The store, opened in this process."""

    def __init__(self, store: Path) -> None:
        self.engine = opened(store)

    def __call__(self, verb: str, *arguments: Any, **options: Any) -> Any:
        return json.loads(json.dumps(told(self.engine, verb, *arguments, **options)))

    def close(self) -> None:
        self.engine.close()


class There:
    """The store, opened in another process."""

    def __init__(self, store: Path) -> None:
        command = [sys.executable, __file__, str(store)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self, verb: str, *arguments: Any, **options: Any) -> Any:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps([verb, arguments, options]) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self) -> None:
        with self.process:
            assert self.process.stdin
            self.process.stdin.close()


class Story:
    """What happens to a store, and what it must therefore show."""

    def __init__(self, store: Path, seed: int, fault: str = "") -> None:
        self.store = store
        self.chance = random.Random(seed)
        self.fault = fault
        self.rows: dict[str, dict[str, Row]] = {name: {} for name in CONTEXTS}
        self.processes: list[Here | There] = [Here(store), There(store)]
        self.verbs: list[tuple[int, Callable[[Any, str], None]]] = [
            (40, self.remember),
            (4, self.remember_many),
            (8, self.write_key),
            (6, self.supersede),
            (24, self.update),
            (12, self.forget),
            (4, self.forget_some),
        ]

    def close(self) -> None:
        for process in self.processes:
            process.close()

    def live(self, operations: int) -> None:
        """So many operations, with a look at the store every so often."""
        weights = [weight for weight, _ in self.verbs]
        for at in range(1, operations + 1):
            ((_, verb),) = self.chance.choices(self.verbs, weights)
            verb(self.chance.choice(self.processes), self.chance.choice(CONTEXTS))
            if self.chance.random() < 0.01:
                self.disturb()
            if at % LOOK_EVERY == 0:
                self.look()

    # --- what is done ---

    def text(self) -> str:
        return " ".join(self.chance.choices(WORDS, k=self.chance.randint(1, 9)))

    def row(self, **fields: Any) -> Row:
        plain: Row = {"summary": self.text(), "content": None, "tags": [], "key": None, "importance": 0.5}
        return {**plain, "session": None, **fields}

    def some(self, context_id: str) -> str | None:
        rows = list(self.rows[context_id])
        return self.chance.choice(rows) if rows else None

    def remember(self, process: Any, context_id: str) -> None:
        row = self.row(
            content=self.chance.choice((None, self.text())),
            tags=sorted(self.chance.sample(TAGS, self.chance.randint(0, 2))),
            importance=self.chance.choice((0.1, 0.5, 0.9)),
            session=self.chance.choice((None, None, "s1", "s2")),
        )
        memory_id = process("remember", context_id, **{name: value for name, value in row.items() if value is not None})
        self.rows[context_id][memory_id] = row

    def remember_many(self, process: Any, context_id: str) -> None:
        rows = [self.row() for _ in range(self.chance.randint(1, 20))]
        items = [{"context_id": context_id, "summary": row["summary"]} for row in rows]
        self.rows[context_id] |= dict(zip(process("remember_many", items), rows, strict=True))

    def write_key(self, process: Any, context_id: str) -> None:
        row = self.row(key=self.chance.choice(KEYS))
        memory_id = process("remember", context_id, row["summary"], key=row["key"])
        held = [one for one, other in self.rows[context_id].items() if other["key"] == row["key"]]
        assert held in ([], [memory_id])
        self.rows[context_id][memory_id] = row

    def supersede(self, process: Any, context_id: str) -> None:
        if old := self.some(context_id):
            row = self.row()
            memory_id = process("remember", context_id, row["summary"], supersedes=old)
            del self.rows[context_id][old]
            self.rows[context_id][memory_id] = row

    def update(self, process: Any, context_id: str) -> None:
        if memory_id := self.some(context_id):
            everything = {
                "summary": self.text(),
                "content": self.chance.choice((None, self.text())),
                "tags": [self.chance.choice(TAGS)],
                "importance": self.chance.choice((0.1, 0.9)),
                "session": self.chance.choice((None, "s1")),
            }
            names = self.chance.sample(list(everything), self.chance.randint(1, 2))
            changes = {name: everything[name] for name in names}
            if self.fault == "loses updates":
                pass
            elif self.fault == "keeps old vectors" and "summary" in changes:
                old = self.rows[context_id][memory_id]
                vector = list(next(iter(ToyEmbedder().embed([old["summary"]], kind="document"))))
                process("update_memory", context_id, memory_id, embedding=vector, **changes)
            else:
                process("update_memory", context_id, memory_id, **changes)
            self.rows[context_id][memory_id] |= changes

    def forget(self, process: Any, context_id: str) -> None:
        if memory_id := self.some(context_id):
            assert process("forget", context_id, memory_id, purge=self.chance.random() < 0.3) == [memory_id]
            del self.rows[context_id][memory_id]

    def forget_some(self, process: Any, context_id: str) -> None:
        word, tag = self.chance.choice(("s1", "s2")), self.chance.choice(TAGS)
        rows = self.rows[context_id]
        matching = {one for one, row in rows.items() if row["session"] == word and tag in row["tags"]}
        assert set(process("forget", context_id, filters={"session": word, "tags": tag})) == matching
        for one in matching:
            del rows[one]

    def disturb(self) -> None:
        """Closes a process's store and opens it again, compacts, or takes all indexes away."""
        at = self.chance.randrange(2)
        what = self.chance.choice(("restart", "restart", "compact", "maintain", "rob"))
        if what in ("compact", "maintain"):
            self.processes[at](what)
        elif what == "restart":
            self.processes[at].close()
            self.processes[at] = (Here, There)[at](self.store)
        else:
            self.close()
            shutil.rmtree(self.store / "index", ignore_errors=True)
            self.processes = [Here(self.store), There(self.store)]

    # --- what is seen ---

    def rebuilt(self) -> Here:
        """A copy of the store without its indexes."""
        copy = self.store.with_name("copy.memkura")
        shutil.rmtree(copy, ignore_errors=True)
        # By another process: reading the files in this one would drop its locks on them.
        command = "import shutil, sys; shutil.copytree(*sys.argv[1:], ignore=shutil.ignore_patterns('index'))"
        subprocess.run([sys.executable, "-c", command, self.store, copy], check=True)
        return Here(copy)

    def look(self) -> None:
        """All three see what the dictionary holds, and answer alike."""
        rebuilt = self.rebuilt()
        for context_id, rows in self.rows.items():
            for process in (*self.processes, rebuilt):
                assert dict(process("list", context_id, limit=100_000)) == rows
            self.compare(context_id, rebuilt)
            self.vectors_fit(context_id)
        rebuilt.close()

    def compare(self, context_id: str, rebuilt: Here) -> None:
        for _ in range(QUERIES // len(CONTEXTS)):
            query = " ".join(self.chance.choices((*WORDS, *KEYS), k=self.chance.randint(1, 4)))
            options: dict[str, Any] = {"k": self.chance.choice((1, 10, 200)), "legs": self.chance.choice(LEGS)}
            if self.chance.random() < 0.3:
                options["filters"] = {"tags": self.chance.choice(TAGS)}
            built = rebuilt("recall", context_id, query, **options)
            for memory_id, _, summary in built:
                assert self.rows[context_id][memory_id]["summary"] == summary
            for grown in (process("recall", context_id, query, **options) for process in self.processes):
                assert [hit[0] for hit in grown] == [hit[0] for hit in built], (query, options)
                assert [hit[1] for hit in grown] == pytest.approx([hit[1] for hit in built], abs=1e-9)

    def vectors_fit(self, context_id: str) -> None:
        """A memory's own text is as near to it as can be (I11)."""
        engine = next(process.engine for process in self.processes if isinstance(process, Here))
        rows = self.rows[context_id]
        for memory_id in self.chance.sample(list(rows), min(10, len(rows))):
            text = f"{rows[memory_id]['summary']} {rows[memory_id]['content'] or ''}"
            (hit,) = engine.recall(context_id, text, legs=["vector"], filters={"memory_id": memory_id})
            assert hit.explanation["vector"]["cosine"] > 0.999, "a vector of another text"


@pytest.fixture
def stories(store_path: Path) -> Iterator[Callable[..., Story]]:
    begun: list[Story] = []

    def begin(seed: int, fault: str = "") -> Story:
        begun.append(Story(store_path, seed, fault))
        return begun[-1]

    yield begin
    for story in begun:
        story.close()


def test_long_life_shows_what_the_dictionary_holds(stories: Callable[..., Story]) -> None:
    """Grown in two processes equals built at once, all along."""
    story = stories(1)
    story.live(OPERATIONS)
    assert all(len(rows) > OPERATIONS // 20 for rows in story.rows.values())


@pytest.mark.parametrize("fault", ["loses updates", "keeps old vectors"])
def test_check_finds_a_faulty_process(stories: Callable[..., Story], fault: str) -> None:
    """Planted: updates that are acknowledged and not made, and vectors of the text before."""
    story = stories(2, fault)
    with pytest.raises(AssertionError):
        story.live(LOOK_EVERY)


def test_check_finds_an_answer_that_differs(stories: Callable[..., Story]) -> None:
    """Planted: the copy is one memory short, so that its statistics are others."""
    story = stories(3)
    story.live(LOOK_EVERY - 1)
    rebuilt = story.rebuilt()
    story.compare(CONTEXTS[0], rebuilt)
    memory_id, _ = story.rows[CONTEXTS[0]].popitem()
    rebuilt("forget", CONTEXTS[0], memory_id)
    with pytest.raises(AssertionError):
        story.compare(CONTEXTS[0], rebuilt)
    rebuilt.close()


def main() -> None:
    """The other process: does what is asked on standard input, a line at a time."""
    with opened(sys.argv[1]) as engine:
        for line in sys.stdin:
            verb, arguments, options = json.loads(line)
            try:
                answer = told(engine, verb, *arguments, **options)
            except errors.MemkuraError as error:
                answer = repr(error)
            print(json.dumps(answer), flush=True)  # noqa: T201 - to the test


if __name__ == "__main__":
    main()
