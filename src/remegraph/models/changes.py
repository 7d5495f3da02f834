"""The one door for change: a frozen ChangeSet goes in, a Receipt comes out."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from remegraph.models.base import AwareTime, Record, Text, Token
from remegraph.models.memories import Link, Memory, Topic
from remegraph.models.messages import BlockSummary, Message, WithheldReason
from remegraph.models.scope import Partition
from remegraph.models.sharing import Endorsement
from remegraph.models.tools import ToolRecord

__all__ = [
    "Brought",
    "BroughtBlock",
    "ChangeSet",
    "Event",
    "MemoryChange",
    "Receipt",
    "Shelf",
    "Withholding",
    "Work",
    "WorkState",
]

WorkState = Literal["pending", "done", "failed", "review"]


class Shelf(Record):
    """A topic in its place."""

    partition: Partition = Field(description="Where it lives.")
    topic: Topic = Field(description="The topic.")


class MemoryChange(Record):
    """The next version of one memory."""

    memory: Memory = Field(description="The whole next version.")
    expected_version: int = Field(ge=0, description="The head version that it follows; 0 where it must be new.")
    action: str = Field(pattern=r"^[a-z_]+$", description="What happens: create, corroborate, refine, supersede...")
    reason: Token = Field(default="", description="Why, for the journal; never what the memory says.")
    history: tuple[Memory, ...] | None = Field(
        default=None,
        description="Its earlier versions, oldest first, where it comes whole from another ledger: then it keeps its "
        "number and its time, too. None: the version is made now.",
    )

    @model_validator(mode="after")
    def _whole(self) -> Self:
        versions = (*(self.history or ()), self.memory)
        if self.history is None:
            return self
        if self.expected_version or [each.version for each in versions] != list(range(1, len(versions) + 1)):
            raise ValueError("a memory that comes with its history is new here, and all its versions come along")
        if {(each.memory_id, each.partition) for each in versions} != {(self.memory.memory_id, self.memory.partition)}:
            raise ValueError("its versions are of one memory, in one place")
        return self


class BroughtBlock(Record):
    """A block of another ledger: its label, and the messages that it holds."""

    block_id: str = Field(pattern=r"^\d{8}_(0[1-9]|[1-9]\d{1,8})$", description="Its label.")
    thread: Token = Field(min_length=1, description="The thread that it is a part of.")
    message_ids: tuple[Token, ...] = Field(min_length=1, description="Its messages, in their order.")

    def done(self, partition: Partition, recipe: str) -> Work:
        """Return the work row that prevents it from being summarised."""
        return Work(partition=partition, block_id=self.block_id, recipe=recipe, state="done", attempts=1)


class Brought(Record):
    """Messages from another ledger, with the blocks that they are in."""

    partition: Partition = Field(description="Where to.")
    messages: tuple[Message, ...] = Field(description="What was said, in its order.")
    blocks: tuple[BroughtBlock, ...] = Field(description="Blocks of it, in the order of their threads.")

    @model_validator(mode="after")
    def _all_in_blocks(self) -> Self:
        held = {message_id for block in self.blocks for message_id in block.message_ids}
        if held != {message.message_id for message in self.messages}:
            raise ValueError("each message is in a block, and each block holds messages that come along")
        return self


class Work(Record):
    """State of one piece of work: this block, this topic, this recipe. It ensures that work is done once."""

    partition: Partition = Field(description="The partition of the block.")
    block_id: str = Field(description="The block.")
    topic: str = Field(default="", description="Topic key, or empty: the block's own digest and routing.")
    recipe: str = Field(description="Name of the way of summarising; another recipe is other work.")
    state: WorkState = Field(default="pending", description="pending, done, failed or review.")
    reason: Text = Field(default="", description="Why it failed, or what a person should look at.")
    attempts: int = Field(default=0, ge=0, description="How often it was tried.")


class Withholding(Record):
    """Words of a message to be hidden, or shown again."""

    partition: Partition = Field(description="Where the message lives.")
    message_id: Token = Field(description="The message.")
    phrases: tuple[Text, ...] = Field(default=(), description="The words; none: all of the message.")
    reason: WithheldReason = Field(default="forgotten", description="Why.")
    cause: Token = Field(default="", description="The operation that withheld them, where they shall be shown again.")


AT_REQUEST = "at the person's request"
"""Why a memory was forgotten that a person asked to forget in conversation."""


class ChangeSet(Record):
    """A set of changes. Only `Archive.commit` applies it: all of it, once, or nothing."""

    operation_id: Token = Field(min_length=1, description="Names the operation; committing it again changes nothing.")
    actor: str = Field(min_length=1, description="Who wants it: an agent, a surface, a person.")
    recorded_at: AwareTime = Field(description="When it is committed.")
    extracted: bool = Field(default=False, description="Whether it was learned from a conversation: see `usage`.")
    at_home: bool = Field(
        default=False,
        description="Whether what no single agent owns is its own to change: it comes from a scope without an agent, from "
        "a declared team, from a person, or from the upkeep. All else there takes consensus.",
    )
    shelves: tuple[Shelf, ...] = Field(default=(), description="Topics that must exist.")
    changes: tuple[MemoryChange, ...] = Field(default=(), description="Next versions of memories.")
    links: tuple[Link, ...] = Field(default=(), description="New links.")
    summaries: tuple[BlockSummary, ...] = Field(default=(), description="New index entries.")
    tools: tuple[ToolRecord, ...] = Field(default=(), description="New tool records.")
    work: tuple[Work, ...] = Field(default=(), description="New states of work.")
    endorsements: tuple[Endorsement, ...] = Field(default=(), description="New words on proposals that it changes.")
    brought: Brought | None = Field(default=None, description="Words and blocks of another ledger, recorded first.")
    withheld: tuple[Withholding, ...] = Field(default=(), description="Words that are shown no more.")
    shown: tuple[Withholding, ...] = Field(default=(), description="Words that are shown again.")
    seen: dict[str, int] = Field(
        default_factory=dict,
        description="How much was withheld in each block whose words it was made of, by label: more by now, and it is "
        "refused, as it may say what shall not be said any more.",
    )
    again: dict[str, str] = Field(
        default_factory=dict,
        description="Blocks that are read again, by label, each with who read it last: somebody else by now, and it is "
        "refused. Work that is done on them may be done once more.",
    )


class Receipt(Record):
    """Result of a commit."""

    operation_id: str = Field(description="The operation.")
    replayed: bool = Field(description="True where it had been committed before, and nothing was done now.")
    memory_ids: tuple[str, ...] = Field(default=(), description="The memories that have a new version.")
    created: int = Field(default=0, ge=0, description="How many of them are new.")
    warnings: tuple[Text, ...] = Field(default=(), description="What a person should decide: to add, or to supersede.")


class Event(Record):
    """A row of the journal: what changed, never its content."""

    event_id: int = Field(ge=1, description="Its number; grows with time.")
    partition: Partition = Field(description="Where the record lives.")
    time: AwareTime = Field(description="When it was committed.")
    actor: str = Field(description="Who did it.")
    action: str = Field(description="What was done.")
    record_id: str = Field(description="To which record.")
    version: int = Field(default=0, description="Which version came of it; 0 for records without versions.")
    operation_id: str = Field(description="In which operation.")
    digest: str = Field(default="", description="Salted digest of what was written: of the version's JSON.")
    reason: str = Field(default="", description="Why, where the change says so.")
    chain: str = Field(default="", description="HMAC of this event and of the chain before it.")
