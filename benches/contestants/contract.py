"""What a contestant is: a folder that keeps memories, and ways to ask it."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from importlib.util import find_spec
from typing import TYPE_CHECKING, ClassVar

from workload import fused

if TYPE_CHECKING:
    from pathlib import Path

    from workload import Memory, Question, Workload

# How many of each leg are fused, as memkura does it.
DEPTH = 100
# How every graph is built, by hnswlib's names.
M = 16
EF_CONSTRUCTION = 128


class Ability(enum.Flag):
    """What a contestant can be measured at."""

    NONE = 0
    TEXT = enum.auto()
    VECTOR = enum.auto()
    FILTER = enum.auto()
    LOOKUP = enum.auto()
    DURABLE = enum.auto()  # a memory written alone is synced to disk, and found, when `remember` returns
    RELAXED = enum.auto()  # it is found, and was not synced
    REOPEN = enum.auto()  # another object, given the same folder, answers
    THREADS = enum.auto()  # two threads may ask while a third writes


class Contestant(ABC):
    """One library, set up as its documents advise. Made anew on a folder: an empty one, or one that was filled."""

    name: ClassVar[str]
    requires: ClassVar[tuple[str, ...]] = ()
    setup: ClassVar[str]
    can: ClassVar[Ability]
    # Values of the one setting that trades time for recall, ascending; the runner takes the first that is good enough.
    efforts: ClassVar[tuple[int, ...]] = ()

    def __init__(self, folder: Path, *, durable: bool = True) -> None:
        self.folder = folder
        self.durable = durable
        self.effort = self.efforts[0] if self.efforts else 0
        folder.mkdir(parents=True, exist_ok=True)

    @classmethod
    def missing(cls) -> list[str]:
        """The modules that it needs and that are not installed."""
        return [module for module in cls.requires if not _is_there(module)]

    @abstractmethod
    def fill(self, load: Workload) -> None:
        """Takes in every memory, and has its indexes built and its files written at the end."""

    def text(self, question: Question, k: int, tag: str | None = None) -> list[int]:
        """The ordinals of the best `k` by words, of those with the tag."""
        raise NotImplementedError

    def vector(self, question: Question, k: int, tag: str | None = None) -> list[int]:
        """The ordinals of the nearest `k`, of those with the tag."""
        raise NotImplementedError

    def hybrid(self, question: Question, k: int, tag: str | None = None) -> list[int]:
        """The best `k` by both; by reciprocal ranks here, for those that have no such call of their own."""
        return fused((self.text(question, DEPTH, tag), self.vector(question, DEPTH, tag)), k)

    def lookup(self, ordinal: int) -> str:
        """The text of the memory under the exact key of `ordinal`."""
        raise NotImplementedError

    def remember(self, memory: Memory) -> None:
        """Writes one more memory; the next question finds it."""
        raise NotImplementedError

    def close(self) -> None:  # noqa: B027 - most have nothing to let go of
        """Lets go of files and threads."""


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # of the package that the module would be in
        return False


def key(ordinal: int) -> str:
    """The exact key of a memory."""
    return f"k{ordinal}"


def ordinal(name: str) -> int:
    """The memory whose key that is."""
    return int(name[1:])
