"""Whether a search for its own vector finds a record."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["NEAR", "finds"]

NEAR = 10
"""How many hits are enough to look at, as a rule."""

_TOLERANCE = 1e-3  # of a cosine that went through the index


def finds(name: str, hits: Sequence[tuple[str, float]], width: int) -> bool:
    """Return whether the hits hold a record, or only others that are as near: then it need not be among them.

    Args:
        name: The record.
        hits: What a search for its vector found, best first, with cosines.
        width: How many hits were asked for.
    """
    own = next((similarity for hit, similarity in hits if hit == name), None)
    nearest = own if own is not None else hits[-1][1] if hits and len(hits) == width else 0.0
    return nearest >= 1 - _TOLERANCE
