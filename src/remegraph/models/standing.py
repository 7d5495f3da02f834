"""The standing of a record: whether it bears on a question, how sure and how old it is, and how it was used (K5)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from remegraph.models import Abstraction, Hit, Memory, Reviews, Standing, Status
from remegraph.settings import RetrievalPolicy
from remegraph.text import table

__all__ = [
    "APPROVE",
    "BEARS",
    "QUARANTINE_BELOW",
    "TOMBSTONES",
    "Signs",
    "always_active",
    "confidence",
    "dated",
    "favoured",
    "frequency",
    "proven",
    "recency_decay",
    "recounted",
    "relevance",
]

BEARS = 0.5
"""Relevance from which a record is taken to bear on a question."""

QUARANTINE_BELOW = 0.5
"""Trust under which a memory waits for approval instead of being recalled."""

APPROVE = "approve"
"""The action that approves a waiting memory: it is weighed like a new one."""


class Signs(NamedTuple):
    """Signs that a record bears on a question."""

    covers: float
    """Share of the words asked for that it holds, weighted by rarity."""
    known: float
    """Share of them that anything in its partition holds."""
    nearer: float | None = None
    """By how much its cosine with the question exceeds that of questions at large; None without vectors."""


def relevance(signs: Signs) -> float:
    """Return how likely a record bears on a question, 0 to 1, on one scale for all stores and embedders.

    It is not relative to the best hit: if nothing answers the question, all are low.
    """
    weights = table("weights")["relevance"]["words" if signs.nearer is None else "meaning"]
    told = sum(weights.get(name, 0.0) * (value or 0.0) for name, value in signs._asdict().items())
    return 1 / (1 + math.exp(-weights["bias"] - told))


def confidence(trust: float, said: int, against: int) -> float:
    """Return the confidence that a memory holds, 0 to 1: never more than its trust.

    After Laplace's rule of succession: said s times and contradicted by a memories, it is (s + 1) / (s + a + 2). Said
    once, two in three; said again, more; contradicted once, one in two.
    """
    return trust * (said + 1) / (said + against + 2)


def recounted(old: Abstraction, *, said: int, against: int, trust: float) -> Abstraction:
    """Return what is kept beside a conclusion, counted again."""
    sure = confidence(trust, said, against)
    return old.evolve(confidence=sure, corroborations=said, contradictions=against)


def dated(hits: Iterable[Hit], now: datetime) -> tuple[Hit, ...]:
    """Return hits with their age and standing as of a time."""
    # copied, not validated again, as this runs for every hit of every recall
    return tuple(hit.model_copy(update={"age": now - hit.time, "standing": _standing(hit, now)}) for hit in hits)


def _standing(hit: Hit, now: datetime) -> Standing:
    if hit.status == "superseded":
        return "superseded"
    return "expired" if hit.valid_to is not None and hit.valid_to <= now else "current"


_RELEVANCE, _RECENCY, _FREQUENCY, _IMPORTANCE, _UTILITY = 0.4, 0.25, 0.2, 0.15, 0.2


_OFTEN = 20


_PROVEN = 0.1
"""Share of its relevance that a memory gains at most for having been used. If half of the questions of eight kinds have
marked what answers them, recall of the others stays (R@10 .597 after .594 hashed, .653 after .655 with MiniLM), and
what is asked again is found better (.608 after .590, .699 after .667). With .3 recall of the others falls by .01; and
what was
merely recalled does not gain: that leads away from what answers."""


_LOW = 0.75
"""Share of its relevance that a memory of low priority keeps."""


def recency_decay(days: float, half_life: float) -> float:
    """Return what is left of 1 after some days, halving with each half-life."""
    return math.pow(0.5, days / half_life)


def frequency(accesses: int) -> float:
    """Return how often something was asked for, 0 to 1."""
    return min(accesses / _OFTEN, 1.0)


def favoured(
    contributions: Mapping[str, float], policy: RetrievalPolicy, *, age: timedelta, reviews: Reviews, importance: float
) -> dict[str, float]:
    """Return the parts of a memory's score, with what the policy favours; again 0 to 1 in all."""
    days = max(age / timedelta(days=1), 0.0)
    more = {
        "recency": (_RECENCY * policy.apply_time_decay, recency_decay(days, policy.half_life)),
        "frequency": (_FREQUENCY * policy.apply_frequency_boost, frequency(reviews.count)),
        "importance": (_IMPORTANCE * policy.importance_boost, importance),
        "utility": (_UTILITY * policy.utility_boost, reviews.utility),
    }
    whole = _RELEVANCE + sum(weight for weight, _ in more.values())
    scored = {name: value * _RELEVANCE / whole for name, value in contributions.items()}
    return scored | {name: weight * value / whole for name, (weight, value) in more.items() if weight * value > 0}


def proven(contributions: Mapping[str, float], used: int, *, low: bool) -> dict[str, float]:
    """Return the parts of a memory's score, adjusted by its use."""
    kept = {name: value * (_LOW if low else 1.0) for name, value in contributions.items()}
    gain = _PROVEN * used / (used + 1) * sum(kept.values())
    return kept | ({"used": gain} if gain else {})


def always_active(memory: Memory) -> bool:
    """Return whether a memory is active regardless of use."""
    return memory.live and (memory.is_core if memory.resident is None else memory.resident)


TOMBSTONES: frozenset[Status] = frozenset({"purged", "erased"})
"""The statuses from which content cannot be restored."""
