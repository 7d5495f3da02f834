"""What is known about a memory beside what it says (F8), and the reviews that it is counted from."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Literal, NamedTuple

from pydantic import Field

from remegraph.models.base import AwareTime, Record
from remegraph.models.memories import Category, Source
from remegraph.models.scope import Partition
from remegraph.settings import Perspective

__all__ = ["REVIEWING", "Access", "MemoryMetadata", "Review", "ReviewKind", "Reviews"]

ReviewKind = Literal["seen", "hit", "used"]
"""seen: recall returned it beside what was asked for; hit: as what was asked for; used: an answer drew on it."""

REVIEWING: frozenset[ReviewKind] = frozenset({"hit", "used"})
"""What postpones forgetting: what merely came along does not, or no noise that resembles questions would ever go."""


class Access(NamedTuple):
    """One time that a memory was present: it was learned, or it came back."""

    at: datetime
    used: bool = False
    """Whether an answer drew on it."""


class Review(Record):
    """One time that a memory came back. Reviews are appended, never versions of the memory."""

    partition: Partition = Field(description="Where the memory lives.")
    memory_id: str = Field(description="The memory.")
    kind: ReviewKind = Field(default="hit", description="How it came back.")
    at: AwareTime = Field(description="When.")


class Reviews(Record):
    """The reviews of one memory, counted."""

    count: int = Field(default=0, ge=0, description="How often recall returned it.")
    used: int = Field(default=0, ge=0, description="How often an answer drew on it.")
    last: AwareTime | None = Field(default=None, description="When the newest was, of either.")

    @property
    def utility(self) -> float:
        """The share of its returns that answers drew on, 0 to 1; half where nothing is known, nearer to it the less."""
        return (self.used + 1) / (max(self.count, self.used) + 2)

    def noted(self, reviews: Iterable[Review]) -> Reviews:
        """Return them with more reviews counted.

        Args:
            reviews: Those that are not counted yet.
        """
        more = list(reviews)
        used = sum(review.kind == "used" for review in more)
        last = max((time for time in (self.last, *(review.at for review in more)) if time is not None), default=None)
        return Reviews(count=self.count + len(more) - used, used=self.used + used, last=last)


class MemoryMetadata(Record):
    """A memory's metadata in the terms of the memory layer RFC, section 2.9."""

    memory_id: str = Field(description="The memory.")
    memory_type: Category = Field(description="preference, fact, decision, emotion or episode.")
    source_session_id: str = Field(default="", description="The session or thread that it comes from, if one is known.")
    source_agent_id: str = Field(default="", description="The agent that learned it, if the scope names one.")
    access_count: int = Field(default=0, ge=0, description="How often recall returned it.")
    last_accessed_at: AwareTime | None = Field(
        default=None, description="When recall last returned or an answer last used it."
    )
    utility_score: float = Field(
        default=0.5, ge=0, le=1, description="How often answers drew on it when it was returned; half: not known."
    )
    sentiment: float | None = Field(
        default=None, ge=-1, le=1, description="Where a model or a caller gave it: -1 (bad) to 1 (good)."
    )
    source: Source = Field(description="How it was written.")
    perspective: Perspective = Field(description="In whose voice.")
    extractor_model_id: str = Field(description="The model that wrote it, or `extractive`.")
    previous_version_id: str | None = Field(
        default=None, description="`id@version` of the version before, or the memory that it replaced, if any."
    )
