"""The reviews of recalled memories: recall only notes them, who writes anyway writes them down (DESIGN, invariant 8)."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from remegraph.models import REVIEWING, Access, Hit, Memory, Partition, Review
from remegraph.rules.reviewing import review_kinds

if TYPE_CHECKING:
    from remegraph.ports import Archive

__all__ = ["ReviewBuffer"]

_MANY = 256
"""After each so many, they should be written down soon."""


class ReviewBuffer:
    """Reviews that are not written yet. Safe to use from any thread; what a crash takes was never promised.

    Args:
        archive: Where they are written.
    """

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._waiting: list[Review] = []

    def note(self, hits: Iterable[Hit], at: datetime) -> bool:
        """Note that these memories were returned; tell whether it is time to write.

        Args:
            hits: What recall returned.
            at: When.
        """
        hits = list(hits)
        kinds = review_kinds([hit.score for hit in hits])
        return self._add(
            Review(partition=hit.partition, memory_id=hit.record_id, kind=kind, at=at)
            for hit, kind in zip(hits, kinds, strict=True)
        )

    def note_used(self, memories: Iterable[Memory], at: datetime) -> bool:
        """Note that an answer drew on these memories; tell whether it is time to write.

        Args:
            memories: The memories.
            at: When.
        """
        return self._add(
            Review(partition=memory.partition, memory_id=memory.memory_id, kind="used", at=at) for memory in memories
        )

    def _add(self, reviews: Iterable[Review]) -> bool:
        with self._lock:
            before = len(self._waiting)
            self._waiting.extend(reviews)
            return before // _MANY < len(self._waiting) // _MANY

    def waiting(self, memory_id: str) -> Sequence[Review]:
        """Return what is noted of a memory, oldest first."""
        with self._lock:
            return [review for review in self._waiting if review.memory_id == memory_id]

    def accesses(self) -> Mapping[tuple[Partition, str], Sequence[Access]]:
        """Return each review of the memories that are noted, what merely came along left out, by place and id."""
        found: defaultdict[tuple[Partition, str], list[Access]] = defaultdict(list)
        with self._lock:
            for review in self._waiting:
                if review.kind in REVIEWING:
                    found[review.partition, review.memory_id].append(Access(review.at, review.kind == "used"))
        return found

    def flush(self) -> None:
        """Write down what is noted, once another write of it is over. If that fails, it stays noted."""
        with self._writing:
            with self._lock:
                taken, self._waiting = self._waiting, []
            try:
                self._archive.add_reviews(taken)
            except BaseException:
                with self._lock:
                    self._waiting[:0] = taken
                raise
