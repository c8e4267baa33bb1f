"""Ctrl-C: heeded until a write begins, too late after it."""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self


class Interrupts:
    """Within it, :meth:`hold` lets no interrupt stop the write that follows, nor what is said of it.

    Attributes:
        came: whether one came since.
    """

    def __init__(self) -> None:
        self.came = False
        self._before: Any = None

    def hold(self) -> None:
        """Notes interrupts from now on. Only the main thread is sent them."""
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._note)

    def _note(self, *_: object) -> None:
        self.came = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
