"""Public names: loaded lazily, documented, and the native stub true to the build."""

from __future__ import annotations

import doctest
import importlib
import inspect
import os
import pickle
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import memkura
from memkura import errors

ROOT = Path(__file__).parents[2]
MODULES = sorted(
    module.name for module in pkgutil.walk_packages(memkura.__path__, "memkura.") if not module.name.endswith("_core")
)


def test_every_public_name_loads_and_is_documented() -> None:
    """What `__all__` promises is there, and says what it is."""
    assert len(memkura.__all__) > 30
    assert memkura.__all__ == sorted(memkura.__all__)
    assert set(memkura.__all__) <= set(dir(memkura))
    for name in memkura.__all__:
        assert inspect.getdoc(getattr(memkura, name)), name
    with pytest.raises(AttributeError):
        memkura.nonsense  # type: ignore[attr-defined]  # noqa: B018 - reading is the test


def test_lazy_table_and_type_checkers_table_are_one() -> None:
    """The imports under TYPE_CHECKING, `_HOMES` and `__all__` name the same things."""
    source = inspect.getsource(memkura)
    checked = source.partition("if TYPE_CHECKING:")[2].partition("_HOMES")[0]
    names = set(re.findall(r"\b[A-Za-z_]+\b(?=[,\n ])", re.sub(r"from \S+ import|#.*", "", checked))) - {""}
    assert set(memkura._HOME) == names - {"as"}  # noqa: SLF001 - the table itself
    assert set(memkura.__all__) == set(memkura._HOME) - {"open"}  # noqa: SLF001 - likewise


def test_star_import_leaves_pythons_names_alone() -> None:
    """``open`` above all: it is called as ``memkura.open``."""
    import builtins

    taken: dict[str, object] = {}
    exec("from memkura import *", taken)  # noqa: S102 - a star import is not allowed within a function
    assert set(memkura.__all__) <= set(taken)
    assert not set(taken) & set(vars(builtins))
    assert "open" in dir(memkura)


def test_every_error_is_exported() -> None:
    """One tree, all of it public; every one survives a pickle round trip with its fields."""
    kinds = [value for value in vars(errors).values() if inspect.isclass(value) and value.__module__ == errors.__name__]
    assert len(kinds) > 20
    for kind in kinds:
        assert kind.__name__ in memkura.__all__
        if issubclass(kind, errors.MemkuraError):
            again = pickle.loads(pickle.dumps(kind("odd", field="f", value="1", advice="Mend it")))  # noqa: S301
            assert type(again) is kind
            assert (again.message, again.field, again.value, again.advice) == ("odd", "f", "1", "Mend it")


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples_run(name: str) -> None:
    """Every example in a docstring does what it says."""
    module = importlib.import_module(name)
    assert module.__doc__
    results = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert results.failed == 0


def test_stub_is_true_to_the_build() -> None:
    """`_core.pyi` beside the compiled module."""
    command = [sys.executable, "-m", "mypy.stubtest", "memkura._core", "--ignore-disjoint-bases"]
    environment = {**os.environ, "MYPYPATH": str(ROOT / "python")}
    ran = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_package_says_that_it_is_typed() -> None:
    """PEP 561."""
    assert (Path(memkura.__file__).parent / "py.typed").exists()
