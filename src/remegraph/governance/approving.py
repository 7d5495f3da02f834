"""What waits for approval, and the word of somebody by which it holds (X6)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from remegraph.errors import InputError, NotFoundError
from remegraph.models import ChangeSet, Memory, MemoryChange, Partition, Status
from remegraph.ports import Archive
from remegraph.rules.standing import APPROVE

__all__ = ["approve", "reject", "waiting"]

REJECT = "reject"


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
    old = _awaited(archive, partitions, memory_id, by, "approves")
    return (
        old
        if old.live
        else _moved(
            archive, commit, old, status="active", action=APPROVE, by=by, note=note, at=at, operation_id=operation_id
        )
    )


def reject(
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
    """Delete a memory that is quarantined. It stays as a tombstone, so that the same words do not come back by themselves.

    Args:
        archive: The ledger.
        commit: Commits it.
        partitions: Whose memories.
        memory_id: The memory.
        by: Who rejects it, for the journal.
        note: Why, for the journal.
        at: Now.
        operation_id: Names the operation.

    Raises:
        InputError: It is not said who rejects it, or it holds already.
        NotFoundError: There is no such memory here that waits for approval.
        ConflictError: It changed meanwhile.
    """
    old = _awaited(archive, partitions, memory_id, by, "rejects")
    if old.live:
        raise InputError(f"Memory {memory_id!r} is {old.status}.", "Only what waits can be rejected: forget it.")
    return _moved(
        archive, commit, old, status="deleted", action=REJECT, by=by, note=note, at=at, operation_id=operation_id
    )


def _awaited(archive: Archive, partitions: Sequence[Partition], memory_id: str, by: str, does: str) -> Memory:
    if not by.strip():
        raise InputError(f"It is not said who {does} it.", "Name the person.")
    found = archive.memories(partitions, ids=[memory_id]) if partitions else ()
    if not found or not (found[0].live or found[0].status == "quarantined"):
        raise NotFoundError(f"There is no memory {memory_id!r} here that waits for approval.")
    return found[0]


def _moved(
    archive: Archive,
    commit: Callable[[ChangeSet], object],
    old: Memory,
    *,
    status: Status,
    action: str,
    by: str,
    note: str,
    at: datetime,
    operation_id: str,
) -> Memory:
    """Commit a person's word."""
    new = old.evolve(version=old.version + 1, status=status, recorded_at=at)
    change = MemoryChange(memory=new, expected_version=old.version, action=action, reason=note)
    commit(ChangeSet(operation_id=operation_id, actor=by, recorded_at=at, at_home=True, changes=(change,)))
    return archive.memories([old.partition], ids=[old.memory_id])[0]
