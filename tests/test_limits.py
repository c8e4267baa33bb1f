"""Every limit is stated, works at its value, and refuses one more by name; nothing is ever cut."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Any

import pytest

import memkura
from memkura import _core, errors

if TYPE_CHECKING:
    from collections.abc import Callable

    from memkura import Engine

LIMITS = _core.limits()


def _paths(size: int) -> dict[str, object]:
    """Metadata whose paths have so many bytes together: a long name above a list, and the rest."""
    name = "n" * 1024
    rest = {"r" * (size % len(name)): 0} if size % len(name) else {}
    return {name: [0] * (size // len(name) - 1), **rest}


def _nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def _nested_filter(levels: int) -> dict[str, Any]:
    inner: dict[str, Any] = {"type": "note"}
    for _ in range(levels - 1):
        inner = {"not": inner}
    return inner


def _draft(**fields: Any) -> Callable[[Engine], Any]:
    return lambda engine: engine.remember("c", **{"summary": "tea", **fields})


def _recall(**asked: Any) -> Callable[[Engine], Any]:
    return lambda engine: engine.recall("c", **{"query": "tea", **asked})


# For each limit, what is said with exactly so much of it.
AT: dict[str, tuple[str, Callable[[int], Callable[[Engine], Any]]]] = {
    "content_bytes": ("content", lambda size: _draft(content="x" * size)),
    "content_bytes of kana": ("content", lambda size: _draft(content="あ" * (size // 3) + "x" * (size % 3))),
    "summary_bytes": ("summary", lambda size: _draft(summary="x" * size)),
    "name_bytes of a key": ("key", lambda size: _draft(key="k" * size)),
    "name_bytes of a scope": ("scope", lambda size: _draft(key="k", scope="s" * size)),
    "name_bytes of a session": ("session", lambda size: _draft(session="s" * size)),
    "name_bytes of a context": ("context_id", lambda size: lambda engine: engine.remember("c" * size, "tea")),
    "name_bytes of an idempotency key": ("idempotency_key", lambda size: _draft(idempotency_key="k" * size)),
    "type_bytes": ("type", lambda size: _draft(type="t" * size)),
    "tag_bytes": ("tags", lambda size: _draft(tags=["t" * size])),
    "tags": ("tags", lambda size: _draft(tags=[f"t{number}" for number in range(size)])),
    "metadata_bytes": ("metadata", lambda size: _draft(metadata={"x": "y" * (size - len('{"x":""}'))})),
    "metadata_paths_bytes": ("metadata", lambda size: _draft(metadata=_paths(size))),
    "metadata_depth": ("metadata.x", lambda size: _draft(metadata={"x": _nested(size - 1)})),
    "proof_bytes": ("proof", lambda size: _draft(proof="p" * size)),
    "query_bytes": ("query", lambda size: _recall(query="q" * size, legs=["text"])),
    "k": ("k", lambda size: _recall(k=size)),
    "k of an offset": ("offset", lambda size: _recall(offset=size)),
    "k of a page": ("limit", lambda size: lambda engine: engine.list("c", limit=size)),
    "filter_depth": ("filters", lambda size: _recall(filters=_nested_filter(size))),
    "filter_conditions": ("filters", lambda size: _recall(filters={"or": [{"type": "x"}] * (size - 1)})),
    "filter_values": ("filters.tags", lambda size: _recall(filters={"tags": {"in": ["x"] * size}})),
    "filter_text_bytes": ("filters.tags", lambda size: _recall(filters={"tags": "x" * size})),
}


@pytest.mark.parametrize("name", list(AT))
def test_value_at_a_limit_works_and_one_over_is_refused(engine: Engine, name: str) -> None:
    """At the documented value it is taken; one more raises, names the field and the limit, and writes nothing."""
    limit = LIMITS[name.split(" ", maxsplit=1)[0]]
    field, said = AT[name]
    said(limit)(engine)
    before = engine.stats().memories
    with pytest.raises(errors.LimitExceeded) as caught:
        said(limit + 1)(engine)
    assert (caught.value.field or "").startswith(field)
    assert str(limit) in str(caught.value).replace(",", "")
    assert isinstance(caught.value, ValueError)
    assert engine.stats().memories == before


@pytest.mark.parametrize(
    ("limit", "said"), [("type_bytes", _draft(type="t" * 600)), ("tag_bytes", _draft(tags=["t" * 600]))]
)
def test_value_far_over_its_limit_is_told_its_own(engine: Engine, limit: str, said: Callable[[Engine], Any]) -> None:
    """Not that of all names, which is higher."""
    with pytest.raises(errors.LimitExceeded, match=f"the limit is {LIMITS[limit]}"):
        said(engine)


@pytest.mark.parametrize("phrase", ["\ufdfa", "\ufdfb", "\u337f"], ids=ascii)
def test_characters_that_stand_for_phrases_count_as_phrases(engine: Engine, phrase: str) -> None:
    """A text that normalisation makes many times longer is refused by its true length, as content and as a query."""
    whole = len(unicodedata.normalize("NFKC", phrase).encode())
    fits = LIMITS["normalised_bytes"] // whole
    saying: list[Callable[[str], Callable[[Engine], Any]]] = [
        lambda text: _draft(content=text),
        lambda text: _recall(query=text, legs=["text"]),
    ]
    for said in saying:
        said(phrase * min(fits, LIMITS["content_bytes"] // 3))(engine)
        if fits < LIMITS["content_bytes"] // 3:
            with pytest.raises(errors.TextTooLong, match="once normalised"):
                said(phrase * (fits + 1))(engine)
    assert engine.count("c") == 1


def test_largest_text_comes_back_whole(engine: Engine) -> None:
    """A text at its limit is not cut anywhere."""
    content = ("日本 " * LIMITS["content_bytes"])[: LIMITS["content_bytes"] // 3]
    row = engine.remember("c", "s" * LIMITS["summary_bytes"], content)
    memory = engine.get("c", row)
    assert memory is not None
    assert memory.content == content
    assert len(memory.summary) == LIMITS["summary_bytes"]


def test_too_many_sources_are_refused(engine: Engine) -> None:
    """A memory may name so many sources, and not one more."""
    rows = engine.remember_many([{"context_id": "c", "summary": f"row {at}"} for at in range(LIMITS["sources"] + 1)])
    kept = engine.remember("c", "derived", derived_from=rows[:-1])
    memory = engine.get("c", kept)
    assert memory is not None
    assert sorted(memory.derived_from) == sorted(rows[:-1])
    with pytest.raises(errors.LimitExceeded, match="derived_from"):
        engine.remember("c", "derived", derived_from=rows)


def test_batch_over_its_limit_is_refused_whole() -> None:
    """One atomic batch takes so many drafts; one more writes none of them."""
    with memkura.open(":memory:", embedder=None) as engine:
        items = [{"context_id": "c", "summary": "x"}] * (LIMITS["batch"] + 1)
        with pytest.raises(errors.LimitExceeded, match="items"):
            engine.remember_many(items, batch_size=len(items))
        assert engine.count("c") == 0


@pytest.mark.parametrize("dim", [LIMITS["dimensions"], LIMITS["dimensions"] + 1])
def test_width_of_vectors_is_bounded(dim: int) -> None:
    """The widest vector works; a wider one is refused by name."""
    with memkura.open(":memory:", embedder=None) as engine:
        if dim <= LIMITS["dimensions"]:
            row = engine.remember("c", "tea", embedding=[1.0] * dim)
            assert engine.recall("c", embedding=[1.0] * dim)[0].memory_id == row
            return
        with pytest.raises(errors.InvalidInput, match="embedding"):
            engine.remember("c", "tea", embedding=[1.0] * dim)
        assert engine.stats().memories == 0


def test_number_of_vectors_of_one_memory_is_bounded() -> None:
    """A memory may have so many vectors, and not one more."""
    with memkura.open(":memory:", embedder=None) as engine:
        engine.remember("c", "tea", embedding=[[1.0, 0.5]] * LIMITS["chunks"])
        with pytest.raises(errors.LimitExceeded, match="embedding"):
            engine.remember("c", "tea", embedding=[[1.0, 0.5]] * (LIMITS["chunks"] + 1))
        assert engine.count("c") == 1


@pytest.mark.parametrize("field", ["importance", "confidence", "decay_rate"])
@pytest.mark.parametrize("value", [-0.1, 1.1, 7, float("nan"), float("inf"), "0.5", True, None.__class__], ids=repr)
def test_share_outside_its_range_is_refused(engine: Engine, field: str, value: Any) -> None:
    """Importance, confidence and decay are numbers from 0 to 1; both ends work."""
    with pytest.raises(errors.InvalidInput) as caught:
        engine.remember("c", "tea", **{field: value})
    assert caught.value.field == field
    assert engine.count("c") == 0
    ends: list[Any] = [0, 1, 0.0, 1.0]
    for end in ends:
        engine.remember("c", "tea", **{field: end})
    assert engine.count("c") == 4


@pytest.mark.parametrize("summary", ["", " ", "\n\t", "\u3000"], ids=ascii)
def test_blank_summary_is_refused(engine: Engine, summary: str) -> None:
    """A memory that says nothing is refused."""
    with pytest.raises(errors.InvalidInput, match="summary"):
        engine.remember("c", summary)
    assert engine.count("c") == 0
