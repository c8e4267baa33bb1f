"""One round of an agent's work: recall what is known, act, and keep what was learned.

python examples/agent_loop.py

The toy embedder knows nothing of meaning; leave `embedder=` out to use the local model if it is installed.
"""

from __future__ import annotations

import memkura
from memkura.testing import ToyEmbedder

with memkura.open(":memory:", embedder=ToyEmbedder()) as engine:
    ops = engine.context("ops")
    ops.remember("Deploys go out on Tuesday at 14:00", type="rule", tags=["deploy"], importance=0.9)
    ops.remember("Rollbacks take four minutes", type="fact", tags=["deploy"])
    port = ops.remember("The staging database listens on port 5432", type="fact", key="staging.db.port")
    ops.remember("本番反映は火曜の14時", type="rule", tags=["デプロイ"])

    question = "when may we deploy, and how long does a rollback take"
    for hit in ops.recall(question, k=3, filters={"tags": "deploy"}):
        print(f"{hit.score:.3f}  {hit.summary}  ({hit.type}, found by {' and '.join(hit.evidence)})")
    print(ops.recall("火曜の本番反映", k=1)[0].summary)

    # The agent finds that the port has changed. The memory keeps its id, and history keeps what it said before.
    changed = ops.update_memory(port, summary="The staging database listens on port 5433")
    print(ops.get(key="staging.db.port"), changed.version)
    for revision in ops.history(port):
        print(f"version {revision['version']} by {revision['action']}: {revision['summary']}")
