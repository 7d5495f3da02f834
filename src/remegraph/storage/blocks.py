"""The middle layer: tails, blocks and their index entries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, func, insert, select, update

from remegraph.errors import InputError
from remegraph.models import Block, BlockSummary, Cut, Partition, StoredMessage
from remegraph.ports import Tail
from remegraph.storage.messages import stored
from remegraph.storage.rows import chunks, from_micros, micros, offset_seconds
from remegraph.storage.tables import blocks, messages, summaries, threads, work
from remegraph.storage.tombstones import Tombstones

__all__ = ["BlockFilter", "add", "free_labels", "new", "pending", "read", "read_summaries", "record", "tails"]


def tails(
    connection: Connection, partition_id: int, partition: Partition, overlap: int, thread: str | None = None
) -> tuple[Tail, ...]:
    """Return what no block holds yet; costs what is new, not what is old."""
    query = (
        select(threads.c.thread, threads.c.block_seq)
        .where(threads.c.partition_id == partition_id, threads.c.last_seq > threads.c.block_seq)
        .order_by(threads.c.id)
    )
    if thread is not None:
        query = query.where(threads.c.thread == thread)
    unfinished = connection.execute(query).all()
    return tuple(
        Tail(
            thread=row.thread,
            after_seq=row.block_seq,
            overlap=_overlap(connection, partition_id, partition, row.thread, block_seq=row.block_seq, overlap=overlap),
            messages=_thread(connection, partition_id, partition, row.thread, messages.c.seq > row.block_seq),
        )
        for row in unfinished
    )


def _thread(
    connection: Connection, partition_id: int, partition: Partition, thread: str, *conditions: ColumnElement[bool]
) -> tuple[StoredMessage, ...]:
    here = (messages.c.partition_id == partition_id, messages.c.thread == thread)
    query = select(messages).where(*here, *conditions).order_by(messages.c.seq)
    return tuple(stored(partition, row) for row in connection.execute(query))


def _overlap(
    connection: Connection, partition_id: int, partition: Partition, thread: str, *, block_seq: int, overlap: int
) -> tuple[StoredMessage, ...]:
    if not overlap or not block_seq:
        return ()
    newest = select(blocks.c.first_seq).where(
        blocks.c.partition_id == partition_id, blocks.c.thread == thread, blocks.c.last_seq == block_seq
    )
    first = connection.execute(newest).scalar_one()
    return _thread(connection, partition_id, partition, thread, messages.c.seq.between(first, block_seq))[-overlap:]


def add(
    connection: Connection, partition_id: int, partition: Partition, cuts: Sequence[Cut], tombstones: Tombstones
) -> list[Block]:
    """Record cuts as blocks under the partition's lock; one that came too late is left out.

    Several cuts of one thread may all name the end that the tail had, or each the end of the cut before.

    Raises:
        InputError: A cut that leaves messages out, or names messages that are not there.
    """
    before = _ends(connection, partition_id, [cut.thread for cut in cuts])
    ends = dict(before)
    added: list[Block] = []
    for cut in cuts:
        if cut.thread not in ends:
            raise InputError(f"There is no thread {cut.thread!r} here.", "Cut what `tails` returned.")
        if cut.after_seq not in (ends[cut.thread], before[cut.thread]) or cut.last_seq <= ends[cut.thread]:
            continue  # somebody else was first
        inside = _inside(connection, partition_id, partition, cut, ends[cut.thread])
        added.append(new(connection, partition_id, inside, tombstones))
        ends[cut.thread] = cut.last_seq
    for thread, end in ends.items():
        here = (threads.c.partition_id == partition_id, threads.c.thread == thread)
        connection.execute(update(threads).where(*here).values(block_seq=end))
    return added


def _ends(connection: Connection, partition_id: int, names: Sequence[str]) -> dict[str, int]:
    """Return the last seq of the newest block of each thread, 0 where it has none."""
    query = select(threads.c.thread, threads.c.block_seq).where(threads.c.partition_id == partition_id)
    found = (connection.execute(query.where(threads.c.thread.in_(chunk))) for chunk in chunks(names))
    return {row.thread: row.block_seq for rows in found for row in rows}


def _inside(
    connection: Connection, partition_id: int, partition: Partition, cut: Cut, end: int
) -> Sequence[StoredMessage]:
    held = _thread(
        connection,
        partition_id,
        partition,
        cut.thread,
        messages.c.seq.between(min(cut.first_seq, end + 1), cut.last_seq),
    )
    inside = [message for message in held if message.seq >= cut.first_seq]
    left_out = [message for message in held if end < message.seq < cut.first_seq]
    if left_out or not inside or (inside[0].seq, inside[-1].seq) != (cut.first_seq, cut.last_seq):
        raise InputError(
            f"The cut {cut.first_seq} to {cut.last_seq} of {cut.thread!r} does not follow message {end}.",
            "Cut what `tails` returned, from its first message on.",
        )
    return inside


def new(connection: Connection, partition_id: int, inside: Sequence[StoredMessage], tombstones: Tombstones) -> Block:
    """Write a block with the next free label of its day.

    Args:
        connection: A write transaction that holds the partition's lock.
        partition_id: Where.
        inside: Its messages, oldest first.
        tombstones: What was erased.
    """
    first, last = inside[0], inside[-1]
    (label,) = free_labels(connection, partition_id, first.partition, [first.time], tombstones)
    block = Block(
        block_id=label,
        partition=first.partition,
        thread=first.thread,
        first_seq=first.seq,
        last_seq=last.seq,
        start_time=min(message.time for message in inside),
        end_time=max(message.time for message in inside),
    )
    record(connection, partition_id, block)
    return block


def free_labels(
    connection: Connection,
    partition_id: int,
    partition: Partition,
    times: Iterable[datetime],
    tombstones: Tombstones,
) -> tuple[str, ...]:
    """Return the next free label of the day for each of these times: one that an erased block had is not used again.

    Args:
        connection: A connection.
        partition_id: Where.
        partition: The same, by its fields.
        times: When the first words of each block were said.
        tombstones: What was erased.
    """
    last: dict[str, int] = {}
    found: list[str] = []
    for said in times:
        day = f"{said.year:04}{said.month:02}{said.day:02}"  # the date where it was said
        if day not in last:
            here = (blocks.c.partition_id == partition_id, blocks.c.day == day)
            last[day] = connection.execute(
                select(func.coalesce(func.max(blocks.c.number), 0)).where(*here)
            ).scalar_one()
        last[day] += 1
        while tombstones.among(connection, "block", partition, [f"{day}_{last[day]:02}"]):
            last[day] += 1
        found.append(f"{day}_{last[day]:02}")
    return tuple(found)


def record(connection: Connection, partition_id: int, block: Block) -> None:
    """Write the row of a new block.

    Args:
        connection: A write transaction that holds the partition's lock.
        partition_id: Where.
        block: The block, with its label.
    """
    day, _, number = block.block_id.partition("_")
    connection.execute(
        insert(blocks).values(
            partition_id=partition_id,
            day=day,
            number=int(number),
            start_offset=offset_seconds(block.start_time),
            end_offset=offset_seconds(block.end_time),
            **block.model_dump(include={"block_id", "thread", "first_seq", "last_seq"}),
            start_time=micros(block.start_time),
            end_time=micros(block.end_time),
        )
    )


def pending(connection: Connection, recipe: str, partition_ids: Sequence[int] | None) -> int:
    """Return how many blocks wait for a way of summarising, in all partitions or in some."""
    query = select(func.count()).select_from(work).where(work.c.state == "pending", work.c.recipe == recipe)
    if partition_ids is not None:
        query = query.where(work.c.partition_id.in_(partition_ids))
    return connection.execute(query).scalar_one()


@dataclass(frozen=True, slots=True)
class BlockFilter:
    """Conditions on blocks; see `Archive.blocks`."""

    thread: str | None = None
    time_start: datetime | None = None
    time_end: datetime | None = None

    def conditions(self) -> Iterator[ColumnElement[bool]]:
        """Say it in SQL."""
        if self.thread is not None:
            yield blocks.c.thread == self.thread
        if self.time_start is not None:
            yield blocks.c.end_time >= micros(self.time_start)
        if self.time_end is not None:
            yield blocks.c.start_time <= micros(self.time_end)


def read(
    connection: Connection,
    places: Mapping[int, Partition],
    wanted: BlockFilter,
    ids: Sequence[str] | None,
    message_ids: Sequence[str] | None,
) -> tuple[Block, ...]:
    """Return blocks, oldest first."""
    query = select(blocks).where(blocks.c.partition_id.in_(list(places)), *wanted.conditions())
    queries = [query] if ids is None else [query.where(blocks.c.block_id.in_(chunk)) for chunk in chunks(ids)]
    if message_ids is not None:
        holds = and_(
            messages.c.partition_id == blocks.c.partition_id,
            messages.c.thread == blocks.c.thread,
            messages.c.seq.between(blocks.c.first_seq, blocks.c.last_seq),
        )
        queries = [
            query.where(select(messages.c.id).where(holds, messages.c.message_id.in_(chunk)).exists())
            for query in queries
            for chunk in chunks(message_ids)
        ]
    found = {row.id: row for query in queries for row in connection.execute(query)}
    ordered = sorted(found.values(), key=lambda row: (row.start_time, row.partition_id, row.first_seq, row.id))
    return tuple(_block(places[row.partition_id], row) for row in ordered)


def _block(partition: Partition, row: Row[Any]) -> Block:
    return Block(
        block_id=row.block_id,
        partition=partition,
        thread=row.thread,
        first_seq=row.first_seq,
        last_seq=row.last_seq,
        start_time=from_micros(row.start_time, row.start_offset),
        end_time=from_micros(row.end_time, row.end_offset),
    )


def read_summaries(
    connection: Connection, places: Mapping[int, Partition], ids: Sequence[str] | None
) -> tuple[BlockSummary, ...]:
    """Return index entries, oldest first."""
    query = select(summaries).where(summaries.c.partition_id.in_(list(places)))
    queries = [query] if ids is None else [query.where(summaries.c.block_id.in_(chunk)) for chunk in chunks(ids)]
    found = {(row.partition_id, row.block_id): row for query in queries for row in connection.execute(query)}
    ordered = sorted(found.values(), key=lambda row: (row.start_time, row.partition_id, row.block_id))
    return tuple(BlockSummary.from_json(row.body) for row in ordered)
