"""Models of the ``fastembed`` package."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from memkura.errors import EmbedderUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from memkura.embedders.protocol import Kind, Vector


class FastEmbed:
    """A model by its name, or a ``TextEmbedding`` that the caller has made.

    Args:
        model: a name as in ``TextEmbedding.list_supported_models()``, or a ``TextEmbedding``.
        local_files_only: refuse to download; pass false to allow it.
    """

    max_batch = 64

    def __init__(self, model: Any, *, local_files_only: bool = True) -> None:  # noqa: ANN401 - a name or a model
        self._model = _load(model, local_files_only=local_files_only) if isinstance(model, str) else model
        self.id = f"fastembed:{self._model.model_name}/1"
        self.dim = int(self._model.embedding_size)

    def embed(self, texts: Sequence[str], *, kind: Kind) -> Iterable[Vector]:
        """One vector a text; the model adds its own prefix for the kind."""
        embed = self._model.query_embed if kind == "query" else self._model.passage_embed
        return list(embed(list(texts)))

    def __repr__(self) -> str:
        return f"<FastEmbed {self.id!r}>"


def _load(name: str, *, local_files_only: bool) -> Any:  # noqa: ANN401 - the package is optional
    if find_spec("fastembed") is None:
        raise EmbedderUnavailable(
            "fastembed is not installed", field="embedder", value=repr(name), advice="Run: pip install fastembed"
        )
    try:
        return import_module("fastembed").TextEmbedding(name, local_files_only=local_files_only)
    except Exception as error:
        raise EmbedderUnavailable(
            f"the model could not be loaded: {error}",
            field="embedder",
            value=repr(name),
            advice="Download it first, or pass FastEmbed(name, local_files_only=False) to allow a download",
        ) from error
