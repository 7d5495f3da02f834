"""Things in the order in which they came about, and as they were at a time."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from remegraph.models import Memory

__all__ = ["in_order", "known_by"]


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


def known_by(versions: Sequence[Memory], time: datetime | None) -> tuple[Memory, ...]:
    """Return the versions that were recorded by a time; all of them where none is given.

    Args:
        versions: Of one memory, oldest first.
        time: The time.
    """
    return tuple(versions) if time is None else tuple(each for each in versions if each.recorded_at <= time)
