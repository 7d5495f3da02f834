"""What a run tells its stream about memory: `stream_mode="custom"` delivers these, and nothing else of ours."""

from __future__ import annotations

from typing import Literal, TypedDict

from langgraph.config import get_stream_writer

__all__ = ["MemoryCaptured", "MemoryEvent", "MemoryFailed", "MemoryRecalled", "emit"]


class MemoryRecalled(TypedDict):
    """Memory was looked up for the newest words."""

    event: Literal["memory_recalled"]
    ids: list[str]
    """What is shown to the model."""
    degraded: list[str]
    """What could not be used, and why; empty if all went well."""
    ms: float
    """How long it took."""


class MemoryCaptured(TypedDict):
    """What was said is in the ledger."""

    event: Literal["memory_captured"]
    added: int
    """Messages that were new, or whose content the host had replaced."""


class MemoryFailed(TypedDict):
    """Memory could not do its part; the run goes on without."""

    event: Literal["memory_failed"]
    verb: Literal["recall", "capture"]
    reason: str


MemoryEvent = MemoryRecalled | MemoryCaptured | MemoryFailed
"""Any of them; `event` tells which."""


def emit(event: MemoryEvent) -> None:
    """Hand an event to the stream of the run at hand, if there is one.

    Args:
        event: The event.
    """
    try:
        write = get_stream_writer()
    except (RuntimeError, KeyError):  # outside of any graph; in a run whose config was made by hand
        return
    write(event)
