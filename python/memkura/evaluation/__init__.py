"""How good recall is: run questions with known answers, and report with intervals.

Corpus and questions are JSONL files. A corpus row has an id (``id`` or ``pid``) and a ``text`` or ``summary``; a
question has ``question`` and ``rel``, the ids that answer it, or grades by id.
"""

from memkura.evaluation.cases import Case, Passage, read_corpus, read_queries
from memkura.evaluation.intervals import bootstrap
from memkura.evaluation.metrics import MEASURES, average_precision, hit, ndcg, precision, recall, reciprocal_rank
from memkura.evaluation.report import Report
from memkura.evaluation.run import evaluate, load
from memkura.evaluation.vectors import read_npy

__all__ = [
    "MEASURES",
    "Case",
    "Passage",
    "Report",
    "average_precision",
    "bootstrap",
    "evaluate",
    "hit",
    "load",
    "ndcg",
    "precision",
    "read_corpus",
    "read_npy",
    "read_queries",
    "recall",
    "reciprocal_rank",
]
