"""The reviews of recalled memories: recall only notes them, who writes anyway writes them down (DESIGN, invariant 8)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from remegraph.kit.buffering import WriteBuffer
from remegraph.models import REVIEWING, Hit, Partition, Review
from remegraph.rules.reviewing import review_kinds

if TYPE_CHECKING:
    from remegraph.ports import Archive

__all__ = ["ReviewBuffer"]


class ReviewBuffer(WriteBuffer[Review]):
    """Reviews that are not written yet.

    Args:
        archive: Where they are written.
    """

    def __init__(self, archive: Archive) -> None:
        super().__init__(archive.add_reviews)

    def note(self, hits: Iterable[Hit], at: datetime) -> bool:
        """Note that these memories were returned; tell whether it is time to write.

        Args:
            hits: What recall returned.
            at: When.
        """
        hits = list(hits)
        kinds = review_kinds([hit.score for hit in hits])
        return self.put(
            Review(partition=hit.partition, memory_id=hit.record_id, kind=kind, at=at)
            for hit, kind in zip(hits, kinds, strict=True)
        )

    def waiting(self, memory_id: str) -> Sequence[Review]:
        """Return what is noted of a memory, oldest first."""
        return [review for review in self.noted() if review.memory_id == memory_id]

    def times(self) -> Mapping[tuple[Partition, str], Sequence[datetime]]:
        """Return when each memory that is noted was reviewed, what merely came along left out, by place and id."""
        found: defaultdict[tuple[Partition, str], list[datetime]] = defaultdict(list)
        for review in self.noted():
            if review.kind in REVIEWING:
                found[review.partition, review.memory_id].append(review.at)
        return found
