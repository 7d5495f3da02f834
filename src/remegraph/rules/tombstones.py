"""What is left of a memory whose content went: the stub that its links and its journal lead to."""

from __future__ import annotations

from remegraph.models import Memory, Status

__all__ = ["NAMELESS", "TOMBSTONES", "buried"]

TOMBSTONES: frozenset[Status] = frozenset({"purged", "erased"})
"""The statuses from which no content comes back."""


NAMELESS = "(erased)"
"""The shelf of what was erased: the name of its own shelf may be somebody's."""


def buried(memory: Memory) -> Memory:
    """Return the stub of a memory: what it was, where it stood and when, and no word of what it said.

    Args:
        memory: Its last version, in its last status.
    """
    return memory.evolve(
        content=f"({memory.status})",
        summary=f"({memory.status})",
        when_to_use="",
        payload={},
        slot_value="",
        canonical_topic="",
        evidence=(),
        tags=(),
    )
