"""Tables of figures, for a terminal or for a page."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Table:
    """A title, the names of the columns, and rows of as many cells."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    figures_from: int = 1

    def text(self, *, markdown: bool) -> str:
        """As it is printed."""
        return "\n".join(self._markdown() if markdown else self._plain()) + "\n"

    def _plain(self) -> list[str]:
        cells = [self.columns, *self.rows]
        widths = [max(len(row[at]) for row in cells) for at in range(len(self.columns))]
        lines = ["  ".join(self._aligned(row, widths, at) for at in range(len(row))) for row in cells]
        return [self.title, *(f"  {line}".rstrip() for line in lines), *(f"  {note}" for note in self.notes)]

    def _markdown(self) -> list[str]:
        lines = [f"| {' | '.join(row)} |" for row in [self.columns, *self.rows]]
        rule = f"|{'---|' * self.figures_from}{'---:|' * (len(self.columns) - self.figures_from)}"
        return [f"### {self.title}", "", lines[0], rule, *lines[1:], "", *(f"- {note}" for note in self.notes)]

    def _aligned(self, row: tuple[str, ...], widths: list[int], at: int) -> str:
        """Words to the left, figures to the right."""
        return row[at].ljust(widths[at]) if at < self.figures_from else row[at].rjust(widths[at])
