"""Open engines and fork: suspended before, resumed on both sides after.

A forked child must not use its parent's threads, locks or connections; the engine lets go of them before the fork and
takes them up again, separately, in parent and child.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from memkura import _core

_open_engines: WeakKeyDictionary[object, _core.Engine] = WeakKeyDictionary()


def watch(owner: object, engine: _core.Engine) -> None:
    """Suspends and resumes `engine` around every fork for as long as its `owner` lives."""
    _open_engines[owner] = engine


def _suspend() -> None:
    for engine in list(_open_engines.values()):
        # An exception here would stop nothing, only be printed; an engine that cannot be suspended says so on use.
        with contextlib.suppress(Exception):
            engine.suspend()


def _resume() -> None:
    for engine in list(_open_engines.values()):
        with contextlib.suppress(Exception):
            engine.resume()


def _resume_in_child() -> None:
    for engine in list(_open_engines.values()):
        with contextlib.suppress(Exception):
            engine.resume_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_suspend, after_in_parent=_resume, after_in_child=_resume_in_child)
