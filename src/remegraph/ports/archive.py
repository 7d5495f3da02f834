"""The ledger as the engine sees it: what is recorded, what is read back, and the one door for change."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from remegraph.models import (
    AddReceipt,
    Block,
    BlockSummary,
    ChangeSet,
    Cut,
    Endorsement,
    Event,
    HitKind,
    Layer,
    Link,
    LinkType,
    Memory,
    Message,
    Partition,
    Receipt,
    Scope,
    Shelf,
    Status,
    StoredMessage,
    ToolRecord,
    ToolStats,
    Topic,
    Withholding,
    Work,
    WorkState,
)
from remegraph.models.attachments import Blob
from remegraph.models.messages import WithheldReason
from remegraph.ports.notes import Notes
from remegraph.ports.text import Layout, TextMatches

__all__ = [
    "Archive",
    "Pulse",
    "Recorded",
    "Tail",
]


@dataclass(frozen=True, slots=True)
class Tail:
    """What of a thread no block holds yet, oldest first, with the overlap before it."""

    thread: str
    after_seq: int
    """Last seq of the thread's newest block; 0 if it has none."""
    overlap: tuple[StoredMessage, ...]
    """The last messages of the newest block, for strategies whose blocks overlap."""
    messages: tuple[StoredMessage, ...]


@dataclass(frozen=True, slots=True)
class Recorded:
    """A message as it was recorded, to the letter, whatever is withheld of it."""

    body: Mapping[str, Any]
    """The message as plain JSON."""
    seq: int
    recorded_at: datetime
    dropped: frozenset[WithheldReason] = frozenset()
    """Why it is no part of its host's conversation any more; empty while it is."""


class Pulse(NamedTuple):
    """How far a partition has come."""

    event: int
    """Number of its newest event."""
    review: int
    """Number of its newest review."""


class Archive(Notes, Protocol):
    """The ledger: raw rows, blocks, memories with all versions. All reads name their partitions.

    Reads are snapshots; ids that live elsewhere than in the partitions named are not found.
    """

    def visible(self, scope: Scope) -> tuple[Partition, ...]:
        """Return the existing partitions that the scope may read, its own first."""
        ...

    def partitions(self) -> tuple[Partition, ...]:
        """Return all partitions (for `verify`, `rebuild` and `drain` only)."""
        ...

    def add_messages(
        self,
        partition: Partition,
        messages: Sequence[Message],
        recorded_at: datetime,
        *,
        asleep: bool = False,
        blobs: Mapping[str, Blob] | None = None,
        withheld: Sequence[Withholding] = (),
        untimed: Collection[str] = (),
    ) -> AddReceipt:
        """Record messages durably, in order, and enqueue the partition's `summarize` job. All or nothing.

        Every message has its id. The same id with the same content is counted as known.

        Args:
            partition: Where.
            messages: What was said.
            recorded_at: When it is recorded.
            asleep: Whether the job sleeps until it is enqueued awake, or all jobs are asked for.
            blobs: The bytes of the attachments that they refer to, by SHA-256: durable before the messages are.
            withheld: Words of them that are withheld from the first moment, each with its cause.
            untimed: Ids of those whose time nobody said: where one is recorded, whatever its time, it is the same.

        Raises:
            MessageChangedError: An id is recorded with other content.
            SetupError: Bytes cannot be kept.
        """
        ...

    def messages(
        self,
        partitions: Sequence[Partition],
        *,
        ids: Sequence[str] | None = None,
        seqs: Sequence[int] | None = None,
        thread: str | None = None,
        first_seq: int | None = None,
        last_seq: int | None = None,
        time_start: datetime | None = None,
        time_end: datetime | None = None,
        key_word: str | None = None,
        limit: int | None = None,
        asked: bool = False,
    ) -> tuple[StoredMessage, ...]:
        """Return messages that meet all conditions, by partition and seq.

        Args:
            partitions: Where to look.
            ids: Only these ids.
            seqs: Only at these places; instead of ids.
            thread: Only of this thread.
            first_seq: Seq at least this.
            last_seq: Seq at most this.
            time_start: Said at this time or later.
            time_end: Said at this time or earlier.
            key_word: Their text holds this literal text, ASCII case aside; wildcards mean themselves.
            limit: At most so many.
            asked: Whether words are shown that wait for a decision on a request to forget.
        """
        ...

    def asked(self, partitions: Sequence[Partition]) -> tuple[StoredMessage, ...]:
        """Return the messages that wait for a decision on a request to forget, with the words that it is about."""
        ...

    def recorded(
        self,
        partition: Partition,
        ids: Sequence[str] | None = None,
        *,
        revising: Collection[str] = (),
        thread: str | None = None,
        after: int = 0,
        dropped: bool | None = None,
    ) -> Mapping[str, Recorded]:
        """Return messages to the letter, by id, in the order of recording: what comparing very many costs least with.

        Args:
            partition: Where to look.
            ids: Only these ids.
            revising: Only revisions of these ids.
            thread: Only of this thread.
            after: Only those recorded after this place.
            dropped: Only those that are part of their host's conversation no more; or, if false, only those that are.
        """
        ...

    def message_ids(self, partition: Partition, seqs: Sequence[int]) -> Mapping[int, str]:
        """Return the ids of the messages at these places, by place."""
        ...

    def layout(self, partition: Partition) -> Layout:
        """Return the partition's messages as columns (cached, extended by what is new)."""
        ...

    def tails(self, partition: Partition, overlap: int = 0, *, thread: str | None = None) -> tuple[Tail, ...]:
        """Return what no block holds yet, by thread.

        Args:
            partition: Where.
            overlap: How many messages before the tail to give along.
            thread: Only of this thread.
        """
        ...

    def add_blocks(
        self, partition: Partition, cuts: Sequence[Cut], recipe: str, *, enqueue: bool = False
    ) -> tuple[Block, ...]:
        """Record cuts as blocks, label them, and mark each pending. A cut that came too late is left out.

        Args:
            partition: Where.
            cuts: From `tails`.
            recipe: The way of summarising that they wait for.
            enqueue: Whether the `summarize` job is enqueued in the same transaction, if a block was added.
        """
        ...

    def pending(self, recipe: str, partitions: Sequence[Partition] | None = None) -> int:
        """Return how many blocks wait for this way of summarising, in all partitions unless some are named."""
        ...

    def blocks(
        self,
        partitions: Sequence[Partition],
        *,
        ids: Sequence[str] | None = None,
        thread: str | None = None,
        message_ids: Sequence[str] | None = None,
        time_start: datetime | None = None,
        time_end: datetime | None = None,
    ) -> tuple[Block, ...]:
        """Return blocks that meet all conditions, oldest first; a time range keeps those that it touches."""
        ...

    def free_labels(self, partition: Partition, times: Sequence[datetime]) -> tuple[str, ...]:
        """Return labels for new blocks of these times, one for each: none that a block has, or an erased one had."""
        ...

    def summaries(
        self, partitions: Sequence[Partition], *, ids: Sequence[str] | None = None
    ) -> tuple[BlockSummary, ...]:
        """Return index entries, oldest first."""
        ...

    def topics(self, partitions: Sequence[Partition]) -> tuple[Shelf, ...]:
        """Return the topic index, by partition, type and name."""
        ...

    def memories(
        self,
        partitions: Sequence[Partition],
        *,
        ids: Sequence[str] | None = None,
        topics: Sequence[Topic] | None = None,
        statuses: Sequence[Status] | None = None,
        canonical_topics: Sequence[str] | None = None,
        block_ids: Sequence[str] | None = None,
        layers: Sequence[Layer] | None = None,
        limit: int | None = None,
    ) -> tuple[Memory, ...]:
        """Return head versions that meet all conditions, newest `said_at` first; any status unless named."""
        ...

    def rules(
        self, partitions: Sequence[Partition], applies_to: Sequence[str] = (), *, core: bool, limit: int | None = None
    ) -> tuple[Memory, ...]:
        """Return live memories that are given to the agent unasked, the most important first, then the newest.

        Args:
            partitions: Where to look.
            applies_to: Where the others apply, as `project:<name>`, of which policies come first.
            core: Core rules; else the others.
            limit: At most so many.
        """
        ...

    def shelved(self, partitions: Sequence[Partition], memory_ids: Sequence[str]) -> Mapping[Shelf, frozenset[str]]:
        """Return the topics that these memories stand on, with those of them that stand on each."""
        ...

    def versions(self, partitions: Sequence[Partition], memory_id: str) -> tuple[Memory, ...]:
        """Return all versions of a memory, oldest first."""
        ...

    def links(
        self,
        partitions: Sequence[Partition],
        memory_ids: Sequence[str] | None,
        *,
        types: Sequence[LinkType] | None = None,
        live: bool = False,
        limit: int | None = None,
    ) -> tuple[Link, ...]:
        """Return the links from or to these memories, by source, type and target.

        Args:
            partitions: Where both ends live.
            memory_ids: The memories; none: all of the partitions.
            types: Only of these types.
            live: Only between live memories.
            limit: At most so many.
        """
        ...

    def events(
        self, partitions: Sequence[Partition], *, record_id: str | None = None, limit: int | None = None
    ) -> tuple[Event, ...]:
        """Return the journal, oldest first."""
        ...

    def pulse(self, scope: Scope) -> Mapping[Partition, Pulse]:
        """Return the partitions that the scope may read, its own first, each with how far it has come.

        While that is the same, no memory there has changed and no review was added. It costs next to nothing.
        """
        ...

    def forgotten(
        self, partitions: Sequence[Partition], memory_id: str | None = None
    ) -> tuple[tuple[Memory, str], ...]:
        """Return what is forgotten, to the letter, each with the operation that forgot it.

        Every other read shows that a memory was forgotten, and not what it said.

        Args:
            partitions: Where.
            memory_id: Only this memory.
        """
        ...

    def carried_out(self, partition: Partition) -> tuple[int, datetime] | None:
        """Return how many memories were forgotten at a person's request since an agent last answered, and when."""
        ...

    def committed(self, partition: Partition, operation_id: str) -> bool:
        """Return whether an operation was committed, whatever it changed."""
        ...

    def operation(self, partitions: Sequence[Partition], operation_id: str) -> tuple[tuple[Memory, Memory], ...]:
        """Return what an operation changed, to the letter: each head as it is now, with the version before the operation."""
        ...

    def causes(self, partition: Partition) -> Collection[str]:
        """Return the operations that withhold words of messages here."""
        ...

    def withheld_by(self, partitions: Sequence[Partition], cause: str) -> tuple[Withholding, ...]:
        """Return which messages an operation withholds words of."""
        ...

    def tool_stats(
        self, partitions: Sequence[Partition], tools: Sequence[str] | None = None, *, last: int = 0
    ) -> tuple[ToolStats, ...]:
        """Return the statistics of the tools, by name.

        Args:
            partitions: Where they were called.
            tools: Only these.
            last: How many of the newest calls of each to look at closely.
        """
        ...

    def tool_calls(
        self,
        partitions: Sequence[Partition],
        tools: Sequence[str] | None = None,
        *,
        last: int,
        digest: str | None = None,
    ) -> tuple[ToolRecord, ...]:
        """Return the newest calls of each tool, by tool, the newest first.

        Args:
            partitions: Where they were called.
            tools: Only these.
            last: How many of each.
            digest: Only calls with this digest.
        """
        ...

    def work(
        self, partitions: Sequence[Partition], *, states: Sequence[WorkState], recipe: str | None = None
    ) -> tuple[Work, ...]:
        """Return work in these states, by partition, block and topic."""
        ...

    def match(
        self,
        partitions: Sequence[Partition],
        kind: HitKind,
        tokens: Sequence[str],
        allowed: Collection[str] | None = None,
    ) -> tuple[TextMatches, ...]:
        """Return, for each partition, the records that hold at least one token. Live memories only.

        Args:
            partitions: Where to look.
            kind: memory, block or message.
            tokens: Tokens of our own tokenizer.
            allowed: Only these records, with their own statistics.
        """
        ...

    def commit(self, changes: ChangeSet) -> Receipt:
        """Apply a change set: all of it in one transaction, once.

        Checks again inside the transaction: expected versions, status moves, quotes found in their
        messages, no live twin with the same words on the same shelf, work not done already, and that nothing which
        belongs to all agents of a user is the word of one agent alone.

        Raises:
            ConflictError: Records changed since they were read, or a twin appeared.
            ConsensusError: One agent alone would change what is shared.
            InputError: Evidence or ids that do not hold.
        """
        ...

    def endorsements(
        self, partitions: Sequence[Partition], proposal_ids: Sequence[str] | None = None
    ) -> tuple[Endorsement, ...]:
        """Return what was said on proposals, oldest first; on all of these partitions unless some are named."""
        ...

    def counts(self, partitions: Sequence[Partition] | None = None) -> Mapping[str, int]:
        """Return row counts by table name, for `stats`."""
        ...

    def close(self) -> None:
        """Give all connections back."""
        ...
