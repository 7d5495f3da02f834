"""What counts beside relevance where memories are ranked: how new they are, how often asked for, how important.

The formula is the governance protocol's retrieval score (seed "G", section 4.1): .4 relevance + .25 recency +
.2 access frequency + .15 weight, where recency halves with each half-life and twenty accesses are all that counts.
Parts that are switched off leave their share to the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from remegraph.settings import RetrievalPolicy

__all__ = ["favoured"]

_RELEVANCE, _RECENCY, _FREQUENCY, _IMPORTANCE = 0.4, 0.25, 0.2, 0.15
_OFTEN = 20


def favoured(
    contributions: Mapping[str, float], policy: RetrievalPolicy, *, age: timedelta, accesses: int, importance: float
) -> dict[str, float]:
    """Return what a memory's score is the sum of, with what the policy favours; 0 to 1 again.

    Args:
        contributions: Of relevance, 0 to 1 together.
        policy: What is switched on.
        age: Since it was last said.
        accesses: How often it was recalled.
        importance: 0 to 1.
    """
    days = max(age / timedelta(days=1), 0.0)
    more = {
        "recency": (_RECENCY * policy.time_decay, 0.5 ** (days / policy.half_life)),
        "frequency": (_FREQUENCY * policy.frequency_boost, min(accesses / _OFTEN, 1.0)),
        "importance": (_IMPORTANCE * policy.importance_boost, importance),
    }
    whole = _RELEVANCE + sum(weight for weight, _ in more.values())
    scored = {name: value * _RELEVANCE / whole for name, value in contributions.items()}
    return scored | {name: weight * value / whole for name, (weight, value) in more.items() if weight * value > 0}
