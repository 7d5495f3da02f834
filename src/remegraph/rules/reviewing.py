"""Which hits of a recall are reviews of their memories, and which merely came along."""

from __future__ import annotations

from collections.abc import Sequence

from remegraph.models import ReviewKind

__all__ = ["review_kinds"]

_CLEAR = 0.8
"""Share of the best score from which a hit is what was asked for."""


def review_kinds(scores: Sequence[float]) -> list[ReviewKind]:
    """Return how the hits of one recall came back: as what was asked for, or beside it.

    Args:
        scores: Of all its hits.
    """
    best = max(scores, default=0.0)
    return ["hit" if score >= min(best, _CLEAR * best) else "seen" for score in scores]
