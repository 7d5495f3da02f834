"""`kit.health`: what went wrong where nobody waits for an answer. In memory, of one kit; `admin.stats` shows it."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Mapping
from traceback import format_tb

from remegraph.errors import RemegraphError
from remegraph.telemetry import SILENT, Telemetry, event

__all__ = ["Health"]

_log = logging.getLogger(__name__)


class Health:
    """Counts what was done and what failed. A surface that must not break its host reports here instead.

    Safe to use from any thread.

    Args:
        telemetry: Told of failures, too.
    """

    def __init__(self, telemetry: Telemetry = SILENT) -> None:
        self._telemetry = telemetry
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

    def figure(self, what: str, number: int, warning: str) -> None:
        """Keep how many there are of what should not be, and log it when the first comes.

        Args:
            what: Names it, in the plural.
            number: How many there are now.
            warning: What to say of the first, with the cure.
        """
        with self._lock:
            before, self._counts[what] = self._counts[what], number
        if number and not before:
            _log.warning("%s: %d. %s", what, number, warning, extra=event("host.warned", what=what, number=number))

    def note(self, surface: str, error: BaseException) -> None:
        """Log a failure that the host is spared, count it, and keep its reason.

        Args:
            surface: What failed: recall, capture, background.
            error: Why.
        """
        defect = not isinstance(error, RemegraphError)  # what it says may be words of a conversation
        cause = getattr(error, "orig", error)  # of an error of the database
        told = type(error).__name__
        reason = told if defect and not isinstance(cause, OSError) else f"{told}: {cause}"
        with self._lock:
            self._counts[f"{surface}_failures"] += 1
            self._reasons[f"{surface}_failure"] = reason
        where = f" at:\n{''.join(format_tb(error.__traceback__))}" if defect else ""
        fields = event("host.spared", error, surface=surface)
        _log.warning("Memory failed, and its host goes on: %s: %s%s", surface, reason, where, extra=fields)
        self._telemetry.count("remegraph.failures", 1, surface=surface)

    def stats(self) -> Mapping[str, int | str]:
        """Return all counts, and the last reason of each kind of failure."""
        with self._lock:
            return {**_NONE, **self._counts, **self._reasons}


_NONE: Mapping[str, int] = dict.fromkeys(
    (
        "captures",
        "recalls",
        "recalls_degraded",
        "capture_failures",
        "recall_failures",
        "background_failures",
        "jobs_foreign",
        "threads_unrecorded",
    ),
    0,
)
"""Shown also before the first."""
