"""Which nodes of a small weighted graph matter most."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["pagerank"]

_DAMPING = 0.85
_TOLERANCE = 1e-6
_MOST_STEPS = 100


def pagerank(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the PageRank of each node, by power iteration; it sums to 1 (Page et al., 1998; damping .85).

    Args:
        weights: Symmetric, not negative, shape (n, n). A node without edges passes its rank on to all.
    """
    size = len(weights)
    degrees = weights.sum(axis=1, keepdims=True)
    steps = np.divide(weights, degrees, out=np.full_like(weights, 1 / max(size, 1)), where=degrees > 0)
    rank = np.full(size, 1 / max(size, 1))
    for _ in range(_MOST_STEPS):
        following = (1 - _DAMPING) / max(size, 1) + _DAMPING * rank @ steps
        if np.abs(following - rank).sum() < _TOLERANCE:
            break
        rank = following
    return rank
