"""How sure a mean over questions is."""

from __future__ import annotations

import random
from statistics import fmean
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

RESAMPLES = 2_000
_SEED = 20_300_101
_TAIL = 0.025


def bootstrap(values: Sequence[float], *, resamples: int = RESAMPLES, seed: int = _SEED) -> tuple[float, float]:
    """The 95 % percentile interval of the mean (Efron and Tibshirani, *An Introduction to the Bootstrap*, 1993).

    Args:
        values: one value a question; at least one.
        resamples: how often to draw the questions anew, with repeats.
        seed: the same seed gives the same interval.

    Example:
        >>> low, high = bootstrap([0.0, 1.0, 1.0, 1.0])
        >>> low <= 0.75 <= high
        True
    """
    chance = random.Random(seed)  # noqa: S311 - statistics, not secrets
    means = sorted(fmean(chance.choices(values, k=len(values))) for _ in range(resamples))
    outside = int(resamples * _TAIL)
    return means[outside], means[-1 - outside]
