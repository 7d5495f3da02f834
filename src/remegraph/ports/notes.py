"""What is noted beside memories and never changes them: reviews, outcomes of skills, and who shared what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from remegraph.models import Access, Partition, Review, Reviews, Scope, SharedItem, SkillOutcome

__all__ = ["Notes", "Tally"]


@dataclass(frozen=True, slots=True)
class Tally:
    """How the runs of one version of a skill went."""

    runs: int = 0
    successes: int = 0
    seconds: float | None = None
    """Mean of the runs that were timed."""
    tokens: float | None = None
    """Mean of the runs whose cost is known."""


class Notes(Protocol):
    """What is noted: appended, never changed, and no version of any memory."""

    def add_reviews(self, reviews: Sequence[Review]) -> None:
        """Append reviews of memories. They are no versions, and no reader waits for them.

        Args:
            reviews: Each time that a memory came back. Those of partitions that are gone are left out.
        """
        ...

    def reviews(
        self, partitions: Sequence[Partition], memory_ids: Sequence[str]
    ) -> Mapping[tuple[Partition, str], Reviews]:
        """Return the reviews of these memories, counted, by place and id; those without any are left out."""
        ...

    def accesses(
        self, partitions: Sequence[Partition], memory_ids: Sequence[str]
    ) -> Mapping[tuple[Partition, str], Sequence[Access]]:
        """Return when each of these memories was learned, then each of its reviews (`REVIEWING`), oldest first."""
        ...

    def in_use(self, partitions: Sequence[Partition], *, since: datetime) -> Sequence[str]:
        """Return the ids of the memories that are always active, or were reviewed (`REVIEWING`) at a time or later."""
        ...

    def add_outcome(self, partition: Partition, outcome: SkillOutcome) -> SkillOutcome:
        """Append how a run of a skill went, durably, which reviews the skill; return what the ledger holds of this run.

        Args:
            partition: Where the skill lives.
            outcome: How it went.

        Raises:
            NotFoundError: The skill was erased meanwhile, with all that was there.
        """
        ...

    def outcomes(
        self, partitions: Sequence[Partition], memory_ids: Sequence[str]
    ) -> Mapping[tuple[Partition, str, int], Tally]:
        """Return how the versions of these skills went, counted, by place, id and version; without runs: left out."""
        ...

    def add_shared(self, partition: Partition, items: Sequence[SharedItem]) -> None:
        """Note that an agent shared items, durably, with an event for each. What is noted already is left as it is.

        Args:
            partition: Where what they were made of lives.
            items: What was shared, by whom.
        """
        ...

    def shared_by(self, scope: Scope, knowledge_id: str, digest: str) -> str | None:
        """Return which agent of this tenant, user and project was the first to share exactly this item; none: no one.

        Args:
            scope: Who asks.
            knowledge_id: The item.
            digest: Of what it says (`rules.standardizing.item_digest`).
        """
        ...
