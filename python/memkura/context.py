"""One context of a store: every verb of the engine without ``context_id``."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from memkura import arguments
from memkura.engine import Engine
from memkura.errors import InvalidInput

if TYPE_CHECKING:
    import builtins
    from collections.abc import Callable, Iterable

    from memkura.engine import Progress
    from memkura.records import Remembered

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
