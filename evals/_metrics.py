"""What a ranking is worth: measures of one question, given what was ranked and what answers it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["interval", "recall", "reciprocal_rank", "stale_first", "told_apart"]


def recall(ranked: Sequence[str], gold: Collection[str], k: int) -> float:
    """Return the share of the gold among the first k."""
    return len(set(gold).intersection(ranked[:k])) / len(set(gold))


def reciprocal_rank(ranked: Sequence[str], gold: Collection[str]) -> float:
    """Return 1 / the place of the first gold one; 0 where there is none."""
    return next((1 / place for place, each in enumerate(ranked, 1) if each in gold), 0.0)


def stale_first(ranked: Sequence[str], gold: Collection[str], stale: Collection[str]) -> float:
    """Return 1 where something stale comes before all gold, else 0."""
    return float(next((each in stale for each in ranked if each in stale or each in gold), False))


def told_apart(yes: Sequence[float] | NDArray[np.float64], no: Sequence[float] | NDArray[np.float64]) -> float:
    """Return how often one of the first has a greater score than one of the others; a tie is half (the area under ROC)."""
    ones, others = np.array(yes, np.float64), np.sort(np.array(no, np.float64))
    below, within = (np.searchsorted(others, ones, side) for side in ("left", "right"))
    return float((below + within).mean() / 2 / len(others))


def interval(values: NDArray[np.float64], draws: int = 2000, seed: int = 7) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of the mean (percentile method, questions drawn with replacement)."""
    rng = np.random.default_rng(seed)
    means = values[rng.integers(0, len(values), (draws, len(values)))].mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(high)
