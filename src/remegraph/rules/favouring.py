"""What counts beside relevance where memories are ranked: how new, how often asked for, how important, how useful.

The formula is the governance protocol's retrieval score (seed "G", section 4.1): .4 relevance + .25 recency +
.2 access frequency + .15 weight, where recency halves with each half-life and twenty accesses are all that counts.
The protocol records a utility score without a share in it: here it has as much as access frequency. Parts that are
switched off leave their share to the others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import timedelta

from remegraph.models import Reviews
from remegraph.settings import RetrievalPolicy

__all__ = ["favoured", "frequency", "recency"]

_RELEVANCE, _RECENCY, _FREQUENCY, _IMPORTANCE, _UTILITY = 0.4, 0.25, 0.2, 0.15, 0.2
_OFTEN = 20


def recency(days: float, half_life: float) -> float:
    """Return what is left of 1 after so many days, where half of it goes with each half-life."""
    return math.pow(0.5, days / half_life)


def frequency(accesses: int) -> float:
    """Return how often something was asked for, 0 to 1."""
    return min(accesses / _OFTEN, 1.0)


def favoured(
    contributions: Mapping[str, float], policy: RetrievalPolicy, *, age: timedelta, reviews: Reviews, importance: float
) -> dict[str, float]:
    """Return what a memory's score is the sum of, with what the policy favours; 0 to 1 again.

    Args:
        contributions: Of relevance, 0 to 1 together.
        policy: What is switched on.
        age: Since it was last said.
        reviews: How often it was recalled, and used.
        importance: 0 to 1.
    """
    days = max(age / timedelta(days=1), 0.0)
    more = {
        "recency": (_RECENCY * policy.time_decay, recency(days, policy.half_life)),
        "frequency": (_FREQUENCY * policy.frequency_boost, frequency(reviews.count)),
        "importance": (_IMPORTANCE * policy.importance_boost, importance),
        "utility": (_UTILITY * policy.utility_boost, reviews.utility),
    }
    whole = _RELEVANCE + sum(weight for weight, _ in more.values())
    scored = {name: value * _RELEVANCE / whole for name, value in contributions.items()}
    return scored | {name: weight * value / whole for name, (weight, value) in more.items() if weight * value > 0}
