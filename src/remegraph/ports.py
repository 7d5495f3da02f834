"""The ports: what the engine needs from outside. Storage and the fakes in `testing` implement them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from threading import Event
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from remegraph.models import Hit, HitKind, Kind, Memory, Partition, RecallFilter, RecallMode, Shelf, StoredMessage
from remegraph.models.messages import WithheldReason
from remegraph.settings import CapturePolicy

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

__all__ = [
    "WHOLE",
    "AskedTime",
    "Attention",
    "Call",
    "Clock",
    "Concluded",
    "Concluder",
    "Courier",
    "Deliver",
    "Draft",
    "Embedder",
    "Generalizer",
    "ItemChange",
    "Job",
    "Layout",
    "Meant",
    "Nearest",
    "NewId",
    "Outcome",
    "Pulse",
    "RecordKind",
    "Recorded",
    "RetrievalAgent",
    "Reworded",
    "Search",
    "StoredItem",
    "Tail",
    "Tally",
    "TextMatches",
    "TokenCounter",
    "TopicReader",
    "VectorIndex",
]

# ----- what is given from outside: the time, new ids, how a model counts, concludes and generalizes


class Attention(Protocol):
    """Scores how much attention a text deserves."""

    def __call__(self, text: str, before: Sequence[str], /) -> float:
        """Return a number from 0 to 1.

        Args:
            text: What was said or sensed.
            before: What was said or sensed shortly before it, oldest first.
        """
        ...


class Clock(Protocol):
    """A clock; the only source of now."""

    def __call__(self) -> datetime:
        """Return the aware current time."""
        ...


class NewId(Protocol):
    """Gives ids that were never given before."""

    def __call__(self) -> str:
        """Return a new id."""
        ...


class TokenCounter(Protocol):
    """Counts tokens as the model that reads a text does: on this machine, and fast."""

    def __call__(self, text: str, /) -> int:
        """Return how many tokens the text has."""
        ...


@dataclass(frozen=True, slots=True)
class Concluded:
    """A model's conclusion; its confidence is counted by code."""

    conclusion: str
    conditions: tuple[str, ...]


class Concluder(Protocol):
    """Draws a conclusion from similar memories."""

    @property
    def name(self) -> str:
        """Recorded as the extractor of what it writes."""
        ...

    def conclude(self, memories: Sequence[Memory], said: Sequence[str], language: str) -> Concluded | None:
        """Return what the memories have in common; none where no lasting statement holds for all of them.

        Args:
            memories: Similar memories of one topic.
            said: The messages that they came from; the conclusion repeats none of them.
            language: en or zh.

        Raises:
            InvalidAnswerError: No answer was acceptable, repairs included.
            RequestRefusedError: The provider does not take the question.
            ModelUnavailableError: The model did not answer.
            BudgetExceededError: The call would go over the budget.
        """
        ...


@dataclass(frozen=True, slots=True)
class Draft:
    """Knowledge as rules made it, to be reworded."""

    kind: Kind
    fields: Mapping[str, str]
    """Its prose, by the path of each field."""
    objection: Callable[[Sequence[str]], str]
    """Returns what is wrong with new texts, in words for their writer; empty where nothing is."""


@dataclass(frozen=True, slots=True)
class Reworded:
    """A draft in other words."""

    title: str
    fields: Mapping[str, str]


class Generalizer(Protocol):
    """Finds names that only a reader recognises, and rewords texts more generally."""

    @property
    def name(self) -> str:
        """Recorded with what it writes."""
        ...

    def names(self, texts: Sequence[str], language: str) -> tuple[str, ...]:
        """Return the names of people, organisations, places and projects in texts.

        Args:
            texts: What memories say.
            language: en or zh.

        Raises:
            InvalidAnswerError: No answer was acceptable, repairs included.
            RequestRefusedError: The provider does not take the question.
            ModelUnavailableError: The model did not answer.
            BudgetExceededError: The call would go over the budget.
        """
        ...

    def generalize(self, drafts: Sequence[Draft], language: str) -> tuple[Reworded | None, ...]:
        """Return drafts that hold beyond the single case; none where one is to stay as it is.

        Args:
            drafts: What to reword more generally.
            language: en or zh.

        Raises:
            InvalidAnswerError: No answer was acceptable, repairs included; nothing that is new to a draft is.
            RequestRefusedError: The provider does not take the question.
            ModelUnavailableError: The model did not answer.
            BudgetExceededError: The call would go over the budget.
        """
        ...


# ----- vectors: what makes them, and the index that holds them

RecordKind = HitKind | Literal["item"]
"""Kinds of records that are searched by vectors: memories and blocks; and items, which recall does not see."""


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


WHOLE = ""
"""The whole index, in place of the name of a collection."""


class VectorIndex(Protocol):
    """A disposable index of vectors, in collections. After an error the outcome is unknown."""

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

    def unreached(self, collection: str, ids: Sequence[str], vectors: Vectors) -> list[str]:
        """Return those of these records that a search for their own vector does not find: a graph is approximate."""
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

    def optimize(self, collection: str) -> None:
        """Make a collection quick to search, after much was written to it; an unknown one is no error."""
        ...

    def damage(self, *, thorough: bool = False) -> Mapping[str, str]:
        """Return what is wrong, by collection, or for `WHOLE`; empty if it is sound.

        Args:
            thorough: Look into the files, even after a clean stop.
        """
        ...

    def reset(self) -> bool:
        """Delete everything; false, and nothing done, where others may share the index."""
        ...

    def shred(self) -> bool:
        """Purge what was removed from the files; false, and nothing done, where they are not ours."""
        ...

    def close(self) -> None:
        """Release everything."""
        ...


@dataclass(frozen=True, slots=True)
class Nearest:
    """A record near a vector."""

    partition: Partition
    record_id: str
    similarity: float
    """Cosine, -1 to 1."""


# ----- a Sub Agent of your own (R9): what it is asked, what it reads its topic with, and what it returns

AskedTime = str | date | tuple[date | None, date | None]
"""Words ("last week", 上周, 去年三月), a day, a moment (an aware datetime), or two of these: a start and an end, one of
which may be none."""


@dataclass(frozen=True, slots=True)
class Search:
    """A retrieval task of a Sub Agent."""

    query: str
    shelf: Shelf
    """The topic, and where it lives."""
    k: int
    """How many memories are wanted; beyond that, the best are kept."""
    time_start: datetime | None = None
    time_end: datetime | None = None
    only: RecallFilter = field(default_factory=RecallFilter)
    """Which memories may be returned; what may not is left out of what the topic shows, and of what the agent returns."""
    mode: RecallMode = "hybrid"


class TopicReader(Protocol):
    """One topic, to read from and no more: within the scope of the caller, and within the bounds of the question.

    What it returns may be returned as it is, or with another score: `hit.evolve(score=0.9)`.
    """

    @property
    def shelf(self) -> Shelf:
        """The topic, and where it lives."""
        ...

    def memories(self, limit: int | None = None) -> tuple[Hit, ...]:
        """Return the memories of the topic that may be returned, newest first, without a score.

        Args:
            limit: At most this many; all unless given.
        """
        ...

    def retrieve_by_query(self, query: str, limit_size: int = 50, threshold: float = 0.5) -> tuple[Hit, ...]:
        """Return memories of the topic, and index entries of the blocks they came from, that are relevant to a query, best first.

        Args:
            query: Any text.
            limit_size: How many hits at most.
            threshold: How surely a hit must be relevant to the query, 0 to 1; this means the same for every question and embedder.

        Raises:
            InputError: The query is empty or no text, or a number is out of its bounds.
        """
        ...

    def time_aware_retrieve(self, time: AskedTime) -> tuple[Hit, ...]:
        """Return what was said in a time, oldest first: memories, and the index entries of blocks that it touches.

        For a moment, that is what its block knows.

        Args:
            time: Words such as "last week" or 「上周三」, taken from now; a day, a moment, or a start and an end.

        Raises:
            InputError: The words name no time, the end is before the start, or it is no time.
            NaiveTimeError: A datetime does not say its zone.
        """
        ...

    def retrieve_block(self, block_id: str) -> tuple[StoredMessage, ...]:
        """Return the raw messages of a block that memories of the topic came from; none for any other.

        Args:
            block_id: Its label.
        """
        ...


class RetrievalAgent(Protocol):
    """A custom Sub Agent: retrieves from one topic in its own way.

    It reads with what it is given, and never writes. Of what it returns, only memories and index entries of its topic that
    may be returned are kept, as the ledger has them; what it raises is reported in `Recall.degraded`, and the topic is then
    searched as if it were not there.
    """

    def __call__(self, search: Search, topic: TopicReader, /) -> Iterable[Hit]:
        """Return hits, best first; scores 0 to 1."""
        ...


# ----- what the ledger gives back: messages and tails, texts that match, tallies, jobs, items of a store


@dataclass(frozen=True, slots=True, eq=False)
class TextMatches:
    """All matches of one partition as columns, with the partition's own statistics."""

    partition: Partition
    tokens: Sequence[str]
    record_ids: Sequence[str]
    seqs: NDArray[np.int64]
    lengths: NDArray[np.int64]
    counts: NDArray[np.int64]
    """How often each record holds each of `tokens`, shape (records, tokens)."""
    total: int
    """Records of this kind in the partition."""
    total_length: int
    """Tokens in them, in all."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The messages of a partition in order, as columns: what windows are composed from."""

    seqs: NDArray[np.int32]
    threads: NDArray[np.int32]
    """Number of the thread of each message."""
    lengths: NDArray[np.int32]
    """Tokens in each message."""
    asks: NDArray[np.bool_]
    """Whether each message ends with a question."""
    users: NDArray[np.bool_]
    """Whether a user said each message: who answers a question is another one."""


@dataclass(frozen=True, slots=True)
class Meant:
    """How near the meaning of messages of a partition is to a question's, in order of seq."""

    seqs: NDArray[np.int32]
    """Places of the messages that have a vector."""
    cosines: NDArray[np.float64]

    def of(self, seq: int) -> float | None:
        """Return the cosine of the message at a place; none where it has no vector."""
        at = int(self.seqs.searchsorted(seq))
        return float(self.cosines[at]) if at < len(self.seqs) and self.seqs[at] == seq else None


@dataclass(frozen=True, slots=True)
class Tail:
    """Messages of a thread that no block holds yet, oldest first, with the overlap before them."""

    thread: str
    after_seq: int
    """Last seq of the thread's newest block; 0 if it has none."""
    overlap: tuple[StoredMessage, ...]
    """The last messages of the newest block, for strategies whose blocks overlap."""
    messages: tuple[StoredMessage, ...]


@dataclass(frozen=True, slots=True)
class Recorded:
    """A message exactly as it was recorded, even where parts are withheld."""

    body: Mapping[str, Any]
    """The message as plain JSON."""
    seq: int
    recorded_at: datetime
    dropped: frozenset[WithheldReason] = frozenset()
    """Why it is no longer part of its host's conversation; empty while it is."""


class Pulse(NamedTuple):
    """How far a partition has come."""

    event: int
    """Number of its newest event."""
    review: int
    """Number of its newest review."""
    granted: bool
    """Whether another agent ever granted it anything."""


@dataclass(frozen=True, slots=True)
class Tally:
    """How the runs of one version of a skill went."""

    runs: int = 0
    successes: int = 0
    seconds: float | None = None
    """Mean of the runs that were timed."""
    tokens: float | None = None
    """Mean of the runs whose cost is known."""


@dataclass(frozen=True, slots=True)
class Job:
    """A claimed piece of background work."""

    job_id: int
    kind: str
    partition: Partition
    attempts: int
    fence: int
    """Grows with every claim: a worker with an older one has lost the job."""


Outcome = Literal["done", "retry", "back", "dead"]
"""Outcome of a job; `back`: not tried."""


Deliver = Callable[[str, int], datetime | None]
"""Does a job of a kind by its number, if it can be claimed; returns when to come again, if at all."""


class Call(NamedTuple):
    """A job that is enqueued, as a courier hears of it."""

    kind: str
    job_id: int
    partition_id: int
    stamp: str


class Courier(Protocol):
    """Brings jobs to workers, in place of workers that look for them; the queue stays the truth."""

    def work(
        self,
        deliver: Deliver,
        *,
        concurrency: int,
        policy: CapturePolicy,
        stop: Event,
        alive: Callable[[], object],
    ) -> None:
        """Deliver jobs until `stop` is set, then wait for the current ones; call `alive` again and again while it listens.

        Raises:
            SetupError: What it works with cannot be used.
        """
        ...

    def again(self, calls: Sequence[Call]) -> None:
        """Deliver jobs again whose worker is gone.

        Raises:
            SetupError: What it works with cannot be used.
        """
        ...


@dataclass(frozen=True, slots=True)
class StoredItem:
    """An item as it is stored; its value is the reader's own copy."""

    number: int
    namespace: tuple[str, ...]
    key: str
    value: dict[str, Any]
    created_at: datetime
    updated_at: datetime
    expires: bool
    """Whether it has a time to live."""


@dataclass(frozen=True, slots=True)
class ItemChange:
    """An item to write in place of the one of its name, if any; or to delete."""

    namespace: tuple[str, ...]
    key: str
    value: Mapping[str, Any] | None
    """JSON; none: delete the item."""
    texts: tuple[str, ...] = ()
    """The text that vector search finds it by."""
    ttl: timedelta | None = None
    """How long it lives after it was written or read; none: for ever."""
