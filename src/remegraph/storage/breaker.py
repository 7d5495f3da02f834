"""A circuit breaker: a server that hangs holds up one call, and not each one after it."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock

from remegraph.errors import VectorIndexError

__all__ = ["CircuitBreaker"]


class CircuitBreaker:
    """Stands before calls to a server. Safe to share between threads.

    Args:
        probe: Asks the server for a sign of life, and soon gives up; raises where there is none.
        rest: Seconds for which a server that hung is not asked again.
    """

    def __init__(self, probe: Callable[[], object], *, rest: float) -> None:
        self._probe = probe
        self._rest = rest
        self._until: float | None = None
        self._lock = Lock()

    def check(self) -> None:
        """Return where the server may be asked. After its rest, one caller looks whether it lives; the others go on.

        Raises:
            VectorIndexError: It hung a moment ago.
        """
        with self._lock:
            if self._until is None:
                return
            left = self._until - time.monotonic()
            if left > 0:
                raise VectorIndexError(
                    "The Chroma server did not answer in time.",
                    f"Look whether it runs, and what it is busy with; it is asked again in {left:.0f} seconds.",
                )
            self._until = time.monotonic() + self._rest
        self._probe()
        with self._lock:
            self._until = None

    def trip(self) -> None:
        """Note that the server hung."""
        with self._lock:
            self._until = time.monotonic() + self._rest
