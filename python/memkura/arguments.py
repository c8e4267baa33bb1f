"""Arguments that our own Python uses before the core sees them: read, or refused by name."""

from __future__ import annotations

import errno
import operator
import os
import reprlib
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memkura.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterator


# The path of a store that lives as long as its engine.
MEMORY = ":memory:"
# What every store's folder has in it.
_RECORD = "record.sqlite3"


def count(value: object, field: str, *, least: int = 0) -> int:
    """`value` as a whole number of at least `least`; ``True`` is none."""
    try:
        number = least - 1 if isinstance(value, bool) else operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = least - 1
    if number < least:
        raise _refused(f"is not a whole number of at least {least}", field, value, f"Give {least} or more")
    return number


def text(value: object, field: str) -> str:
    """`value`, a text that UTF-8 can hold."""
    if not isinstance(value, str):
        raise _refused("is not a text", field, value, "Give a str")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise _refused("holds half a surrogate pair", field, value, "Mend the text") from None
    return value


def path(value: object, field: str = "path") -> str:
    """The path that a ``str``, ``bytes`` or ``os.PathLike`` names."""
    try:
        named = os.fsdecode(value)  # type: ignore[arg-type]
    except TypeError:
        raise _refused("is no path", field, value, "Give a str or a pathlib.Path") from None
    if not named:
        raise _refused("is empty", field, value, "Give a str or a pathlib.Path")
    return text(named, field)


def outside_stores(named: str, field: str) -> str:
    """`named` with its links followed, for a file to be written that is none of a store's."""
    try:
        real = Path(named).resolve()
        is_inside = any((folder / _RECORD).exists() for folder in real.parents)
        # From Python 3.13 on, a loop of links is followed to one of them.
        is_loop = any(part.is_symlink() for part in (real, *real.parents))
        why = os.strerror(errno.ELOOP) if is_loop else None
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links before, and U+0000
        why = getattr(error, "strerror", None) or str(error)
    if why:
        raise _refused(f"cannot be written: {why}", field, named, "Name a file in a folder that is there")
    if is_inside:
        raise _refused("lies in a store", field, named, "Name a file of its own, outside of every store's folder")
    return str(real)


def store(value: object) -> str:
    """The absolute path of a store: a process may change its folder while the store is open. ``":memory:"`` stays."""
    named = path(value)
    return named if named == MEMORY else text(os.path.abspath(named), "path")  # noqa: PTH100 - links stay as they are


def items(value: object, field: str) -> Iterator[Any]:
    """An iterator over `value`."""
    if not isinstance(value, Iterable):
        raise _refused("is no list, and nothing else to go through", field, value, "Give a list or an iterator")
    return iter(value)


def truth(value: object, field: str) -> bool:
    """`value`, a switch."""
    if not isinstance(value, bool):
        raise _refused("is not True or False", field, value, "Give True or False")
    return value


def hook(value: object, field: str, call: str) -> None:
    """Refuses what is neither ``None`` nor callable; `call` is how it would be called."""
    if value is not None and not callable(value):
        raise _refused("is not callable", field, value, f"Give a callable {call}")


def _refused(problem: str, field: str, value: object, advice: str) -> InvalidInput:
    return InvalidInput(problem, field=field, value=shown(value), advice=advice)


def shown(value: object) -> str:
    """`value` for a message, whatever it is: an integer of thousands of digits and somebody's own class may refuse."""
    try:
        return reprlib.repr(value)
    except Exception:  # noqa: BLE001 - somebody else's code
        return f"a {type(value).__name__}"
