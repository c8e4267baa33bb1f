"""One context of a store: every verb of the engine without ``context_id``."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, TypeVar

from memkura import arguments
from memkura.engine import Engine
from memkura.errors import InvalidInput

if TYPE_CHECKING:
    import builtins
    import os
    from collections.abc import Callable, Iterable

    from memkura.engine import Filters, Progress
    from memkura.records import ExportReport, ImportReport, Remembered

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")


def _here(
    verb: Callable[Concatenate[Engine, str, Arguments], Answer],
) -> Callable[Concatenate[Context, Arguments], Answer]:
    """The engine's `verb` with its ``context_id`` filled in."""

    @functools.wraps(verb)
    def in_context(self: Context, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Answer:
        return verb(self.engine, self.context_id, *args, **kwargs)

    signature = inspect.signature(verb)
    kept = [parameter for name, parameter in signature.parameters.items() if name != "context_id"]
    in_context.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
    return in_context


class Context:
    """A handle on one context. Made by :meth:`memkura.Engine.context`; costs nothing, and is never closed.

    Attributes:
        engine: the engine that it belongs to.
        context_id: the context's name.
    """

    def __init__(self, engine: Engine, context_id: str) -> None:
        self.engine = engine
        self.context_id = arguments.text(context_id, "context_id")

    remember = _here(Engine.remember)
    update_memory = _here(Engine.update_memory)
    forget = _here(Engine.forget)
    get = _here(Engine.get)
    list = _here(Engine.list)
    count = _here(Engine.count)
    history = _here(Engine.history)
    recall = _here(Engine.recall)
    explain = _here(Engine.explain)
    stats = _here(Engine.stats)

    def export(
        self,
        path: str | os.PathLike[str] | IO[bytes],
        *,
        filters: Filters | None = None,
        history: bool = False,
        format: Literal["jsonl", "msgpack"] | None = None,
    ) -> ExportReport:
        """As :meth:`memkura.Engine.export`, of this context alone."""
        return self.engine.export(path, context_id=self.context_id, filters=filters, history=history, format=format)

    def import_file(
        self,
        path: str | os.PathLike[str],
        *,
        as_own: bool = False,
        again: bool = False,
        format: Literal["jsonl", "msgpack"] | None = None,
        progress: Progress | None = None,
    ) -> ImportReport:
        """As :meth:`memkura.Engine.import_file`, into this context. A row that names another one is refused."""
        return self.engine._import(  # noqa: SLF001 - one verb, one package
            path,
            is_alone=True,
            context_id=self.context_id,
            as_own=as_own,
            again=again,
            format=format,
            progress=progress,
        )

    def remember_many(
        self, items: Iterable[Mapping[str, Any]], *, progress: Progress | None = None, batch_size: int = 512
    ) -> builtins.list[Remembered]:
        """As :meth:`memkura.Engine.remember_many`, into this context. An item that names another one is refused."""
        mine = (self._mine(item) for item in arguments.items(items, "items"))
        return self.engine.remember_many(
            list(mine) if isinstance(items, Sequence) else mine, progress=progress, batch_size=batch_size
        )

    def _mine(self, item: Any) -> Any:  # noqa: ANN401 - what is no mapping is the engine's to refuse, by its place
        if not isinstance(item, Mapping):
            return item
        named = item.get("context_id", self.context_id)
        if named != self.context_id:
            raise InvalidInput(
                "names another context than the handle's",
                field="context_id",
                value=arguments.shown(named),
                advice="Leave it out, or use engine.remember_many",
            )
        return {**item, "context_id": self.context_id}

    def __repr__(self) -> str:
        return f"<memkura.Context {self.context_id!r} of {self.engine!r}>"
