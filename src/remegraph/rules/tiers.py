"""The tiers of the MEK protocol as views: what stands ready without a query, what is kept, what is condensed (K2).

A memory goes up by use and down by time. Each review is worth a point, two where an answer drew on it, times .5 and its
importance; half of that is gone after each week. From 6 points on a memory is active, until less than 2 are left: the gap
between the two keeps it from going up and down with every question, and no burst of use counts more than 12. Core rules
are always active. `activate` and `deactivate` overrule all that. Half-life, points and bounds are our own choice: the
protocol says only "most relevant to the current task or most frequently accessed".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from remegraph.models import Access, Memory, Tier
from remegraph.rules.favouring import recency

__all__ = ["MEMORY_OF_USE", "Standing", "always_active", "standing", "tier_of"]

_HALF_LIFE = 7
_UP, _DOWN, _MOST = 6.0, 2.0, 12.0
_DAY = timedelta(days=1)

MEMORY_OF_USE = _HALF_LIFE * math.log2(_MOST / _DOWN) * _DAY
"""What was not reviewed for so long cannot be active by use."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Whether a memory is active, and until when if nothing happens."""

    active: bool
    points: float = 0.0
    until: datetime | None = None


def always_active(memory: Memory) -> bool:
    """Return whether a memory is active whether it is used or not."""
    return memory.live and (memory.is_core if memory.resident is None else memory.resident)


def standing(memory: Memory, reviews: Sequence[Access], at: datetime) -> Standing:
    """Return where a memory stands at a time; the same from the same log, whoever computes it and how often.

    Args:
        memory: Its head version.
        reviews: Its reviews, oldest first.
        at: The time.
    """
    if always_active(memory):
        return Standing(active=True, points=_MOST)
    if not memory.live or memory.resident is False:
        return Standing(active=False)
    active, points, last = False, 0.0, None
    for time, used in reviews:
        if time > at:
            break
        points = _left(points, last, time)
        active = active and points >= _DOWN
        points = min(points + (2 if used else 1) * (0.5 + memory.importance), _MOST)
        active = active or points >= _UP
        last = time
    left = _left(points, last, at)
    if not active or last is None or left < _DOWN:
        return Standing(active=False, points=left)
    return Standing(active=True, points=left, until=last + _HALF_LIFE * math.log2(points / _DOWN) * _DAY)


def _left(points: float, since: datetime | None, at: datetime) -> float:
    return points * recency((at - since) / _DAY, _HALF_LIFE) if since is not None else points


def tier_of(memory: Memory, *, active: bool, derived: bool) -> Tier:
    """Return the tier that a memory is in.

    Args:
        memory: Its head version.
        active: Whether it stands ready without a query.
        derived: Whether it was abstracted from other memories.
    """
    if active:
        return "active"
    condensed = memory.layer == "procedural" or (memory.layer == "long_term" and derived)
    return "compressed" if condensed else "long_term"
