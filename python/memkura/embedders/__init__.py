"""Turning text into vectors: one file for each way, and :func:`resolve`, which finds the one that was asked for.

An embedder is anything with ``id``, ``dim`` and ``embed(texts, *, kind)``; nothing is inherited. No adapter downloads
anything or opens a connection unless it was asked for by name.
"""

from memkura.embedders.naming import resolve
from memkura.embedders.protocol import Embedder, Kind, Vector

__all__ = ["Embedder", "Kind", "Vector", "resolve"]
