"""What is noted beside memories and never changes them: `ports.Notes` over SQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from remegraph.errors import NotFoundError
from remegraph.models import Access, Partition, Review, Reviews, Scope, SharedItem, SkillOutcome
from remegraph.ports import NewId, Tally
from remegraph.storage import interning
from remegraph.storage import outcomes as outcome_rows
from remegraph.storage import reviews as review_rows
from remegraph.storage import shares as share_rows
from remegraph.storage.database import Database
from remegraph.storage.journal import Entry, Journal
from remegraph.storage.rows import micros

__all__ = ["SqlNotes"]


class SqlNotes:
    """Reviews, outcomes of skills, and who shared what; see `ports.Notes` for what each method promises.

    Args:
        database: An open database.
        journal: Its journal.
        new_id: Names operations.
    """

    def __init__(self, database: Database, journal: Journal, new_id: NewId) -> None:
        self.database = database
        self.journal = journal
        self._new_id = new_id

    def add_reviews(self, reviews: Sequence[Review]) -> None:
        """Append reviews; see `ports.Notes`."""
        partitions = dict.fromkeys(review.partition for review in reviews)
        if partitions:
            with self.database.write() as connection:
                known = interning.known(connection, partitions, anew=True)
                review_rows.add(connection, {partition: number for number, partition in known.items()}, reviews)

    def reviews(
        self, partitions: Sequence[Partition], memory_ids: Sequence[str]
    ) -> Mapping[tuple[Partition, str], Reviews]:
        """Return the reviews of these memories, counted."""
        with self.database.read() as connection:
            return review_rows.counted(connection, interning.known(connection, partitions), memory_ids)

    def accesses(
        self, partitions: Sequence[Partition], memory_ids: Sequence[str]
    ) -> Mapping[tuple[Partition, str], Sequence[Access]]:
        """Return when each of these memories was learned, then each review; see `ports.Notes`."""
        with self.database.read() as connection:
            return review_rows.accesses(connection, interning.known(connection, partitions), memory_ids)

    def in_use(self, partitions: Sequence[Partition], *, since: datetime) -> Sequence[str]:
        """Return what is always active, or was reviewed since; see `ports.Notes`."""
        with self.database.read() as connection:
            return review_rows.in_use(connection, list(interning.known(connection, partitions)), since)

    def add_outcome(self, partition: Partition, outcome: SkillOutcome) -> SkillOutcome:
        """Append how a run went; see `ports.Notes`."""
        with self.database.write() as connection:
            for number in interning.known(connection, [partition], anew=True):
                return outcome_rows.add(connection, number, partition, outcome)
        raise NotFoundError(f"There is no skill {outcome.memory_id} here.")

    def outcomes(
        self, partitions: Sequence[Partition], memory_ids: Sequence[str]
    ) -> Mapping[tuple[Partition, str, int], Tally]:
        """Return how the versions of these skills went, counted."""
        with self.database.read() as connection:
            return outcome_rows.counted(connection, interning.known(connection, partitions), memory_ids)

    def add_shared(self, partition: Partition, items: Sequence[SharedItem]) -> None:
        """Note what an agent shared, with an event for each; see `ports.Notes`."""
        operation_id = self._new_id()
        with self.database.write() as connection:
            number = interning.hold(self.database, connection, [partition])[partition]
            new = share_rows.add(connection, number, items)
            self.journal.add(
                connection,
                [
                    Entry(
                        partition_id=number,
                        time=micros(item.at),
                        actor=item.agent,
                        action="share",
                        record_id=item.knowledge_id,
                        operation_id=operation_id,
                        body=item.digest,
                    )
                    for item in new
                ],
            )

    def shared_by(self, scope: Scope, knowledge_id: str, digest: str) -> str | None:
        """Return which agent shared exactly this; see `ports.Notes`."""
        with self.database.read() as connection:
            return share_rows.author(connection, scope, knowledge_id, digest)
