"""The forgetting curve of a memory, as the points of a drawing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

__all__ = ["HEIGHT", "WIDTH", "Curve", "curve"]

WIDTH, HEIGHT = 640, 180
_SAMPLES = 64
_MOMENT = timedelta(seconds=1)

Weigh = Callable[[Sequence[datetime]], Sequence[float]]


@dataclass(frozen=True, slots=True)
class Curve:
    """Places in a drawing of `WIDTH` by `HEIGHT`, the origin at the top left."""

    points: str
    """The line, as SVG writes it."""
    reviews: tuple[tuple[float, datetime], ...]
    """Where each review is, and when."""
    threshold: float
    """The height at which it is forgotten."""
    now: float | None
    begins: datetime
    ends: datetime


def curve(
    weigh: Weigh,
    *,
    begins: datetime,
    ends: datetime,
    reviews: Sequence[datetime],
    threshold: float,
    now: datetime | None = None,
) -> Curve:
    """Return the drawing of a memory's weight, from its first day to its last.

    Args:
        weigh: Returns the weights at some times.
        begins: When it was learned.
        ends: When it is forgotten.
        reviews: When it came back: the line jumps there, so it is drawn just before each, too.
        threshold: The weight at which it is forgotten.
        now: Where to draw today.
    """
    last = max(ends, now or ends, begins + timedelta(hours=1))
    span = last - begins
    last += span * 0.06
    span = last - begins
    even = (begins + span * (at / _SAMPLES) for at in range(_SAMPLES + 1))
    jumps = (time for review in reviews for time in (review - _MOMENT, review) if begins <= time <= last)
    times = sorted({*even, *jumps})

    def place(time: datetime) -> float:
        return round((time - begins) / span * WIDTH, 2)

    line = " ".join(
        f"{place(time)},{round((1 - weight) * HEIGHT, 2)}" for time, weight in zip(times, weigh(times), strict=True)
    )
    return Curve(
        points=line,
        reviews=tuple((place(review), review) for review in reviews if begins <= review <= last),
        threshold=round((1 - threshold) * HEIGHT, 2),
        now=None if now is None or now < begins else place(now),
        begins=begins,
        ends=last,
    )
