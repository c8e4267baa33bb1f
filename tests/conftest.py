"""Fixtures: a store in a temporary folder, with the toy embedder and a clock that stands still."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from memkura.testing import FrozenClock, ToyEmbedder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from memkura import Engine


@pytest.fixture
def store_path(tmp_path: Path) -> Path:
    return tmp_path / "agent.memkura"


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock()


@pytest.fixture
def toy() -> ToyEmbedder:
    return ToyEmbedder()


@pytest.fixture
def engine(store_path: Path, toy: ToyEmbedder, clock: FrozenClock) -> Iterator[Engine]:
    import memkura

    with memkura.open(store_path, embedder=toy, clock=clock) as opened:
        yield opened
