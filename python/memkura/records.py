"""What the verbs answer with, frozen: a receipt of a write, counts, and the state of the embedder."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from memkura.visible import html_table

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from memkura._core import Receipt


class Remembered(str):
    """The id of a memory that was just written, and what the write did.

    It is the id: a ``str`` that can be stored, compared and passed to every other verb.

    Attributes:
        created: whether a new memory was made; false when an earlier one answered for it.
        version: the memory's version after the write, from 1.
        duplicates: ids of other memories with the same words, but for case, width, spacing and punctuation.
        warnings: what had to be mended in the text before it could be stored.
        embedded: whether the vector leg finds it already; if not, ``maintain()`` fills it in.

    Example:
        >>> import memkura
        >>> with memkura.open(":memory:", embedder=None) as engine:
        ...     first = engine.remember("ops", "Deploys go out on Tuesday")
        ...     (first.created, first.version, engine.get("ops", first).summary)
        (True, 1, 'Deploys go out on Tuesday')
    """

    __slots__ = ("created", "duplicates", "embedded", "version", "warnings")

    created: bool
    version: int
    duplicates: tuple[str, ...]
    warnings: tuple[str, ...]
    embedded: bool

    def __new__(
        cls,
        memory_id: str,
        created: bool,  # noqa: FBT001 - the order in which pickle gives it back
        version: int,
        duplicates: tuple[str, ...],
        warnings: tuple[str, ...],
        embedded: bool,  # noqa: FBT001 - likewise
    ) -> Self:
        """Made by the engine; see the class."""
        self = super().__new__(cls, memory_id)
        facts = {
            "created": created,
            "version": version,
            "duplicates": duplicates,
            "warnings": warnings,
            "embedded": embedded,
        }
        for name, value in facts.items():
            object.__setattr__(self, name, value)
        return self

    @classmethod
    def of(cls, receipt: Receipt) -> Remembered:
        """The public form of the engine's receipt."""
        return cls(
            receipt.memory_id,
            receipt.created,
            receipt.version,
            tuple(receipt.duplicates),
            tuple(receipt.warnings),
            receipt.embedded,
        )

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Remembered is frozen: cannot set {name!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"Remembered is frozen: cannot delete {name!r}")

    def __reduce__(self) -> tuple[object, ...]:
        return (
            Remembered,
            (str(self), self.created, self.version, self.duplicates, self.warnings, self.embedded),
        )


@dataclass(frozen=True, slots=True)
class EmbedderInfo:
    """Which embedder a store works with, and whether the vector leg answers.

    Attributes:
        id: the embedder's fingerprint; ``None`` when recall works by text alone.
        dim: components of a vector; ``None`` with ``id``.
        state: ``"ready"``, ``"off"`` (none was given), ``"failing"`` (its last call raised or gave no usable vector)
            or ``"changed"`` (the store holds another embedder's vectors: run ``reindex``).
        note: the same for people, with what to do about it.
        last_error: the reason for ``"failing"``: what was raised and where; not its words, which may quote a memory.
    """

    id: str | None
    dim: int | None
    state: str
    note: str
    last_error: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """The fields as a plain dictionary, ready for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class ReindexReport:
    """How far re-embedding came.

    Attributes:
        total: memories that need a vector of the embedder.
        done: those that have one.
        failed: those that the embedder could not do this time.
        state: ``"complete"``, or ``"partial"``: run it again, it goes on where it stopped.
        reasons: distinct reasons for the failures, the most frequent first.
    """

    total: int
    done: int
    failed: int
    state: str
    reasons: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The fields as a plain dictionary, ready for JSON."""
        return {**asdict(self), "reasons": list(self.reasons)}


@dataclass(frozen=True, slots=True)
class ExportReport:
    """What an export wrote.

    Attributes:
        memories: memories in the file.
        superseded: those of them that others replaced.
        revisions: earlier states of them.
        format: ``"jsonl"`` or ``"msgpack"``.
    """

    memories: int
    superseded: int
    revisions: int
    format: str

    def as_dict(self) -> dict[str, Any]:
        """The fields as a plain dictionary, ready for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What became of the rows of a file.

    Attributes:
        rows: memories in the file.
        added: those that are new here.
        known: those that were here already, or had been. One that brought another text for a ``key`` of an external
            memory has changed that one.
        gone: those of the known ones that were forgotten or purged here, and stay so.
        purged: ids of the purged ones among them.
        left_out: those that were replaced or archived where they came from or have expired, and so are not taken in.
        unpinned: those that were pinned where they came from, and are not here.
        repaired: those with characters that cannot be stored, which were mended.
        contexts: the contexts that they went into, in the order of the file.
    """

    rows: int
    added: int
    known: int
    gone: int
    purged: tuple[str, ...]
    left_out: int
    unpinned: int
    repaired: int
    contexts: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """The fields as a plain dictionary, ready for JSON."""
        return {**asdict(self), "purged": list(self.purged), "contexts": list(self.contexts)}


@dataclass(frozen=True, slots=True)
class Stats:
    """What a store (or one context of it) holds.

    Attributes:
        memories: memories that a recall may return.
        unembedded: those of them that have no vector of the store's embedder yet.
        contexts: contexts counted.
        embedder: the embedder and its state.
        more: everything else that the engine reports, by name; ``expired`` counts memories that wait for ``compact()``.
    """

    memories: int
    unembedded: int
    contexts: int
    embedder: EmbedderInfo
    more: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, reported: Mapping[str, Any], embedder: EmbedderInfo) -> Stats:
        """The public form of what the engine reports; names that it adds later land in ``more``."""
        named = {"memories", "unembedded", "contexts"}
        more = {name: value for name, value in reported.items() if name not in {*named, "embedder"}}
        counts = {name: _count(reported.get(name)) for name in named}
        return cls(embedder=embedder, more=more, **counts)

    def as_dict(self) -> dict[str, Any]:
        """The fields as a plain dictionary, ready for JSON."""
        return {
            "memories": self.memories,
            "unembedded": self.unembedded,
            "contexts": self.contexts,
            "embedder": self.embedder.as_dict(),
            **self.more,
        }

    def _rows(self) -> list[tuple[str, str]]:
        rows = [("memories", f"{self.memories:,}"), ("unembedded", f"{self.unembedded:,}")]
        rows += [("contexts", f"{self.contexts:,}"), ("embedder", self.embedder.note)]
        return rows + [(name, str(value)) for name, value in self.more.items()]

    def _repr_html_(self) -> str:
        return html_table(("figure", "value"), self._rows())

    def __rich__(self) -> object:
        from memkura.visible import rich_table

        return rich_table(("figure", "value"), self._rows())


@dataclass(frozen=True, slots=True)
class Health:
    """How sound a store was found.

    Attributes:
        problems: what is wrong with the record; a sound one has none.
        drift: memories that an index shows otherwise than the record does; 0 in a sound store.
        compared: memories that were compared.
        stats: what the store holds.
        degraded: what is not as it could be, by word, with what to do about it.
    """

    problems: tuple[str, ...]
    drift: int
    compared: int
    stats: Stats
    degraded: Mapping[str, str]

    @classmethod
    def of(cls, found: Mapping[str, Any], stats: Stats) -> Health:
        """The public form of what the engine found."""
        return cls(tuple(found["problems"]), found["drift"], found["compared"], stats, _degraded(stats))

    @property
    def is_sound(self) -> bool:
        """Whether the record has no problem and every index shows what it says."""
        return not self.problems and not self.drift

    def as_dict(self) -> dict[str, Any]:
        """The fields as a plain dictionary, ready for JSON."""
        return {
            "problems": list(self.problems),
            "drift": self.drift,
            "compared": self.compared,
            "stats": self.stats.as_dict(),
            "degraded": dict(self.degraded),
        }


def _degraded(stats: Stats) -> dict[str, str]:
    """Words for what is not as it should be. Text alone, when nothing else was asked for, is as it should be."""
    found = {}
    state = stats.embedder.state
    if state == "changed":
        found["vector:embedder_changed"] = (
            "the store holds another embedder's vectors; run memkura reindex, or open it with that one"
        )
    if state == "failing":
        found["vector:embedder_failed"] = "the embedder does not work; memories are kept and found by text"
    if stats.unembedded and state not in {"off", "changed"}:
        found["vector:unembedded"] = f"{stats.unembedded:,} memories wait for their vectors; run memkura maintain"
    return found


def _count(value: object) -> int:
    """A figure, or the size of the list in its place."""
    if isinstance(value, int):
        return value
    return len(value) if isinstance(value, list | tuple | dict) else 0
