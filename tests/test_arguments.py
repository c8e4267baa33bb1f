"""Every argument of every verb with values that make no sense: they work or are refused by name, and no third."""

from __future__ import annotations

import asyncio
import inspect
import math
from typing import TYPE_CHECKING, Any

import pytest

import memkura
from memkura import _core, errors
from memkura.context import Context
from memkura.embedders.given import Given
from memkura.testing import ToyEmbedder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.filterwarnings("ignore::memkura.TextRepaired")

ODD: list[Any] = [
    None,
    True,
    1.5,
    1.0,
    -1,
    "no",
    "",
    b"no",
    [1],
    {"x": 1},
    {1},
    object(),
    math.nan,
    math.inf,
    2**70,
    "\ud800",
    "a\0b",
]

# Each verb with what it needs to work; the name of a memory is filled in.
VERBS: dict[str, dict[str, Any]] = {
    "remember": {"context_id": "c", "summary": "coffee"},
    "remember_many": {"items": [{"context_id": "c", "summary": "coffee"}]},
    "update_memory": {"context_id": "c", "memory_id": ...},
    "forget": {"context_id": "c", "memory_id": ...},
    "get": {"context_id": "c", "memory_id": ...},
    "list": {"context_id": "c"},
    "count": {"context_id": "c"},
    "history": {"context_id": "c", "memory_id": ...},
    "recall": {"context_id": "c", "query": "tea"},
    "explain": {"context_id": "c", "query": "tea", "memory_id": ...},
    "create_context": {"context_id": "d"},
    "backup": {"destination": "backup"},
    "export": {"path": "out.jsonl"},
    "import_file": {"path": "rows.jsonl", "context_id": "c"},
    "context": {"context_id": "c"},
    "reindex": {},
    "stats": {},
}
ARGUMENTS = [
    (verb, name, parameter.default)
    for verb in VERBS
    for name, parameter in inspect.signature(getattr(memkura.Engine, verb)).parameters.items()
    if name != "self"
]


def _refusal(call: Callable[[], object]) -> errors.MemkuraError | None:
    try:
        call()
    except errors.MemkuraError as refused:
        return refused
    return None


def _is_sensible(value: object, default: object) -> bool:
    """Whether a switch or a number may take `value`; other arguments are their verbs' own tests."""
    if isinstance(default, bool):
        return value is True
    if isinstance(default, int):
        return value is None or value == 2**70  # by default; and a batch may be as large as it likes
    return True


def test_walk_meets_every_verb() -> None:
    """A verb with arguments that is added to the engine is added to the walk, or this fails and names it."""
    with_arguments = {
        name
        for name, verb in vars(memkura.Engine).items()
        if not name.startswith("_") and callable(verb) and len(inspect.signature(verb).parameters) > 1
    }
    assert with_arguments == set(VERBS)
    assert len(ARGUMENTS) > 70


@pytest.mark.parametrize(("verb", "name", "default"), ARGUMENTS)
def test_odd_value_is_taken_or_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str, name: str, default: object
) -> None:
    """Nothing ends in an exception that is not ours; a switch takes a bool and a number a whole one, nothing else."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.jsonl").write_text('{"text": "tea"}\n')
    with memkura.open(":memory:", embedder=ToyEmbedder()) as engine:
        for value in ODD:
            memory_id = engine.remember("c", "tea")
            given = {known: memory_id if needed is ... else needed for known, needed in VERBS[verb].items()}
            if (verb, name) in {("forget", "filters"), ("forget", "everything"), ("get", "key")}:
                del given["memory_id"]
            refused = _refusal(lambda: getattr(engine, verb)(**{**given, name: value}))  # noqa: B023 - called at once
            if refused is None:
                assert _is_sensible(value, default), value
            elif isinstance(refused, errors.InvalidInput):
                assert refused.field, value
                assert refused.advice, value
        assert engine.recall("c", "tea") is not None


@pytest.mark.parametrize("name", ["k", "offset"])
@pytest.mark.parametrize("value", [value for value in ODD if value is not None], ids=repr)
def test_reranked_page_is_as_particular(engine: memkura.Engine, name: str, value: Any) -> None:
    """With a reranker, too, a page is whole numbers of at least 0."""
    with pytest.raises(errors.InvalidInput):
        engine.recall("c", "tea", reranker=lambda *_: [], **{name: value})


OPENING: dict[str, Any] = {"path": ":memory:", "embedder": None, "clock": None} | dict.fromkeys(
    ("durability", "busy_timeout", "create", "allow_network", "memory_budget")
)


@pytest.mark.parametrize("name", OPENING)
def test_odd_option_opens_or_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """The same for opening, in both ways; a refused one leaves nothing behind."""
    monkeypatch.chdir(tmp_path)
    for value in ODD:
        options = {"path": "store", "embedder": None, name: value}
        before = set(tmp_path.iterdir())
        refused = _refusal(lambda: memkura.open(**options).close())  # noqa: B023 - called at once
        if refused is None:
            assert name not in {"create", "allow_network"} or value is True, value
        else:
            assert refused.field or name == "path", value
            assert set(tmp_path.iterdir()) == before, value
            with pytest.raises(type(refused)):
                asyncio.run(memkura.open_async(**options))


@pytest.mark.parametrize("value", ODD, ids=repr)
@pytest.mark.parametrize("name", ["id", "dim", "max_batch"])
def test_odd_embedder_is_refused_before_there_is_a_store(store_path: Path, name: str, value: Any) -> None:
    """What an embedder says of itself is looked at once, when the store is opened."""
    toy = ToyEmbedder()
    setattr(toy, name, value)
    if (name == "id" and isinstance(value, str) and value.isprintable() | ("\0" in value)) or (
        name == "max_batch" and value == 2**70
    ):
        memkura.open(store_path, toy).close()
        return
    with pytest.raises(errors.InvalidInput) as refused:
        memkura.open(store_path, toy)
    assert refused.value.field == f"embedder.{name}"
    assert not store_path.exists()


@pytest.mark.parametrize("dim", [0, _core.limits()["dimensions"] + 1, "384"])
def test_dimension_has_its_bounds(store_path: Path, dim: Any) -> None:
    """From 1 to the limit, as a number."""
    with pytest.raises(errors.InvalidInput, match=r"embedder\.dim"):
        memkura.open(store_path, Given(dim))
    memkura.open(store_path, Given(_core.limits()["dimensions"])).close()


def test_wrong_shape_of_a_call_is_a_type_error(engine: memkura.Engine) -> None:
    """An unknown keyword is Python's to refuse, in every way to call."""
    calls: list[Callable[..., object]] = [memkura.open, engine.recall, engine.context("c").remember, engine.list]
    for call in calls:
        with pytest.raises(TypeError, match="colour"):
            call("c", colour="red")


def test_handle_never_means_every_context(engine: memkura.Engine) -> None:
    """A handle has a context's name, and refuses what is none, in its lists too."""
    with pytest.raises(errors.InvalidInput, match="context_id"):
        Context(engine, None)  # type: ignore[arg-type]
    handle = engine.context("c")
    for items in (7, [7], "ab", [{"summary": "tea", "context_id": "d"}]):
        with pytest.raises(errors.InvalidInput):
            handle.remember_many(items)  # type: ignore[arg-type]
    totals: list[int | None] = []
    handle.remember_many([{"summary": "tea"}], progress=lambda _, total: totals.append(total))
    assert totals == [1]


@pytest.mark.parametrize(("item", "field"), [({"summary": "tea"}, "context_id"), ({"context_id": "c"}, "summary")])
def test_what_an_item_lacks_is_said_to_be_missing(item: dict[str, str], field: str) -> None:
    """Not that it is blank, which nobody wrote."""
    with memkura.open(":memory:", embedder=None) as engine:
        with pytest.raises(errors.InvalidInput, match="is missing") as caught:
            engine.remember_many([{"context_id": "c", "summary": "tea"}, item])
        assert caught.value.field == f"[1].{field}"
        with pytest.raises(errors.InvalidInput, match="is blank"):
            engine.remember_many([{"context_id": "c", "summary": "tea", field: ""}])
        assert engine.contexts() == []
