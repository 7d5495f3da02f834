"""The seam of sharing: what agents let each other read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from remegraph.models import BlockSummary, Grant, Memory, Partition, Scope

__all__ = ["GrantBook"]


class GrantBook(Protocol):
    """The grants, and what they let through: decided anew at each call, and nowhere else.

    A grant lets its reader see live memories of the giver's own partition, and nothing around them.
    """

    def give(self, grant: Grant) -> Grant:
        """Record a grant, with an event in the giver's journal.

        Raises:
            NotFoundError: A memory or topic that it names is not the giver's own.
            InputError: A memory that it names cannot be granted.
        """
        ...

    def revoke(self, giver: Partition, grant_id: str, *, actor: str, reason: str) -> Grant:
        """Revoke a grant, with an event in the giver's journal; one that was revoked before stays as it is.

        Args:
            giver: Who gave it.
            grant_id: The grant.
            actor: Who decided it.
            reason: Why.

        Raises:
            NotFoundError: The giver gave no such grant.
        """
        ...

    def grants(self, scope: Scope) -> tuple[Grant, ...]:
        """Return the grants that the scope's agent gave or received, those that are over included, oldest first."""
        ...

    def opened(self, scope: Scope) -> Mapping[Partition, Sequence[str]]:
        """Return the ids of all memories that the scope may read by a grant, by where they live."""
        ...

    def memories(self, scope: Scope, ids: Sequence[str] | None = None) -> tuple[Memory, ...]:
        """Return the head versions of memories that the scope may read by a grant, newest `said_at` first.

        Args:
            scope: Who reads.
            ids: Only these; all of them unless given.
        """
        ...

    def versions(self, scope: Scope, memory_id: str) -> tuple[Memory, ...]:
        """Return the live versions of a memory since it was granted, oldest first: what it said before is not granted."""
        ...

    def summaries(self, scope: Scope, memory_id: str) -> tuple[BlockSummary, ...]:
        """Return the index entries of the blocks that a granted memory came from, oldest first."""
        ...
