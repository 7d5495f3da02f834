"""The seam of audits: the journal as a chain, and the record of what agents were shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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

    def chained(self, previous: str, event: Event) -> str:
        """Return the chain that ends with an event, given the chain before it."""
        ...

    def sealed(self, previous: str, line: str) -> str:
        """Return the seal of a line and of all lines before it, given the seal of those."""
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

    def seal_anew(self) -> None:
        """Chain all events with the key at hand, which is another than before. Exported heads fit no more."""
        ...

    def add_shown(self, shown: Sequence[Shown]) -> None:
        """Append records of what agents were shown. They are no versions, and no reader waits for them."""
        ...

    def shown(
        self, partition: Partition, *, thread: str | None, run_id: str | None, turn: int | None
    ) -> tuple[Shown, ...]:
        """Return the records of a partition that meet all conditions, oldest first."""
        ...
