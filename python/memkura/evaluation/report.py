"""What came out, by category and overall, with how sure it is."""

from __future__ import annotations

from collections import Counter, defaultdict
from statistics import fmean
from typing import TYPE_CHECKING, Any

from memkura.evaluation.intervals import bootstrap
from memkura.evaluation.metrics import MEASURES
from memkura.visible import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

OVERALL = "overall"
# The measures without a depth in their usual name.
_PLAIN = {"mrr", "map"}
_NAME_WIDTH = 40


class Report:
    """Values of every question.

    Attributes:
        k: how many hits counted.
        left_out: questions without a relevant answer.
        degraded: how often each degraded word came back.
    """

    def __init__(self, k: int) -> None:
        self.k = k
        self.left_out = 0
        self.degraded: Counter[str] = Counter()
        self._values: defaultdict[str, list[Mapping[str, float]]] = defaultdict(list)

    def add(self, category: str, values: Mapping[str, float]) -> None:
        """Counts one question's values, by the names in ``MEASURES``."""
        self._values[category].append(values)

    def mean(self, measure: str, category: str | None = None) -> float:
        """The mean over a category's questions, or over all."""
        return fmean(values[measure] for values in self._questions(category))

    def as_dict(self) -> dict[str, Any]:
        """The report as a plain dictionary, ready for JSON."""
        parts = {OVERALL: self._part(None)} if self._values else {}
        if len(self._values) > 1:
            parts |= {category or "(none)": self._part(category) for category in sorted(self._values)}
        return {"k": self.k, "left_out": self.left_out, "degraded": dict(self.degraded), "parts": parts}

    def table(self) -> str:
        """The report as a plain table, each mean with its 95 % interval."""
        parts = self.as_dict()["parts"]
        width = max([len("category"), *(len(one_line(name, _NAME_WIDTH)) for name in parts)])
        titles = [name if name in _PLAIN else f"{name}@{self.k}" for name in MEASURES]
        lines = [f"{'category':<{width}}  {'n':>5}  " + "  ".join(f"{title:<20}" for title in titles)]
        for name, part in parts.items():
            cells = [_cell(part[measure]) for measure in MEASURES]
            lines.append(f"{one_line(name, _NAME_WIDTH):<{width}}  {part['n']:>5}  " + "  ".join(cells))
        if self.left_out:
            lines.append(f"{self.left_out} questions without a relevant answer were left out")
        lines += [f"degraded: {word} ({count} questions)" for word, count in sorted(self.degraded.items())]
        return "\n".join(line.rstrip() for line in lines)

    def _questions(self, category: str | None) -> list[Mapping[str, float]]:
        if category is not None:
            return self._values[category]
        return [values for part in self._values.values() for values in part]

    def _part(self, category: str | None) -> dict[str, Any]:
        questions = self._questions(category)
        part: dict[str, Any] = {"n": len(questions)}
        for measure in MEASURES:
            values = [values[measure] for values in questions]
            part[measure] = {"mean": fmean(values), "interval": list(bootstrap(values))}
        return part


def _cell(figure: Mapping[str, Any]) -> str:
    low, high = figure["interval"]
    return f"{figure['mean']:.3f} {low:.3f}..{high:.3f}".ljust(20)
