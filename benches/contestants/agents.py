"""What is made for agents as memkura is: LangGraph's stores, mem0, and txtai.

All of them embed texts themselves. Here their embedder is a table of the given vectors, so it takes no time.
"""

from __future__ import annotations

import os
import sqlite3
from typing import TYPE_CHECKING, Any

import numpy as np

from contestants.contract import Ability, Contestant, key, ordinal
from workload import DIM, analysed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from workload import Matrix, Memory, Question, Workload

_NAMESPACE = ("memories",)
_USER = "u"


class Known:
    """An embedder that knows the vectors of all texts beforehand."""

    def __init__(self) -> None:
        self._vectors: dict[str, Matrix] = {}

    def learn(self, texts: Sequence[str], vectors: Matrix) -> None:
        """Keeps the vectors of more texts."""
        self._vectors.update(zip(texts, vectors, strict=True))

    def of_many(self, texts: Sequence[str]) -> list[list[float]]:
        """As LangGraph asks for them."""
        return [self._vectors[text].tolist() for text in texts]

    def as_array(self, texts: Sequence[str]) -> Matrix:
        """As txtai asks for them."""
        return np.stack([self._vectors[text] for text in texts])

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:  # noqa: ARG002 - mem0's names
        """As mem0 asks for one."""
        vector: list[float] = self._vectors[text].tolist()
        return vector


def _value(text: str, tags: Sequence[str]) -> dict[str, Any]:
    """A text with a flag for each tag, since these compare values and look into no lists."""
    return {"text": text, **dict.fromkeys(tags, True)}


class LangGraphMemory(Contestant):
    """A dictionary with numpy."""

    name = "LangGraph InMemoryStore"
    requires = ("langgraph.store.memory",)
    setup = "index on the text, exact; filters compare each value in Python; nothing is on disk"
    can = Ability.VECTOR | Ability.FILTER | Ability.LOOKUP | Ability.RELAXED

    def __init__(self, folder: Path, *, durable: bool = True) -> None:
        super().__init__(folder, durable=durable)
        self._known = Known()
        self._store = self.made()

    def made(self) -> Any:  # noqa: ANN401 - types would need the library
        """The store."""
        from langgraph.store.memory import InMemoryStore

        return InMemoryStore(index=self.index)

    @property
    def index(self) -> dict[str, Any]:
        """What of a value is embedded, and by what."""
        return {"dims": DIM, "embed": self._known.of_many, "fields": ["text"]}

    def fill(self, load: Workload) -> None:
        """In one batch."""
        from langgraph.store.base import PutOp

        self._known.learn(load.texts, load.vectors)
        rows = enumerate(zip(load.texts, load.tags, strict=True))
        self._store.batch([PutOp(_NAMESPACE, key(at), _value(text, tags)) for at, (text, tags) in rows])

    def vector(self, question: Question, k: int, tag: str | None = None) -> list[int]:
        """By the cosine with every value that the filter leaves."""
        self._known.learn([question.text], question.vector[None, :])
        kept = None if tag is None else {tag: True}
        found = self._store.search(_NAMESPACE, query=question.text, filter=kept, limit=k)
        return [ordinal(item.key) for item in found]

    def lookup(self, ordinal: int) -> str:
        """By key."""
        return str(self._store.get(_NAMESPACE, key(ordinal)).value["text"])

    def remember(self, memory: Memory) -> None:
        """One put."""
        self._known.learn([memory.text], memory.vector[None, :])
        self._store.put(_NAMESPACE, key(memory.ordinal), _value(memory.text, memory.tags))


class LangGraphSqlite(LangGraphMemory):
    """A table, and sqlite-vec where this Python's SQLite loads extensions."""

    name = "LangGraph SqliteStore"
    requires = ("langgraph.store.sqlite",)
    setup = (
        "as it ships: WAL as setup() makes it; vectors only where Python's sqlite3 loads extensions, which many do not"
    )
    _loads_extensions = hasattr(sqlite3.Connection, "enable_load_extension")
    can = (
        Ability.LOOKUP
        | Ability.REOPEN
        | (Ability.VECTOR | Ability.FILTER | Ability.DURABLE if _loads_extensions else Ability.NONE)
    )

    def made(self) -> Any:  # noqa: ANN401 - as above
        """The store, its tables made."""
        from langgraph.store.sqlite import SqliteStore

        self._connection = sqlite3.connect(self.folder / "store.sqlite3", isolation_level=None, check_same_thread=False)
        store = SqliteStore(self._connection, index=self.index if self._loads_extensions else None)
        store.setup()
        return store

    def close(self) -> None:
        """Closes the database."""
        self._connection.close()


class Mem0(Contestant):
    """mem0 without its language model: texts are kept as they are."""

    name = "mem0"
    requires = ("mem0", "qdrant_client")
    setup = "add(infer=False); Qdrant local; without fastembed and spaCy, so by vectors alone, above 0"
    can = Ability.VECTOR | Ability.FILTER | Ability.DURABLE

    def __init__(self, folder: Path, *, durable: bool = True) -> None:
        super().__init__(folder, durable=durable)
        os.environ["MEM0_DIR"] = str(folder)
        from mem0 import Memory

        points = {"path": str(folder / "qdrant"), "embedding_model_dims": DIM, "on_disk": True}
        # The two are made and never asked: the key opens nothing.
        nobody = {"provider": "openai", "config": {"api_key": "none"}}
        self._memory = Memory.from_config(
            {
                "vector_store": {"provider": "qdrant", "config": points},
                "llm": nobody,
                "embedder": nobody,
                "history_db_path": str(folder / "history.sqlite3"),
            }
        )
        self._known = Known()
        self._memory.embedding_model = self._known

    def fill(self, load: Workload) -> None:
        """One by one, as its interface has it."""
        for at, (text, tags, vector) in enumerate(zip(load.texts, load.tags, load.vectors, strict=True)):
            self._add(at, text, tags, vector)

    def _add(self, at: int, text: str, tags: Sequence[str], vector: Matrix) -> None:
        self._known.learn([text], vector[None, :])
        self._memory.add(text, user_id=_USER, infer=False, metadata={"at": at, **dict.fromkeys(tags, True)})

    def vector(self, question: Question, k: int, tag: str | None = None) -> list[int]:
        """By its search."""
        self._known.learn([question.text], question.vector[None, :])
        filters = {"user_id": _USER} if tag is None else {"user_id": _USER, tag: True}
        found = self._memory.search(question.text, filters=filters, top_k=k, threshold=0.0)
        return [hit["metadata"]["at"] for hit in found["results"]]

    def remember(self, memory: Memory) -> None:
        """One add."""
        self._add(memory.ordinal, memory.text, memory.tags, memory.vector)

    def close(self) -> None:
        """Closes both databases."""
        self._memory.close()
        self._memory.vector_store.client.close()


class Txtai(Contestant):
    """Embeddings with a database of contents."""

    name = "txtai"
    requires = ("txtai",)
    setup = (
        "hybrid, content in SQLite, faiss as it ships; a filter is a condition in its SQL, on what was found; in memory"
    )
    can = Ability.TEXT | Ability.VECTOR | Ability.FILTER | Ability.RELAXED

    def __init__(self, folder: Path, *, durable: bool = True) -> None:
        super().__init__(folder, durable=durable)
        from txtai.embeddings import Embeddings

        self._known = Known()

        def transform(texts: Sequence[str]) -> Matrix:  # a method would be taken for a class, and called
            return self._known.as_array(texts)

        self._embeddings = Embeddings({"method": "external", "transform": transform, "content": True, "hybrid": True})

    def fill(self, load: Workload) -> None:
        """All at once."""
        words = [analysed(text) for text in load.texts]
        self._known.learn(words, load.vectors)
        rows = enumerate(zip(words, load.tags, strict=True))
        self._embeddings.index([(at, _value(text, tags), None) for at, (text, tags) in rows])

    def text(self, question: Question, k: int, tag: str | None = None) -> list[int]:
        """Its hybrid search with all weight on words."""
        return self._found(question, k, tag, weights=0.0)

    def vector(self, question: Question, k: int, tag: str | None = None) -> list[int]:
        """Its hybrid search with all weight on vectors."""
        return self._found(question, k, tag, weights=1.0)

    def hybrid(self, question: Question, k: int, tag: str | None = None) -> list[int]:
        """Its own."""
        return self._found(question, k, tag, weights=0.5)

    def _found(self, question: Question, k: int, tag: str | None, weights: float) -> list[int]:
        self._known.learn([question.words], question.vector[None, :])
        condition = "" if tag is None else f"AND {tag} = 1"
        query = f"SELECT id FROM txtai WHERE similar(:asked) {condition} LIMIT {k}"  # noqa: S608 - names of our own
        found = self._embeddings.search(query, k, weights=weights, parameters={"asked": question.words})
        return [int(row["id"]) for row in found]

    def remember(self, memory: Memory) -> None:
        """One upsert, in memory."""
        words = analysed(memory.text)
        self._known.learn([words], memory.vector[None, :])
        self._embeddings.upsert([(memory.ordinal, _value(words, memory.tags), None)])

    def close(self) -> None:
        """Closes its database."""
        self._embeddings.close()
