"""The seam of audits: the journal as a chain, and the record of what agents were shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Protocol

from remegraph.models import AuditEntry, AuditHead, Event, Mismatch, Partition, Shown

__all__ = ["AuditTrail"]


class AuditTrail(Protocol):
    """Reads and checks the journal."""

    def pages(
        self, partition: Partition, since: datetime | None, until: datetime | None
    ) -> Iterator[Sequence[AuditEntry]]:
        """Yield the events of a partition in their order, without gaps.

        Args:
            partition: Where.
            since: From the first event of this time or later on.
            until: To the last event of this time or earlier.
        """
        ...

    def walk(self) -> Callable[[str, Event], bool]:
        """Return what tells of one event after another of a partition whether it fits the chain before it."""
        ...

    def seals(self, previous: Sequence[str], line: str) -> tuple[str, ...]:
        """Return the seals of a line and of all lines before it, by each key at hand, the one that seals first.

        Args:
            previous: The seals of those before it; none before the first line.
            line: The line.
        """
        ...

    def differences(self, partition: Partition) -> Iterator[Mismatch]:
        """Yield where the chain of a partition is broken, and which versions are not what was committed."""
        ...

    def misstated(self, partition: Partition) -> Iterator[Mismatch]:
        """Yield the memories of a partition whose row says something else than their newest version."""
        ...

    def renamed(self) -> Iterator[Mismatch]:
        """Yield the partitions that were given another name: what they hold would be another's."""
        ...

    def holds(self, head: AuditHead) -> bool:
        """Return whether the journal still has the event that an export ended with."""
        ...

    def seal(self, at: datetime, operation_id: str, reason: str, *, despite: bool) -> None:
        """Seal with the newest key at hand from now on, and say so in each partition.

        Args:
            at: When.
            operation_id: Names it.
            reason: Why.
            despite: Whether events that do not fit are chained anew, too. Exported heads fit no more then.
        """
        ...

    def sealed_despite(self) -> tuple[datetime, str] | None:
        """Return when and why the journal was sealed last although it did not fit; none where it never was."""
        ...

    def add_shown(self, shown: Sequence[Shown]) -> None:
        """Append records of what agents were shown. They are no versions, and no reader waits for them."""
        ...

    def shown(
        self, partition: Partition, *, thread: str | None, run_id: str | None, turn: int | None
    ) -> tuple[Shown, ...]:
        """Return the records of a partition that meet all conditions, oldest first."""
        ...
