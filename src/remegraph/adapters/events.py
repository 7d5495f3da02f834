"""Events for the stream of a run, and the guard that lets a run go on where memory fails.

`stream_mode="custom"` delivers these events, and nothing else of ours.
"""

from __future__ import annotations

from types import TracebackType
from typing import Literal, TypedDict

from langgraph.config import get_stream_writer

from remegraph.errors import RemegraphError
from remegraph.kit import MemoryKit

__all__ = ["HostGuard", "MemoryCaptured", "MemoryEvent", "MemoryFailed", "MemoryRecalled", "emit"]


class MemoryRecalled(TypedDict):
    """Memory was looked up for the newest words."""

    event: Literal["memory_recalled"]
    ids: list[str]
    """The text for the model."""
    degraded: list[str]
    """Failures, with their reasons; empty if all went well."""
    ms: float
    """How long it took."""


class MemoryCaptured(TypedDict):
    """Messages are in the ledger."""

    event: Literal["memory_captured"]
    added: int
    """Messages that were new, or whose content the host had replaced."""


class MemoryFailed(TypedDict):
    """Memory could not do its part; the run goes on without."""

    event: Literal["memory_failed"]
    verb: Literal["recall", "capture"]
    reason: str


MemoryEvent = MemoryRecalled | MemoryCaptured | MemoryFailed
"""Any of them; `event` says which."""


def emit(event: MemoryEvent) -> None:
    """Hand an event to the stream of the run at hand, if there is one."""
    try:
        write = get_stream_writer()
    except (RuntimeError, KeyError):  # outside of any graph; in a run whose config was made by hand
        return
    write(event)


class HostGuard:
    """Lets the run go on, whatever fails inside: the failure is logged, counted in the kit's statistics, and emitted as an event.

    The end of the process and a cancelled run pass, and so does a failed capture where the settings are strict about it.
    Who the user is must be settled before: a missing user is the developer's to cure, and to go on would hide it.
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
        self._kit.context.health.note(self._verb, error)
        if self._verb == "capture" and self._kit.settings.capture.strict:
            return False
        emit({"event": "memory_failed", "verb": self._verb, "reason": _reason(error)})
        return True


def _reason(error: Exception) -> str:
    """Return what a caller may read: our own words; others' may quote rows of the ledger."""
    return str(error) if isinstance(error, RemegraphError) else type(error).__name__
