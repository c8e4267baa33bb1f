"""The contestants of ``rivals.py``: memkura and what people would use instead, one module for each family.

Each is a class of the shape in ``contract.py``, and imports its library when it is made: those that are not installed
are left out. To add one, write the class and name it here.
"""

from contestants.agents import LangGraphMemory, LangGraphSqlite, Mem0, Txtai
from contestants.by_hand import ByHand
from contestants.contract import DEPTH, Ability, Contestant, key
from contestants.databases import Chroma, Lance, QdrantEdge, QdrantLocal, SqliteVec
from contestants.graphs import FaissGraph, FaissLists, Hnswlib, Usearch, UsearchBytes
from contestants.lexical import Bm25s, Tantivy
from contestants.ours import Memkura
from contestants.plain import Plain, SqliteWords, best

ALL: tuple[type[Contestant], ...] = (
    Memkura,
    Plain,
    SqliteWords,
    Bm25s,
    Tantivy,
    Hnswlib,
    Usearch,
    UsearchBytes,
    FaissGraph,
    FaissLists,
    ByHand,
    SqliteVec,
    Lance,
    Chroma,
    QdrantEdge,
    QdrantLocal,
    LangGraphMemory,
    LangGraphSqlite,
    Mem0,
    Txtai,
)

__all__ = ["ALL", "DEPTH", "Ability", "Contestant", "Memkura", "Plain", "best", "key"]
