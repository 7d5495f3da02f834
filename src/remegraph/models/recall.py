"""What comes back: hits with their reasons, and the trace of a memory to its words."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

from pydantic import Field

from remegraph.models.base import AwareTime, Record, Text, Token
from remegraph.models.blocks import Block, BlockSummary
from remegraph.models.changes import Event
from remegraph.models.memories import LIVE, EnforcementLevel, Evidence, Link, Memory, Origin, Status, TopicType
from remegraph.models.messages import StoredMessage
from remegraph.models.scope import Partition
from remegraph.models.working import Chunk
from remegraph.settings import Perspective

__all__ = [
    "Depth",
    "Hit",
    "HitKind",
    "IndexState",
    "LeftOut",
    "Quote",
    "Recall",
    "RecallFilter",
    "RecallMode",
    "Standing",
    "Trace",
]

HitKind = Literal["memory", "block", "message"]
Depth = Literal["summaries", "memories", "blocks", "messages"]
"""memories; index entries (blocks), too; raw messages, too. summaries: index entries alone, no memory or message."""
RecallMode = Literal["exact", "semantic", "temporal", "associative", "hybrid"]
"""exact: only what holds the query to the letter; semantic: by vectors alone; temporal: what was said in the time that
the query names, in its order, with what led to it and what came of it whenever that was said; where it names no time,
what it finds by words and vectors, in the same way; associative: with what the memories found are linked to, and what
carries tags that stand beside those that the query names; hybrid: words and vectors."""
Standing = Literal["current", "expired", "superseded"]
"""expired: it says itself until when it was true, and that is past; superseded: another memory replaced it."""
LeftOut = Literal["duplicate", "budget", "cap"]
"""Why the context does not show what was found: it says so already, there was no room, or its layer or its source had
its share."""
IndexState = Literal["chroma", "exact", "sql", "none"]
"""chroma: the index; exact: few enough vectors to compare them all; sql: all of them, as there was no index."""


class RecallFilter(Record):
    """Which memories a recall may return; conditions that are not given let everything pass.

    `true_at` and `known_at` ask as of another time: what was true in the world then, and what was recorded by then, in
    the version of then. Both together: what was held then to be true.
    """

    types: tuple[TopicType, ...] = Field(default=(), description="Topics of one of these types.")
    tags: tuple[Token, ...] = Field(default=(), description="Memories with one of these tags.")
    statuses: tuple[Status, ...] = Field(
        default=(), description="Memories in one of these statuses; unless given, live. Proposed ones: never."
    )
    min_trust: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="Only what is trusted at least so far; 0: all. Unless given, messages and index entries that draw on "
        "what a tool or a document says stay out, and memories where nobody approved them.",
    )
    true_at: AwareTime | None = Field(default=None, description="Memories that were true at this time.")
    known_at: AwareTime | None = Field(default=None, description="Memories and messages as they were at this time.")

    @property
    def wanted(self) -> frozenset[Status]:
        """The statuses that pass: what was replaced since may have been true before; what is proposed never does."""
        once: frozenset[Status] = frozenset() if self.true_at is None else frozenset({"superseded"})
        return (frozenset(self.statuses) or LIVE | once) - {"proposed"}

    @property
    def looks_back(self) -> bool:
        """Whether it asks for what the indexes of live memories do not hold."""
        return self.known_at is not None or not self.wanted <= LIVE

    def admits(self, memory: Memory) -> bool:
        """Return whether a memory passes, in the version given.

        Args:
            memory: In the version of the time asked for.
        """
        return (
            memory.status in self.wanted
            and memory.trust >= (self.min_trust or 0)
            and (not self.types or memory.topic.type in self.types)
            and (not self.tags or not set(self.tags).isdisjoint(memory.tags))
            and (self.true_at is None or memory.held_at(self.true_at))
        )


class Hit(Record):
    """One thing found, with its score and what it is made of."""

    kind: HitKind = Field(description="memory, block (an index entry) or message (raw).")
    record_id: str = Field(description="memory_id, block_id or message_id.")
    partition: Partition = Field(description="Where it lives.")
    text: Text = Field(description="The content.")
    summary: Text = Field(default="", description="The content in short (memories).")
    enforcement: EnforcementLevel | None = Field(default=None, description="How binding it is (policies).")
    score: float = Field(description="The higher the better; comparable within one recall.")
    contributions: dict[str, float] = Field(default_factory=dict, description="What the score is the sum of.")
    why: str = Field(default="", description="The same in words.")
    topic: str = Field(default="", description="Key of its topic (memories).")
    time: AwareTime = Field(description="When it was said, or when the block began.")
    block_ids: tuple[str, ...] = Field(default=(), description="The blocks it leads back to.")
    evidence: tuple[Evidence, ...] = Field(default=(), description="The words it came from (memories).")
    status: str = Field(default="active", description="Status (memories).")
    version: int = Field(default=0, ge=0, description="Its version (memories); 0 for what has none.")
    counterpart_of: str = Field(default="", description="The hit that it came along with: it may say the contrary.")
    layer: str = Field(default="", description="Layer (memories).")
    trust: float = Field(default=1.0, ge=0, le=1, description="How far those who said it are believed.")
    importance: float = Field(default=0.5, ge=0, le=1, description="How important it is (memories).")
    confidence: float = Field(
        default=1.0,
        ge=0,
        le=1,
        description="How sure it is that it holds: of memories, trust weighed by how often it was said and contradicted.",
    )
    said: int = Field(default=1, ge=1, description="How often it was said (memories).")
    age: timedelta = Field(default=timedelta(0), description="From when it was said to the recall.")
    standing: Standing = Field(default="current", description="Whether it holds now (memories).")
    valid_to: AwareTime | None = Field(default=None, description="Until when it was or is true, if known (memories).")
    thread: Text = Field(default="", description="The conversation (messages).")
    seq: int = Field(default=0, ge=0, description="Place in the partition (messages).")
    perspective: Perspective = Field(default="third-person", description="Who tells it: first-person, the agent.")
    origin: Origin | None = Field(default=None, description="From whom it came, where another agent or a pack gave it.")

    @property
    def granted(self) -> bool:
        """Whether it is another agent's own memory, read by its leave."""
        return self.origin is not None and self.origin.via == "granted"


class Recall(Record):
    """The answer to a query. No model was called for it."""

    query: Text = Field(description="The query as given.")
    self_memories: tuple[Memory, ...] = Field(default=(), description="What the agent knows of itself: always loaded.")
    active: tuple[Memory, ...] = Field(default=(), description="What stands ready; where the settings ask for it.")
    topics: tuple[str, ...] = Field(default=(), description="Keys of the topics that were searched.")
    memories: tuple[Hit, ...] = Field(default=(), description="Topic memories, best first.")
    blocks: tuple[Hit, ...] = Field(default=(), description="Index entries, best first; where asked for.")
    messages: tuple[Hit, ...] = Field(default=(), description="Raw messages, best first; where asked for.")
    working: tuple[Chunk, ...] = Field(default=(), description="What is in mind for the task asked for.")
    index: IndexState = Field(default="none", description="How vectors were searched.")
    degraded: tuple[str, ...] = Field(default=(), description="What could not be used, and why.")
    context: str = Field(default="", description="The found, as data for a prompt, within the token budget.")
    left_out: dict[str, LeftOut] = Field(default_factory=dict, description="What the context leaves out, by id.")
    seconds: float = Field(default=0.0, ge=0, description="Time it took.")


class Quote(Record):
    """Evidence, found again in the raw message."""

    message: StoredMessage = Field(description="The message.")
    start: int = Field(ge=0, description="Where the words begin in the text.")
    end: int = Field(ge=0, description="Where they end.")
    attachment: str = Field(default="", description="SHA-256 of the attachment whose reading holds them.")

    @property
    def text(self) -> str:
        """What they stand in: the words of the message, or what is in its attachment."""
        return (self.message.reading(self.attachment) or "") if self.attachment else self.message.text

    @property
    def words(self) -> str:
        """The exact words."""
        return self.text[self.start : self.end]


class Trace(Record):
    """From a memory down to the exact words."""

    memory: Memory = Field(description="The memory, in its head version.")
    versions: tuple[Memory, ...] = Field(default=(), description="All its versions, oldest first.")
    quotes: tuple[Quote, ...] = Field(default=(), description="Its evidence, in the raw messages.")
    blocks: tuple[Block, ...] = Field(default=(), description="Its blocks.")
    summaries: tuple[BlockSummary, ...] = Field(default=(), description="Their index entries.")
    messages: tuple[StoredMessage, ...] = Field(default=(), description="All messages of its blocks.")
    links: tuple[Link, ...] = Field(default=(), description="Its links.")
    events: tuple[Event, ...] = Field(default=(), description="Its journal.")
    missing: tuple[str, ...] = Field(default=(), description="What the trace does not find any more, and why.")
