"""Measures of one ranking against known answers, in plain Python.

A ranking is a list of ids, best first, without repeats. Answers are a mapping from id to grade; grades above 0 are
relevant. A question without any relevant answer has no value: callers leave it out. Definitions as in ``trec_eval``
(Voorhees and Harman, *TREC: Experiment and Evaluation in Information Retrieval*, 2005).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Grades = Mapping[str, float]
    Measure = Callable[[Sequence[str], Grades, int], float]


def recall(ranking: Sequence[str], grades: Grades, k: int) -> float:
    """The share of relevant answers among the first `k`.

    >>> recall(["a", "b", "c"], {"a": 1, "c": 1}, 2)
    0.5
    """
    return _found(ranking, grades, k) / _relevant(grades)


def precision(ranking: Sequence[str], grades: Grades, k: int) -> float:
    """The share of the first `k` places that hold a relevant answer; empty places count.

    >>> precision(["a", "b"], {"a": 1}, 4)
    0.25
    """
    return _found(ranking, grades, k) / k


def hit(ranking: Sequence[str], grades: Grades, k: int) -> float:
    """1 if any relevant answer is among the first `k` (also called success@k).

    >>> hit(["b", "a"], {"a": 1}, 1)
    0.0
    """
    return float(_found(ranking, grades, k) > 0)


def reciprocal_rank(ranking: Sequence[str], grades: Grades, k: int) -> float:
    """1 over the place of the first relevant answer among the first `k`, or 0 (Kantor and Voorhees, TREC-5, 1996).

    >>> reciprocal_rank(["b", "a"], {"a": 1}, 10)
    0.5
    """
    places = (place for place, found in enumerate(ranking[:k], 1) if grades.get(found, 0) > 0)
    return 1 / next(places, math.inf)


def average_precision(ranking: Sequence[str], grades: Grades, k: int) -> float:
    """Precision at each relevant place among the first `k`, over all relevant answers (Buckley and Voorhees, 2000).

    >>> average_precision(["a", "b", "c"], {"a": 1, "c": 1}, 10)
    0.8333333333333333
    """
    found = 0
    total = 0.0
    for place, answer in enumerate(ranking[:k], 1):
        if grades.get(answer, 0) > 0:
            found += 1
            total += found / place
    return total / _relevant(grades)


def ndcg(ranking: Sequence[str], grades: Grades, k: int) -> float:
    """Discounted gain of the first `k` over that of the best order, gain = grade (Järvelin and Kekäläinen, 2002).

    >>> round(ndcg(["b", "a"], {"a": 2, "b": 1}, 10), 4)
    0.8597
    """
    best = sorted((grade for grade in grades.values() if grade > 0), reverse=True)
    return _gain([max(grades.get(answer, 0), 0) for answer in ranking[:k]]) / _gain(best[:k])


def _gain(grades: Sequence[float]) -> float:
    return sum(grade / math.log2(place + 1) for place, grade in enumerate(grades, 1))


def _found(ranking: Sequence[str], grades: Grades, k: int) -> int:
    return sum(grades.get(answer, 0) > 0 for answer in ranking[:k])


def _relevant(grades: Grades) -> int:
    return sum(grade > 0 for grade in grades.values())


MEASURES: dict[str, Measure] = {
    "recall": recall,
    "hit": hit,
    "precision": precision,
    "ndcg": ndcg,
    "mrr": reciprocal_rank,
    "map": average_precision,
}
"""Each measure by the name that reports use."""
