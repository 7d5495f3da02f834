"""What working memory holds, and what became of something sensed. None of it is ever stored."""

from __future__ import annotations

from pydantic import Field

from remegraph.models.base import AwareTime, Record, Text

__all__ = ["Chunk", "Eviction", "Sensed"]


class Chunk(Record):
    """Something that an agent has in mind for a task; what is sensed of the same matter is one chunk."""

    chunk_id: str = Field(description="Its id, while it is held.")
    content: Text = Field(description="What was sensed, one line per event.")
    created_at: AwareTime = Field(description="When its first line was sensed.")
    last_accessed: AwareTime = Field(description="When it was last added to, rehearsed or recalled.")
    rehearsals: int = Field(default=0, ge=0, description="How often it was rehearsed.")
    links: tuple[str, ...] = Field(default=(), description="Chunks of the same task that it shares words with.")


class Eviction(Record):
    """A chunk that had to go, and why."""

    chunk: Chunk = Field(description="The chunk, as it was.")
    reason: str = Field(description="Why it and no other.")


class Sensed(Record):
    """What became of an event."""

    attention: float = Field(ge=0, le=1, description="The attention that it got.")
    attended: bool = Field(description="Whether that was enough; if not, it is forgotten after its time to live.")
    chunk: Chunk | None = Field(default=None, description="The chunk of working memory that holds it, if attended.")
    evicted: tuple[Eviction, ...] = Field(default=(), description="What had to make room.")
