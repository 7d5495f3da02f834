"""Topics and their memories (R4), with the status machine, links and reviews, and what is known about them (F8)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from remegraph.models.base import AwareTime, Json, Record, Text, Token
from remegraph.models.scope import Partition
from remegraph.settings import Mode, Perspective

__all__ = [
    "CORE",
    "FORGOTTEN",
    "LIVE",
    "MOVES",
    "REVIEWING",
    "Access",
    "Category",
    "EnforcementLevel",
    "Evidence",
    "Kind",
    "Layer",
    "Link",
    "LinkType",
    "Memory",
    "MemoryClass",
    "MemoryMetadata",
    "Origin",
    "Review",
    "ReviewKind",
    "Reviews",
    "Source",
    "Status",
    "Tier",
    "Topic",
    "TopicEdge",
    "TopicGraph",
    "TopicNode",
    "TopicType",
    "may_move",
]

TopicType = Literal["self", "personal", "task", "tool"]
Kind = Literal["profile", "workflow", "semantic", "episode"]
Category = Literal["preference", "fact", "decision", "emotion", "episode"]
Layer = Literal["sensory", "working", "episodic", "long_term", "procedural"]
Source = Mode
Tier = Literal["active", "long_term", "compressed"]
"""active: available without a query; compressed: abstracted from others; long_term: everything else."""
MemoryClass = Literal["policy", "episodic", "mixed"]
"""policy: a rule, which is replaced only by name; episodic: may expire and be replaced; mixed: both."""
EnforcementLevel = Literal["soft", "hard"]
"""soft: a rule to follow unless something speaks against it; hard: one without exceptions."""
LinkType = Literal[
    "derived_from", "causes", "depends_on", "is_a", "contradicts", "may_contradict", "superset_of", "related",
    "supersedes", "settled",
]  # fmt: skip
Status = Literal[
    "proposed", "active", "disputed", "low_priority", "archived", "quarantined", "superseded", "deleted", "purged",
    "erased",
]  # fmt: skip

CORE = 0.9
"""Importance from which a memory is a core rule: only a person, or an explicit call, sets or replaces one."""

MOVES: dict[Status, frozenset[Status]] = {
    "proposed": frozenset({"active", "disputed", "quarantined", "deleted", "erased"}),
    "active": frozenset({"disputed", "low_priority", "archived", "quarantined", "superseded", "deleted", "erased"}),
    "disputed": frozenset({"active", "low_priority", "archived", "quarantined", "superseded", "deleted", "erased"}),
    "low_priority": frozenset({"active", "disputed", "archived", "quarantined", "superseded", "deleted", "erased"}),
    "archived": frozenset({"active", "superseded", "deleted", "purged", "erased"}),
    "quarantined": frozenset({"active", "disputed", "superseded", "deleted", "erased"}),
    "superseded": frozenset({"active", "archived", "deleted", "purged", "erased"}),
    "deleted": frozenset({"active", "purged", "erased"}),
    "purged": frozenset({"erased"}),
    "erased": frozenset(),
}
"""The one status machine: from each status, the statuses it may move to."""

LIVE: frozenset[Status] = frozenset({"active", "disputed", "low_priority"})
"""The statuses that recall returns by default and the vector index holds."""


FORGOTTEN: Status = "deleted"
"""The status of what was taken back: nothing of it is shown until it is restored."""

ReviewKind = Literal["seen", "hit", "used"]
"""seen: recall returned it beside what was asked for; hit: as what was asked for; used: an answer drew on it."""

REVIEWING: frozenset[ReviewKind] = frozenset({"hit", "used"})
"""Uses that postpone forgetting. Being found along with others is not one, or noise that resembles questions would never go."""


def may_move(old: Status, new: Status) -> bool:
    """Return whether a memory may go from status `old` to `new` (staying is always allowed)."""
    return old == new or new in MOVES[old]


class Topic(Record):
    """A shelf: what one Sub Agent owns."""

    type: TopicType = Field(description="self, personal (a person), task (a domain) or tool (a tool or pair).")
    target_name: Token = Field(min_length=1, description="Whom or what it is about.")
    description: str = Field(default="", description="What belongs on this shelf, for routing.")

    @property
    def key(self) -> str:
        """Its name in the topic index: `type:target_name`."""
        return f"{self.type}:{self.target_name}"

    @property
    def target(self) -> str:
        """Its target name in the form used for comparison: case and outer space do not make another shelf."""
        return self.target_name.strip().casefold()


class Evidence(Record):
    """Words in a raw message that support a memory."""

    message_id: Token = Field(description="The message.")
    quote: Text = Field(
        min_length=1, description="The words, as they stand in the message, or in the reading of its attachment."
    )
    block_id: str = Field(description="The block through which the message was read.")
    attachment: str = Field(
        default="", pattern="^([0-9a-f]{64})?$", description="SHA-256 of the attachment in whose reading they stand."
    )


class Origin(Record):
    """The origin of a memory that another agent, or a pack, gave."""

    via: Literal["absorbed", "pack", "consensus", "granted"] = Field(
        description="absorbed: shared knowledge; pack: a file; consensus: agents who share a library agreed on it;"
        " granted: it is the other agent's own, and only read."
    )
    agents: tuple[Token, ...] = Field(default=(), description="The agents that bear it out, the first one first.")
    claimed: Token = Field(default="", description="The agent that it is said to come from, where nothing proves it.")
    knowledge_id: Token = Field(default="", description="The knowledge item it was made from.")
    pack_id: Token = Field(default="", description="The pack it came in.")
    at: AwareTime = Field(description="When it came.")


class Memory(Record):
    """One thing remembered, in one version. Versions are immutable; the id is stable."""

    memory_id: Token = Field(min_length=1, description="Stable id.")
    version: int = Field(default=1, ge=1, description="Number of this version, from 1.")
    partition: Partition = Field(description="Where it lives.")
    topic: Topic = Field(description="Its topic.")
    content: str = Field(min_length=1, description="What recall returns.")
    summary: str = Field(default="", description="The content in at most 50 words, or 50 Chinese characters.")
    when_to_use: str = Field(default="", description="The situation to recall it in; embedded instead of content.")
    kind: Kind = Field(default="semantic", description="Form of the payload (K).")
    category: Category = Field(default="fact", description="What sort of statement it is (F).")
    payload: Json = Field(default_factory=dict, description="Further content in the form of its kind, as JSON.")
    canonical_topic: str = Field(default="", description="Its slot: whose and which attribute, e.g. ann:lives_in.")
    slot_value: str = Field(default="", description="The value of the slot, where a model or a caller gives one.")
    slot_many: bool = Field(default=False, description="Whether the slot holds many values at once, e.g. ann:likes.")
    memory_class: MemoryClass = Field(default="episodic", description="policy, episodic or mixed (G).")
    enforcement_level: EnforcementLevel | None = Field(default=None, description="How binding it is (policies only).")
    applies_to: Token = Field(
        default="",
        description="global, project:<name> or lang:<name> (G); unless given, what its partition's project says.",
    )
    evidence: tuple[Evidence, ...] = Field(default=(), description="The words it came from.")
    block_ids: tuple[str, ...] = Field(default=(), description="The blocks it came from, oldest first.")
    layer: Layer = Field(default="episodic", description="The layer of memory it is in (B).")
    status: Status = Field(default="active", description="Its status.")
    importance: float = Field(default=0.5, ge=0, le=1, description="0 to 1; .9 and more only by a person.")
    resident: bool | None = Field(
        default=None, description="Whether it is active by decision: true, always; false, never; none: by use."
    )
    tags: tuple[str, ...] = Field(default=(), description="Labels.")
    language: str = Field(default="en", description="Language of the content: en or zh.")
    trust: float = Field(default=1.0, ge=0, le=1, description="The least trust of what it came from, 0 to 1.")
    origin: Origin | None = Field(default=None, description="From whom it came, where it is not the agent's own.")
    source: Source = Field(default="factual", description="How it was written (F).")
    extractor: str = Field(default="extractive", description="The model that wrote it, or `extractive`.")
    prompt: str = Field(default="", description="Digest of the prompt that the model was asked with, if one was.")
    perspective: Perspective = Field(default="third-person", description="Whose words: first-person, the agent's own.")
    usage: Literal["memory", "knowledge"] = Field(
        default="memory", description="knowledge: what is learned from conversations never changes it (F)."
    )
    merges: int = Field(default=0, ge=0, description="How often it was said again.")
    supersedes: tuple[str, ...] = Field(default=(), description="Other memories that this one replaces.")
    valid_from: AwareTime | None = Field(default=None, description="Since when it is true in the world, if known.")
    valid_to: AwareTime | None = Field(default=None, description="Until when it was true, if it is over.")
    said_at: AwareTime = Field(description="When its newest evidence was said.")
    recorded_at: AwareTime = Field(description="When this version was committed.")

    @model_validator(mode="before")
    @classmethod
    def _as_written_before(cls, fields: Any) -> Any:
        """Fill in `applies_to`, which old memories lack, and drop what was once read from their words."""
        if not isinstance(fields, dict):
            return fields
        if "claims" in fields:
            fields = {name: value for name, value in fields.items() if name != "claims"}
        if not fields.get("applies_to") and "partition" in fields:
            where = Partition.model_validate(fields["partition"])
            return fields | {"applies_to": where.applies_to}
        return fields

    @model_validator(mode="after")
    def _governed(self) -> Self:
        if self.enforcement_level is not None and self.memory_class != "policy":
            raise ValueError(f"enforcement_level is for policies, and this is {self.memory_class}")
        if self.applies_to != self.partition.applies_to and not self.language_it_applies_to:
            raise ValueError(f"applies_to is {self.applies_to!r}, and it lives in {self.partition.applies_to!r}")
        return self

    @property
    def indexed_text(self) -> str:
        """The text that is embedded and searched: `when_to_use` where there is one, else the content."""
        return self.when_to_use or self.content

    @property
    def priority(self) -> int:
        """Priority as the memory layer RFC counts it: 100 for full importance, 10 for each merge, at most 200."""
        return min(int(self.importance * 100 + 0.5) + 10 * self.merges, 200)

    @property
    def user_weight(self) -> float:
        """Its importance as the governance protocol counts it, 0 to 10."""
        return round(10 * self.importance, 6)

    @property
    def is_core(self) -> bool:
        """Whether it is a core rule, which is always given to the agent."""
        return self.importance >= CORE

    @property
    def firm(self) -> bool:
        """Whether no conversation can change it: it is knowledge, or a policy."""
        return self.usage == "knowledge" or self.memory_class == "policy"

    @property
    def language_it_applies_to(self) -> str:
        """The programming language of `lang:<name>`; empty where it applies to any."""
        kind, _, name = self.applies_to.partition(":")
        return name if kind == "lang" else ""

    @property
    def weighted_tags(self) -> dict[str, float]:
        """Tags with their weights: the given ones 1, `memory:<category>` .5, `session:<id>` .3 where one is recorded."""
        session = self.payload.get("session") if isinstance(self.payload, dict) else None
        derived = {f"memory:{self.category}": 0.5} | ({f"session:{session}": 0.3} if session else {})
        return derived | dict.fromkeys(self.tags, 1.0)

    def held_at(self, time: datetime) -> bool:
        """Return whether it was true in the world at a time, as far as known: from when it was said, unless it says when."""
        begins = self.valid_from or self.said_at
        return begins <= time and (self.valid_to is None or time < self.valid_to)

    @property
    def corrected(self) -> bool:
        """Whether it was never true: what was corrected never held."""
        return self.valid_to is not None and self.valid_to <= (self.valid_from or self.said_at)

    @property
    def live(self) -> bool:
        """Whether recall returns it by default."""
        return self.status in LIVE


class Link(Record):
    """A typed edge between two memories."""

    source_id: Token = Field(description="From this memory.")
    type: LinkType = Field(description="What the first is to the second.")
    target_id: Token = Field(description="To this memory.")
    reason: str = Field(default="", description="Why they are linked.")


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
        """The share of its returns that answers used, 0 to 1; the less is known, the nearer to one half."""
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


class TopicNode(Record):
    """A topic, and how many memories it has."""

    topic: Topic = Field(description="The topic.")
    memories: int = Field(default=0, ge=0, description="Live memories on it.")
    block_ids: tuple[str, ...] = Field(default=(), description="The blocks that they came from.")


class TopicEdge(Record):
    """A tie between two topics."""

    source: str = Field(description="Key of the first topic; of the centre in the edges of the centre.")
    target: str = Field(description="Key of the second topic.")
    block_ids: tuple[str, ...] = Field(default=(), description="Blocks that memories of both came from.")
    links: int = Field(default=0, ge=0, description="Links between memories of both.")


class TopicGraph(Record):
    """All topics that a scope sees. The centre is tied to all others: the agent's self bears on everything it knows."""

    centre: TopicNode = Field(description="What the agent knows of itself.")
    topics: tuple[TopicNode, ...] = Field(default=(), description="All others, by key.")
    edges: tuple[TopicEdge, ...] = Field(default=(), description="The edges of the centre first.")
