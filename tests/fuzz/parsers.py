"""What is fuzzed, through the public interface: each parser with its seeds, and what must hold for any input."""

from __future__ import annotations

import array
import contextlib
import ctypes
import io
import json
import math
import re
import shutil
from typing import TYPE_CHECKING, Any

import msgpack
from mutating import bent, mutated

import memkura
from memkura import errors
from memkura.testing import FrozenClock, ToyEmbedder

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from memkura import Engine

TEXTS = [
    "Deploys go out on Tuesday",
    "getUserById(order_id) raised ORA-01555 in v1.2.3",
    "検索の再現率を上げる ﾃﾞｰﾀ",
    "备份数据库 배포 일정",
    "e\u0301 ß İ ﷺ 👩‍👩‍👧 \u200d",
    "path/to/file.rs and C:\\x and https://a.b/c?d=e#f",
]
DIMENSIONS = 16


class Parser:
    """One parser: `seeds` to begin from, `make` for another input, `run` for what must hold.

    `run` raises when it does not hold. Whether the input was taken is what it answers.
    """

    seeds: Sequence[bytes]
    tokens: Sequence[bytes] = (b"\0", b" ", b"\xff")
    names: Sequence[str] = ()

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def make(self, chance: random.Random) -> bytes:
        """Another input."""
        return mutated(chance.choice(self.seeds), chance, self.tokens, self.seeds)

    def run(self, data: bytes) -> bool:
        """Gives the parser `data`."""
        raise NotImplementedError


@contextlib.contextmanager
def refused() -> Iterator[list[errors.MemkuraError]]:
    """What is raised within, if it is an exception that may be."""
    caught: list[errors.MemkuraError] = []
    try:
        yield caught
    except errors.InternalError:
        raise
    except errors.MemkuraError as error:
        caught.append(error)


def scores(hits: Any) -> list[tuple[str, float]]:
    found = [(hit.memory_id, hit.score) for hit in hits]
    assert all(math.isfinite(score) for _, score in found)
    return found


def fill(engine: Engine) -> None:
    """A few dozen ordinary memories, with everything that a memory can have."""
    clock = FrozenClock()
    for at in range(36):
        engine.remember(
            "c",
            f"{TEXTS[at % len(TEXTS)]} {at}",
            TEXTS[-at % len(TEXTS)] if at % 2 else None,
            type=("note", "fact")[at % 2],
            key=f"key.{at}" if at % 3 else None,
            tags=[f"t{at % 5}"],
            metadata={"n": at, "x": {"y": [at / 2, None, "z"]}},
            session=f"s{at % 4}",
            event_time=clock(),
            importance=at / 36,
        )


class Query(Parser):
    """The analyser, by a query in every leg, and by a text that is kept and asked for."""

    seeds = tuple(text.encode() for text in TEXTS)
    tokens = (
        *(
            text.encode()
            for text in ("_", "aB", ".", "/", "-", "'", '"', "あ", "각", "한", "\u0301", "\u200d", "😀", "\ud7ff")
        ),
        *(b"\xed\xa0\x80", b"\xf4\x8f\xbf\xbf", b"NOT ", b"a:", b"(", b"*"),
    )

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.engine = memkura.open(":memory:", embedder=ToyEmbedder(DIMENSIONS), clock=FrozenClock())
        fill(self.engine)
        self.left = 0
        self.scratch = memkura.open(":memory:", embedder=None)

    def run(self, data: bytes) -> bool:
        query = data.decode("utf-8", "surrogatepass")[: 16 << 10]
        taken = False
        for legs in (None, ["text"], ["key"]):
            with refused():
                hits = self.engine.recall("c", query, legs=legs, explain=True)
                assert scores(hits) == scores(self.engine.recall("c", query, legs=legs))
                taken = True
        if not self.left:
            self.scratch.close()
            self.scratch = memkura.open(":memory:", embedder=None)
            self.left = 200
        self.left -= 1
        with refused():
            row = self.scratch.remember("c", "x", query, dedup="exact")
            memory = self.scratch.get("c", row)
            assert memory is not None
            scores(self.scratch.recall("c", query))
        return taken

    def make(self, chance: random.Random) -> bytes:
        made = super().make(chance)
        try:
            # With half surrogate pairs; other broken bytes would only ever be replaced.
            return made.decode("utf-8", "surrogatepass").encode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            return made.decode("utf-8", "replace").encode()


class Filter(Parser):
    """A filter, by its text as JSON: what counts, lists and recalls is the same memories."""

    trees: Sequence[Any] = (
        {"tags": "t1"},
        {"and": [{"type": "note"}, {"importance": {"gte": 0.2, "lt": 0.8}}]},
        {"or": [{"metadata.n": {"in": [1, 2, 3.0]}}, {"not": {"session": {"exists": True}}}]},
        {"event_time": {"gt": "2029-01-01T00:00:00Z"}, "key": {"in": ["key.1"]}},
        {
            "metadata.x.y": 0.5,
            "trust_tier": "trusted",
            "status": "active",
            "created_at": {"lte": "2031-01-01T00:00:00Z"},
        },
        {"not": {"not": {"and": [{"or": [{"tags": {"in": ["t1", "t2"]}}]}]}}},
    )
    names = (
        *("and", "or", "not", "tags", "type", "metadata.n", "metadata.x.y", "importance", "gte", "lt", "in", "eq"),
        *("exists", "event_time", "key", "session", "", "metadata.", "metadata", "\0", "gt", "lte", "created_at"),
    )

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.engine = memkura.open(":memory:", embedder=None, clock=FrozenClock())
        fill(self.engine)
        self.seeds = [json.dumps(tree).encode() for tree in self.trees]

    def make(self, chance: random.Random) -> bytes:
        return json.dumps(bent(chance.choice(self.trees), chance, self.names)).encode()

    def run(self, data: bytes) -> bool:
        try:
            filters = json.loads(data)
        except ValueError:
            return False
        with refused() as by_count:
            count = self.engine.count("c", filters=filters)
        with refused() as by_list:
            listed = self.engine.list("c", filters=filters, limit=1_000)
        with refused() as by_recall:
            hits = self.engine.recall("c", "deploys 検索 getUserById path", filters=filters, k=100)
        assert bool(by_count) == bool(by_list) == bool(by_recall)
        if by_count:
            assert type(by_count[0]) is type(by_list[0]) is type(by_recall[0])
            return False
        assert count == len(listed)
        assert {hit.memory_id for hit in hits} <= {memory.memory_id for memory in listed}
        return True


def _rows() -> list[dict[str, Any]]:
    """Rows of every kind: a stranger's, and those of an own export with its history."""
    with memkura.open(":memory:", embedder=None, clock=FrozenClock()) as engine:
        first = engine.remember("c", "tea", key="tea", tags=["a"], metadata={"n": [1, {"x": None}]}, session="s")
        engine.update_memory("c", first, summary="green tea", expires_at=FrozenClock()().replace(year=2040))
        engine.remember("c", "white tea", supersedes=first, derived_from=[first], trigger={"at": 1}, proof="p")
        engine.create_context("mail", origin="external")
        engine.remember("mail", "coffee")
        out = io.BytesIO()
        engine.export(out, history=True)
    mine = [json.loads(line) for line in out.getvalue().splitlines()]
    theirs: list[dict[str, Any]] = [
        {"id": "a", "text": "tea", "title": "Tea", "event_time": "2030-01-01T00:00:00+09:00", "importance": 0.5},
        {"pid": 7, "summary": "s", "content": "c", "context": "d", "delivery_mode": "always", "embedding": [0.5, 1.0]},
    ]
    return [*mine, *theirs]


class Import(Parser):
    """A file of rows, as a stranger's and as one's own: taken whole, or refused with nothing added."""

    form = "jsonl"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.rows = _rows()
        self.names = sorted({name for row in self.rows for name in row} | {"", "colour"})
        mine = [row for row in self.rows if "origin" in row]
        self.seeds = [self.packed(rows) for rows in (self.rows, mine, self.rows[-2:], *([row] for row in self.rows))]
        self.engine = memkura.open(":memory:", embedder=None, clock=FrozenClock())
        self.cases = 0

    def packed(self, rows: list[Any]) -> bytes:
        if self.form == "msgpack":
            packer = msgpack.Packer(unicode_errors="surrogatepass", default=str)
            return b"".join(_packable(packer, row) for row in rows)
        return "".join(json.dumps(row) + "\n" for row in rows).encode()

    def make(self, chance: random.Random) -> bytes:
        if chance.random() < 0.5:
            return super().make(chance)
        rows = [row if chance.random() < 0.5 else bent(row, chance, self.names) for row in self.rows]
        chance.shuffle(rows)
        return self.packed(rows[: chance.randint(1, len(rows))])

    def run(self, data: bytes) -> bool:
        self.cases += 1
        if self.cases % 100 == 0:
            assert self.engine.verify() == []
            assert self.engine.doctor().drift == 0
            self.engine.close()
            self.engine = memkura.open(":memory:", embedder=None, clock=FrozenClock())
        file = self.folder / f"rows.{self.form}"
        file.write_bytes(data)
        taken = False
        for as_own in (False, True):
            before = self._counted()
            with refused() as error:
                report = self.engine.import_file(file, context_id="c", as_own=as_own)
                taken = True
                assert report.rows == report.added + report.known + report.left_out
                assert self.engine.import_file(file, context_id="c", as_own=as_own).added == 0
            if error:
                assert self._counted() == before, "a refused file left something"
        return taken

    def _counted(self) -> object:
        return self.engine.contexts(), self.engine.stats().as_dict()


class ImportPacked(Import):
    """As JSONL, in msgpack."""

    form = "msgpack"
    tokens = (
        *(
            b"\x80",
            b"\x81",
            b"\x90",
            b"\x91",
            b"\xa0",
            b"\xc0",
            b"\xc1",
            b"\xc4",
            b"\xc7",
            b"\xca",
            b"\xcb",
            b"\xd4",
            b"\xd9",
        ),
        *(b"\xdd\xff\xff\xff\xff", b"\xdb\xff\xff\xff\xff", b"\xdf\x00\x00\xff\xff", b"\xdc\x00\x20", b"\xcb\x7f\xf8"),
    )


def _packable(packer: msgpack.Packer, row: Any) -> bytes:
    """`row` packed; what msgpack has no form for, such as larger numbers, as null."""
    try:
        packed: bytes = packer.pack(row)
    except (ValueError, OverflowError):
        packer.reset()
        packed = packer.pack({"text": "t"})
    return packed


class Vector(Parser):
    """A vector in a buffer of any format and shape: refused, or of use in every leg."""

    seeds = (
        b"f" + array.array("f", [float(at) - 7 for at in range(DIMENSIONS)]).tobytes(),
        b"d" + array.array("d", [1 / (at + 1) for at in range(DIMENSIONS)]).tobytes(),
        b"m" + array.array("f", [float(at) for at in range(2 * DIMENSIONS)]).tobytes(),
        *(bytes([form]) + bytes(range(64)) for form in b"bBhiqQlL?cFDsSx"),
    )
    tokens = (
        b"\0\0\x80\x7f",
        b"\0\0\xc0\x7f",
        b"\0\0\0\x80",
        b"\x01\0\0\0",
        b"\xff\xff\x7f\x7f",
        b"\0" * 8,
        b"\0\0\0\0\0\0\xf0\x7f",
    )

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.engine = memkura.open(":memory:", embedder=ToyEmbedder(DIMENSIONS), clock=FrozenClock())
        fill(self.engine)

    def run(self, data: bytes) -> bool:
        vector = _buffer(data)
        with refused() as error:
            hits = self.engine.recall("c", embedding=vector, legs=["vector"], k=100)
            scores(hits)
        with refused() as refused_too:
            row = self.engine.remember("other", "tea", embedding=vector)
            with refused():  # a query is one vector, a memory may have several
                assert [hit.memory_id for hit in self.engine.recall("other", embedding=vector)] == [row]
            self.engine.forget("other", row, purge=True)
        with refused():
            self.engine.recall("c", embedding=[vector, vector])
        assert not refused_too or error
        return not refused_too


def _buffer(data: bytes) -> object:
    """The rest of `data` in a buffer of the kind that the first byte names."""
    kind, body = data[:1].decode("latin-1") or "x", data[1:]
    eights = body[: len(body) // 8 * 8]
    rows = len(body) // (4 * DIMENSIONS)
    buffer: Any = body
    if kind in "fd":
        buffer = array.array(kind, eights)
    elif kind == "m" and rows:
        buffer = memoryview(body[: rows * 4 * DIMENSIONS]).cast("f", (rows, DIMENSIONS))
    elif kind in "bBhHiIqQlL?c":
        buffer = memoryview(eights).cast(kind)  # type: ignore[call-overload]
    elif kind == "F":
        buffer = (ctypes.c_float * (len(eights) // 4)).from_buffer_copy(eights)
    elif kind == "D":
        buffer = ((ctypes.c_double * 2) * (len(body) // 16)).from_buffer_copy(body)
    elif kind == "s":
        buffer = memoryview(array.array("f", eights))[::2]
    elif kind == "S":
        buffer = memoryview(array.array("d", eights))[::-1]
    return buffer


class IndexFiles(Parser):
    """A damaged file of a sealed index: the same answers, and an index as good as new.

    An input is a file's path in the index folder, a zero and what is in it.
    """

    tokens = (b"\0", b"\xff\xff\xff\xff", b"..", b"/", b"{}", b"null", b"1e999", b'"', b"0" * 40)
    question = "deploys 検索 getUserById path 배포"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.cases = 0
        self.store = folder / "whole.memkura"
        self.copy = folder / "copy.memkura"
        if not self.store.exists():
            with self._opened(self.store) as engine:
                fill(engine)
                engine.recall("c", "x")
                engine.compact()
        with self._opened(self.store) as engine:
            self.expected = scores(engine.recall("c", self.question, k=100))
            assert engine.stats().more["sealed_texts"] == 36
        index = self.store / "index"
        files = {str(path.relative_to(index)): path.read_bytes() for path in sorted(index.rglob("*")) if path.is_file()}
        # What is new in every store is written as this, so that an input means the same in any of them.
        self.words: dict[bytes, bytes] = {}
        for pattern in (
            rb"\d+/([0-9a-f]{32})/",
            rb'"store":"([^"]+)"',
        ):
            everything = b"\n".join([*(name.encode() for name in files), *files.values()])
            found = re.search(pattern, everything)
            assert found, pattern
            self.words[found[1]] = (f"<word {len(self.words)}>".encode() + b"." * 64)[: len(found[1])]
        self.whole = {
            self._said(name.encode()): self._said(content)
            for name, content in files.items()
            if not name.endswith("LOCK")
        }
        self.seeds = [name + b"\0" + content for name, content in self.whole.items()]

    def _said(self, data: bytes) -> bytes:
        for word, said in self.words.items():
            data = data.replace(word, said)
        return data

    def _meant(self, data: bytes) -> bytes:
        for word, said in self.words.items():
            data = data.replace(said, word)
        return data

    @staticmethod
    def _opened(store: Path) -> Engine:
        return memkura.open(store, embedder=None, clock=FrozenClock(), durability="process_crash")

    def make(self, chance: random.Random) -> bytes:
        name, content = chance.choice(list(self.whole.items()))
        made = mutated(content, chance, self.tokens, list(self.whole.values()))
        return name + b"\0" + made

    def run(self, data: bytes) -> bool:
        name, _, content = self._meant(data).partition(b"\0")
        shutil.rmtree(self.copy, ignore_errors=True)
        shutil.copytree(self.store, self.copy)
        (self.copy / "index" / name.decode()).write_bytes(content)
        with self._opened(self.copy) as engine:
            found = scores(engine.recall("c", self.question, k=100))
            assert found == self.expected, "another answer"
            is_used = bool(engine.stats().more["sealed_texts"])
            self.cases += 1
            if self.cases % 8:
                return is_used
            engine.remember("c", "one more of path")
            assert engine.count("c") == 37
            engine.compact()
        with self._opened(self.copy) as engine:
            health = engine.doctor()
            assert health.is_sound, health
        return is_used


class Backup(Parser):
    """A damaged backup: refused with nothing left behind, or a store that can be used."""

    tokens = (b"\0", b"\xff\xff\xff\xff", b"CREATE TRIGGER", b"SQLite format 3\0", b"trusted", b"active", b"2030", b"-")

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        file = folder / "backup"
        if not file.exists():
            with memkura.open(
                folder / "backed up.memkura", embedder=ToyEmbedder(DIMENSIONS), clock=FrozenClock()
            ) as engine:
                fill(engine)
                engine.update_memory("c", engine.list("c")[0].memory_id, summary="tea")
                engine.backup(file)
        self.seeds = [file.read_bytes()]

    def make(self, chance: random.Random) -> bytes:
        whole = self.seeds[0]
        if chance.random() < 0.3:
            return mutated(whole, chance, self.tokens, self.seeds)
        # Within the pages: most of what changes a length changes everything after it.
        made = bytearray(whole)
        for _ in range(chance.randint(1, 6)):
            at = chance.randrange(100) if chance.random() < 0.2 else chance.randrange(len(made))
            token = chance.choice((bytes([chance.randrange(256)]), chance.choice(self.tokens)))
            made[at : at + len(token)] = token
        return bytes(made)

    def run(self, data: bytes) -> bool:
        file, store = self.folder / "damaged", self.folder / "restored.memkura"
        shutil.rmtree(store, ignore_errors=True)
        file.write_bytes(data)
        with refused() as error:
            memkura.restore(file, store)
        if error:
            assert not store.exists() or not list(store.iterdir()), "something was left behind"
            return False
        with refused(), memkura.open(store, embedder=ToyEmbedder(DIMENSIONS), clock=FrozenClock()) as engine:
            for work in (
                lambda: engine.list("c"),
                lambda: scores(engine.recall("c", "deploys 検索")),
                lambda: [engine.history("c", memory.memory_id) for memory in engine.list("c")],
                lambda: engine.export(io.BytesIO(), history=True),
                engine.doctor,
                lambda: engine.remember("c", "tea"),
                engine.compact,
            ):
                with refused():
                    work()
        return True


class _Planted(ImportPacked):
    """A parser with a fault, which shows when a certain byte comes in."""

    def run(self, data: bytes) -> bool:
        if b"\xc1" in data:
            self.fault()
        return super().run(data)

    def fault(self) -> None:
        raise NotImplementedError


class Raising(_Planted):
    def fault(self) -> None:
        raise ValueError("planted")


class Hanging(_Planted):
    def fault(self) -> None:
        while True:
            pass


class Aborting(_Planted):
    def fault(self) -> None:
        ctypes.string_at(0)


class Panicking(_Planted):
    def fault(self) -> None:
        raise errors.InternalError("planted")


class Leaving(_Planted):
    """Refuses a file and keeps a row of it."""

    def fault(self) -> None:
        real = self.engine.import_file

        def half(*args: Any, **options: Any) -> Any:
            self.engine.remember("half", "tea")
            return real(*args, **options)

        self.engine.import_file = half  # type: ignore[method-assign]


class Confusing(IndexFiles):
    """Answers otherwise once an index file was damaged."""

    def run(self, data: bytes) -> bool:
        self.expected = self.expected[:-1]
        return super().run(data)


PARSERS: dict[str, type[Parser]] = {
    "query": Query,
    "filter": Filter,
    "jsonl": Import,
    "msgpack": ImportPacked,
    "vector": Vector,
    "index": IndexFiles,
    "backup": Backup,
}
PLANTED: dict[str, type[Parser]] = {
    "raising": Raising,
    "hanging": Hanging,
    "aborting": Aborting,
    "panicking": Panicking,
    "leaving": Leaving,
    "confusing": Confusing,
}
