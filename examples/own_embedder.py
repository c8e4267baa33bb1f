"""Any callable from a list of texts to a list of vectors is an embedder.

python examples/own_embedder.py
"""

from __future__ import annotations

import memkura
from memkura.embedders.function import Function

TOPICS = (
    {"deploy", "release", "ship", "rollout"},
    {"invoice", "payment", "bill", "charge"},
    {"outage", "incident", "down", "alarm"},
)


def by_topic(texts: list[str]) -> list[list[float]]:
    """How many words of each topic a text holds, and a constant, so that no vector is zero."""
    return [[0.1, *(float(len(topic & set(text.lower().split()))) for topic in TOPICS)] for text in texts]


# The name goes into the store. Change it when the vectors change, and `reindex()` will be asked for.
embedder = Function(by_topic, name="topics-v1")

with memkura.open(":memory:", embedder=embedder) as engine:
    engine.remember("ops", "We ship on Tuesday")
    engine.remember("ops", "Each invoice is due in thirty days")
    engine.remember("ops", "An alarm at night goes to the person on call")
    print(engine.embedder.note)
    for question in ("next rollout", "late payment", "incident"):
        best = engine.recall("ops", question, k=1)[0]
        print(f"{question}: {best.summary} ({', '.join(best.evidence)})")
