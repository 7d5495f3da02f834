"""Links that someone states outright: what led to what, what depends on what, what belongs together."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import get_args

from remegraph.errors import InputError, NotFoundError
from remegraph.models import ChangeSet, Link, LinkType, Partition
from remegraph.ports import Archive
from remegraph.rules.tombstones import TOMBSTONES

__all__ = ["tie"]

_STATED: frozenset[LinkType] = frozenset(get_args(LinkType)) - {"supersedes", "derived_from", "settled"}
"""The others say what a change did; stated by themselves they would be untrue."""


def tie(
    archive: Archive,
    partitions: Sequence[Partition],
    link: Link,
    *,
    actor: str,
    at_home: bool,
    operation_id: str,
    now: datetime,
) -> Link:
    """Record a link, through the one door for change; one that is there already stays as it is.

    Args:
        archive: The ledger.
        partitions: Where both memories live.
        link: The link.
        actor: Who states it.
        at_home: Whether what all agents of the user own is theirs to change.
        operation_id: Names the operation.
        now: When.

    Raises:
        InputError: The type is none that can be stated, or the memories are one.
        NotFoundError: One of the memories is not there, or gone.
    """
    if link.type not in _STATED:
        raise InputError(
            f"A link of type {link.type} is made by the change that it tells of.",
            f"Give one of {', '.join(sorted(_STATED))}; what replaces a memory, save.",
        )
    if link.source_id == link.target_id:
        raise InputError(f"Both ends are memory {link.source_id}.", "Name two memories.")
    ends = [link.source_id, link.target_id]
    found = archive.memories(partitions, ids=ends)
    there = {memory.memory_id for memory in found if memory.status not in {"deleted", *TOMBSTONES}}
    for end in ends:
        if end not in there:
            raise NotFoundError(f"There is no memory {end!r} here.")
    change = ChangeSet(operation_id=operation_id, actor=actor, recorded_at=now, at_home=at_home, links=(link,))
    archive.commit(change)
    stands = archive.links(partitions, [link.source_id], types=[link.type])
    return next(each for each in stands if each.target_id == link.target_id)
