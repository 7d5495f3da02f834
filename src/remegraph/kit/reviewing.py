"""The reviews of recalled memories: recall only notes them, who writes anyway writes them down (docs/invariants.md, 8)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from remegraph.kit.health import Health
from remegraph.kit.noting import Notes
from remegraph.models import REVIEWING, Access, Hit, Memory, Partition, Review
from remegraph.rules.reviewing import review_kinds

if TYPE_CHECKING:
    from remegraph.ports import Archive

__all__ = ["ReviewBuffer"]

_MANY = 256
"""After each so many, they should be written down soon."""


class ReviewBuffer(Notes[Review]):
    """Reviews that are not written yet.

    Args:
        archive: Where they are written.
        health: Told of reviews that cannot be written.
    """

    def __init__(self, archive: Archive, health: Health) -> None:
        super().__init__(_MANY, health)
        self._archive = archive

    def note(self, hits: Iterable[Hit], at: datetime) -> bool:
        """Note that these memories were returned; tell whether it is time to write.

        Args:
            hits: What recall returned.
            at: When.
        """
        hits = list(hits)
        kinds = review_kinds([hit.score for hit in hits])
        return self.add(
            [
                Review(partition=hit.partition, memory_id=hit.record_id, kind=kind, at=at)
                for hit, kind in zip(hits, kinds, strict=True)
            ]
        )

    def note_used(self, memories: Iterable[Memory], at: datetime) -> bool:
        """Note that an answer drew on these memories; tell whether it is time to write.

        Args:
            memories: The memories.
            at: When.
        """
        return self.add(
            [Review(partition=memory.partition, memory_id=memory.memory_id, kind="used", at=at) for memory in memories]
        )

    def waiting(self, memory_id: str) -> Sequence[Review]:
        """Return what is noted of a memory, oldest first."""
        return [review for review in self.noted() if review.memory_id == memory_id]

    def accesses(self) -> Mapping[tuple[Partition, str], Sequence[Access]]:
        """Return each review of the memories that are noted, what merely came along left out, by place and id."""
        found: defaultdict[tuple[Partition, str], list[Access]] = defaultdict(list)
        for review in self.noted():
            if review.kind in REVIEWING:
                found[review.partition, review.memory_id].append(Access(review.at, review.kind == "used"))
        return found

    def _write(self, taken: Sequence[Review]) -> None:
        self._archive.add_reviews(taken)
