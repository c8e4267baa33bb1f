"""Everything that the command prints.

Texts are shown with the characters that a terminal would obey as escapes; JSON is printed as plain ASCII, so that it
needs none. Not one control character is written but newline and tab, not even for progress.
"""

from __future__ import annotations

import json
import os
import sys
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memkura.jsonl import to_line
from memkura.visible import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_BAR = 40


def prepare() -> None:
    """Lets a terminal with few characters show the rest as escapes instead of failing; a closed one shows nothing."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - until the end
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def say(text: str = "") -> None:
    """Prints a line of the answer."""
    click.echo(visible(text))


def say_json(document: Mapping[str, Any]) -> None:
    """Prints the answer as one JSON document on one line."""
    click.echo(to_line(document))


def aside(text: str) -> None:
    """Prints a line that is not part of the answer."""
    click.echo(visible(text), err=True)


def complain(text: str) -> None:
    """Prints what went wrong."""
    aside(f"memkura: {text}")


def pairs(rows: Iterable[tuple[str, object]], indent: str = "") -> None:
    """Prints names and values below each other; nested ones indented."""
    rows = list(rows)
    width = max((len(name) for name, _ in rows), default=0)
    for name, value in rows:
        if isinstance(value, dict) and value:
            say(f"{indent}{name}")
            pairs(value.items(), f"{indent}  ")
        else:
            say(f"{indent}{name:<{width}}  {_shown(value)}")


def _shown(value: object) -> str:
    if isinstance(value, str):
        return value.replace("\n", "\\n")
    if isinstance(value, float):
        return f"{value:.4f}"
    if isinstance(value, list | tuple | dict):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)


class Bar:
    """Progress as a row of signs that grows, on standard error: nothing is ever wiped or moved back over."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._drawn = 0
        self._begun = False

    def __call__(self, done: int, total: int | None) -> None:
        """Draws up to `done` of `total`."""
        if not self._begun:
            self._begun = True
            click.echo(visible(f"{self._label} "), nl=False, err=True)
        reached = _BAR * done // total if total else self._drawn
        click.echo("#" * (reached - self._drawn), nl=False, err=True)
        self._drawn = max(self._drawn, reached)

    def end(self) -> None:
        """Ends the line."""
        if self._begun:
            click.echo(err=True)
