"""The ledger as the engine sees it: `ports.Archive` over SQL."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime
from typing import Self

from sqlalchemy import Connection

from remegraph.failpoints import failpoint
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
from remegraph.models.changes import AT_REQUEST
from remegraph.ports import Clock, Layout, NewId, Pulse, Recorded, Tail, TextMatches
from remegraph.settings import Settings
from remegraph.storage import block_notes, fulltext, interning, jobs
from remegraph.storage import blocks as block_rows
from remegraph.storage import endorsements as endorsement_rows
from remegraph.storage import memories as memory_rows
from remegraph.storage import messages as message_rows
from remegraph.storage import tool_calls as tool_rows
from remegraph.storage import withheld as withheld_rows
from remegraph.storage.attached import LOCK, SqlAttachments
from remegraph.storage.blobs import BlobFolder
from remegraph.storage.commit import commit, replayed
from remegraph.storage.counting import counts
from remegraph.storage.database import Database
from remegraph.storage.journal import Entry, Journal
from remegraph.storage.keys import KeyRing
from remegraph.storage.layouts import EMPTY_LAYOUT, LayoutCache
from remegraph.storage.notes import SqlNotes
from remegraph.storage.rows import from_micros, micros
from remegraph.storage.tombstones import Tombstones

__all__ = ["SqlArchive"]


class SqlArchive(SqlNotes):
    """The ledger over SQLite or PostgreSQL; see `ports.Archive` for what each method promises.

    Safe to share between threads. Every read is one snapshot.

    Args:
        database: An open database.
        journal: Its journal.
        clock: Tells when blocks are recorded and jobs are due.
        new_id: Names operations.
        stamps: Say with which settings jobs are done.
        quorum: How many agents must bear out what is proposed for all of a user's.
        blobs: Keeps the bytes of attachments; without it there are none.
    """

    def __init__(
        self,
        database: Database,
        journal: Journal,
        *,
        clock: Clock,
        new_id: NewId,
        stamps: jobs.Stamps,
        quorum: int = 2,
        blobs: BlobFolder | None = None,
    ) -> None:
        super().__init__(database, journal, new_id)
        self.queue = jobs.SqlJobQueue(database, clock, stamps)
        self._stamps = stamps
        self._clock = clock
        self._quorum = quorum
        self.tombstones = Tombstones(journal)
        self._layouts = LayoutCache()
        self.attachments = SqlAttachments(database, self._layouts, blobs)

    @classmethod
    def open(
        cls,
        url: str,
        *,
        keys: KeyRing,
        clock: Clock,
        new_id: NewId,
        settings: Settings | None = None,
        blobs: BlobFolder | None = None,
    ) -> Self:
        """Open a ledger by its URL, and bring its schema up to date.

        Args:
            url: `sqlite:///path`, `sqlite://` (in memory) or `postgresql://...`.
            keys: Seal the journal.
            clock: Tells the time.
            new_id: Gives new ids.
            settings: With which jobs are done, and how many agents must bear out what is proposed for all of a user's.
            blobs: Keeps the bytes of attachments.

        Raises:
            SetupError: The URL, the file or the server cannot be used.
            SchemaTooNewError: A newer remegraph wrote it.
            JournalKeyError: Its journal is not sealed yet, and a key must be given.
        """
        settings = settings or Settings()
        database = Database.open(url, settings.pool)
        with ExitStack() as unless_ready:
            unless_ready.callback(database.close)
            archive = cls(
                database,
                Journal.open(database, keys),
                clock=clock,
                new_id=new_id,
                stamps=jobs.Stamps(settings),
                quorum=settings.sharing.quorum,
                blobs=blobs,
            )
            unless_ready.pop_all()
        return archive

    def visible(self, scope: Scope) -> tuple[Partition, ...]:
        """Return the existing partitions that the scope may read, its own first."""
        with self.database.read() as connection:
            return interning.visible(connection, scope)

    def partitions(self) -> tuple[Partition, ...]:
        """Return all partitions."""
        with self.database.read() as connection:
            return interning.every(connection)

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
        """Record messages durably and enqueue `summarize`, in one transaction; bytes first."""
        added, new = 0, messages
        if messages:
            if blobs:  # no byte of what was erased comes back, not even for a moment
                with self.database.read() as connection:
                    new = self._not_erased(connection, partition, messages)
            held = self.attachments.keep(new, blobs)
            failpoint("add.kept")
            with self.database.write([LOCK] if held else ()) as connection:
                self.attachments.keep(new, held)  # a sweep may have come before the lock
                new = self._not_erased(connection, partition, new)
                if new:  # else nobody's name is written
                    partition_id = interning.hold(self.database, connection, [partition])[partition]
                    failpoint("add.begin")
                    if not self.database.is_sqlite:  # it may have waited for an erasure
                        new = self._not_erased(connection, partition, new)
                    added = message_rows.add(connection, partition_id, new, recorded_at, held, untimed=untimed)
                    withheld_rows.add(connection, partition_id, withheld, micros(recorded_at))
                    if not new:
                        connection.rollback()  # the name that was just written, too
                    if added:
                        due = jobs.ASLEEP if asleep else micros(self._clock())
                        jobs.enqueue(connection, "summarize", partition_id, due, self._stamps.of(partition.agent))
                failpoint("add.before_commit")
            failpoint("add.after_commit")
        ids = tuple(message.message_id for message in messages)
        erased = len(messages) - len(new)
        return AddReceipt(message_ids=ids, added=added, known=len(messages) - added - erased, erased=erased)

    def _not_erased(
        self, connection: Connection, partition: Partition, messages: Sequence[Message]
    ) -> Sequence[Message]:
        """Return the messages without those that were erased here: a repeated import does not bring them back."""
        gone = self.tombstones.among(connection, "message", partition, [each.message_id for each in messages])
        return [each for each in messages if each.message_id not in gone] if gone else messages

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
        """Return messages that meet all conditions, by partition and seq."""
        wanted = message_rows.MessageFilter(thread, first_seq, last_seq, time_start, time_end, key_word)
        with self.database.read() as connection:
            places = interning.known(connection, partitions)
            return tuple(message_rows.read(connection, places, wanted, ids=ids, seqs=seqs, limit=limit, asked=asked))

    def asked(self, partitions: Sequence[Partition]) -> tuple[StoredMessage, ...]:
        """Return the messages that wait for a decision on a request to forget, with the words that it is about."""
        with self.database.read() as connection:
            return tuple(message_rows.asked(connection, interning.known(connection, partitions)))

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
        """Return messages to the letter, by id, in the order of recording."""
        with self.database.read() as connection:
            number = next(iter(interning.known(connection, [partition])), None)
            if number is None:
                return {}
            if ids is not None:
                return message_rows.recorded(connection, number, ids)
            if revising:
                return message_rows.revisions(connection, number, revising)
            return message_rows.course(connection, number, thread, after, dropped=dropped)

    def message_ids(self, partition: Partition, seqs: Sequence[int]) -> Mapping[int, str]:
        """Return the ids of the messages at these places, by place."""
        with self.database.read() as connection:
            return message_rows.ids(connection, interning.known(connection, [partition]), seqs)

    def layout(self, partition: Partition) -> Layout:
        """Return the partition's messages as columns (cached, extended by what is new)."""
        with self.database.read() as connection:
            places = interning.known(connection, [partition])
            return self._layouts.get(connection, next(iter(places))) if places else EMPTY_LAYOUT

    def tails(self, partition: Partition, overlap: int = 0, *, thread: str | None = None) -> tuple[Tail, ...]:
        """Return what no block holds yet, by thread."""
        with self.database.read() as connection:
            places = interning.known(connection, [partition])
            return tuple(
                tail
                for partition_id, place in places.items()
                for tail in block_rows.tails(connection, partition_id, place, overlap, thread)
            )

    def add_blocks(
        self, partition: Partition, cuts: Sequence[Cut], recipe: str, *, enqueue: bool = False
    ) -> tuple[Block, ...]:
        """Record cuts as blocks, label them, and mark each pending. A cut that came too late is left out."""
        now = micros(self._clock())
        operation_id = self._new_id()
        with self.database.write() as connection:
            places = interning.known(connection, [partition])
            self.database.lock(connection, places)
            added: list[Block] = []
            failpoint("blocks.begin")
            for partition_id in places:
                added = block_rows.add(connection, partition_id, partition, cuts, self.tombstones)
                block_notes.await_work(connection, partition_id, added, recipe)
                if added and enqueue:
                    jobs.enqueue(connection, "summarize", partition_id, now, self._stamps.of(partition.agent))
                self.journal.add(
                    connection,
                    [
                        Entry(
                            partition_id=partition_id,
                            time=now,
                            actor="slicer",
                            action="add_block",
                            record_id=block.block_id,
                            operation_id=operation_id,
                            body=block.to_json(),
                        )
                        for block in added
                    ],
                )
            failpoint("blocks.before_commit")
        failpoint("blocks.after_commit")
        return tuple(added)

    def pending(self, recipe: str, partitions: Sequence[Partition] | None = None) -> int:
        """Return how many blocks wait for this way of summarising, in all partitions unless some are named."""
        with self.database.read() as connection:
            numbers = None if partitions is None else list(interning.known(connection, partitions))
            return block_rows.pending(connection, recipe, numbers)

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
        """Return blocks that meet all conditions, oldest first."""
        wanted = block_rows.BlockFilter(thread, time_start, time_end)
        with self.database.read() as connection:
            places = interning.known(connection, partitions)
            return block_rows.read(connection, places, wanted, ids, message_ids)

    def free_labels(self, partition: Partition, times: Sequence[datetime]) -> tuple[str, ...]:
        """Return labels for new blocks; see `Archive.free_labels`."""
        with self.database.read() as connection:
            known = interning.known(connection, [partition])
            here = next(iter(known), 0)  # no partition has number 0
            return block_rows.free_labels(connection, here, partition, times, self.tombstones)

    def summaries(
        self, partitions: Sequence[Partition], *, ids: Sequence[str] | None = None
    ) -> tuple[BlockSummary, ...]:
        """Return index entries, oldest first."""
        with self.database.read() as connection:
            return block_rows.read_summaries(connection, interning.known(connection, partitions), ids)

    def topics(self, partitions: Sequence[Partition]) -> tuple[Shelf, ...]:
        """Return the topic index, by partition, type and name."""
        with self.database.read() as connection:
            return memory_rows.read_topics(connection, interning.known(connection, partitions))

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
        with self.database.read() as connection:
            return memory_rows.read(
                connection,
                interning.known(connection, partitions),
                ids=ids,
                on=topics,
                statuses=statuses,
                canonical_topics=canonical_topics,
                block_ids=block_ids,
                layers=layers,
                limit=limit,
            )

    def rules(
        self, partitions: Sequence[Partition], applies_to: Sequence[str] = (), *, core: bool, limit: int | None = None
    ) -> tuple[Memory, ...]:
        """Return live rules, the most important first; see `ports.Archive`."""
        with self.database.read() as connection:
            places = interning.known(connection, partitions)
            return memory_rows.read_rules(connection, places, applies_to, core=core, limit=limit)

    def shelved(self, partitions: Sequence[Partition], memory_ids: Sequence[str]) -> Mapping[Shelf, frozenset[str]]:
        """Return the topics that these memories stand on, with those of them that stand on each."""
        with self.database.read() as connection:
            return memory_rows.read_shelved(connection, interning.known(connection, partitions), memory_ids)

    def versions(self, partitions: Sequence[Partition], memory_id: str) -> tuple[Memory, ...]:
        """Return all versions of a memory, oldest first."""
        with self.database.read() as connection:
            return memory_rows.read_versions(connection, interning.known(connection, partitions), memory_id)

    def links(
        self,
        partitions: Sequence[Partition],
        memory_ids: Sequence[str] | None,
        *,
        types: Sequence[LinkType] | None = None,
        live: bool = False,
        limit: int | None = None,
    ) -> tuple[Link, ...]:
        """Return the links from or to these memories; see `Archive.links`."""
        with self.database.read() as connection:
            places = interning.known(connection, partitions)
            return memory_rows.read_links(connection, places, memory_ids, types=types, live=live, limit=limit)

    def events(
        self, partitions: Sequence[Partition], *, record_id: str | None = None, limit: int | None = None
    ) -> tuple[Event, ...]:
        """Return the journal, oldest first."""
        with self.database.read() as connection:
            places = interning.known(connection, partitions)
            return memory_rows.read_events(connection, places, record_id, limit)

    def forgotten(
        self, partitions: Sequence[Partition], memory_id: str | None = None
    ) -> tuple[tuple[Memory, str], ...]:
        """Return what is forgotten, to the letter; see `Archive.forgotten`."""
        with self.database.read() as connection:
            return memory_rows.read_forgotten(connection, interning.known(connection, partitions), memory_id)

    def carried_out(self, partition: Partition) -> tuple[int, datetime] | None:
        """Return how many memories were forgotten at a person's request since an agent last answered, and when."""
        with self.database.read() as connection:
            number = next(iter(interning.known(connection, [partition])), None)
            if number is None:
                return None
            count, time = memory_rows.read_carried_out(connection, number, AT_REQUEST)
            return (count, from_micros(time)) if count else None

    def committed(self, partition: Partition, operation_id: str) -> bool:
        """Return whether an operation was committed, whatever it changed."""
        with self.database.read() as connection:
            numbers = interning.known(connection, [partition])
            return any(replayed(connection, number, operation_id) for number in numbers)

    def operation(self, partitions: Sequence[Partition], operation_id: str) -> tuple[tuple[Memory, Memory], ...]:
        """Return what an operation changed, to the letter; see `Archive.operation`."""
        with self.database.read() as connection:
            return memory_rows.read_operation(connection, interning.known(connection, partitions), operation_id)

    def causes(self, partition: Partition) -> Collection[str]:
        """Return the operations that withhold words of messages here."""
        with self.database.read() as connection:
            return withheld_rows.causes(connection, list(interning.known(connection, [partition])))

    def withheld_by(self, partitions: Sequence[Partition], cause: str) -> tuple[Withholding, ...]:
        """Return which messages an operation withholds words of."""
        with self.database.read() as connection:
            return withheld_rows.by(connection, interning.known(connection, partitions), cause)

    def tool_stats(
        self, partitions: Sequence[Partition], tools: Sequence[str] | None = None, *, last: int = 0
    ) -> tuple[ToolStats, ...]:
        """Return the statistics of the tools, by name, counted in SQL."""
        with self.database.read() as connection:
            return tool_rows.stats(connection, interning.known(connection, partitions), tools, last)

    def tool_calls(
        self,
        partitions: Sequence[Partition],
        tools: Sequence[str] | None = None,
        *,
        last: int,
        digest: str | None = None,
    ) -> tuple[ToolRecord, ...]:
        """Return the newest calls of each tool; see `Archive.tool_calls`."""
        with self.database.read() as connection:
            return tool_rows.read(connection, interning.known(connection, partitions), tools, last, digest)

    def work(
        self, partitions: Sequence[Partition], *, states: Sequence[WorkState], recipe: str | None = None
    ) -> tuple[Work, ...]:
        """Return work in these states, by partition, block and topic."""
        with self.database.read() as connection:
            places = interning.known(connection, partitions)
            return memory_rows.read_work(connection, places, states, recipe)

    def match(
        self,
        partitions: Sequence[Partition],
        kind: HitKind,
        tokens: Sequence[str],
        allowed: Collection[str] | None = None,
    ) -> tuple[TextMatches, ...]:
        """Return, for each partition, the records that hold at least one token. Live memories only."""
        with self.database.read() as connection:
            places = interning.known(connection, partitions)
            return tuple(
                fulltext.match(connection, partition, fulltext.TextShelf(number, kind), tokens, allowed)
                for number, partition in places.items()
            )

    def commit(self, changes: ChangeSet) -> Receipt:
        """Apply a change set: all of it in one transaction, once."""
        return commit(self.database, self.journal, changes, quorum=self._quorum, tombstones=self.tombstones)

    def endorsements(
        self, partitions: Sequence[Partition], proposal_ids: Sequence[str] | None = None
    ) -> tuple[Endorsement, ...]:
        """Return what was said on proposals, oldest first."""
        with self.database.read() as connection:
            return endorsement_rows.read(connection, interning.known(connection, partitions), proposal_ids)

    def pulse(self, scope: Scope) -> Mapping[Partition, Pulse]:
        """Return how far each partition has come that the scope may read; see `ports.Archive`."""
        with self.database.read() as connection:
            return interning.pulse(connection, scope)

    def counts(self, partitions: Sequence[Partition] | None = None) -> Mapping[str, int]:
        """Return row counts by table name; where partitions are named, of the tables whose rows have one."""
        with self.database.read() as connection:
            return counts(connection, None if partitions is None else interning.known(connection, partitions))

    def close(self) -> None:
        """Give all connections back, and what is kept in memory."""
        self.database.close()
        self._layouts.clear()
