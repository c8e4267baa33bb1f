"""Open engines and fork: suspended before, resumed on both sides after.

A forked child must not use its parent's threads, locks or connections; the engine lets go of them before the fork and
takes them up again, separately, in parent and child. A lock of our own that a thread may hold meanwhile is open in the
child, which does not have that thread.
"""

from __future__ import annotations

import contextlib
import os
import threading
from typing import TYPE_CHECKING
from weakref import WeakSet

from memkura import _core

if TYPE_CHECKING:
    from collections.abc import Iterator

# From before a fork until after it, and while an engine is opened or a store is made: no other thread forks with files
# that nobody lets go of. The thread that holds it may fork all the same.
_lock = threading.RLock()
_suspended: list[_core.Engine] = []

_locks: WeakSet[ForkedLock] = WeakSet()


class ForkedLock:
    """A lock that is open in a forked child, whichever of the parent's threads held it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        with _lock:
            _locks.add(self)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """While this thread holds it. What it guards must make sense half changed too: a child may begin there."""
        lock = self._lock  # the child of a fork in here lets go of the one that was taken
        with lock:
            yield

    def open_in_child(self) -> None:
        """Puts an open lock in place of the parent's."""
        self._lock = threading.Lock()


def held() -> contextlib.AbstractContextManager[bool]:
    """While an engine is opened, or a store is made without one, no other thread forks."""
    return _lock


def _suspend() -> None:
    _lock.acquire()
    for engine in _core.open_engines():
        # An exception here would stop nothing, only be printed; an engine that cannot be suspended says so on use.
        with contextlib.suppress(Exception):
            engine.suspend()
            _suspended.append(engine)


def _resume() -> None:
    while _suspended:
        _suspended.pop().resume()
    _lock.release()


def _resume_in_child() -> None:
    global _lock  # noqa: PLW0603 - the parent's is held by a thread that the child does not have
    _lock = threading.RLock()
    for lock in list(_locks):
        lock.open_in_child()
    while _suspended:
        _suspended.pop().resume_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_suspend, after_in_parent=_resume, after_in_child=_resume_in_child)
