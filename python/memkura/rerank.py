"""A caller's own reranker over the best candidates of a recall."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias

from memkura.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from memkura._core import Hit

Reranker: TypeAlias = Any
"""A callable ``(query, texts, top_n) -> [(index, score), …]``, or an object whose ``rerank`` is one."""

RERANK_POOL = 50
"""So many candidates are offered to a reranker, or as many as were asked for if that is more."""

FAILED = "rerank:failed"


def reranked(reranker: Reranker, query: str, hits: list[Hit], top_n: int) -> tuple[list[Hit], list[str]]:
    """The best `top_n` of `hits` as `reranker` sees them, and the words for what went wrong.

    A reranker is somebody else's code: when it raises, names hits that were not offered, one twice or none at all, the
    order stays as it was.
    """
    rank: Callable[[str, Sequence[str], int], Iterable[tuple[int, float]]] | None
    rank = reranker if callable(reranker) else getattr(reranker, "rerank", None)
    if rank is None:
        raise InvalidInput(
            "is neither callable nor has a method rerank",
            field="reranker",
            value=type(reranker).__name__,
            advice="Give a callable (query, texts, top_n) -> [(index, score), …]",
        )
    texts = [hit.summary if hit.content is None else f"{hit.summary}\n{hit.content}" for hit in hits]
    try:
        ranked = [(int(index), float(score)) for index, score in rank(query, texts, top_n)]
        scores = dict(ranked)
        # Equal scores keep the order of the recall.
        order = sorted(scores, key=lambda index: (-scores[index], index))
        is_odd = len(scores) < len(ranked) or not (ranked or not hits)
        if is_odd or any(index not in range(len(hits)) or math.isnan(scores[index]) for index in order):
            return hits[:top_n], [FAILED]
    except Exception:  # noqa: BLE001 - somebody else's code
        return hits[:top_n], [FAILED]
    return [hits[index] for index in order[:top_n]], []
