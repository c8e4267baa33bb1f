"""Libraries for words alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from contestants.contract import Ability, Contestant, key
from workload import analysed

if TYPE_CHECKING:
    from pathlib import Path

    from workload import Memory, Question, Workload

_WRITER_BYTES = 64 << 20


class Bm25s(Contestant):
    """Scores worked out beforehand, in a sparse matrix; a write would make all of it anew."""

    name = "bm25s"
    requires = ("bm25s",)
    setup = "method lucene, numpy backend, saved and loaded with mmap"
    can = Ability.TEXT | Ability.REOPEN

    def __init__(self, folder: Path, *, durable: bool = True) -> None:
        super().__init__(folder, durable=durable)
        import bm25s

        self._new = bm25s.BM25
        if any(folder.iterdir()):
            self._index = bm25s.BM25.load(folder, mmap=True)

    def fill(self, load: Workload) -> None:
        """All at once."""
        self._index = self._new(method="lucene")
        self._index.index([analysed(text).split() for text in load.texts], show_progress=False)
        self._index.save(self.folder)

    def text(self, question: Question, k: int, tag: str | None = None) -> list[int]:  # noqa: ARG002 - has no filter here
        """The best that have any score."""
        places, scores = self._index.retrieve(
            [question.words.split()], k=k, show_progress=False, n_threads=0, backend_selection="numpy"
        )
        found: list[int] = places[0][scores[0] > 0].tolist()
        return found


class Tantivy(Contestant):
    """The search engine of Rust, through its Python binding."""

    name = "tantivy"
    requires = ("tantivy",)
    setup = (
        "whitespace tokenizer, one writer thread, one merged segment; a write is a commit, which syncs, and a reload"
    )
    can = Ability.TEXT | Ability.LOOKUP | Ability.DURABLE | Ability.REOPEN | Ability.THREADS

    def __init__(self, folder: Path, *, durable: bool = True) -> None:
        super().__init__(folder, durable=durable)
        import tantivy

        self._tantivy = tantivy
        schema = tantivy.SchemaBuilder()
        schema.add_unsigned_field("at", stored=True, fast=True)
        schema.add_text_field("key", tokenizer_name="raw", index_option="basic")
        schema.add_text_field("tag", tokenizer_name="raw", index_option="basic")
        schema.add_text_field("words", tokenizer_name="spaces", index_option="freq")
        schema.add_text_field("summary", stored=True, tokenizer_name="raw", index_option="basic")
        self._schema = schema.build()
        self._index = tantivy.Index(self._schema, path=str(folder))
        self._index.register_tokenizer("spaces", tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build())
        self._writer: Any = None
        self._searcher = self._index.searcher()

    def fill(self, load: Workload) -> None:
        """In one commit."""
        for at, (text, tags) in enumerate(zip(load.texts, load.tags, strict=True)):
            self._add(at, text, tags)
        self._commit()
        self._writer.wait_merging_threads()
        self._writer = None
        self._reload()

    def _add(self, at: int, text: str, tags: list[str]) -> None:
        if self._writer is None:
            self._writer = self._index.writer(heap_size=_WRITER_BYTES, num_threads=1)
        document = self._tantivy.Document(key=key(at), tag=tags, words=analysed(text), summary=text)
        document.add_unsigned("at", at)
        self._writer.add_document(document)

    def _commit(self) -> None:
        self._writer.commit()
        self._reload()

    def _reload(self) -> None:
        self._index.reload()
        self._searcher = self._index.searcher()

    def text(self, question: Question, k: int, tag: str | None = None) -> list[int]:
        """Any of the words."""
        occur, queries = self._tantivy.Occur, self._tantivy.Query
        words = [queries.term_query(self._schema, "words", word, "freq") for word in question.words.split()]
        query = queries.boolean_query([(occur.Should, word) for word in words])
        if tag is not None:
            of_tag = queries.const_score_query(queries.term_query(self._schema, "tag", tag, "basic"), 0.0)
            query = queries.boolean_query([(occur.Must, query), (occur.Must, of_tag)])
        searcher = self._searcher
        found = searcher.search(query, k, count=False)
        return [searcher.doc(address)["at"][0] for _, address in found.hits]

    def lookup(self, ordinal: int) -> str:
        """The one document with the key."""
        query = self._tantivy.Query.term_query(self._schema, "key", key(ordinal), "basic")
        ((_, address),) = self._searcher.search(query, 1, count=False).hits
        return str(self._searcher.doc(address)["summary"][0])

    def remember(self, memory: Memory) -> None:
        """In a commit of its own."""
        self._add(memory.ordinal, memory.text, memory.tags)
        self._commit()

    def close(self) -> None:
        """Lets go of the writer's lock."""
        if self._writer is not None:
            self._writer.wait_merging_threads()
            self._writer = None
