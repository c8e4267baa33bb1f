"""Libraries for vectors alone: graphs of neighbours, and lists of clusters."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from contestants.contract import EF_CONSTRUCTION, Ability, Contestant, M
from contestants.plain import best, tagged
from workload import DIM

if TYPE_CHECKING:
    from pathlib import Path

    from workload import Matrix, Memory, Question, Workload

_EFS = (32, 48, 64, 96, 128, 192, 256, 384, 512)
# Room for memories that are written one by one.
_ROOM = 1.5
# What is few enough to multiply exactly: the libraries' own filters took longer there, and found less.
_EXACT_MAX = 10_000
_EXACT_SHARE_MAX = 0.25


class Graph(Contestant):
    """An index of vectors by ordinal, and beside it the vectors and tags for what a filter leaves."""

    can = Ability.VECTOR | Ability.FILTER | Ability.RELAXED | Ability.REOPEN
    efforts: ClassVar[tuple[int, ...]] = _EFS

    def __init__(self, folder: Path, *, durable: bool = True) -> None:
        super().__init__(folder, durable=durable)
        self._file = folder / "index"
        self._vectors_file = folder / "vectors.npy"
        self._tags_file = folder / "tags.npz"
        if self._file.exists():
            self._vectors = np.load(self._vectors_file, mmap_mode="r")
            self._tagged: dict[str, Any] = dict(np.load(self._tags_file))
            self.load_index()

    def fill(self, load: Workload) -> None:
        """Built by one thread, and saved."""
        self.build(load.vectors)
        self._vectors, self._tagged = load.vectors, tagged(load.tags)
        np.save(self._vectors_file, load.vectors)
        np.savez(self._tags_file, **self._tagged)

    def vector(self, question: Question, k: int, tag: str | None = None) -> list[int]:
        """By the index, or exactly when few are left."""
        if tag is None:
            return self.near(question.vector, k)
        among = self._tagged[tag]
        if len(among) <= min(_EXACT_MAX, len(self._vectors) * _EXACT_SHARE_MAX):
            nearest: list[int] = among[best(self._vectors[among] @ question.vector, k)].tolist()
            return nearest
        return self.near_among(question.vector, k, tag)

    @property
    def path(self) -> str:
        """Where the index is saved."""
        return str(self._file)

    def tagged_with(self, tag: str) -> Any:  # noqa: ANN401 - an array of ordinals
        """The memories with the tag, ascending."""
        return self._tagged[tag]

    def near_among(self, vector: Matrix, k: int, tag: str) -> list[int]:
        """The nearest with the tag; here by asking for more, for libraries that have no filter."""
        among = set(self.tagged_with(tag).tolist())
        more = int(k * len(self._vectors) / len(among) * 2)
        return [at for at in self.near(vector, more) if at in among][:k]

    @abstractmethod
    def build(self, vectors: Matrix) -> None:
        """Makes the index and saves it."""

    @abstractmethod
    def load_index(self) -> None:
        """Loads what was saved."""

    @abstractmethod
    def near(self, vector: Matrix, k: int) -> list[int]:
        """The nearest of all."""


class Hnswlib(Graph):
    """The library that the graph was made known by."""

    name = "hnswlib"
    requires = ("hnswlib",)
    setup = f"M {M}, ef_construction {EF_CONSTRUCTION}, ef by effort; its own filter above a quarter, else exact"

    def build(self, vectors: Matrix) -> None:
        """With room for more."""
        self._index = self._empty()
        self._index.init_index(int(len(vectors) * _ROOM) + 1_000, ef_construction=EF_CONSTRUCTION, M=M)
        self._index.set_num_threads(1)
        self._index.add_items(vectors, num_threads=1)
        self._index.save_index(self.path)

    def _empty(self) -> Any:  # noqa: ANN401 - the library has no types
        import hnswlib

        return hnswlib.Index(space="ip", dim=DIM)

    def load_index(self) -> None:
        """Whole, into memory."""
        self._index = self._empty()
        self._index.load_index(self.path, max_elements=int(len(self._vectors) * _ROOM) + 1_000)
        self._index.set_num_threads(1)

    def near(self, vector: Matrix, k: int) -> list[int]:
        """With `ef` at least `k`."""
        return self._queried(vector, k)

    def near_among(self, vector: Matrix, k: int, tag: str) -> list[int]:
        """By a callback for each vector that is met."""
        return self._queried(vector, k, set(self.tagged_with(tag).tolist()).__contains__)

    def _queried(self, vector: Matrix, k: int, keeps: Any = None) -> list[int]:  # noqa: ANN401 - a callback
        self._index.set_ef(max(self.effort, k))
        labels, _ = self._index.knn_query(vector, k=k, num_threads=1, filter=keeps)
        found: list[int] = labels[0].tolist()
        return found

    def remember(self, memory: Memory) -> None:
        """In memory alone."""
        self._index.add_items(memory.vector, memory.ordinal, num_threads=1)


class Usearch(Graph):
    """A graph on vectors of 32 bits."""

    name = "usearch f32"
    requires = ("usearch",)
    setup = f"connectivity {M}, expansion_add {EF_CONSTRUCTION}, expansion_search by effort; more asked for under 60 %"
    can = Graph.can | Ability.THREADS
    precision = "f32"

    def _empty(self) -> Any:  # noqa: ANN401 - types would need the library
        from usearch.index import Index

        return Index(ndim=DIM, metric="ip", dtype=self.precision, connectivity=M, expansion_add=EF_CONSTRUCTION)

    def build(self, vectors: Matrix) -> None:
        """By one thread."""
        self._index = self._empty()
        self._index.add(np.arange(len(vectors)), vectors, threads=1)
        self._index.save(self.path)

    def load_index(self) -> None:
        """Whole, into memory, so that it can be written to."""
        self._index = self._empty()
        self._index.load(self.path)

    def near(self, vector: Matrix, k: int) -> list[int]:
        """With the expansion at least `k`."""
        self._index.expansion_search = max(self.effort, k)
        found: list[int] = self._index.search(vector, k, threads=1).keys.tolist()
        return found

    def remember(self, memory: Memory) -> None:
        """In memory alone."""
        self._index.add(memory.ordinal, memory.vector, threads=1)

    def save(self) -> None:
        """The whole index, once more."""
        self._index.save(self.path)


class UsearchBytes(Usearch):
    """A graph on vectors of eight bits, without the exact ones behind it."""

    name = "usearch i8"
    setup = f"{Usearch.setup}; no rescoring, so recall has a ceiling"
    precision = "i8"


class FaissGraph(Graph):
    """Faiss' graph."""

    name = "faiss HNSW"
    requires = ("faiss",)
    setup = f"M {M}, efConstruction {EF_CONSTRUCTION}, efSearch by effort; IDSelector above a quarter, else exact"

    def build(self, vectors: Matrix) -> None:
        """By one thread."""
        import faiss

        faiss.omp_set_num_threads(1)
        self._faiss = faiss
        self._index = self.made(faiss, vectors)
        self._index.add(np.ascontiguousarray(vectors))
        faiss.write_index(self._index, self.path)
        self._selectors: dict[str, Any] = {}
        self._added: list[int] = []

    def made(self, faiss: Any, vectors: Matrix) -> Any:  # noqa: ANN401, ARG002 - the library has no types
        """An index without vectors."""
        index = faiss.IndexHNSWFlat(DIM, M, faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction = EF_CONSTRUCTION
        return index

    def load_index(self) -> None:
        """Whole, into memory."""
        import faiss

        faiss.omp_set_num_threads(1)
        self._faiss = faiss
        self._index = faiss.read_index(self.path)
        self._selectors = {}
        self._added = []

    def near(self, vector: Matrix, k: int) -> list[int]:
        """With the effort at least `k`."""
        return self._searched(vector, k, None)

    def near_among(self, vector: Matrix, k: int, tag: str) -> list[int]:
        """By a bitmap, which is made once."""
        if tag not in self._selectors:
            bits = np.zeros(len(self._vectors), dtype=bool)
            bits[self.tagged_with(tag)] = True
            self._selectors[tag] = self._faiss.IDSelectorBitmap(np.packbits(bits, bitorder="little"))
        return self._searched(vector, k, self._selectors[tag])

    def _searched(self, vector: Matrix, k: int, selector: Any) -> list[int]:  # noqa: ANN401 - as above
        _, places = self._index.search(vector[None, :], k, params=self.parameters(k, selector))
        filled = len(self._vectors)
        return [at if at < filled else self._added[at - filled] for at in places[0].tolist() if at >= 0]

    def parameters(self, k: int, selector: Any) -> Any:  # noqa: ANN401 - as above
        """How one search is done."""
        return self._faiss.SearchParametersHNSW(efSearch=max(self.effort, k), sel=selector)

    def remember(self, memory: Memory) -> None:
        """In memory alone; the index numbers them as they come."""
        self._index.add(memory.vector[None, :])
        self._added.append(memory.ordinal)


class FaissLists(FaissGraph):
    """Faiss' inverted lists."""

    name = "faiss IVF"
    setup = "IVFFlat, 4 √n lists, nprobe by effort; IDSelector above a quarter, else exact"
    efforts = (1, 2, 4, 8, 16, 32, 64, 128)

    def made(self, faiss: Any, vectors: Matrix) -> Any:  # noqa: ANN401 - the library has no types
        """Trained on all vectors."""
        # The lists' own object must outlive the constructor.
        self._lists = faiss.IndexFlatIP(DIM)
        index = faiss.IndexIVFFlat(self._lists, DIM, int(4 * len(vectors) ** 0.5), faiss.METRIC_INNER_PRODUCT)
        index.train(vectors)
        return index

    def parameters(self, k: int, selector: Any) -> Any:  # noqa: ANN401, ARG002 - as above
        """So many lists."""
        return self._faiss.SearchParametersIVF(nprobe=self.effort, sel=selector)
