"""Texts of others on our screens: shown, never obeyed, and nothing in them hidden.

A memory may hold escape sequences, signs that reverse the direction of writing, or characters that nobody sees.
Everything that we print passes through :func:`visible` first; pages pass through :func:`html_table`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# C0 without tab and newline, DEL and C1, line and paragraph separators, bidirectional controls, half surrogate pairs.
_OBEYED = "\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
# Default_Ignorable_Code_Point of Unicode 16, without what is obeyed, and the marks of annotation.
_UNSEEN = (
    "\xad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200d\u2060-\u2065\u206a-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_PICTURE = "\xa9\xae\u203c\u2049\u2122\u2139\u2190-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
_IDEOGRAPH = "\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
# Arabic, its neighbours, and the scripts of India and South-East Asia, where a joiner is part of the spelling.
_JOINED = "\u0620-\u07ff\u0840-\u109f\u1780-\u18af\ufb50-\ufdff\ufe70-\ufefc"
# What changes the look of the visible character before it hides nothing.
_SEEN = (
    f"(?<=[{_PICTURE}\ufe0f])\u200d(?=[{_PICTURE}])"
    f"|(?<=[{_JOINED}])[\u200c\u200d]"
    f"|(?<=[#*0-9{_PICTURE}{_IDEOGRAPH}])[\ufe00-\ufe0f]"
    f"|(?<=[{_IDEOGRAPH}])[\U000e0100-\U000e01ef]"
    "|(?<=[\u1820-\u18aa])[\u180b-\u180f]"
    # The flags of England, Scotland and Wales.
    "|(?<=\U0001f3f4)\U000e0067\U000e0062[\U000e0061-\U000e007a]{3}\U000e007f"
)
_HIDDEN = re.compile(f"{_SEEN}|([{_OBEYED}{_UNSEEN}])")


def visible(text: str) -> str:
    r"""`text` with each character that a terminal would obey, or nobody would see, as its escape.

    Newlines and tabs stay, and so does what belongs to a visible character: the joiners of an emoji or of Persian, and
    variation selectors.

    >>> visible("wipe \x1b[2J, pay\u200bpal")
    'wipe \\x1b[2J, pay\\u200bpal'
    """
    return _HIDDEN.sub(_escape, text)


def one_line(text: str, width: int | None = None) -> str:
    """`text` on one line, shortened to `width` characters with an ellipsis."""
    line = " ".join(visible(text).split())
    if width is not None and len(line) > width:
        return line[: width - 1] + "…"
    return line


def _escape(match: re.Match[str]) -> str:
    return match[0] if match[1] is None else ascii(match[1])[1:-1]


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
