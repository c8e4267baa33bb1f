"""A plain function as an embedder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memkura.errors import EmbedderFailed, InvalidInput
from memkura.forking import ForkedLock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from memkura.embedders.protocol import Kind, Vector

_PROBE = "probe"


class Function:
    """Any callable from a list of texts to one vector each.

    Args:
        function: called with a list of texts.
        name: the fingerprint to store. By default the function's qualified name; give a name that changes when the
            function's vectors change. A ``lambda`` has none of its own, and needs one.
        dim: components of a vector; found with one probe text when it is not given.

    Example:
        >>> from memkura.embedders.function import Function
        >>> Function(lambda texts: [[1.0, 0.0] for _ in texts], name="constant-v1").dim
        2
    """

    def __init__(
        self,
        function: Callable[[list[str]], Iterable[Vector]],
        *,
        name: str | None = None,
        dim: int | None = None,
    ) -> None:
        self._function = function
        self._dim = dim
        self._probing = ForkedLock()
        self.id = name or f"function:{_qualified_name(function)}"
        if name is None and "<lambda>" in self.id:
            raise InvalidInput(
                "is a lambda, whose name would stand for every other lambda too",
                field="embedder",
                value=self.id,
                advice='Give a def, or Function(the_lambda, name="mine-v1")',
            )

    @property
    def dim(self) -> int:
        """Components of a vector; the first use may call the function with a probe."""
        with self._probing.held():
            if self._dim is None:
                vectors = list(self._function([_PROBE]))
                if len(vectors) != 1 or isinstance(vectors[0], str) or not hasattr(vectors[0], "__len__"):
                    raise EmbedderFailed(
                        f"{self.id} was given a list of one text, and did not answer with a list of one vector"
                    )
                self._dim = len(vectors[0])
            return self._dim

    def embed(self, texts: Sequence[str], *, kind: Kind) -> Iterable[Vector]:  # noqa: ARG002 - a function has one kind
        """One vector a text."""
        return self._function(list(texts))

    def __repr__(self) -> str:
        return f"<Function {self.id!r}>"


def _qualified_name(function: Any) -> str:  # noqa: ANN401 - any callable
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}.{named.__qualname__}"
