"""How what was learned in one project comes to hold in all: by an explicit act that the journal tells of (G8)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from remegraph.errors import InputError, NotFoundError
from remegraph.models import ChangeSet, Link, Memory, MemoryChange, Partition
from remegraph.ports import Archive, NewId

__all__ = ["promote"]


def promote(
    archive: Archive,
    partitions: Sequence[Partition],
    memory_id: str,
    *,
    actor: str,
    at_home: bool,
    reason: str,
    at: datetime,
    new_id: NewId,
) -> Memory:
    """Make a memory of a project one of no project, which supersedes it; one that is of none already stays as it is.

    Args:
        archive: The ledger.
        partitions: Whose memories.
        memory_id: The memory.
        actor: Who asks.
        at_home: Whether what all agents of the user own is theirs to change.
        reason: Why, for the journal.
        at: Now.
        new_id: Names the new memory, and the operation.

    Raises:
        InputError: There is no reason.
        NotFoundError: There is no such memory, or it is not live.
        ConflictError: It changed meanwhile, or its words are known in all projects already.
    """
    if not reason.strip():
        raise InputError("The reason is empty.", "Say why it shall hold in all projects.")
    found = archive.memories(partitions, ids=[memory_id]) if partitions else ()
    if not found or not found[0].live:
        raise NotFoundError(f"There is no live memory {memory_id!r} here.")
    (old,) = found
    if old.partition.project is None:
        return old
    where = old.partition.evolve(project=None)
    new = old.evolve(
        memory_id=new_id(),
        version=1,
        partition=where,
        applies_to=old.applies_to if old.language_it_applies_to else where.applies_to,
        supersedes=(old.memory_id,),
        recorded_at=at,
    )
    retired = old.evolve(version=old.version + 1, status="superseded", recorded_at=at)
    archive.commit(
        ChangeSet(
            operation_id=new_id(),
            actor=actor,
            recorded_at=at,
            at_home=at_home,
            changes=(
                MemoryChange(memory=new, expected_version=0, action="promote", reason=reason),
                MemoryChange(memory=retired, expected_version=old.version, action="supersede", reason=reason),
            ),
            links=(Link(source_id=new.memory_id, type="supersedes", target_id=old.memory_id, reason=reason),),
        )
    )
    return new
