"""The store's embedder, called with care.

It is somebody else's code: it may raise, answer with nonsense or take long. So it is called outside every lock, what
it returns is checked vector by vector, and no failure of it ever loses a write or a recall: a memory is kept without
its vector and with the reason, a question is answered by text.
"""

from __future__ import annotations

import errno
import itertools
import traceback
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

from memkura import _core, arguments
from memkura.errors import EmbedderFailed, LimitExceeded
from memkura.records import EmbedderInfo
from memkura.visible import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from memkura.embedders import Embedder, Kind, Vector

QUERY_FAILED = "vector:embedder_failed"
QUERY_INVALID = "vector:query_invalid"

_BATCH = 64
_DIMENSIONS_MAX = _core.limits()["dimensions"]
# After so many texts in a row that fail one by one, the embedder is taken to be down: the rest waits for `maintain()`.
_FAILURES_MAX = 3
_REASON_CHARS = 300
# Of an exception, and of those that it came from.
_CAUSES_MAX = 3
# Numbers by which libraries say what went wrong; a larger one may be part of a text.
_CODES = ("status_code", "status", "code")
_CODE_MAX = 999


class Embedded(NamedTuple):
    """The vector (or vectors, of a long text) of one memory, or why there is none; and the embedder that was asked."""

    embedding: object = None
    error: str | None = None
    made_by: str | None = None


def without_vectors(items: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The items as the core reads them, which is given their vectors beside them."""
    return [{name: value for name, value in item.items() if name != "embedding"} for item in items]


class Vectors:
    """What one embedder makes of texts.

    Attributes:
        embedder: the embedder itself; ``None`` for recall by text alone.
        dim: components of a vector; 0 without an embedder.
        last_error: why its last call was of no use, without the embedder's own words; ``None`` after one that was.
    """

    def __init__(self, embedder: Embedder | None, *, off_note: str = "", dim: int | None = None) -> None:
        self.embedder = embedder
        self.last_error: str | None = None
        self._off_note = off_note
        self.dim = 0
        if embedder is not None:
            self._id = arguments.text(embedder.id, "embedder.id")
            self._size = arguments.count(getattr(embedder, "max_batch", _BATCH), "embedder.max_batch", least=1)
            self.dim = dim if dim is not None else _dimension(embedder)

    @property
    def id(self) -> str | None:
        """The embedder's id; ``None`` without one."""
        return None if self.embedder is None else self.embedder.id

    @property
    def fingerprint(self) -> tuple[str, int] | None:
        """What the store records of the embedder."""
        return None if self.embedder is None else (self._id, self.dim)

    def of_memories(self, texts: Sequence[tuple[str, str | None]]) -> list[Embedded]:
        """The embedding of each (summary, content)."""
        kept = [(_storable(summary), content and _storable(content)) for summary, content in texts]
        return self.of_documents([_core.embedding_text(summary, content) for summary, content in kept])

    def of_documents(self, texts: Sequence[str]) -> list[Embedded]:
        """The embedding of each text; a long one is split, and has one vector a part."""
        if self.embedder is None or not texts:
            return [Embedded() for _ in texts]
        parts = [_core.split_for_embedding(text) for text in texts]
        answers = iter(self._each([part for several in parts for part in several]))
        return [_joined([next(answers) for _ in several]) for several in parts]

    def of_query(self, query: str) -> tuple[Vector | None, str | None]:
        """The question's vector, or the word that says why the vector leg is out."""
        try:
            (vector,) = self._call([_storable(query)], "query")
        except Exception as error:  # noqa: BLE001 - somebody else's code
            self.last_error = _reason(error)
            return None, QUERY_FAILED
        problem = _core.vector_problem(vector, self.dim)
        self.last_error = problem
        return (None, QUERY_INVALID) if problem else (vector, None)

    def info(self, recorded: tuple[str, int] | None) -> EmbedderInfo:
        """The embedder and its state beside what the store has on `recorded`."""
        if self.embedder is None:
            return EmbedderInfo(None, None, "off", self._off_note)
        shown = one_line(self._id, 80)
        if recorded is not None and recorded != self.fingerprint:
            held = one_line(recorded[0], 80)
            note = f"semantic search: off (the store holds vectors of {held}); run reindex() for {shown}"
            return EmbedderInfo(self._id, self.dim, "changed", note, self.last_error)
        if self.last_error is not None:
            why = one_line(self.last_error, 120)
            note = f"semantic search: failing ({shown}: {why}); maintain() fills in what is missing"
            return EmbedderInfo(self._id, self.dim, "failing", note, self.last_error)
        note = f"semantic search: on ({shown}, {self.dim} dimensions)"
        return EmbedderInfo(self._id, self.dim, "ready", note)

    def _each(self, texts: Sequence[str]) -> Iterable[Embedded]:
        for start in range(0, len(texts), self._size):
            yield from self._batch(texts[start : start + self._size])

    def _batch(self, texts: Sequence[str]) -> list[Embedded]:
        try:
            vectors = self._call(texts, "document")
        except Exception as error:  # noqa: BLE001 - somebody else's code
            self.last_error = _reason(error)
        else:
            return [self._checked(vector) for vector in vectors]
        return self._one_by_one(texts) if len(texts) > 1 else [Embedded(error=self.last_error)]

    def _one_by_one(self, texts: Sequence[str]) -> list[Embedded]:
        """One bad text must not cost its neighbours their vectors."""
        answers: list[Embedded] = []
        in_a_row = 0
        for text in texts:
            if in_a_row == _FAILURES_MAX:
                answers.append(Embedded(error=self.last_error))
                continue
            try:
                (vector,) = self._call([text], "document")
            except Exception as error:  # noqa: BLE001 - somebody else's code
                in_a_row += 1
                self.last_error = _reason(error)
                answers.append(Embedded(error=self.last_error))
            else:
                # It answers. That a vector is of no use says nothing of the next one.
                in_a_row = 0
                answers.append(self._checked(vector))
        return answers

    def _checked(self, vector: Vector) -> Embedded:
        problem = _core.vector_problem(vector, self.dim)
        self.last_error = problem
        return Embedded(error=problem) if problem else Embedded(vector, made_by=self.id)

    def _call(self, texts: Sequence[str], kind: Kind) -> list[Vector]:
        if self.embedder is None:
            raise EmbedderFailed("there is no embedder")
        # One more than asked for is enough to see that it answers with too many: it may go on for ever.
        # It gets a list of its own, which it may use up.
        vectors = list(itertools.islice(self.embedder.embed(list(texts), kind=kind), len(texts) + 1))
        if len(vectors) != len(texts):
            said = f"more than {len(texts)}" if len(vectors) > len(texts) else str(len(vectors))
            raise _WrongCount(f"the embedder answered {len(texts)} texts with {said} vectors")
        return vectors


def _dimension(embedder: Embedder) -> int:
    """What `embedder` says of itself, for which it may have to call its model.

    Raises:
        EmbedderFailed: it raised.
        InvalidInput: it is not the number of components that a vector can have.
    """
    try:
        said = embedder.dim
    except Exception as error:
        raise EmbedderFailed(
            f"could not say its dimension: {error}",
            field="embedder",
            value=arguments.shown(embedder.id),
            advice="Give its dimension (dim=…), or open with embedder=None (--embedder none) and run maintain later",
        ) from error
    dim = arguments.count(said, "embedder.dim", least=1)
    if dim > _DIMENSIONS_MAX:
        raise LimitExceeded(
            f"is more than the limit, {_DIMENSIONS_MAX}",
            field="embedder.dim",
            value=str(dim),
            advice="Use a model with shorter vectors",
        )
    return dim


def _storable(text: str) -> str:
    """`text` as the store mends it: a vector describes exactly the text beside it (I11)."""
    if "\0" in text:
        text = text.replace("\0", "")
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _joined(parts: Sequence[Embedded]) -> Embedded:
    errors = [part.error for part in parts if part.error is not None]
    if errors:
        return Embedded(error=errors[0])
    if len(parts) == 1:
        return parts[0]
    return parts[0]._replace(embedding=[part.embedding for part in parts])


class _WrongCount(EmbedderFailed):
    """Not as many vectors as texts; the words are ours."""


def _reason(error: Exception) -> str:
    """What failed and where, without a word of the exception's own.

    Servers and libraries quote what they were given. A reason is kept in the record and shown beside memories of every
    context, and what it quoted would outlive the purge of the memory.
    """
    if isinstance(error, _WrongCount):
        return str(error)
    *_, (frame, line) = traceback.walk_tb(error.__traceback__)
    where = f"{PurePath(frame.f_code.co_filename).name}:{line}"
    return one_line(f"{' from '.join(_kinds(error))} ({where})", _REASON_CHARS)


def _kinds(error: BaseException | None) -> Iterable[str]:
    """The kind of an exception and of those that it came from, each with its number if it has one."""
    for _ in range(_CAUSES_MAX):
        if error is None:
            return
        codes = [code for name in _CODES if type(code := vars(error).get(name)) is int and 0 <= code <= _CODE_MAX]
        number = errno.errorcode.get(error.errno or 0) if isinstance(error, OSError) else None
        yield " ".join([type(error).__name__, *([number] if number else map(str, codes[:1]))])
        error = error.__cause__ or error.__context__
