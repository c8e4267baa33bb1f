"""What an embedder has to offer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Kind: TypeAlias = Literal["document", "query"]
"""What a text is: a memory to be found, or a question that looks for one."""

Vector: TypeAlias = Any
"""A sequence of numbers, or better an object with the buffer protocol (``array``, a numpy row, a memoryview)."""


@runtime_checkable
class Embedder(Protocol):
    """The shape of an embedder. Structural: have these names, inherit nothing.

    Optional names: ``max_batch`` (texts in one call, 64 otherwise) and ``aembed``, an asynchronous ``embed`` that the
    asynchronous engine prefers.

    Attributes:
        id: a fingerprint of the model and of all that changes its vectors. Stored; with another one the store asks
            for a ``reindex``.
        dim: components of a vector.
    """

    @property
    def id(self) -> str: ...  # noqa: D102 - described above

    @property
    def dim(self) -> int: ...  # noqa: D102 - described above

    def embed(self, texts: Sequence[str], *, kind: Kind) -> Iterable[Vector]:
        """One vector a text, in order.

        Args:
            texts: what to embed; never empty strings only, at most ``max_batch`` at a time.
            kind: ``"document"`` for memories, ``"query"`` for questions.
        """
        ...
