"""An old version made the head again, as a new one: nothing is overwritten, and one end of the chain holds (G6)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from remegraph.errors import InputError, NotFoundError
from remegraph.governance.digging import ends
from remegraph.models import ChangeSet, Memory, MemoryChange, Partition, Status, may_move
from remegraph.ports import Archive

__all__ = ["restore"]

_AWAITING: frozenset[Status] = frozenset({"proposed", "quarantined"})


def restore(
    archive: Archive,
    visible: Sequence[Partition],
    own: Sequence[Partition],
    memory_id: str,
    version: int,
    *,
    actor: str,
    at_home: bool,
    at: datetime,
    new_id: str,
    operation_id: str,
) -> Memory:
    """Let a version of a memory hold again.

    Where nothing replaced the memory, it gets a new version with what the old one says. Where something did, a new
    memory says it, and replaces what stands at the end of the chain: so a chain grows at its end only.

    Args:
        archive: The ledger.
        visible: What the caller may see.
        own: What the caller may change.
        memory_id: The memory.
        version: Number of the version.
        actor: Who asks.
        at_home: Whether what all agents of the user own is theirs to change.
        at: Now.
        new_id: Names the new memory, if there is one.
        operation_id: Names the operation.

    Raises:
        NotFoundError: There is no such memory or version, or it, or what replaced it, is not the caller's.
        InputError: The version did not hold when it was written, or the memory waits for approval.
        ConflictError: Something changed meanwhile, or its words stand in another live memory.
    """
    versions = archive.versions(own, memory_id) if own else ()
    if not versions:
        raise NotFoundError(f"There is no memory {memory_id!r} here.")
    chosen = next((each for each in versions if each.version == version), None)
    if chosen is None:
        raise NotFoundError(f"Memory {memory_id!r} has no version {version}.", f"It has 1 to {len(versions)}.")
    head = versions[-1]
    if head.status in _AWAITING:
        raise InputError(f"Memory {memory_id!r} is {head.status}.", "It must be approved before it can hold.")
    if not chosen.live:
        raise InputError(
            f"Version {version} of memory {memory_id!r} was {chosen.status}.", "Give one in which it held."
        )
    if head.status == "superseded":
        changes = _again(chosen, ends(archive, visible, memory_id), own, at, new_id)
    elif head.live and head == chosen:
        return head
    else:
        changes = (_revised(head, chosen, at),)
    archive.commit(ChangeSet(operation_id=operation_id, actor=actor, recorded_at=at, at_home=at_home, changes=changes))
    return changes[0].memory


def _revised(head: Memory, chosen: Memory, at: datetime) -> MemoryChange:
    memory = chosen.evolve(version=head.version + 1, status="active", supersedes=head.supersedes, recorded_at=at)
    reason = f"version {chosen.version}"
    return MemoryChange(memory=memory, expected_version=head.version, action="restore", reason=reason)


def _again(
    chosen: Memory, last: Sequence[Memory], own: Sequence[Partition], at: datetime, new_id: str
) -> tuple[MemoryChange, ...]:
    """Return a new memory that says it from now on, and the end of what stood in its place."""
    if foreign := [each.memory_id for each in last if each.partition not in own]:
        raise NotFoundError(f"{', '.join(foreign)} replaced it, and is not this user's to change.")
    replaced = tuple(each.memory_id for each in last)
    reason = f"version {chosen.version} of {chosen.memory_id}"
    memory = chosen.evolve(
        memory_id=new_id,
        version=1,
        status="active",
        supersedes=replaced,
        valid_from=at,
        valid_to=None,
        recorded_at=at,
    )
    retired = (
        MemoryChange(
            memory=each.evolve(
                version=each.version + 1, status="superseded", valid_to=each.valid_to or at, recorded_at=at
            ),
            expected_version=each.version,
            action="supersede",
            reason=f"{reason} was restored",
        )
        for each in last
        if may_move(each.status, "superseded")
    )
    return (MemoryChange(memory=memory, expected_version=0, action="restore", reason=reason), *retired)
