"""Things in the order in which they came about."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

__all__ = ["in_order"]


def in_order(times: Mapping[str, datetime], causes: Collection[tuple[str, str]]) -> list[str]:
    """Return ids so that no effect stands before its cause; else, and where causes go in a circle, the earlier first.

    Args:
        times: When each was said, by id.
        causes: Pairs of cause and effect; those of other ids do not count.
    """
    left = sorted(times, key=lambda each: (times[each], each))
    result: list[str] = []
    while left:
        held_up = {effect for cause, effect in causes if cause in left and cause != effect}
        result.append(next((each for each in left if each not in held_up), left[0]))
        left.remove(result[-1])
    return result
