"""The sensory buffer: what streams in, for seconds. It says what is new, and never what it holds.

There is no way to read it: no vector, no link, no row. What deserves attention goes on to working memory.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from threading import Lock

from remegraph.models import Partition
from remegraph.ports import Clock
from remegraph.settings import SensoryPolicy

__all__ = ["SensoryBuffer"]

Score = Callable[[list[str]], float]
"""Scores an event, given the texts of those before it."""


@dataclass(frozen=True, slots=True)
class _Event:
    timestamp: datetime
    source: str
    attention_score: float
    raw_content: str
    partition: Partition


class SensoryBuffer:
    """Holds events for their time to live, at most so many. Use it from any thread.

    Args:
        policy: How long, and how many.
        clock: Tells the time.
    """

    def __init__(self, policy: SensoryPolicy, clock: Clock) -> None:
        self._ttl = policy.ttl
        self._clock = clock
        self._lock = Lock()
        self._events: deque[_Event] = deque(maxlen=policy.capacity)

    def sense(self, partition: Partition, content: str, *, source: str, score: Score) -> float:
        """Take in an event and return the attention that it gets.

        Args:
            partition: Whose senses.
            content: The event, as it came.
            source: What it came from.
            score: Scores it, given the texts of what was sensed here before and is still there.
        """
        with self._lock:
            self._expire()
            before = [event.raw_content for event in self._events if event.partition == partition]
        attention = score(before)  # may be the host's, and slow
        with self._lock:
            self._events.append(_Event(self._clock(), source, attention, content, partition))
        return attention

    def __len__(self) -> int:
        with self._lock:
            self._expire()
            return len(self._events)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._events.clear()

    def _expire(self) -> None:
        """Forget what is over its time to live; where the clock was set back, what is later than now."""
        now = self._clock()
        while self._events and not timedelta(0) <= now - self._events[0].timestamp < self._ttl:
            self._events.popleft()
