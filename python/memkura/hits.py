"""The answer of a recall: an immutable sequence of hits, and how it was found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, final, overload

from memkura.visible import html_table, one_line, rich_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from memkura._core import Hit

_SHOWN = 3
_COLUMNS = ("score", "summary", "type", "trust", "evidence", "memory_id")


@final
class Hits(Sequence["Hit"]):
    """The hits of one recall, best first. Immutable; indexes, slices and iterates like a tuple.

    Attributes:
        degraded: why the answer may be worse than usual, in fixed words such as ``"vector:embedder_failed"``;
            empty when everything worked.
        mode: which legs answered: ``"hybrid"``, ``"text"``, ``"vector"`` or ``"key"``.

    Example:
        >>> import memkura
        >>> with memkura.open(":memory:", embedder=None) as engine:
        ...     _ = engine.remember("ops", "Deploys go out on Tuesday")
        ...     hits = engine.recall("ops", "deploys")
        >>> hits[0].summary
        'Deploys go out on Tuesday'
    """

    __slots__ = ("_degraded", "_hits", "_mode")

    def __init__(self, hits: Iterable[Hit] = (), *, degraded: Iterable[str] = (), mode: str = "") -> None:
        self._hits = tuple(hits)
        self._degraded = tuple(degraded)
        self._mode = mode

    @property
    def degraded(self) -> list[str]:
        """Words for what was missing; a fresh list each time."""
        return list(self._degraded)

    @property
    def mode(self) -> str:
        """Which legs answered."""
        return self._mode

    def as_dicts(self) -> list[dict[str, Any]]:
        """Every hit as a plain dictionary."""
        return [hit.as_dict() for hit in self._hits]

    @overload
    def __getitem__(self, index: int) -> Hit: ...
    @overload
    def __getitem__(self, index: slice) -> Hits: ...
    def __getitem__(self, index: int | slice) -> Hit | Hits:
        if isinstance(index, slice):
            return Hits(self._hits[index], degraded=self._degraded, mode=self._mode)
        return self._hits[index]

    def __len__(self) -> int:
        return len(self._hits)

    def __iter__(self) -> Iterator[Hit]:
        return iter(self._hits)

    def __repr__(self) -> str:
        shown = [f"{hit.score:.4f} {one_line(hit.summary, 40)!r}" for hit in self._hits[:_SHOWN]]
        if len(self) > _SHOWN:
            shown.append("…")
        state = f" degraded={self.degraded}" if self._degraded else ""
        return f"<Hits {len(self)} mode={self._mode!r}{state}: {', '.join(shown)}>"

    def _rows(self) -> list[tuple[str, ...]]:
        return [
            (
                f"{hit.score:.4f}",
                hit.summary,
                hit.type,
                hit.trust_tier,
                ", ".join(hit.evidence),
                hit.memory_id,
            )
            for hit in self._hits
        ]

    def _repr_html_(self) -> str:
        return html_table(_COLUMNS, self._rows())

    def __rich__(self) -> object:
        return rich_table(_COLUMNS, self._rows())
