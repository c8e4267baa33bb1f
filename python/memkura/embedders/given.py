"""Vectors that the caller makes: for stores whose every memory and question comes with its embedding."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memkura.errors import EmbedderFailed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from memkura.embedders.protocol import Kind, Vector


class Given:
    """An embedder that makes nothing: it says which vectors the caller brings.

    Args:
        dim: components of a vector.
        name: the fingerprint of what makes the vectors.

    Example:
        >>> import memkura
        >>> from memkura.embedders.given import Given
        >>> with memkura.open(":memory:", embedder=Given(2, "mine-v1")) as engine:
        ...     _ = engine.remember("ops", "Deploys go out on Tuesday", embedding=[0.6, 0.8])
        ...     engine.recall("ops", embedding=[0.6, 0.8])[0].summary
        'Deploys go out on Tuesday'
    """

    def __init__(self, dim: int, name: str = "given") -> None:
        self.id = name
        self.dim = dim

    def embed(self, texts: Sequence[str], *, kind: Kind) -> Iterable[Vector]:  # noqa: ARG002 - the protocol's names
        """Raises: there is nothing to make a vector with."""
        raise EmbedderFailed(f"the vectors of {self.id!r} are given by the caller; pass embedding=")

    def __repr__(self) -> str:
        return f"<Given {self.id!r}>"
