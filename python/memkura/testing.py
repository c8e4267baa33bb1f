"""A clock that stands still and an embedder without a model, for tests of code that uses memkura.

Example:
    >>> import memkura
    >>> from memkura.testing import FrozenClock, ToyEmbedder
    >>> clock = FrozenClock()
    >>> with memkura.open(":memory:", embedder=ToyEmbedder(), clock=clock) as engine:
    ...     memory_id = engine.remember("ops", "Deploys go out on Tuesday")
    ...     engine.get("ops", memory_id).created_at == clock()
    True
"""

from __future__ import annotations

import array
import math
import time
import unicodedata
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import TYPE_CHECKING, Literal

from memkura.errors import EmbedderFailed
from memkura.forking import ForkedLock

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from memkura.embedders import Kind, Vector

Answer = Literal["zeros", "nan", "inf", "short", "raise"]


class FrozenClock:
    """A callable that gives one instant until it is told otherwise.

    Args:
        now: the instant, aware of its zone; 2030-01-01T00:00:00Z by default.
    """

    def __init__(self, now: datetime = datetime(2030, 1, 1, tzinfo=UTC)) -> None:
        self.set(now)

    def __call__(self) -> datetime:
        """The instant."""
        return self._now

    def set(self, now: datetime) -> None:
        """Moves to `now`, forwards or backwards."""
        if now.tzinfo is None:
            raise ValueError("the clock needs a time with a zone")
        self._now = now.astimezone(UTC)

    def advance(self, by: timedelta | float) -> None:
        """Moves on by a timedelta, or by so many seconds."""
        self._now += by if isinstance(by, timedelta) else timedelta(seconds=by)

    def __repr__(self) -> str:
        return f"FrozenClock({self._now.isoformat()})"


class ToyEmbedder:
    """Unit vectors from hashed words and CJK character pairs: texts that share words are near each other.

    The same text has the same vector in every process. It knows nothing of meaning.

    Args:
        dim: components of a vector.
        name: part of ``id``; another name is another embedder.
        delay: seconds that every call takes.

    Attributes:
        calls: how often ``embed`` was called.
        texts: every text that was embedded, as (kind, text).
        failing: while true, every call raises.
        answers: what to do for a text instead: ``"zeros"``, ``"nan"``, ``"inf"``, ``"short"`` (one component less) or
            ``"raise"``. The text counts wherever it occurs within the text to embed.

    Example:
        >>> toy = ToyEmbedder()
        >>> tea, green_tea, invoice = toy.embed(["tea", "green tea", "an invoice"], kind="document")
        >>> dot = lambda one, other: sum(a * b for a, b in zip(one, other))
        >>> dot(tea, green_tea) > dot(tea, invoice)
        True
    """

    def __init__(self, dim: int = 64, *, name: str = "toy", delay: float = 0.0) -> None:
        self.id = f"{name}-{dim}"
        self.dim = dim
        self.delay = delay
        self.calls = 0
        self.texts: list[tuple[Kind, str]] = []
        self.failing = False
        self.answers: dict[str, Answer] = {}
        self._counting = ForkedLock()

    def embed(self, texts: Sequence[str], *, kind: Kind) -> Iterable[Vector]:
        """One vector a text."""
        with self._counting.held():
            self.calls += 1
            self.texts += [(kind, text) for text in texts]
        if self.delay:
            time.sleep(self.delay)
        if self.failing:
            raise EmbedderFailed("the toy embedder was told to fail")
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> array.array[float]:
        for part, answer in self.answers.items():
            if part in text:
                return self._odd(answer)
        sums = [0.0] * self.dim
        for feature in _features(text):
            digest = int.from_bytes(blake2b(feature.encode("utf-8", "replace"), digest_size=8).digest(), "big")
            sums[digest % self.dim] += 1.0 if digest >> 63 else -1.0
        length = math.sqrt(sum(value * value for value in sums))
        if length == 0.0:  # nothing to hash, or features that cancel: any fixed direction
            sums[0] = length = 1.0
        return array.array("f", (value / length for value in sums))

    def _odd(self, answer: Answer) -> array.array[float]:
        if answer == "raise":
            raise EmbedderFailed("the toy embedder was told to fail for this text")
        fill = {"zeros": 0.0, "nan": math.nan, "inf": math.inf, "short": 1.0}[answer]
        return array.array("f", [fill] * (self.dim - (answer == "short")))

    def __repr__(self) -> str:
        return f"<ToyEmbedder {self.id!r}>"


def _features(text: str) -> Iterator[str]:
    """Words; and in scripts without spaces, neighbouring characters."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    spaced = "".join(character if character.isalnum() else " " for character in folded)
    for word in spaced.split():
        if word.isascii():
            yield word
        else:
            yield from (word[at : at + 2] for at in range(max(1, len(word) - 1)))
