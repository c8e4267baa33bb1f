"""Two processes on one store: what one has remembered, the other's next recall finds.

python examples/two_processes.py
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import memkura
from memkura.testing import ToyEmbedder

OTHER = """
import sys
import memkura
from memkura.testing import ToyEmbedder

with memkura.open(sys.argv[1], embedder=ToyEmbedder()) as engine:
    print("the other process finds:", engine.recall("ops", "deploys")[0].summary)
    engine.remember("ops", "The other process checked the backups")
"""

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "agent.memkura")
    with memkura.open(path, embedder=ToyEmbedder()) as engine:
        engine.remember("ops", "Deploys go out on Tuesday")
        print("memories before:", engine.count("ops"))
        other = subprocess.run([sys.executable, "-c", OTHER, path], check=True, capture_output=True, text=True)  # noqa: S603 - ourselves
        print(other.stdout.strip())
        print("this process finds:", engine.recall("ops", "backups checked")[0].summary)
        print("memories after:", engine.count("ops"))
