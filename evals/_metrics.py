"""What a ranking is worth: measures of one question, given what was ranked and what answers it.

nDCG is that of K. Järvelin and J. Kekäläinen, "Cumulated Gain-Based Evaluation of IR Techniques", ACM Transactions on
Information Systems 20(4), 2002, with gain 1 for what answers, and 0 for the rest.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import inf, log2

import numpy as np
from numpy.typing import NDArray

__all__ = ["interval", "ndcg", "recall", "recall_all", "reciprocal_rank", "stale_first", "tokens_to_all"]


def recall(ranked: Sequence[str], gold: Collection[str], k: int) -> float:
    """Return the share of the gold among the first k."""
    return len(set(gold).intersection(ranked[:k])) / len(set(gold))


def recall_all(ranked: Sequence[str], gold: Collection[str], k: int) -> float:
    """Return 1 where all gold is among the first k, else 0."""
    return float(set(gold) <= set(ranked[:k]))


def reciprocal_rank(ranked: Sequence[str], gold: Collection[str]) -> float:
    """Return 1 / the place of the first gold one; 0 where there is none."""
    return next((1 / place for place, each in enumerate(ranked, 1) if each in gold), 0.0)


def ndcg(ranked: Sequence[str], gold: Collection[str], k: int) -> float:
    """Return the discounted gain of the first k, as a share of the greatest that there can be."""
    gain = sum(1 / log2(place + 1) for place, each in enumerate(ranked[:k], 1) if each in gold)
    best = sum(1 / log2(place + 1) for place in range(1, min(len(set(gold)), k) + 1))
    return gain / best


def tokens_to_all(ranked: Sequence[str], gold: Collection[str], tokens: Mapping[str, int]) -> float:
    """Return how many tokens have been read when the last gold one has; infinite where one is missing."""
    missing, read = set(gold), 0
    for each in ranked:
        read += tokens[each]
        missing.discard(each)
        if not missing:
            return read
    return inf


def stale_first(ranked: Sequence[str], gold: Collection[str], stale: Collection[str]) -> float:
    """Return 1 where something stale comes before all gold, else 0."""
    return float(next((each in stale for each in ranked if each in stale or each in gold), False))


def interval(values: NDArray[np.float64], draws: int = 2000, seed: int = 7) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of the mean (percentile method, questions drawn with replacement)."""
    rng = np.random.default_rng(seed)
    means = values[rng.integers(0, len(values), (draws, len(values)))].mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(high)
