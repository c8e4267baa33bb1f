"""Vectors for memories that have none: after an outage of the embedder, or for another embedder.

Every vector is stored with the row and the version of the text it was made from, so that one which arrives late, for a
text that has changed meanwhile, is dropped (I11). Both passes can be stopped anywhere and go on where they were.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from memkura.records import ReindexReport

if TYPE_CHECKING:
    from collections.abc import Callable

    from memkura import _core
    from memkura.vectors import Vectors

    Progress = Callable[[int, int | None], object]

_PAGE = 256


def fill_in(
    core: _core.Engine, vectors: Vectors, progress: Progress | None = None, total: int | None = None
) -> tuple[int, Counter[str]]:
    """Embeds every memory that waits for a vector: how many could be, and the reasons of those that could not.

    Args:
        core: the open store.
        vectors: the embedder, the one that the store is bound to or is being bound to.
        progress: called after each page with how many were tried, and `total`.
        total: how many there are, if known.
    """
    reasons: Counter[str] = Counter()
    if vectors.fingerprint is None:
        return 0, reasons
    embedder_id, _ = vectors.fingerprint
    tried = stored = after = 0
    while page := core.pending_embeddings(embedder_id, limit=_PAGE, after=after):
        answers = vectors.of_documents([text for _, _, text in page])
        ready = [
            (row, version, answer.embedding)
            for (row, version, _), answer in zip(page, answers, strict=True)
            if answer.error is None
        ]
        if ready:
            stored += core.store_embeddings(embedder_id, ready)
        failed = [(page[at][:2], answer.error) for at, answer in enumerate(answers) if answer.error is not None]
        for reason in dict.fromkeys(reason for _, reason in failed):
            core.fail_embeddings(embedder_id, [item for item, why in failed if why == reason], reason)
        reasons.update(reason for _, reason in failed)
        after = page[-1][0]
        tried += len(page)
        if progress is not None:
            progress(tried, total)
    return stored, reasons


def reindex(core: _core.Engine, vectors: Vectors, progress: Progress | None = None) -> ReindexReport:
    """Embeds every memory with `vectors`' embedder, beside the old vectors, and changes over when all are there."""
    fingerprint = vectors.fingerprint
    if fingerprint is None:
        raise ValueError("an embedder is needed to reindex")
    begun = core.begin_reindex(*fingerprint)
    fill_in(core, vectors, progress, begun["total"] - begun["done"])
    # Another process may have begun with another embedder meanwhile: then this round came to nothing.
    finished = core.finish_reindex(fingerprint[0]) or {**begun, "state": "partial"}
    return ReindexReport(
        total=finished["total"],
        done=finished["done"],
        failed=finished["failed"],
        state=finished["state"],
        reasons=tuple(reason for reason, _ in finished["reasons"]),
    )
