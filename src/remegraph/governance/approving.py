"""What waits for approval, and the word of somebody by which it holds (X6)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from remegraph.errors import InputError, NotFoundError
from remegraph.models import ChangeSet, Memory, MemoryChange, Partition
from remegraph.ports import Archive
from remegraph.rules.standing import APPROVE

__all__ = ["approve", "waiting"]


def waiting(archive: Archive, partitions: Sequence[Partition]) -> tuple[Memory, ...]:
    """Return what is quarantined, the newest first.

    Args:
        archive: The ledger.
        partitions: Whose memories.
    """
    return archive.memories(partitions, statuses=["quarantined"]) if partitions else ()


def approve(
    archive: Archive,
    commit: Callable[[ChangeSet], object],
    partitions: Sequence[Partition],
    memory_id: str,
    *,
    by: str,
    note: str,
    at: datetime,
    operation_id: str,
) -> Memory:
    """Let a memory hold that is quarantined. It is believed no more for that; one that is live stays as it is.

    Args:
        archive: The ledger.
        commit: Holds the memory against what is known, and commits it.
        partitions: Whose memories.
        memory_id: The memory.
        by: Who approves it, for the journal.
        note: Why, for the journal.
        at: Now.
        operation_id: Names the operation.

    Raises:
        InputError: It is not said who approves it.
        NotFoundError: There is no such memory here that is live or waits for approval.
        ConflictError: It changed meanwhile, or its words stand in a live memory by now.
    """
    if not by.strip():
        raise InputError("It is not said who approves it.", "Name the person.")
    found = archive.memories(partitions, ids=[memory_id]) if partitions else ()
    if not found or not (found[0].live or found[0].status == "quarantined"):
        raise NotFoundError(f"There is no memory {memory_id!r} here that waits for approval.")
    (old,) = found
    if old.live:
        return old
    new = old.evolve(version=old.version + 1, status="active", recorded_at=at)
    change = MemoryChange(memory=new, expected_version=old.version, action=APPROVE, reason=note)
    commit(
        ChangeSet(operation_id=operation_id, actor=by, recorded_at=at, at_home=True, changes=(change,))
    )  # a person's word
    return archive.memories([old.partition], ids=[memory_id])[0]
