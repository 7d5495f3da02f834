"""What the steps of the summariser hand to each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal, Protocol

from remegraph.engine.metering import Meter
from remegraph.models import (
    Attachment,
    Block,
    BlockSummary,
    Category,
    Evidence,
    Link,
    Memory,
    MemoryChange,
    Reading,
    Scope,
    Shelf,
    Skill,
    StoredMessage,
    Topic,
)
from remegraph.prompts import Language
from remegraph.rules.objections import Objection
from remegraph.rules.trajectories import Run
from remegraph.settings import Mode, Perspective

__all__ = [
    "Action",
    "DescribeTask",
    "Digest",
    "DigestTask",
    "DistilTask",
    "Operation",
    "Pictured",
    "Proposal",
    "ProposeTask",
    "ReviewTask",
    "Thinker",
    "ThinkerOf",
    "Voice",
]


@dataclass(frozen=True, slots=True)
class Voice:
    """In whose voice memories are written; each of them records it."""

    mode: Mode = "factual"
    perspective: Perspective = "third-person"


@dataclass(frozen=True, slots=True)
class DigestTask:
    """Summarise a block and route it."""

    scope: Scope
    block: Block
    messages: tuple[StoredMessage, ...]
    shelves: tuple[Shelf, ...]
    """The topic index: shelves that exist, and those that may always be made for this block."""
    language: Language


@dataclass(frozen=True, slots=True)
class Digest:
    """The index entry of a block and the keys of the topics that it belongs to."""

    summary: BlockSummary
    topics: tuple[str, ...]
    notes: tuple[str, ...] = ()
    """What was read otherwise than it was written, or left out, and why."""
    forget: tuple[str, ...] = ()
    """Ids of messages that ask for something to be forgotten, or say what is meant."""
    correct: tuple[str, ...] = ()
    """Ids of messages that say that something remembered is wrong."""

    def without_topics(self) -> Digest:
        """Return the index entry alone."""
        return replace(self, topics=())


@dataclass(frozen=True, slots=True)
class Pictured:
    """An attachment that somebody looks at."""

    number: int
    """Of its message in the block, from 1."""
    message_id: str
    attachment: Attachment
    data: bytes


@dataclass(frozen=True, slots=True)
class DescribeTask:
    """Say what is in the attachments of a block."""

    messages: tuple[StoredMessage, ...]
    pictured: tuple[Pictured, ...]
    language: Language


@dataclass(frozen=True, slots=True)
class ProposeTask:
    """Compare a block with the memories of one topic."""

    scope: Scope
    shelf: Shelf
    attempt: int
    block: Block
    messages: tuple[StoredMessage, ...]
    reasons: tuple[str, ...]
    """What the reviser objected to in the last attempt."""
    language: Language
    now: datetime
    recipe: str
    similar: tuple[Memory, ...] = ()
    """The topic's memories: all, or, where they are too many, those that the block may be about."""
    settle: tuple[tuple[str, ...], ...] = ()
    """Ids of those among them that hold one slot together, which holds one value: what is decided of them needs no words
    of this block."""
    beside: tuple[Memory, ...] = ()
    """Memories of other topics of the same person: for knowing, not for changing."""
    before: tuple[StoredMessage, ...] = ()
    """What was said in the thread right before the block: it was dealt with already."""
    itself: tuple[Memory, ...] = ()
    """What the agent knows of itself; for a thinker that looks back as the agent."""
    wishes: tuple[StoredMessage, ...] = ()
    """Messages of the block that ask for something to be forgotten or put right."""
    meant: tuple[Memory, ...] = ()
    """What they may mean, of all topics of the person: to be changed only for them."""
    last: tuple[Operation, ...] = ()
    """What stands of the last attempt: this one amends it."""


Action = Literal["CREATE", "CORROBORATE", "REFINE", "SUPERSEDE", "CORRECT", "END", "CONTRADICT", "DELETE"]
"""What becomes of memories: see the prompt `propose`."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One change that a model wants, checked: each id was shown to it, each quote stands in its message."""

    action: Action
    evidence: tuple[Evidence, ...]
    targets: tuple[str, ...] = ()
    """Ids of the memories that it changes."""
    content: str = ""
    when_to_use: str = ""
    category: Category = "fact"
    canonical_topic: str = ""
    slot_value: str = ""
    slot_many: bool = False
    importance: float = 0.5
    valid_from: datetime | None = None
    valid_to: datetime | None = None


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a Sub Agent wants, or why it has nothing to say."""

    shelf: Shelf
    attempt: int
    similar: tuple[Memory, ...] = ()
    """The memories that it was compared with."""
    changes: tuple[MemoryChange, ...] = ()
    links: tuple[Link, ...] = ()
    failure: str = ""
    """Why it, or the rest of it, never became valid."""
    operations: tuple[Operation, ...] = ()
    """What the changes follow from, where a model decided."""
    notes: tuple[str, ...] = ()
    """What was read otherwise than it was written, or left out, and why."""


@dataclass(frozen=True, slots=True)
class ReviewTask:
    """Judge what the memories would be after the proposals."""

    messages: tuple[StoredMessage, ...]
    topics: tuple[Topic, ...]
    before: tuple[Memory, ...]
    after: tuple[Memory, ...]
    flags: tuple[Objection, ...]
    language: Language


@dataclass(frozen=True, slots=True)
class DistilTask:
    """Make a skill of a run that succeeded."""

    task: str
    """What it was about: its name."""
    run: Run
    language: Language


class Thinker(Protocol):
    """Who thinks: a chat model, or the rules alone. Every verb has its async twin."""

    @property
    def name(self) -> str:
        """Recorded as the extractor of every memory."""
        ...

    @property
    def learns(self) -> bool:
        """Whether a second attempt, told what was wrong, can come out otherwise."""
        ...

    @property
    def looks_back(self) -> bool:
        """Whether it thinks in the agent's place, and so must know who it is."""
        ...

    @property
    def similar_tokens(self) -> int:
        """What the memories of a topic that it looks at may cost."""
        ...

    def describe(self, task: DescribeTask, meter: Meter) -> Mapping[tuple[str, str], Reading]:
        """Say what is in attachments, by message id and SHA-256; what cannot be read is left out."""
        ...

    async def adescribe(self, task: DescribeTask, meter: Meter) -> Mapping[tuple[str, str], Reading]:
        """Say what is in attachments."""
        ...

    def digest(self, task: DigestTask, meter: Meter) -> Digest:
        """Summarise and route a block."""
        ...

    async def adigest(self, task: DigestTask, meter: Meter) -> Digest:
        """Summarise and route a block."""
        ...

    def propose(self, task: ProposeTask, meter: Meter) -> Proposal:
        """Compare a block with one topic's memories."""
        ...

    async def apropose(self, task: ProposeTask, meter: Meter) -> Proposal:
        """Compare a block with one topic's memories."""
        ...

    def review(self, task: ReviewTask, meter: Meter) -> tuple[Objection, ...]:
        """Confirm, drop or add objections to what the rules flagged."""
        ...

    async def areview(self, task: ReviewTask, meter: Meter) -> tuple[Objection, ...]:
        """Confirm, drop or add objections to what the rules flagged."""
        ...

    def distil(self, task: DistilTask, meter: Meter) -> Skill:
        """Make a skill of a run that succeeded."""
        ...

    async def adistil(self, task: DistilTask, meter: Meter) -> Skill:
        """Make a skill of a run that succeeded."""
        ...


ThinkerOf = Callable[[str | None], Thinker]
"""Who thinks for an agent, by its name."""
