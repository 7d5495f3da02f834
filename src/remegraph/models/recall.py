"""Results of a recall: hits with their reasons, memories traced to their words, injections, and profiles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Generic, Literal, TypeVar

from pydantic import BaseModel, Field

from remegraph.models.base import AwareTime, Record, Text, Token
from remegraph.models.changes import Event
from remegraph.models.memories import LIVE, EnforcementLevel, Evidence, Link, Memory, Origin, Status, TopicType
from remegraph.models.messages import Block, BlockSummary, StoredMessage
from remegraph.models.scope import Partition
from remegraph.settings import Perspective

__all__ = [
    "Candidate",
    "Chunk",
    "Depth",
    "Eviction",
    "FieldValue",
    "Hit",
    "HitKind",
    "IndexState",
    "Injected",
    "Injection",
    "InjectionLayer",
    "LeftOut",
    "Profile",
    "ProfileField",
    "Quote",
    "Recall",
    "RecallFilter",
    "RecallMode",
    "Sensed",
    "Standing",
    "Trace",
    "Trigger",
    "TriggerKind",
    "Workspace",
]

S_co = TypeVar("S_co", bound=BaseModel, covariant=True)


HitKind = Literal["memory", "block", "message"]
Depth = Literal["summaries", "memories", "blocks", "messages"]
"""memories; index entries (blocks), too; raw messages, too. summaries: only index entries, no memory or message."""
RecallMode = Literal["exact", "semantic", "temporal", "associative", "hybrid"]
"""exact: only what contains the query verbatim; semantic: by vectors alone; temporal: what was said in the time that
the query names, in order, with causes and effects whenever they were said; if it names no time,
what it finds by words and vectors, likewise; associative: with what the memories found are linked to, and what
carries tags found beside those that the query names; hybrid: words and vectors."""
Standing = Literal["current", "expired", "superseded"]
"""expired: the time until which it was true is past; superseded: another memory replaced it."""
LeftOut = Literal["duplicate", "at hand", "budget", "cap", "unlikely"]
"""Why the context omits a hit: the context or the question says it already, it rests on words that the caller
already has, there was no room, its layer or source had its share, or nothing was relevant enough."""
IndexState = Literal["chroma", "pgvector", "exact", "sql", "none"]
"""chroma, pgvector: the index; exact: few enough vectors to compare them all; sql: all of them, without an index."""

InjectionLayer = Literal["core", "scope", "query"]
"""core: rules that always hold; scope: what applies to this project or language; query: what bears on what was said."""
TriggerKind = Literal["past", "decision", "own", "entity", "turn", "asked"]
"""past: words about earlier times; decision: something is to be chosen; own: a question about what is the person's own;
entity: memory knows a name that is not in view; turn: it is time to look again; asked: the caller wants it."""


class Chunk(Record):
    """Something in working memory for a task; events on the same matter are one chunk."""

    chunk_id: str = Field(description="Its id, while it is held.")
    content: Text = Field(description="What was sensed, one line per event.")
    created_at: AwareTime = Field(description="When its first line was sensed.")
    last_accessed: AwareTime = Field(description="When it was last added to, rehearsed or recalled.")
    rehearsals: int = Field(default=0, ge=0, description="How often it was rehearsed.")
    links: tuple[str, ...] = Field(default=(), description="Chunks of the same task that it shares words with.")


class Eviction(Record):
    """A chunk that was evicted, and why."""

    chunk: Chunk = Field(description="The chunk, as it was.")
    reason: str = Field(description="Why it and no other.")


class Sensed(Record):
    """An effect of an event."""

    attention: float = Field(ge=0, le=1, description="The attention that it got.")
    attended: bool = Field(description="Whether that was enough; if not, it is forgotten after its time to live.")
    chunk: Chunk | None = Field(default=None, description="The chunk of working memory that holds it, if attended.")
    evicted: tuple[Eviction, ...] = Field(default=(), description="What had to make room.")


class RecallFilter(Record):
    """Which memories a recall may return; conditions that are not given let everything pass.

    `true_at` and `known_at` ask as of another time: what was true in the world then, and what was recorded by then, in
    the version of then. Both together: what was then believed to be true.
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
        """Whether it asks for memories that the indexes of live memories do not hold."""
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
    relevance: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="How likely it bears on the question, on one scale for all stores and embedders; under .5 rather not. "
        "None: it was not found by its words or meaning.",
    )
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
    recent: bool = Field(
        default=False, description="Whether it was said so lately that no memory can be made of it yet (messages)."
    )
    perspective: Perspective = Field(default="third-person", description="Who tells it: first-person, the agent.")
    origin: Origin | None = Field(default=None, description="From whom it came, where another agent or a pack gave it.")

    @property
    def granted(self) -> bool:
        """Whether it is another agent's own memory, read by its grant."""
        return self.origin is not None and self.origin.via == "granted"


class Candidate(Record):
    """Something found, with its history; `hit.why` and `hit.relevance` say why it was found."""

    hit: Hit = Field(description="What was found.")
    left_out: LeftOut | None = Field(default=None, description="Why the context does not show it; None: it does.")


class Recall(Record):
    """The answer to a query. No model was called for it."""

    query: Text = Field(description="The query as given.")
    self_memories: tuple[Memory, ...] = Field(default=(), description="What the agent knows of itself: always loaded.")
    active: tuple[Memory, ...] = Field(
        default=(), description="Memories at hand without a query; where the settings ask for it."
    )
    topics: tuple[str, ...] = Field(default=(), description="Keys of the topics that were searched.")
    memories: tuple[Hit, ...] = Field(default=(), description="Topic memories, best first.")
    blocks: tuple[Hit, ...] = Field(default=(), description="Index entries, best first; where asked for.")
    messages: tuple[Hit, ...] = Field(default=(), description="Raw messages, best first; where asked for.")
    beside: tuple[Hit, ...] = Field(
        default=(), description="What else the context shows: what is at stake, and more of what was found."
    )
    working: tuple[Chunk, ...] = Field(default=(), description="What is in mind for the task asked for.")
    index: IndexState = Field(default="none", description="How vectors were searched.")
    degraded: tuple[str, ...] = Field(default=(), description="What could not be used, and why.")
    context: str = Field(default="", description="The found, as data for a prompt, within the token budget.")
    left_out: dict[str, LeftOut] = Field(default_factory=dict, description="What the context leaves out, by id.")
    unlikely: tuple[Hit, ...] = Field(
        default=(), description="What was found where nothing was relevant enough (`recall.threshold`)."
    )
    seconds: float = Field(default=0.0, ge=0, description="Time it took.")

    @property
    def confidence(self) -> float:
        """How likely anything found bears on the question, 0 to 1: the relevance of the most relevant; 0 of none."""
        found = (*self.memories, *self.blocks, *self.messages, *self.unlikely)
        return max((hit.relevance for hit in found if hit.relevance is not None), default=0.0)

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """All that was found, each with its signs and its place in the context: what the context shows comes first."""
        found = (*self.memories, *self.messages, *self.blocks, *self.beside, *self.unlikely)
        rows = [Candidate(hit=hit, left_out=self.left_out.get(hit.record_id)) for hit in found]
        return tuple(sorted(rows, key=lambda row: row.left_out is not None))


class Quote(Record):
    """Evidence, found in the raw message."""

    message: StoredMessage = Field(description="The message.")
    start: int = Field(ge=0, description="Where the words begin in the text.")
    end: int = Field(ge=0, description="Where they end.")
    attachment: str = Field(default="", description="SHA-256 of the attachment whose reading holds them.")

    @property
    def text(self) -> str:
        """Their text: the words of the message, or the reading of its attachment."""
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


class Workspace(Record):
    """The current work: the project and the programming languages of a working directory."""

    project: Token | None = Field(default=None, min_length=1, description="Name of the project, if it shows.")
    languages: tuple[str, ...] = Field(
        default=(), description="Programming languages, as in `lang:<name>`, most first."
    )


class Trigger(Record):
    """Why memory was searched for what was said."""

    kind: TriggerKind = Field(description="past, decision, own, entity, turn or asked.")
    words: Text = Field(default="", description="The words that tell, or the number of the turn.")

    @property
    def reason(self) -> str:
        """The reason as a sentence."""
        return {
            "past": f"It speaks of earlier times: {self.words!r}.",
            "decision": f"Something is to be decided: {self.words!r}.",
            "own": f"It asks about the person's own matters: {self.words!r}.",
            "entity": f"It names what memory knows and the conversation does not show: {self.words!r}.",
            "turn": f"Turn {self.words}: it is time to look again.",
            "asked": "The caller asks for it.",
        }[self.kind]


class Injected(Record):
    """One thing that the agent is shown."""

    layer: InjectionLayer = Field(description="core, scope or query.")
    hit: Hit = Field(description="The memory, or, of the query layer, also an index entry or a message.")
    shortened: bool = Field(default=False, description="Whether it is shown by its summary, for want of room.")


class Injection(Record):
    """The notes for an agent at one turn, in the order of the layers. No model was called for it."""

    context: str = Field(default="", description="All of it, as data for a prompt; empty where there is nothing.")
    shown: tuple[Injected, ...] = Field(default=(), description="What the context shows, in order.")
    triggers: tuple[Trigger, ...] = Field(
        default=(), description="Why the query layer was looked up; none: it was not."
    )
    left_out: dict[str, LeftOut] = Field(default_factory=dict, description="What it leaves out, by id, and why.")
    turn: int = Field(ge=0, description="Number of the person's messages so far.")
    budget: int = Field(ge=1, description="Tokens that the context might have.")
    tokens: int = Field(ge=0, description="Tokens that it has.")
    degraded: tuple[str, ...] = Field(default=(), description="What could not be used, and why.")
    seconds: float = Field(default=0.0, ge=0, description="Time it took.")

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids of what the context shows."""
        return tuple(item.hit.record_id for item in self.shown)


@dataclass(frozen=True, slots=True)
class FieldValue:
    """A value of a field, past, present or to come, from one memory."""

    value: Any
    """As its type; None where it cannot be read as that."""
    problem: str
    """Why it cannot be read; empty if it can."""
    memory: Memory
    """The memory, in the version that says so; `slot_value` is what was stored."""
    words: tuple[Quote, ...]
    """The words it cites, as far as they may be seen."""
    since: datetime
    """From when on it is true, or else when it was said."""
    until: datetime | None
    """Until when it was true, or when something else was said; None if that is open."""

    @property
    def corrected(self) -> bool:
        """Whether it was never true."""
        return self.memory.corrected


@dataclass(frozen=True, slots=True)
class ProfileField:
    """One field of a profile."""

    name: str
    slot: str
    """The slot of its memories: a subject and its attribute."""
    value: Any = None
    """The present value, as the field's type; None where it is unknown."""
    known: bool = False
    """Whether any known value is of the field's type."""
    problem: str = ""
    """Why nothing is known, or which values could not be read."""
    disputed: bool = False
    """Whether memories disagree about it: `value` is what was said last, `current` has all of them."""
    current: tuple[FieldValue, ...] = ()
    """Present values, oldest first: one for each item of a list, and whatever cannot be read as its type."""
    history: tuple[FieldValue, ...] = ()
    """Past and future values, oldest first."""

    @property
    def words(self) -> tuple[Quote, ...]:
        """The words that it cites."""
        return tuple(quote for each in self.current for quote in each.words)


@dataclass(frozen=True, slots=True)
class Profile(Generic[S_co]):
    """A topic in the form of a pydantic model."""

    topic: str
    """Its key."""
    filled: S_co | None
    """The model, filled: fields that are unknown have their defaults. None where a required one is unknown."""
    problem: str
    """Why there is no filled model; empty if there is one."""
    fields: Mapping[str, ProfileField]
    """All fields, by their names."""
    beside: tuple[Memory, ...]
    """The live memories of the topic that fill no field, newest first."""

    def __getitem__(self, name: str) -> ProfileField:
        """Return a field.

        Args:
            name: Its name.
        """
        return self.fields[name]

    def __iter__(self) -> Iterator[ProfileField]:
        return iter(self.fields.values())

    @property
    def known(self) -> dict[str, Any]:
        """The values that are known, by field."""
        return {field.name: field.value for field in self if field.known}

    @property
    def unknown(self) -> tuple[str, ...]:
        """The names of the fields without a known value."""
        return tuple(field.name for field in self if not field.known)
