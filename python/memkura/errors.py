"""Every exception that memkura raises, each with what to do about it.

The tree has one root, :class:`MemkuraError`. An error about an argument names the ``field``, shows the ``value`` and
gives ``advice``; all three are attributes, and survive pickling. Exceptions that mean what a built-in means inherit
from that one too, so ``except ValueError`` and ``except LookupError`` work as expected.
"""

from __future__ import annotations


class MemkuraError(Exception):
    """The root of every exception of ours.

    Attributes:
        message: what went wrong, in one sentence.
        field: the argument or field concerned, such as ``metadata.owner``; ``None`` where no one field is.
        value: a short rendering of the offending value; ``None`` where there is none.
        advice: what the caller can do next.
    """

    def __init__(
        self,
        message: str = "",
        *,
        field: str | None = None,
        value: str | None = None,
        advice: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.field = field
        self.value = value
        self.advice = advice

    def __str__(self) -> str:
        text = self.message
        if self.field is not None:
            text = f"{self.field}: {text}"
        if self.value is not None:
            text = f"{text} (got {self.value})"
        if self.advice:
            text = f"{text}. {self.advice}"
        return text

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.message, self.field, self.value, self.advice))


def _rebuild(kind: type[MemkuraError], message: str, field: str | None, value: str | None, advice: str) -> MemkuraError:
    return kind(message, field=field, value=value, advice=advice)


class InvalidInput(MemkuraError, ValueError):
    """An argument has a value that cannot be taken. Nothing was written."""


class EmptyQuery(InvalidInput):
    """The query has no character to search for. Give a query, an embedding, or use ``list``."""


class LimitExceeded(InvalidInput):
    """A value is larger than a documented limit (see ``docs/reference.md``). Nothing is ever cut in silence."""


class TextTooLong(LimitExceeded):
    """A text is longer than its limit. Split it into several memories."""


class UnknownField(InvalidInput):
    """A field or operator has a name that we do not know, and is never ignored; a keyword is Python's ``TypeError``."""


class InvalidFilter(InvalidInput):
    """A filter does not have the form that ``docs/concepts/filters.md`` describes."""


class InvalidVector(InvalidInput):
    """A vector is zero, has a component that is not finite, or has the wrong length."""


class NothingSelected(InvalidInput):
    """A call that removes memories did not say which. Name ids or filters, or say ``everything=True``."""


class NotFound(MemkuraError, LookupError):
    """No such memory in this context (one that lives in another context counts as none)."""


class KeyTaken(MemkuraError):
    """An outside source would change a memory that is trusted. Nothing was written; let a person make the change."""


class StoreError(MemkuraError):
    """The store could not do what was asked."""


class StoreClosed(StoreError):
    """The engine was closed. Open the store again."""


class StoreBusy(StoreError):
    """Another process held the write lock for longer than ``busy_timeout``. Nothing was written; try again."""


class StoreFailed(StoreError):
    """A write could not be made durable, so this handle refuses further writes. Close it and open the store again."""


class StorageFull(StoreError):
    """The disk is full. Nothing was written; free some room and try again on the same handle."""


class NotAStore(StoreError):
    """The path holds something that is not a memkura store."""


class StoreReadOnly(StoreError):
    """Nothing can be written where the store lies: then reading works. Or this user may not: then it is not opened."""


class StoreDamaged(StoreError):
    """The record holds what memkura never writes: a bad disk, or a hand that edited it. Restore a backup."""


class StoreTampered(StoreError):
    """The store's database was changed by something else: a trigger, view, index or table is not as we make it."""


class SchemaTooNew(StoreError):
    """A newer memkura wrote this store. Upgrade memkura; nothing was touched."""


class EmbedderError(MemkuraError):
    """The embedder cannot be used."""


class EmbedderUnavailable(EmbedderError):
    """The embedder that was asked for by name is not installed, or its name is unknown."""


class EmbedderFailed(EmbedderError):
    """The embedder raised, or returned something that is not one vector a text. Writes are kept all the same."""


class InternalError(MemkuraError):
    """A fault of ours. The store is as it was before the call; please report it."""


class TextRepaired(UserWarning):
    """A text held something that cannot be stored (a NUL, half a surrogate pair) and was mended; says what."""
