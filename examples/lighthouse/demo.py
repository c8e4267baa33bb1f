"""Answers questions about Lighthouse Freight, and says why each memory is there.

python examples/lighthouse/demo.py STORE

The store holds memories.jsonl, as `memkura import` takes it in.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import memkura

if TYPE_CHECKING:
    from memkura import Hit

QUESTIONS: list[tuple[str, dict[str, Any] | None]] = [
    ("How do I roll back harbor-api and what must be cleared afterwards?", None),
    ("5月に lantern へログインできなくなった原因は?", None),
    ("What does BUOY-4107 mean and what should I do?", None),
    ("円の端数処理と消費税の計算はどうする?", None),
    ("deploy.prod.harbor-api", None),
    ("予約の確定処理で学んだことは?", {"type": "lesson"}),
    ("When does an unanswered page move on to the next person?", {"session": "review-norrholm-2026-04-21"}),
]
SHOWN = 2


def words(hit: Hit) -> str:
    """The words of the question that count most for the hit."""
    shares = sorted(hit.explanation["text"]["terms"], key=lambda share: -share["score"])
    # A word counts as written and by its stem, which may look alike.
    return ", ".join([*dict.fromkeys(share["term"] for share in shares)][:5])


def reasons(hit: Hit) -> str:
    """Why the hit is there, in one line."""
    why = hit.explanation
    parts = []
    if "key" in hit.evidence:
        parts.append(f"its key is {hit.key}")
    if "text" in hit.evidence:
        parts.append(f"words: {words(hit)}")
    if "vector" in hit.evidence:
        parts.append(f"meaning: cosine {why['vector']['cosine']:.2f}")
    parts.append(f"importance {why['importance_factor']:.2f}, freshness {why['freshness_factor']:.2f}")
    return "; ".join(parts)


def main() -> None:
    """Asks every question and prints the best hits."""
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr] # a terminal or a pipe, never replaced here
    with memkura.open(sys.argv[1], os.environ.get("MEMKURA_EMBEDDER", "auto"), create=False) as engine:
        print(engine.embedder.note)
        for question, filters in QUESTIONS:
            print(f"\n{question}" + (f"   only {filters}" if filters else ""))
            hits = engine.recall("lighthouse", question, k=SHOWN, filters=filters, explain=True)
            for place, hit in enumerate(hits, 1):
                print(f"  {place}. {hit.score:.3f}  {hit.summary}")
                print(f"     {hit.metadata['import_id']}  {hit.type}, {hit.trust_tier}; {reasons(hit)}")


if __name__ == "__main__":
    main()
