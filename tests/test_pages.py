"""Pages of a recall: a longer answer begins as a shorter one does."""

from __future__ import annotations

from typing import Any

import pytest

import memkura
from memkura.testing import FrozenClock, ToyEmbedder


@pytest.mark.parametrize(
    "options", [{}, {"fusion": "rrf"}, {"legs": ["text"]}, {"legs": ["vector"]}, {"neighbours": False}]
)
def test_pages_add_up(options: dict[str, Any]) -> None:
    """Pages joined equal one long answer, the top does not depend on how many are asked for, and none comes twice."""
    with memkura.open(":memory:", embedder=ToyEmbedder(16), clock=FrozenClock()) as engine:
        rows = [
            {"context_id": "c", "summary": f"w{at % 17} w{at % 23} common", "importance": at % 5 / 4}
            for at in range(400)
        ]
        engine.remember_many(rows)
        for query in ("w1 w2", "w3 common", "w16 w22"):

            def page(k: int, offset: int = 0, query: str = query) -> list[str]:
                return [hit.memory_id for hit in engine.recall("c", query, k=k, offset=offset, **options)]

            whole = page(400)
            assert len(set(whole)) == len(whole)
            for size in (3, 10, 30, 90):
                assert page(size) == whole[:size]
                assert page(size, size) == whole[size : 2 * size]
            assert page(50, 120) == whole[120:170]


def test_explain_gives_the_place_in_the_answer() -> None:
    """`explain` says of each hit the place that recall gave it."""
    with memkura.open(":memory:", embedder=ToyEmbedder(16), clock=FrozenClock()) as engine:
        engine.remember_many([{"context_id": "c", "summary": f"w{at % 17} w{at % 23} common"} for at in range(300)])
        for place, hit in enumerate(engine.recall("c", "w1 w2", k=10), 1):
            assert engine.explain("c", "w1 w2", hit.memory_id)["rank"] == place
