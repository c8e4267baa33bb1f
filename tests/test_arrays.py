"""Vectors as arrays of any layout: the numbers count, and what is no list of numbers is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import memkura
from asking import ids
from memkura import errors

if TYPE_CHECKING:
    from pathlib import Path

np = pytest.importorskip("numpy")
pytestmark = pytest.mark.filterwarnings("ignore:Casting complex values")


ASKED = np.array([1.0, 2.0, 3.0, 4.0])


@pytest.mark.parametrize(
    "array",
    [
        pytest.param(ASKED[None], id="one row"),
        pytest.param(ASKED.astype("f2"), id="half"),
        pytest.param(ASKED.astype("i8"), id="integers"),
        pytest.param(ASKED.astype("u1"), id="bytes of integers"),
        pytest.param(ASKED.astype("longdouble"), id="long double"),
        pytest.param(ASKED.astype(object), id="objects"),
        pytest.param(np.repeat(ASKED, 2)[::2], id="stride"),
        pytest.param(ASKED[::-1].copy()[::-1], id="backwards"),
        pytest.param(np.ma.array(ASKED), id="nothing masked"),
        pytest.param(memoryview(ASKED), id="view"),
        pytest.param(list(ASKED), id="list of scalars"),
        pytest.param(ASKED.astype(">f4"), id="big-endian single"),
        pytest.param(ASKED.astype(">f8"), id="big-endian double"),
    ],
)
def test_array_means_its_numbers(tmp_path: Path, array: Any) -> None:
    """However its memory is laid out, an array is the vector of its numbers, in writing, changing and asking."""
    with memkura.open(tmp_path / "s", embedder=None) as engine:
        plain = engine.remember("c", "plain", embedding=[1.0, 2.0, 3.0, 4.0])
        engine.remember("c", "written", embedding=array)
        engine.update_memory("c", engine.remember("c", "tea"), summary="changed", embedding=array)
        for asked in (array, [1.0, 2.0, 3.0, 4.0]):
            hits = engine.recall("c", embedding=asked, explain=True)
            cosines = [hit.explanation["vector"]["cosine"] for hit in hits]
            assert len(hits) == 3
            assert plain in ids(hits)
            assert cosines == pytest.approx([1.0] * 3, abs=1e-6)


@pytest.mark.parametrize(
    ("array", "shown"),
    [
        pytest.param(ASKED[None, None], "(1, 1, 4)", id="three dimensions"),
        pytest.param(np.array(1.0), "ndarray", id="none"),
        pytest.param(np.array(["1", "2", "3", "4"]), "str", id="texts"),
        pytest.param([1j, 2.0, 3.0, 4.0], "complex", id="complex number"),
        pytest.param(ASKED.astype(complex), "complex", id="complex"),
        pytest.param(ASKED > 2, "bool", id="booleans"),
        pytest.param([True, False, True, True], "bool", id="list of booleans"),
        pytest.param(np.ma.array(ASKED, mask=[False, True, False, False]), "masked", id="masked"),
        pytest.param({1.0, 2.0, 3.0, 4.0}, "set", id="set"),
        pytest.param(dict.fromkeys([1.0, 2.0, 3.0, 4.0]), "dict", id="dictionary"),
        pytest.param(bytearray(b"abcd"), "bytearray", id="bytes"),
    ],
)
def test_what_is_no_vector_is_refused_in_every_verb(tmp_path: Path, array: Any, shown: str) -> None:
    """Nothing is read into it: the message names the shape or the type."""
    with memkura.open(tmp_path / "s", embedder=None) as engine:
        row = engine.remember("c", "tea", embedding=[1.0, 2.0, 3.0, 4.0])
        for call in (
            lambda: engine.remember("c", "coffee", embedding=array),
            lambda: engine.update_memory("c", row, summary="coffee", embedding=array),
            lambda: engine.recall("c", embedding=array),
        ):
            with pytest.raises(errors.InvalidVector) as refused:
                call()
            assert shown in str(refused.value)
        assert (engine.count("c"), len(engine.history("c", row))) == (1, 1)


@pytest.mark.parametrize("shape", [(2, 4), (4, 1), (0, 4), (0,), (1, 0)], ids=str)
def test_question_has_one_vector(tmp_path: Path, shape: tuple[int, ...]) -> None:
    """Several, none, and a column are refused."""
    with memkura.open(tmp_path / "s", embedder=None) as engine:
        engine.remember("c", "tea", embedding=[1.0, 2.0, 3.0, 4.0])
        with pytest.raises(errors.InvalidVector):
            engine.recall("c", embedding=np.ones(shape))
