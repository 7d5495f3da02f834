"""Memory must never break its host: the one place where a surface goes on without it."""

from __future__ import annotations

from types import TracebackType
from typing import Literal

from remegraph.adapters.events import emit
from remegraph.errors import RemegraphError
from remegraph.kit import MemoryKit

__all__ = ["Unbroken"]


class Unbroken:
    """Lets the run go on, whatever fails inside: it is logged, counted in the kit's statistics, and told as an event.

    What is no failure passes: the end of the process, a run that is cancelled; so does a failed capture where the settings
    are strict about that. Who the user is, is settled before: that
    nobody says so is the developer's to cure, and to go on would hide it.

    Args:
        kit: The memory.
        verb: What is tried.
    """

    def __init__(self, kit: MemoryKit, verb: Literal["recall", "capture"]) -> None:
        self._kit = kit
        self._verb: Literal["recall", "capture"] = verb

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        if not isinstance(error, Exception):
            return False
        self._kit.health.note(self._verb, error)
        if self._verb == "capture" and self._kit.settings.capture.strict:
            return False
        emit({"event": "memory_failed", "verb": self._verb, "reason": _reason(error)})
        return True


def _reason(error: Exception) -> str:
    """Return what a caller may read: our own words; others' may quote rows of the ledger."""
    return str(error) if isinstance(error, RemegraphError) else type(error).__name__
