"""Texts of others on our screens: shown, never obeyed.

A memory may hold escape sequences, carriage returns, or signs that reverse the direction of writing. Everything that
we print passes through :func:`visible` first; pages pass through :func:`html_table`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# C0 without tab and newline, DEL and C1, line and paragraph separators, bidirectional controls, half surrogate pairs.
_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_NAMED = {"\r": "\\r", "\n": "\\n", "\t": "\\t"}


def visible(text: str) -> str:
    r"""`text` with each character that a terminal would obey as its escape; newlines and tabs stay.

    >>> visible("wipe \x1b[2J")
    'wipe \\x1b[2J'
    """
    return _OBEYED.sub(_escape, text)


def one_line(text: str, width: int | None = None) -> str:
    """`text` on one line, shortened to `width` characters with an ellipsis."""
    line = " ".join(visible(text).split())
    if width is not None and len(line) > width:
        return line[: width - 1] + "…"
    return line


def _escape(match: re.Match[str]) -> str:
    character = match.group()
    code = ord(character)
    return _NAMED.get(character) or (f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}")  # noqa: PLR2004


def html_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """An HTML table with every cell escaped."""
    from html import escape

    def line(tag: str, cells: Sequence[str]) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(visible(cell))}</{tag}>" for cell in cells) + "</tr>"

    body = "".join(line("td", row) for row in rows)
    return f"<table><thead>{line('th', head)}</thead><tbody>{body}</tbody></table>"


def rich_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> object:
    """A ``rich.table.Table``; cells are text, never markup."""
    from rich.table import Table
    from rich.text import Text

    table = Table(*head)
    for row in rows:
        table.add_row(*(Text(visible(cell)) for cell in row))
    return table
