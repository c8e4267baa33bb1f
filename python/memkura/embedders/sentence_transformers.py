"""Models of the ``sentence-transformers`` package."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from memkura.errors import EmbedderUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from memkura.embedders.protocol import Kind, Vector

# `encode_query` and `encode_document` came with version 5; before it, prompts were chosen by hand.
_ENCODERS = {"query": "encode_query", "document": "encode_document"}


class SentenceTransformers:
    """A model by its name or path, or one that the caller has loaded.

    Args:
        model: a name or path, or a ``SentenceTransformer``.
        local_files_only: refuse to download; pass false to allow it.
        name: the fingerprint to store; needed when a loaded model does not know what it was loaded from.
    """

    max_batch = 64

    def __init__(self, model: Any, *, local_files_only: bool = True, name: str | None = None) -> None:  # noqa: ANN401
        if isinstance(model, str):
            self._model = _load(model, local_files_only=local_files_only)
            name = name or model
        else:
            self._model = model
            name = name or _name_of(model)
        self.id = f"sentence-transformers:{name}/1"
        self.dim = _dimensions(self._model)

    def embed(self, texts: Sequence[str], *, kind: Kind) -> Iterable[Vector]:
        """One vector a text, with the model's own prompt for its kind."""
        encode = getattr(self._model, _ENCODERS[kind], None) or self._model.encode
        vectors: Iterable[Vector] = encode(list(texts), show_progress_bar=False, convert_to_numpy=True)
        return vectors

    def __repr__(self) -> str:
        return f"<SentenceTransformers {self.id!r}>"


def _load(name: str, *, local_files_only: bool) -> Any:  # noqa: ANN401 - the package is optional
    if find_spec("sentence_transformers") is None:
        raise EmbedderUnavailable(
            "sentence-transformers is not installed",
            field="embedder",
            value=repr(name),
            advice="Run: pip install sentence-transformers",
        )
    loader = import_module("sentence_transformers").SentenceTransformer
    try:
        return loader(name, local_files_only=local_files_only)
    except Exception as error:
        raise EmbedderUnavailable(
            f"the model could not be loaded: {error}",
            field="embedder",
            value=repr(name),
            advice="Download it first, or pass SentenceTransformers(name, local_files_only=False) to allow a download",
        ) from error


def _dimensions(model: Any) -> int:  # noqa: ANN401 - the package is optional
    # Renamed in version 6; the old name still answers, with a warning.
    measure = getattr(model, "get_embedding_dimension", None) or model.get_sentence_embedding_dimension
    dim = measure()
    return int(dim) if dim is not None else len(next(iter(model.encode(["probe"], show_progress_bar=False))))


def _name_of(model: Any) -> str:  # noqa: ANN401 - the package is optional
    card = getattr(model, "model_card_data", None)
    for name in (getattr(card, "base_model", None), getattr(card, "model_id", None)):
        if isinstance(name, str) and name:
            return name
    raise EmbedderUnavailable(
        "the loaded model does not say which one it is",
        field="embedder",
        advice="Wrap it: memkura.embedders.sentence_transformers.SentenceTransformers(model, name='my-model-v1')",
    )
