"""The ledger as the engine sees it: what is recorded, what is read back, and the one door for change."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from datetime import datetime
from functools import partial
from typing import Self

from sqlalchemy import Connection

from remegraph.errors import ErasedError
from remegraph.failpoints import failpoint
from remegraph.ledger import blocks as block_rows
from remegraph.ledger import jobs, permissions, usage
from remegraph.ledger import memories as memory_rows
from remegraph.ledger import messages as message_rows
from remegraph.ledger import partitions as partition_rows
from remegraph.ledger import withheld as withheld_rows
from remegraph.ledger.attachments import SWEEP_LOCK, Attachments, BlobFolder
from remegraph.ledger.audit import read_events
from remegraph.ledger.commit import commit, committed
from remegraph.ledger.database import Database
from remegraph.ledger.index import fulltext
from remegraph.ledger.index.fulltext import EMPTY_LAYOUT, LayoutCache
from remegraph.ledger.journal import Entry, Heads, Journal, KeyRing
from remegraph.ledger.rows import counts, from_micros, micros
from remegraph.ledger.usage import UsageLog
from remegraph.ledger.withheld import Tombstones, unsaid
from remegraph.models import (
    AddReceipt,
    Block,
    BlockSummary,
    Brought,
    BroughtBlock,
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
from remegraph.models.changes import AT_REQUEST
from remegraph.models.messages import Blob, WithheldReason
from remegraph.models.tools import of_own_systems
from remegraph.ports import Clock, Layout, NewId, Pulse, Recorded, Tail, TextMatches
from remegraph.settings import Settings

__all__ = ["Archive"]


class Archive(UsageLog):
    """The ledger over SQLite or PostgreSQL: raw rows, blocks, memories with all versions. Safe to share between threads.

    Every read names its partitions and is one snapshot; ids that live elsewhere are not found.

    Args:
        clock: Used to know when blocks are recorded and jobs are due.
        stamps: Say with which settings jobs are done.
        quorum: How many agents must support what is proposed for all of a user's.
        blobs: Keeps the bytes of attachments; without it there are none.
        trusted: Tools that are systems of the owner's, by name.
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
        trusted: Collection[str] = (),
    ) -> None:
        super().__init__(database, journal, new_id)
        self.queue = jobs.JobQueue(database, clock, stamps)
        self._stamps = stamps
        self._clock = clock
        self._quorum = quorum
        self._trusted = frozenset(trusted)
        self.tombstones = Tombstones(journal)
        self._layouts = LayoutCache()
        self.attachments = Attachments(database, self._layouts, blobs)

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
            settings: Those that jobs are done with, and how many agents must support what is proposed for all of a user's.
            blobs: Keeps the bytes of attachments.

        Raises:
            SetupError: The URL, the file or the server cannot be used.
            SchemaTooNewError: A newer remegraph wrote it.
            SchemaTooOldError: It is of an earlier release, and the settings leave its schema as it is.
            JournalKeyError: Its journal is not sealed yet, and a key must be given.
        """
        settings = settings or Settings()
        database = Database.open(url, settings.pool, migrate=settings.migrate)
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
                trusted=settings.tools.trusted,
            )
            unless_ready.pop_all()
        return archive

    def visible(self, scope: Scope) -> tuple[Partition, ...]:
        """Return the existing partitions that the scope may read, its own first."""
        return tuple(self.pulse(scope))

    def session(self) -> AbstractContextManager[None]:
        """Let all that is read meanwhile, by whatever thread of the call, see one snapshot: it costs one transaction."""
        return self.database.session()

    def away(self) -> None:
        """Keep no connection while something slow is waited for; what is read after it sees a new snapshot."""
        self.database.away()

    def partitions(self) -> tuple[Partition, ...]:
        """Return all partitions (for `verify`, `rebuild` and `drain` only)."""
        with self.database.read() as connection:
            return partition_rows.every(connection)

    def add_messages(
        self,
        partition: Partition,
        messages: Sequence[Message],
        recorded_at: datetime,
        *,
        asleep: bool = False,
        blobs: Mapping[str, Blob] | None = None,
        withheld: Sequence[Withholding] = (),
        screen: Callable[[], Sequence[Withholding]] | None = None,
        untimed: Collection[str] = (),
        cut_at: datetime | None = None,
    ) -> AddReceipt:
        """Record messages durably, in order, and enqueue the partition's `summarize` job. All or nothing.

        Every message has its id. The same id with the same content is counted as known.

        Args:
            asleep: Whether the job sleeps until it is enqueued awake, or all jobs are asked for.
            blobs: The bytes of the attachments that they refer to, by SHA-256: durable before the messages are.
            withheld: Words of them that are withheld from the first moment, each with its cause.
            screen: Says which other words are: asked only where words of what is recorded already are withheld.
            untimed: Ids of those whose time no one said: where one is recorded, whatever its time, it is the same.
            cut_at: When the partition's `cut` job is due, which cuts tails; it is enqueued only where this is given.

        Raises:
            MessageChangedError: An id is recorded with other content.
            SetupError: Bytes cannot be kept.
        """
        new, held = messages, dict[str, Blob]()
        if blobs:  # no byte of what was erased comes back, not even for a moment
            with self.database.read() as connection:
                new = self._not_erased(connection, partition, messages)
            held = self.attachments.keep(new, blobs)
        failpoint("add.kept")
        due = {"summarize": jobs.ASLEEP if asleep else micros(self._clock())}
        due |= {"cut": micros(cut_at)} if cut_at else {}
        record = partial(self._record, partition, new, recorded_at, held=held, untimed=untimed, due=due)
        found = record(withheld, screened=screen is None) if new else (0, 0)
        if found is None:
            found = record((*(screen() if screen else ()), *withheld), screened=True) or (0, 0)
        failpoint("add.after_commit")
        ids, (added, left) = tuple(message.message_id for message in messages), found
        return AddReceipt(message_ids=ids, added=added, known=left - added, erased=len(messages) - left)

    def _record(
        self,
        partition: Partition,
        given: Sequence[Message],
        recorded_at: datetime,
        withheld: Sequence[Withholding],
        *,
        screened: bool,
        held: Mapping[str, Blob],
        untimed: Collection[str],
        due: Mapping[str, int],
    ) -> tuple[int, int] | None:
        """Record messages; return how many were new, and how many not erased.

        Args:
            withheld: Words that are withheld from the first moment.
            screened: Whether these are all; else nothing is recorded, and returned, where words of others are withheld.
            held: The bytes of attachments, by SHA-256.
            due: Jobs that are enqueued where a message is new.
        """
        with self.database.write([SWEEP_LOCK] if held else ()) as connection:
            self.attachments.keep(given, held)  # a sweep may have come before the lock
            place, there, new = self._placed(connection, partition, given)
            if there is None:
                connection.rollback()  # the name that was just written, too
                return 0, 0
            if there.screens and not screened:
                return None
            added = message_rows.add(connection, place, new, recorded_at, held, there=there, untimed=untimed)
            erased = {each.message_id for each in given} - {each.message_id for each in new}
            there_still = [each for each in withheld if each.message_id not in erased]
            withheld_rows.add(connection, place, there_still, micros(recorded_at))
            if added:
                jobs.enqueue(connection, due, place, self._stamps.of(partition.agent))
            failpoint("add.before_commit")
        return added, len(new)

    def _placed(
        self, connection: Connection, partition: Partition, given: Sequence[Message]
    ) -> tuple[int, message_rows.Known | None, Sequence[Message]]:
        """Return the number of a partition, locked, what it holds of these messages, and which of them were not erased.

        If all of them were, nothing is returned of the partition.
        """
        place = partition_rows.cached(connection, [partition]).get(partition, 0)
        self.database.lock(connection, [place] if place else ())
        ids, key = [each.message_id for each in given], partition_rows.key_of(partition)
        there = message_rows.known(connection, place, key, ids) if place else None
        new = self._not_erased(connection, partition, given) if there is None or there.graves else given
        failpoint("add.begin")
        if new and there is None:  # else no one's name is written
            place = partition_rows.hold(self.database, connection, [partition])[partition]
            if not self.database.is_sqlite:  # it may have waited for an erasure
                new = self._not_erased(connection, partition, new)
            there = message_rows.known(connection, place, key, [each.message_id for each in new])
        return place, there if new else None, new

    def add_statement(
        self, partition: Partition, message: Message, recorded_at: datetime, recipe: str
    ) -> tuple[StoredMessage, Block] | None:
        """Record a message as a block of its own, in one transaction, mark the block pending, and enqueue `summarize`.

        None: it is recorded already.

        Args:
            recipe: The way of summarising that the block waits for.

        Raises:
            ErasedError: It was erased.
        """
        with self.database.write() as connection:
            place, there, _ = self._placed(connection, partition, [message])
            if there is None:
                raise ErasedError(f"Message {message.message_id} was erased.")
            if message.message_id in there.digests:
                return None
            message_rows.add(connection, place, [message], recorded_at, {}, there=there, cut=True)
            told = {"partition": partition, "seq": there.last_seq + 1, "recorded_at": recorded_at}
            stored = StoredMessage.model_validate({**message.model_dump(), **told})
            block = block_rows.new(connection, place, [stored], self.tombstones)
            self._await(connection, place, [block], recipe, there.heads)
            due = {"summarize": micros(self._clock())}
            jobs.enqueue(connection, due, place, self._stamps.of(partition.agent))
            failpoint("add.before_commit")
        failpoint("add.after_commit")
        return stored, block

    def _await(
        self, connection: Connection, partition_id: int, new: Sequence[Block], recipe: str, heads: Heads | None = None
    ) -> None:
        """Mark new blocks as waiting for a way of summarising, and journal them."""
        jobs.await_work(connection, partition_id, new, recipe)
        now, operation_id = micros(self._clock()), self._new_id()
        told = [
            Entry(partition_id, now, "slicer", "add_block", each.block_id, operation_id, body=each.to_json())
            for each in new
        ]
        self.journal.add(connection, told, heads)

    def keep_off_record(self, partition: Partition, said: Sequence[tuple[str, str]]) -> None:
        """Mark messages as said off the record, by what nothing can be read from: `add_messages` turns them away.

        Args:
            partition: Where they would be recorded.
        """
        with self.database.write() as connection:
            self.tombstones.lay(connection, self._new_id(), "message", partition, [unsaid(*each) for each in said])

    def off_record(self, partition: Partition, said: Sequence[tuple[str, str]]) -> frozenset[tuple[str, str]]:
        """Return those of some messages that were said off the record.

        Args:
            partition: Where they would be recorded.
        """
        marks = {unsaid(*each): each for each in said}
        with self.database.read() as connection:
            found = self.tombstones.among(connection, "message", partition, list(marks))
        return frozenset(marks[each] for each in found)

    def _not_erased(
        self, connection: Connection, partition: Partition, messages: Sequence[Message]
    ) -> Sequence[Message]:
        """Return the messages without those that were erased here, or said off the record: no import brings them back."""
        names = [(each.message_id, unsaid(each.thread, each.message_id)) for each in messages]
        gone = self.tombstones.among(connection, "message", partition, [name for pair in names for name in pair])
        if not gone:
            return messages
        return [each for each, pair in zip(messages, names, strict=True) if gone.isdisjoint(pair)]

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
        newest: bool = False,
        shown: Collection[WithheldReason] = (),
    ) -> tuple[StoredMessage, ...]:
        """Return messages that meet all conditions, by partition and seq.

        Args:
            ids: Only these ids.
            seqs: Only at these places; instead of ids.
            thread: Only of this thread.
            time_start: Said at this time or later.
            time_end: Said at this time or earlier.
            key_word: Their text holds this literal text, ASCII case aside; wildcards mean themselves.
            limit: At most so many.
            newest: Whether these are the newest of each partition, instead of the first.
            shown: Reasons for which words are withheld that are shown all the same.
        """
        wanted = message_rows.MessageFilter(thread, first_seq, last_seq, time_start, time_end, key_word, newest=newest)
        with self.database.read() as connection:
            places = partition_rows.known(connection, partitions)
            found = message_rows.read(connection, places, wanted, ids=ids, seqs=seqs, limit=limit, shown=shown)
            return of_own_systems(tuple(found), self._trusted)

    def message_ids(self, block: Block) -> Collection[str]:
        """Return the ids of the messages that a block holds."""
        with self.database.read() as connection:
            return [
                name
                for number in partition_rows.known(connection, [block.partition])
                for name in message_rows.ids_between(connection, number, block.thread, block.first_seq, block.last_seq)
            ]

    def asked(self, partitions: Sequence[Partition]) -> tuple[StoredMessage, ...]:
        """Return the messages that wait for a decision on a request to forget, with the words that it is about."""
        with self.database.read() as connection:
            return tuple(message_rows.asked(connection, partition_rows.known(connection, partitions)))

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
        """Return messages exactly as recorded, by id, in the order of recording: what comparing very many costs least with.

        Args:
            ids: Only these ids.
            revising: Only revisions of these ids.
            thread: Only of this thread.
            after: Only those recorded after this place.
            dropped: Only those that are part of their host's conversation no more; or, if false, only those that are.
        """
        with self.database.read() as connection:
            number = next(iter(partition_rows.known(connection, [partition])), None)
            if number is None:
                return {}
            if ids is not None:
                return message_rows.recorded(connection, number, ids)
            if revising:
                return message_rows.revisions(connection, number, revising)
            return message_rows.course(connection, number, thread, after, dropped=dropped)

    def layout(self, partition: Partition) -> Layout:
        """Return the partition's messages as columns (cached, extended by what is new)."""
        found: Layout = self.database.once(("layout", partition), partial(self._layout, partition))
        return found

    def _layout(self, partition: Partition, connection: Connection) -> Layout:
        places = partition_rows.known(connection, [partition])
        return self._layouts.get(connection, next(iter(places))) if places else EMPTY_LAYOUT

    def tails(self, partition: Partition, overlap: int = 0, *, thread: str | None = None) -> tuple[Tail, ...]:
        """Return what no block holds yet, by thread.

        Args:
            overlap: How many messages before the tail to give along.
            thread: Only of this thread.
        """
        with self.database.read() as connection:
            places = partition_rows.known(connection, [partition])
            return tuple(
                tail
                for partition_id, place in places.items()
                for tail in block_rows.tails(connection, partition_id, place, overlap, thread)
            )

    def tail_starts(self, partitions: Sequence[Partition]) -> Mapping[tuple[Partition, str], int]:
        """Return the places after which no block holds what was said, of each thread that has such words."""
        with self.database.read() as connection:
            return block_rows.tail_starts(connection, partition_rows.known(connection, partitions))

    def add_blocks(
        self, partition: Partition, cuts: Sequence[Cut], recipe: str, *, enqueue: bool = False
    ) -> tuple[Block, ...]:
        """Record cuts as blocks, label them, and mark each pending. A cut that came too late is left out.

        Args:
            cuts: From `tails`.
            recipe: The way of summarising that they wait for.
            enqueue: Whether the `summarize` job is enqueued in the same transaction, if a block was added.
        """
        now = micros(self._clock())
        with self.database.write() as connection:
            places = partition_rows.known(connection, [partition])
            self.database.lock(connection, places)
            added: list[Block] = []
            failpoint("blocks.begin")
            for partition_id in places:
                added = block_rows.add(connection, partition_id, partition, cuts, self.tombstones)
                if added and enqueue:
                    jobs.enqueue(connection, {"summarize": now}, partition_id, self._stamps.of(partition.agent))
                self._await(connection, partition_id, added, recipe)
            failpoint("blocks.before_commit")
        failpoint("blocks.after_commit")
        return tuple(added)

    def pending(self, recipe: str, partitions: Sequence[Partition] | None = None) -> int:
        """Return how many blocks wait for this way of summarising, in all partitions unless some are named."""
        with self.database.read() as connection:
            numbers = None if partitions is None else list(partition_rows.known(connection, partitions))
            return jobs.pending(connection, recipe, numbers)

    def failed(self, recipe: str) -> int:
        """Return of how many blocks something failed, until it is tried again, in all partitions."""
        with self.database.read() as connection:
            return jobs.failed(connection, recipe)

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
        wanted = block_rows.BlockFilter(thread, time_start, time_end)
        with self.database.read() as connection:
            places = partition_rows.known(connection, partitions)
            return block_rows.read(connection, places, wanted, ids, message_ids)

    def blocks_of(self, seqs: Mapping[Partition, Sequence[int]]) -> Mapping[tuple[Partition, int], Block]:
        """Return the block that holds each of these messages, by partition and place; of several the one where it was new."""
        with self.database.read() as connection:
            places = partition_rows.known(connection, list(seqs))
            return block_rows.read_holding(connection, places, {place: seqs[here] for place, here in places.items()})

    def in_blocks(self, partition: Partition, records: Sequence[Message]) -> Brought:
        """Return raw records, each in a block of its own, under a label that no block has, or an erased one had."""
        with self.database.read() as connection:
            here = next(iter(partition_rows.known(connection, [partition])), 0)  # no partition has number 0
            times = [each.time for each in records]
            labels = block_rows.free_labels(connection, here, partition, times, self.tombstones)
        return Brought(
            partition=partition,
            messages=tuple(records),
            blocks=tuple(
                BroughtBlock(block_id=label, thread=each.thread, message_ids=(each.message_id,))
                for label, each in zip(labels, records, strict=True)
            ),
        )

    def summaries(
        self, partitions: Sequence[Partition], *, ids: Sequence[str] | None = None
    ) -> tuple[BlockSummary, ...]:
        """Return index entries, oldest first."""
        with self.database.read() as connection:
            return block_rows.read_summaries(connection, partition_rows.known(connection, partitions), ids)

    def read_by(self, partitions: Sequence[Partition], reader: str, recipe: str) -> tuple[str, ...]:
        """Return the labels of the blocks of conversations that someone read, the newest first, but for those that failed.

        Args:
            reader: As the index entries name it: a model, or `extractive`.
            recipe: The way of summarising whose failures are left out.
        """
        with self.database.read() as connection:
            return block_rows.read_by(connection, list(partition_rows.known(connection, partitions)), reader, recipe)

    def topics(self, partitions: Sequence[Partition]) -> tuple[Shelf, ...]:
        """Return the topic index, by partition, type and name."""
        with self.database.read() as connection:
            return memory_rows.read_topics(connection, partition_rows.known(connection, partitions))

    def attributes(self, partitions: Sequence[Partition]) -> Mapping[Shelf, tuple[str, ...]]:
        """Return the slots that live memories of each topic hold, the most frequent first."""
        with self.database.read() as connection:
            return memory_rows.read_attributes(connection, partition_rows.known(connection, partitions))

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
                partition_rows.known(connection, partitions),
                ids=ids,
                on=topics,
                statuses=statuses,
                canonical_topics=canonical_topics,
                block_ids=block_ids,
                layers=layers,
                limit=limit,
                known=self.database.records(),
            )

    def full_ids(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the ids of the memories that contexts call so: by an id, or by its beginning; see `engine.retrieval.context.short_id`."""
        with self.database.read() as connection:
            return memory_rows.read_full_ids(connection, names)

    def rules(
        self, partitions: Sequence[Partition], applies_to: Sequence[str] = (), *, core: bool, limit: int | None = None
    ) -> tuple[Memory, ...]:
        """Return live memories that are given to the agent unasked, the most important first, then the newest.

        Args:
            applies_to: Where the others apply, as `project:<name>`; policies come first.
            core: Core rules; else the others.
            limit: At most so many.
        """
        with self.database.read() as connection:
            places = partition_rows.known(connection, partitions)
            return memory_rows.read_rules(connection, places, applies_to, core=core, limit=limit)

    def shelved(self, partitions: Sequence[Partition], memory_ids: Sequence[str]) -> Mapping[Shelf, frozenset[str]]:
        """Return the topics of these memories, each with its memories."""
        with self.database.read() as connection:
            return memory_rows.read_shelved(connection, partition_rows.known(connection, partitions), memory_ids)

    def versions(self, partitions: Sequence[Partition], memory_id: str) -> tuple[Memory, ...]:
        """Return all versions of a memory, oldest first."""
        with self.database.read() as connection:
            return memory_rows.read_versions(connection, partition_rows.known(connection, partitions), memory_id)

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
            memory_ids: The memories; none: all of the partitions.
            types: Only of these types.
            live: Only between live memories.
            limit: At most so many.
        """
        with self.database.read() as connection:
            places = partition_rows.known(connection, partitions)
            return memory_rows.read_links(connection, places, memory_ids, types=types, live=live, limit=limit)

    def events(
        self, partitions: Sequence[Partition], *, record_id: str | None = None, limit: int | None = None
    ) -> tuple[Event, ...]:
        """Return the journal, oldest first."""
        with self.database.read() as connection:
            places = partition_rows.known(connection, partitions)
            return read_events(connection, places, record_id, limit)

    def forgotten(
        self, partitions: Sequence[Partition], memory_id: str | None = None
    ) -> tuple[tuple[Memory, str], ...]:
        """Return what is forgotten, unredacted, each with the operation that forgot it.

        Every other read shows that a memory was forgotten, and not what it said.

        Args:
            memory_id: Only this memory.
        """
        with self.database.read() as connection:
            return memory_rows.read_forgotten(connection, partition_rows.known(connection, partitions), memory_id)

    def carried_out(self, partition: Partition) -> tuple[int, datetime] | None:
        """Return how many memories were forgotten at a person's request since an agent last answered, and when."""
        with self.database.read() as connection:
            number = next(iter(partition_rows.known(connection, [partition])), None)
            if number is None:
                return None
            count, time = memory_rows.read_carried_out(connection, number, AT_REQUEST)
            return (count, from_micros(time)) if count else None

    def committed(self, partition: Partition, operation_id: str) -> bool:
        """Return whether an operation was committed, whatever it changed."""
        with self.database.read() as connection:
            return committed(connection, partition_rows.known(connection, [partition]), operation_id)

    def operation(self, partitions: Sequence[Partition], operation_id: str) -> tuple[tuple[Memory, Memory], ...]:
        """Return what an operation changed, unredacted: each head as it is now, with the version before the operation."""
        with self.database.read() as connection:
            return memory_rows.read_operation(connection, partition_rows.known(connection, partitions), operation_id)

    def causes(self, partition: Partition) -> Collection[str]:
        """Return the operations that withhold words of messages here because someone wants them forgotten."""
        with self.database.read() as connection:
            return withheld_rows.causes(connection, list(partition_rows.known(connection, [partition])))

    def withheld_by(self, partitions: Sequence[Partition], cause: str) -> tuple[Withholding, ...]:
        """Return which messages an operation withholds words of."""
        with self.database.read() as connection:
            return withheld_rows.by(connection, partition_rows.known(connection, partitions), cause)

    def tool_stats(
        self, partitions: Sequence[Partition], tools: Sequence[str] | None = None, *, last: int = 0
    ) -> tuple[ToolStats, ...]:
        """Return the statistics of the tools, by name.

        Args:
            tools: Only these.
            last: How many of the newest calls of each to look at closely.
        """
        with self.database.read() as connection:
            return usage.call_stats(connection, partition_rows.known(connection, partitions), tools, last)

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
            tools: Only these.
            digest: Only calls with this digest.
        """
        with self.database.read() as connection:
            return usage.read_calls(connection, partition_rows.known(connection, partitions), tools, last, digest)

    def work(
        self, partitions: Sequence[Partition], *, states: Sequence[WorkState], recipe: str | None = None
    ) -> tuple[Work, ...]:
        """Return work in these states, by partition, block and topic."""
        with self.database.read() as connection:
            places = partition_rows.known(connection, partitions)
            return jobs.read_work(connection, places, states, recipe)

    def match(
        self,
        partitions: Sequence[Partition],
        kind: HitKind,
        tokens: Sequence[str],
        allowed: Collection[str] | None = None,
        *,
        beside: Sequence[HitKind] = (),
    ) -> tuple[TextMatches, ...]:
        """Return, for each partition, the records that hold at least one token. Live memories only.

        Args:
            kind: memory, block or message.
            tokens: Tokens of our own tokenizer.
            allowed: Only these records, with their own statistics.
            beside: Kinds that will be asked for the same tokens in this session: they are looked up along.
        """
        if beside and allowed is None:
            kinds = tuple(sorted({kind, *beside}))
            found = self.database.once(
                ("match", kinds, tuple(partitions), tuple(tokens)),
                lambda connection: self._matched(connection, partitions, kinds, tokens),
            )
            return tuple(each[kind] for each in found)
        with self.database.read() as connection:
            return tuple(each[kind] for each in self._matched(connection, partitions, [kind], tokens, allowed))

    @staticmethod
    def _matched(
        connection: Connection,
        partitions: Sequence[Partition],
        kinds: Sequence[HitKind],
        tokens: Sequence[str],
        allowed: Collection[str] | None = None,
    ) -> list[dict[HitKind, TextMatches]]:
        places = partition_rows.known(connection, partitions)
        return [
            fulltext.match(connection, partition, number, kinds, tokens, allowed=allowed)
            for number, partition in places.items()
        ]

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
        return commit(self.database, self.journal, changes, quorum=self._quorum, tombstones=self.tombstones)

    def endorsements(
        self, partitions: Sequence[Partition], proposal_ids: Sequence[str] | None = None
    ) -> tuple[Endorsement, ...]:
        """Return what was said on proposals, oldest first; on all of these partitions unless some are named."""
        with self.database.read() as connection:
            return permissions.endorsements_of(connection, partition_rows.known(connection, partitions), proposal_ids)

    def pulse(self, scope: Scope) -> Mapping[Partition, Pulse]:
        """Return the partitions that the scope may read, its own first, each with how far it has come.

        While that is the same, no memory there has changed and no review was added. It costs next to nothing.
        """
        return partition_rows.pulse(self.database, scope)

    def counts(self, partitions: Sequence[Partition] | None = None) -> Mapping[str, int]:
        """Return row counts by table name, for `stats`."""
        with self.database.read() as connection:
            return counts(connection, None if partitions is None else partition_rows.known(connection, partitions))

    def close(self) -> None:
        """Give all connections back."""
        self.database.close()
        self._layouts.clear()
