"""What is knowledge (F9) or a policy (G3), no conversation changes: checked once more where a change set is committed."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from remegraph.models import ChangeSet

__all__ = ["spoilt"]


def spoilt(changes: ChangeSet, known: Collection[str]) -> list[str]:
    """Return the ids of memories that what was learned from a conversation must not touch as it does.

    Args:
        changes: What was learned.
        known: Ids of the memories, among those that it names, that are firm.
    """
    memories = [change.memory for change in changes.changes]
    touched = {memory.memory_id for memory in memories}
    replaced = {other for memory in memories for other in memory.supersedes}
    replaced |= {link.target_id for link in changes.links if link.type == "supersedes"}
    made = {memory.memory_id for memory in memories if memory.firm}
    return sorted(made | ((touched | replaced) & set(known)))
