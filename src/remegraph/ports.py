"""The seams: what the engine needs of the world. Storage and the fakes in `testing` fill them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Protocol

from remegraph.models import (
    AddReceipt,
    Block,
    BlockSummary,
    ChangeSet,
    Cut,
    Event,
    HitKind,
    IndexState,
    Link,
    LinkType,
    Memory,
    Message,
    Mismatch,
    Partition,
    Receipt,
    Review,
    Reviews,
    Scope,
    Shelf,
    Status,
    StoredMessage,
    ToolStats,
    Topic,
    Work,
    WorkState,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

__all__ = [
    "WHOLE",
    "Archive",
    "Clock",
    "Embedder",
    "Job",
    "JobQueue",
    "JobState",
    "Layout",
    "Nearest",
    "NewId",
    "Outcome",
    "Projection",
    "RecordKind",
    "Tail",
    "TextMatch",
    "TextMatches",
    "TokenCounter",
    "VectorIndex",
    "Waiting",
]


RecordKind = HitKind | Literal["item"]
"""What is searched by vectors: memories and blocks; and items, of which recall knows nothing."""


class Clock(Protocol):
    """Tells the time; the only source of now."""

    def __call__(self) -> datetime:
        """Return the aware current time."""
        ...


class NewId(Protocol):
    """Gives ids that were never given before."""

    def __call__(self) -> str:
        """Return a new id."""
        ...


class TokenCounter(Protocol):
    """Counts tokens as the model that reads a text does: on this machine, in no time to speak of."""

    def __call__(self, text: str, /) -> int:
        """Return how many tokens the text has."""
        ...


class Embedder(Protocol):
    """Turns texts into unit vectors."""

    @property
    def name(self) -> str:
        """Names the embedder and its version; recorded with every vector."""
        ...

    @property
    def dimension(self) -> int:
        """Length of its vectors."""
        ...

    @property
    def semantic(self) -> bool:
        """Whether it knows meaning (a trained model), or only shared words."""
        ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one float32 row of unit length per text, shape (len(texts), dimension).

        Raises:
            ModelUnavailableError: It did not answer.
            DimensionError: The vectors have another length.
        """
        ...


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
class TextMatch:
    """A record that holds at least one of the words asked for."""

    record_id: str
    seq: int
    """Place in the partition (messages), else 0."""
    length: int
    """Tokens in the record."""
    counts: Mapping[str, int]
    """How often it holds each of the words asked for."""


@dataclass(frozen=True, slots=True)
class TextMatches:
    """All matches of one partition, with the partition's own statistics."""

    partition: Partition
    matches: tuple[TextMatch, ...]
    total: int
    """Records of this kind in the partition."""
    total_length: int
    """Tokens in them, in all."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The messages of a partition in order, as columns: what windows are composed from."""

    seqs: NDArray[np.int64]
    threads: NDArray[np.int64]
    """Number of the thread of each message."""
    lengths: NDArray[np.int64]
    """Tokens in each message."""
    message_ids: Sequence[str]


@dataclass(frozen=True, slots=True)
class Nearest:
    """A record near a vector."""

    partition: Partition
    record_id: str
    similarity: float
    """Cosine, -1 to 1."""


class Archive(Protocol):
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
        self, partition: Partition, messages: Sequence[Message], recorded_at: datetime, *, asleep: bool = False
    ) -> AddReceipt:
        """Record messages durably, in order, and enqueue the partition's `summarize` job. All or nothing.

        Every message has its id. The same id with the same content is counted as known.

        Args:
            partition: Where.
            messages: What was said.
            recorded_at: When it is recorded.
            asleep: Whether the job sleeps until it is enqueued awake, or all jobs are asked for.

        Raises:
            MessageChangedError: An id is recorded with other content.
        """
        ...

    def messages(
        self,
        partitions: Sequence[Partition],
        *,
        ids: Sequence[str] | None = None,
        thread: str | None = None,
        first_seq: int | None = None,
        last_seq: int | None = None,
        time_start: datetime | None = None,
        time_end: datetime | None = None,
        key_word: str | None = None,
        limit: int | None = None,
    ) -> tuple[StoredMessage, ...]:
        """Return messages that meet all conditions, by partition and seq.

        Args:
            partitions: Where to look.
            ids: Only these ids.
            thread: Only of this thread.
            first_seq: Seq at least this.
            last_seq: Seq at most this.
            time_start: Said at this time or later.
            time_end: Said at this time or earlier.
            key_word: Their text holds this literal text, ASCII case aside; wildcards mean themselves.
            limit: At most so many.
        """
        ...

    def bodies(self, partition: Partition, ids: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
        """Return the messages with these ids as plain JSON, by id: what comparing very many costs least with."""
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
        limit: int | None = None,
    ) -> tuple[Memory, ...]:
        """Return head versions that meet all conditions, newest `said_at` first; any status unless named."""
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
        memory_ids: Sequence[str],
        *,
        types: Sequence[LinkType] | None = None,
        limit: int | None = None,
    ) -> tuple[Link, ...]:
        """Return the links from or to these memories, by source, type and target.

        Args:
            partitions: Where both ends live.
            memory_ids: The memories.
            types: Only of these types.
            limit: At most so many.
        """
        ...

    def events(
        self, partitions: Sequence[Partition], *, record_id: str | None = None, limit: int | None = None
    ) -> tuple[Event, ...]:
        """Return the journal, oldest first."""
        ...

    def add_reviews(self, reviews: Sequence[Review]) -> None:
        """Append reviews of memories. They are no versions, and no reader waits for them.

        Args:
            reviews: Each time that a memory came back. Those of partitions that are gone are left out.
        """
        ...

    def reviews(
        self, partitions: Sequence[Partition], memory_ids: Sequence[str]
    ) -> Mapping[tuple[Partition, str], Reviews]:
        """Return the reviews of these memories, counted, by place and id; those without any are left out."""
        ...

    def tool_stats(self, partitions: Sequence[Partition], tools: Sequence[str] | None = None) -> tuple[ToolStats, ...]:
        """Return the statistics of the tools, by name."""
        ...

    def work(
        self, partitions: Sequence[Partition], *, states: Sequence[WorkState], recipe: str | None = None
    ) -> tuple[Work, ...]:
        """Return work in these states, by partition, block and topic."""
        ...

    def match(self, partitions: Sequence[Partition], kind: HitKind, tokens: Sequence[str]) -> tuple[TextMatches, ...]:
        """Return, for each partition, the records that hold at least one token. Live memories only.

        Args:
            partitions: Where to look.
            kind: memory, block or message.
            tokens: Tokens of our own tokenizer.
        """
        ...

    def commit(self, changes: ChangeSet) -> Receipt:
        """Apply a change set: all of it in one transaction, once.

        Checks again inside the transaction: expected versions, status moves, quotes found in their
        messages, no live twin with the same words on the same shelf, work not done already.

        Raises:
            ConflictError: Records changed since they were read, or a twin appeared.
            InputError: Evidence or ids that do not hold.
        """
        ...

    def counts(self, partitions: Sequence[Partition] | None = None) -> Mapping[str, int]:
        """Return row counts by table name, for `stats`."""
        ...

    def close(self) -> None:
        """Give all connections back."""
        ...


WHOLE = ""
"""Stands for the whole index where a collection is named."""


class VectorIndex(Protocol):
    """A disposable index of vectors, in collections. An error means: the outcome is unknown."""

    def upsert(self, collection: str, ids: Sequence[str], shelves: Sequence[str], vectors: Vectors) -> None:
        """Write records; each belongs to one shelf of the collection (its partition and kind)."""
        ...

    def delete(self, collection: str, ids: Sequence[str]) -> None:
        """Remove records; unknown ids are no error."""
        ...

    def query(self, collection: str, shelves: Sequence[str] | None, vector: Vectors, k: int) -> list[tuple[str, float]]:
        """Return ids and cosine similarities of the k nearest on these shelves, best first.

        No shelves named means the whole collection, which Chroma searches many times faster than a part.
        """
        ...

    def ids(self, collection: str) -> set[str]:
        """Return all ids of a collection; empty where it does not exist."""
        ...

    def collections(self) -> set[str]:
        """Return the names of all collections."""
        ...

    def drop(self, collection: str) -> None:
        """Remove a collection; an unknown one is no error."""
        ...

    def damage(self, *, thorough: bool = False) -> Mapping[str, str]:
        """Return what is wrong, by collection, or for `WHOLE`; empty if it is sound.

        Args:
            thorough: Look into the files, however well they were left.
        """
        ...

    def reset(self) -> bool:
        """Throw everything away; false, and nothing done, where others may share the index."""
        ...

    def close(self) -> None:
        """Give everything back."""
        ...


class Projection(Protocol):
    """Vectors over the ledger: what the engine searches, what the indexer keeps true."""

    def sync(self) -> int:
        """Apply the dirty set to the index; return how many records were applied."""
        ...

    def nearest(
        self,
        partitions: Sequence[Partition],
        kind: RecordKind,
        vector: Vectors,
        k: int,
        allowed: Sequence[str] | None = None,
    ) -> tuple[Sequence[Nearest], IndexState]:
        """Return the k nearest live records, best first, and where they were searched.

        Records still in the dirty set are searched too, exactly. Falls back to SQL where the index fails.

        Args:
            partitions: Where to look.
            kind: memory, block or item.
            vector: A unit vector, shape (dimension,).
            k: How many.
            allowed: Only these records; a planner chooses exact search or over-fetching.
        """
        ...

    def embed_messages(self, partition: Partition) -> int:
        """Embed the messages of a partition that have no vector yet; return how many there were.

        Only an embedder that knows meaning makes vectors of messages. They stay in SQL.
        """
        ...

    def cosines(self, partition: Partition, vector: Vectors, message_ids: Sequence[str]) -> NDArray[np.float64]:
        """Return the cosine of a unit vector with each of these messages; 0 of those that have no vector yet."""
        ...

    def verify(self) -> tuple[int, tuple[Mismatch, ...]]:
        """Compare the index with the ledger by ids and by hits; return vectors compared and differences."""
        ...

    def rebuild(self) -> int:
        """Make the index anew from the ledger's vectors; return how many were written."""
        ...

    def close(self) -> None:
        """Give everything back."""
        ...


@dataclass(frozen=True, slots=True)
class Job:
    """A claimed piece of background work."""

    job_id: int
    kind: str
    partition: Partition
    attempts: int
    fence: int
    """Grows with every claim: who holds an older one has lost the job."""


Outcome = Literal["done", "retry", "back", "dead"]
"""What became of a job; `back`: nobody tried."""


JobState = Literal["asleep", "waiting", "running", "dead"]
"""Where a job stands that is not done; one that sleeps is due when it is asked for."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A piece of background work that is not done."""

    partition: Partition
    state: JobState
    due_at: datetime | None
    """When it can be claimed; never, while it sleeps."""
    attempts: int
    reason: str
    """Why it did not work the last time."""


class JobQueue(Protocol):
    """A durable queue: at most one open job per kind and partition."""

    def enqueue(self, kind: str, partition: Partition) -> None:
        """Add a job unless one waits already; one that sleeps wakes up."""
        ...

    def claim(self, kind: str, owner: str, lease_seconds: float, *, asleep: bool = False) -> Job | None:
        """Take the oldest job that nobody holds, or whose lease ran out.

        Args:
            kind: What the worker can do.
            owner: Names the worker.
            lease_seconds: How long it may take.
            asleep: Whether jobs that sleep are taken, too.
        """
        ...

    def renew(self, job: Job, lease_seconds: float) -> bool:
        """Hold a job for longer, from now on; false where the fence says that another worker has it."""
        ...

    def finish(self, job: Job, outcome: Outcome, reason: str = "") -> bool:
        """Close a job; false where the fence says that another worker has it now.

        Args:
            job: As it was claimed.
            outcome: `retry` waits twice as long each time; `back`, not tried, waits for whoever comes next.
            reason: Why it did not work.
        """
        ...

    def next_due(self, kind: str) -> datetime | None:
        """Return when the next job can be claimed, as far as is known now; none: only once more is enqueued."""
        ...

    def waiting(self, kind: str) -> tuple[Waiting, ...]:
        """Return the jobs that are not done, oldest first."""
        ...
