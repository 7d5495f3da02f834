"""Time and ids that tests hold in their hand."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta

__all__ = ["FrozenClock", "SequentialIds"]


class FrozenClock:
    """A clock that stands still until it is moved.

    Args:
        start: The time that it shows first; aware.
    """

    def __init__(self, start: datetime = datetime(2025, 1, 1, 12, tzinfo=UTC)) -> None:
        self._now = start

    def __call__(self) -> datetime:
        """Return the time that it shows."""
        return self._now

    def move(self, by: timedelta) -> None:
        """Go on by some time, or back by a negative one."""
        self._now += by


class SequentialIds:
    """Ids in order: `id-0001`, `id-0002`, ...

    Args:
        prefix: What each begins with.
    """

    def __init__(self, prefix: str = "id-") -> None:
        self._prefix = prefix
        self._numbers = itertools.count(1)

    def __call__(self) -> str:
        """Return the next id."""
        return f"{self._prefix}{next(self._numbers):04d}"
