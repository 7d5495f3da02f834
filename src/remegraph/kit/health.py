"""`kit.health`: what went wrong where nobody waits for an answer. In memory, of one kit; `admin.stats` shows it."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Mapping

from remegraph.errors import RemegraphError

__all__ = ["Health"]

_log = logging.getLogger(__name__)


class Health:
    """Counts what was done and what failed. A surface that must not break its host reports here instead.

    Safe to use from any thread.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._reasons: dict[str, str] = {}

    def count(self, what: str) -> None:
        """Count one of something, as captures.

        Args:
            what: Names it, in the plural.
        """
        with self._lock:
            self._counts[what] += 1

    def note(self, surface: str, error: BaseException) -> None:
        """Log a failure that the host is spared, count it, and keep its reason.

        Args:
            surface: What failed: recall, capture, background.
            error: Why.
        """
        reason = f"{type(error).__name__}: {error}"
        with self._lock:
            self._counts[f"{surface}_failures"] += 1
            self._reasons[f"{surface}_failure"] = reason
        defect = not isinstance(error, RemegraphError)  # where it happened tells more than what it says
        _log.warning("Memory failed, and its host goes on: %s: %s", surface, reason, exc_info=error if defect else None)

    def stats(self) -> Mapping[str, int | str]:
        """Return all counts, and the last reason of each kind of failure."""
        with self._lock:
            return {**_NONE, **self._counts, **self._reasons}


_NONE: Mapping[str, int] = dict.fromkeys(
    ("captures", "recalls", "recalls_degraded", "capture_failures", "recall_failures", "background_failures"), 0
)
"""Shown also before the first."""
