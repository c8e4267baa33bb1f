"""Embedded databases that search: SQLite with an extension, LanceDB, Chroma, Qdrant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from contestants.contract import DEPTH, EF_CONSTRUCTION, Ability, Contestant, M, key, ordinal
from contestants.plain import SqliteWords
from workload import DIM, KINDS, SHARES, analysed, tag

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from workload import Matrix, Memory, Question, Workload

_EFS = (32, 64, 128, 256, 512)
_BATCH = 1_000
_REFINE = 2
_TAGS = [tag(kind, share) for kind in KINDS for share in SHARES]
_WORDS_A_TEXT = 24
_ALL = Ability.TEXT | Ability.VECTOR | Ability.FILTER | Ability.LOOKUP | Ability.REOPEN


def _flags(tags: Sequence[str]) -> dict[str, bool]:
    """One column for each selection, where tags as a list could not be filtered by as quickly."""
    return {each: each in tags for each in _TAGS}


class SqliteVec(SqliteWords):
    """FTS5, and vectors in a virtual table that reads all of them."""

    name = "sqlite-vec + FTS5"
    requires = ("apsw", "sqlite_vec")
    setup = "apsw; vec0 float[384] cosine, exact, tags as its metadata columns; FTS5 as above, tags in a table; WAL"
    can = _ALL | Ability.DURABLE | Ability.RELAXED | Ability.THREADS

    def __init__(self, folder: Path, *, durable: bool = True) -> None:
        super().__init__(folder, durable=durable)
        columns = ", ".join(f"{each} BOOLEAN" for each in _TAGS)
        self.execute(
            "CREATE VIRTUAL TABLE IF NOT EXISTS near USING vec0("
            f"id INTEGER PRIMARY KEY, embedding FLOAT[{DIM}] distance_metric=cosine, {columns})"
        )

    def connect(self, path: Path) -> Any:  # noqa: ANN401 - types would need the module
        """A connection that may load extensions, whatever this Python was built with."""
        import apsw
        import sqlite_vec

        connection = apsw.Connection(str(path))
        connection.set_busy_timeout(10_000)
        connection.enable_load_extension(True)  # noqa: FBT003 - apsw's own
        connection.load_extension(sqlite_vec.loadable_path())
        return connection

    def insert(self, at: int, text: str, tags: list[str], vector: Matrix) -> None:
        """Every row, and the vector."""
        super().insert(at, text, tags, vector)
        marks = ", ".join("?" * (len(_TAGS) + 2))
        self.execute(f"INSERT INTO near VALUES ({marks})", (at, vector.tobytes(), *_flags(tags).values()))  # noqa: S608

    def vector(self, question: Question, k: int, tag: str | None = None) -> list[int]:
        """By reading every vector that the filter leaves."""
        condition = "" if tag is None else f"AND {tag} = 1"
        rows = self.execute(
            f"SELECT id FROM near WHERE embedding MATCH ? AND k = ? {condition} ORDER BY distance",  # noqa: S608
            (question.vector.tobytes(), k),
        )
        return [at for (at,) in rows]


class Lance(Contestant):
    """A table in columns, with indexes beside it."""

    name = "lancedb"
    requires = ("lancedb", "pyarrow")
    setup = (
        f"IVF_HNSW_SQ of one partition, m {M}, ef_construction {EF_CONSTRUCTION}, ef by effort, refine {_REFINE}; "
        "FTS, LabelList on tags, BTree on the key; RRFReranker; a memory written alone is found by scanning"
    )
    can = _ALL | Ability.DURABLE | Ability.THREADS
    efforts = _EFS

    def __init__(self, folder: Path, *, durable: bool = True) -> None:
        super().__init__(folder, durable=durable)
        import lancedb
        import pyarrow as pa
        from lancedb.rerankers import RRFReranker

        self._arrow = pa
        self._reranker = RRFReranker(K=60)
        self._database = lancedb.connect(str(folder))
        if (folder / "memory.lance").exists():
            self._table = self._database.open_table("memory")

    def _rows(self, ordinals: Sequence[int], texts: Sequence[str], tags: Sequence[list[str]], vectors: Matrix) -> Any:  # noqa: ANN401 - an Arrow table
        arrow = self._arrow
        return arrow.table(
            {
                "at": arrow.array(ordinals, arrow.int64()),
                "key": [key(at) for at in ordinals],
                "summary": list(texts),
                "words": [analysed(text) for text in texts],
                "tags": arrow.array(tags, arrow.list_(arrow.string())),
                "vector": arrow.FixedSizeListArray.from_arrays(arrow.array(vectors.ravel()), DIM),
            }
        )

    def fill(self, load: Workload) -> None:
        """One table, four indexes."""
        from lancedb.index import FTS, BTree, HnswSq, LabelList

        rows = self._rows(range(len(load)), load.texts, load.tags, load.vectors)
        self._table = self._database.create_table("memory", rows)
        graph = HnswSq(distance_type="dot", num_partitions=1, m=M, ef_construction=EF_CONSTRUCTION)
        words = FTS(
            base_tokenizer="whitespace", lower_case=False, stem=False, remove_stop_words=False, ascii_folding=False
        )
        for column, index in (("vector", graph), ("words", words), ("tags", LabelList()), ("key", BTree())):
            self._table.create_index(column, config=index)
        self._table.optimize()

    def text(self, question: Question, k: int, tag: str | None = None) -> list[int]:
        """By its full-text index."""
        query = self._table.search(question.words, query_type="fts", fts_columns="words")
        return self._places(_lance_filtered(query, tag).limit(k).select(["at", "_score"]))

    def vector(self, question: Question, k: int, tag: str | None = None) -> list[int]:
        """By its graph, with twice as many seen exactly."""
        query = self._table.search(question.vector).distance_type("dot")
        query = query.ef(max(self.effort, k * _REFINE)).refine_factor(_REFINE)
        return self._places(_lance_filtered(query, tag).limit(k).select(["at", "_distance"]))

    def hybrid(self, question: Question, k: int, tag: str | None = None) -> list[int]:
        """Its own, of a hundred of each."""
        query = self._table.search(query_type="hybrid", fts_columns="words").vector(question.vector)
        query = query.text(question.words).distance_type("dot")
        query = query.ef(max(self.effort, DEPTH * _REFINE)).refine_factor(_REFINE)
        query = _lance_filtered(query, tag).rerank(self._reranker).limit(DEPTH).select(["at"])
        return self._places(query)[:k]

    def _places(self, query: Any) -> list[int]:  # noqa: ANN401 - a query of its own
        places: list[int] = query.to_arrow()["at"].to_pylist()
        return places

    def lookup(self, ordinal: int) -> str:
        """By the index of keys."""
        (summary,) = (
            self._table.search().where(f"key = '{key(ordinal)}'").limit(1).select(["summary"]).to_arrow()["summary"]
        )
        return str(summary)

    def remember(self, memory: Memory) -> None:
        """A new version of the table."""
        self._table.add(self._rows([memory.ordinal], [memory.text], [memory.tags], memory.vector))


def _lance_filtered(query: Any, tag: str | None) -> Any:  # noqa: ANN401 - a query of its own
    return query if tag is None else query.where(f"array_has_any(tags, ['{tag}'])", prefilter=True)


class Chroma(Contestant):
    """Vectors in hnswlib, the rest in SQLite."""

    name = "chromadb"
    requires = ("chromadb",)
    setup = f"max_neighbors {M}, ef_construction {EF_CONSTRUCTION}, ef_search 128; tags as metadata flags"
    can = Ability.VECTOR | Ability.FILTER | Ability.LOOKUP | Ability.DURABLE | Ability.REOPEN | Ability.THREADS

    def __init__(self, folder: Path, *, durable: bool = True) -> None:
        super().__init__(folder, durable=durable)
        import chromadb
        from chromadb.config import Settings

        self._client = chromadb.PersistentClient(str(folder), settings=Settings(anonymized_telemetry=False))
        graph = {
            "space": "cosine",
            "ef_construction": EF_CONSTRUCTION,
            "max_neighbors": M,
            "ef_search": 128,
            "num_threads": 1,
        }
        self._collection = self._client.get_or_create_collection(
            "memories", embedding_function=None, configuration={"hnsw": graph}
        )

    def fill(self, load: Workload) -> None:
        """In batches."""
        for at in _batches(len(load)):
            self._collection.add(
                ids=[key(place) for place in at],
                embeddings=load.vectors[at.start : at.stop],
                documents=load.texts[at.start : at.stop],
                metadatas=[_flags(tags) for tags in load.tags[at.start : at.stop]],
            )

    def vector(self, question: Question, k: int, tag: str | None = None) -> list[int]:
        """Ids alone."""
        where = None if tag is None else {tag: True}
        found = self._collection.query(query_embeddings=question.vector[None, :], n_results=k, where=where, include=[])
        return [ordinal(name) for name in found["ids"][0]]

    def lookup(self, ordinal: int) -> str:
        """By id."""
        (text,) = self._collection.get(ids=[key(ordinal)], include=["documents"])["documents"]
        return str(text)

    def remember(self, memory: Memory) -> None:
        """As it ships."""
        self._collection.add(
            ids=[key(memory.ordinal)],
            embeddings=memory.vector[None, :],
            documents=[memory.text],
            metadatas=[_flags(memory.tags)],
        )

    def close(self) -> None:
        """Stops its threads."""
        self._client.close()


class QdrantLocal(Contestant):
    """Qdrant's client without a server: numpy, and points pickled into SQLite."""

    name = "qdrant-client local"
    requires = ("qdrant_client",)
    setup = "path=, as it ships: exact, filters in Python, SQLite's default syncs; its texts need a model, so none here"
    can = Ability.VECTOR | Ability.FILTER | Ability.LOOKUP | Ability.DURABLE | Ability.REOPEN

    def __init__(self, folder: Path, *, durable: bool = True) -> None:
        super().__init__(folder, durable=durable)
        from qdrant_client import QdrantClient, models

        self._models = models
        self._client = QdrantClient(path=str(folder))
        if not self._client.collection_exists("memories"):
            shape = models.VectorParams(size=DIM, distance=models.Distance.COSINE)
            self._client.create_collection("memories", vectors_config=shape)

    def fill(self, load: Workload) -> None:
        """In batches."""
        for at in _batches(len(load)):
            self._upsert(
                at, load.texts[at.start : at.stop], load.tags[at.start : at.stop], load.vectors[at.start : at.stop]
            )

    def _upsert(
        self, ordinals: Sequence[int], texts: Sequence[str], tags: Sequence[list[str]], vectors: Matrix
    ) -> None:
        rows = zip(ordinals, texts, tags, vectors, strict=True)
        self._client.upsert(
            "memories",
            [
                self._models.PointStruct(id=at, vector=vector.tolist(), payload={"summary": text, "tags": own})
                for at, text, own, vector in rows
            ],
        )

    def vector(self, question: Question, k: int, tag: str | None = None) -> list[int]:
        """Ids alone."""
        models = self._models
        kept = None
        if tag is not None:
            kept = models.Filter(must=[models.FieldCondition(key="tags", match=models.MatchValue(value=tag))])
        found = self._client.query_points(
            "memories", query=question.vector, query_filter=kept, limit=k, with_payload=False
        )
        return [int(point.id) for point in found.points]

    def lookup(self, ordinal: int) -> str:
        """By id."""
        (record,) = self._client.retrieve("memories", [ordinal], with_payload=["summary"])
        return str(record.payload["summary"])

    def remember(self, memory: Memory) -> None:
        """As it ships."""
        self._upsert([memory.ordinal], [memory.text], [memory.tags], memory.vector[None, :])

    def close(self) -> None:
        """Lets go of the folder's lock."""
        self._client.close()


class QdrantEdge(Contestant):
    """Qdrant's engine in this process."""

    name = "qdrant-edge"
    requires = ("qdrant_edge",)
    setup = (
        f"m {M}, ef_construct {EF_CONSTRUCTION}, hnsw_ef by effort, one search thread, keyword index on tags; its "
        "own BM25 as sparse vectors and its own fusion; a durable write is flushed"
    )
    can = _ALL | Ability.DURABLE | Ability.RELAXED | Ability.THREADS
    efforts = _EFS

    def __init__(self, folder: Path, *, durable: bool = True) -> None:
        super().__init__(folder, durable=durable)
        import qdrant_edge

        self._edge = qdrant_edge
        if any(folder.iterdir()):
            self._shard = qdrant_edge.EdgeShard.load(str(folder))
        else:
            self._shard = qdrant_edge.EdgeShard.create(str(folder), self._config())
        self._words = qdrant_edge.Bm25(
            qdrant_edge.Bm25Config(
                avg_len=_WORDS_A_TEXT,
                tokenizer=qdrant_edge.TokenizerType.Whitespace,
                language="english",
                stemmer=qdrant_edge.DisabledStemmer(),
                stopwords=qdrant_edge.StopwordsSet(custom=set()),
            )
        )

    def _config(self) -> Any:  # noqa: ANN401 - types would need the library
        edge = self._edge
        return edge.EdgeConfig(
            vectors={"vector": edge.EdgeVectorParams(size=DIM, distance=edge.Distance.Cosine)},
            sparse_vectors={"words": edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf)},
            # Built once, by `optimize`.
            hnsw_config=edge.HnswIndexConfig(
                m=M, ef_construct=EF_CONSTRUCTION, full_scan_threshold=1_000, max_indexing_threads=1
            ),
            optimizers=edge.EdgeOptimizersConfig(indexing_threshold=1_000, default_segment_number=1),
            max_search_threads=1,
        )

    def fill(self, load: Workload) -> None:
        """In batches, then optimised until nothing is left to do."""
        by_tag = self._edge.UpdateOperation.create_field_index("tags", self._edge.PayloadSchemaType.Keyword)
        self._shard.update(by_tag)
        for at in _batches(len(load)):
            self._upsert(
                at, load.texts[at.start : at.stop], load.tags[at.start : at.stop], load.vectors[at.start : at.stop]
            )
        while self._shard.optimize():
            pass
        self._shard.flush()

    def _upsert(
        self, ordinals: Sequence[int], texts: Sequence[str], tags: Sequence[list[str]], vectors: Matrix
    ) -> None:
        points = [
            self._edge.Point(
                id=at,
                vector={"vector": vector.tolist(), "words": self._words.embed_document(analysed(text))},
                payload={"summary": text, "tags": own},
            )
            for at, text, own, vector in zip(ordinals, texts, tags, vectors, strict=True)
        ]
        self._shard.update(self._edge.UpdateOperation.upsert_points(points))

    def text(self, question: Question, k: int, tag: str | None = None) -> list[int]:
        """By its sparse vectors."""
        return self._found(self._edge.QueryRequest(limit=k, query=self._by_words(question), filter=self._filter(tag)))

    def vector(self, question: Question, k: int, tag: str | None = None) -> list[int]:
        """By its graph, or by the filter's own index when that leaves few."""
        return self._found(
            self._edge.QueryRequest(
                limit=k, query=self._by_vector(question), filter=self._filter(tag), params=self._parameters(k)
            )
        )

    def hybrid(self, question: Question, k: int, tag: str | None = None) -> list[int]:
        """Its own, of a hundred of each."""
        edge, kept = self._edge, self._filter(tag)
        near = edge.Prefetch(limit=DEPTH, query=self._by_vector(question), filter=kept, params=self._parameters(DEPTH))
        worded = edge.Prefetch(limit=DEPTH, query=self._by_words(question), filter=kept)
        return self._found(edge.QueryRequest(limit=k, prefetches=[worded, near], query=edge.Fusion.Rrf(k=60)))

    def _by_words(self, question: Question) -> Any:  # noqa: ANN401 - as above
        return self._edge.Query.Nearest(self._words.embed_query(question.words), using="words")

    def _by_vector(self, question: Question) -> Any:  # noqa: ANN401 - as above
        return self._edge.Query.Nearest(question.vector.tolist(), using="vector")

    def _parameters(self, k: int) -> Any:  # noqa: ANN401 - as above
        return self._edge.SearchParams(hnsw_ef=max(self.effort, k))

    def _filter(self, tag: str | None) -> Any:  # noqa: ANN401 - as above
        if tag is None:
            return None
        return self._edge.Filter(must=[self._edge.FieldCondition(key="tags", match=self._edge.MatchValue(tag))])

    def _found(self, request: Any) -> list[int]:  # noqa: ANN401 - as above
        return [int(point.id) for point in self._shard.query(request)]

    def lookup(self, ordinal: int) -> str:
        """By id."""
        (record,) = self._shard.retrieve([ordinal], with_payload=True, with_vector=False)
        return str(record.payload["summary"])

    def remember(self, memory: Memory) -> None:
        """Written to its log, and flushed if it shall be durable."""
        self._upsert([memory.ordinal], [memory.text], [memory.tags], memory.vector[None, :])
        if self.durable:
            self._shard.flush()

    def close(self) -> None:
        """Closes the shard."""
        self._shard.close()


def _batches(count: int) -> Iterator[range]:
    return (range(at, min(at + _BATCH, count)) for at in range(0, count, _BATCH))
