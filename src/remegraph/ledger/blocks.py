"""Blocks: cut from threads, read again, or brought from another ledger; and their index entries."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Insert,
    Row,
    and_,
    bindparam,
    exists,
    func,
    insert,
    or_,
    select,
    update,
)

from remegraph.errors import ConflictError, InputError, NotFoundError
from remegraph.ledger import messages as message_rows
from remegraph.ledger import partitions as partition_rows
from remegraph.ledger.messages import stored
from remegraph.ledger.rows import chunks, from_micros, micros, offset_seconds, upsert
from remegraph.ledger.schema import blocks, messages, summaries, threads, work
from remegraph.ledger.withheld import ANY, Tombstones
from remegraph.models import (
    Block,
    BlockSummary,
    Brought,
    BroughtBlock,
    Cut,
    Message,
    Partition,
    StoredMessage,
)
from remegraph.ports import Tail

__all__ = [
    "BlockFilter",
    "Extent",
    "Extents",
    "add",
    "bring",
    "end",
    "extents",
    "free_labels",
    "new",
    "read",
    "read_by",
    "read_holding",
    "read_summaries",
    "tail_starts",
    "tails",
    "write_summaries",
]


_STATEMENTS = ("stated:", "imported:")
"""How threads begin that hold a memory which someone wrote, and no conversation."""

Numbers = Mapping[Partition, int]
"""The numbers of partitions."""

# Said once: building a statement costs as much as running it.
_EXTENTS = (
    select(
        *(blocks.c[name] for name in ("partition_id", "block_id", "thread", "first_seq", "last_seq")),
        summaries.c.block_id.is_not(None).label("entered"),
        exists()
        .where(
            messages.c.partition_id == blocks.c.partition_id,
            messages.c.thread == blocks.c.thread,
            messages.c.seq.between(blocks.c.first_seq, blocks.c.last_seq),
            messages.c.withheld.is_not(None),
        )
        .label("hides"),
        work.c.topic,
        work.c.recipe,
        work.c.state,
    )
    .select_from(blocks)
    .outerjoin(
        summaries, and_(summaries.c.partition_id == blocks.c.partition_id, summaries.c.block_id == blocks.c.block_id)
    )
    .outerjoin(
        work,
        and_(work.c.partition_id == blocks.c.partition_id, work.c.block_id == blocks.c.block_id),
    )
    .where(
        blocks.c.partition_id.in_(bindparam("here", expanding=True)),
        blocks.c.block_id.in_(bindparam("labels", expanding=True)),
    )
)
_newest = blocks.alias()
_UNTIL = and_(
    _newest.c.partition_id == threads.c.partition_id,
    _newest.c.thread == threads.c.thread,
    _newest.c.last_seq == threads.c.block_seq,
)
_SAID_SINCE = and_(messages.c.partition_id == threads.c.partition_id, messages.c.thread == threads.c.thread)
_UNCUT = (
    select(threads.c.thread.label("open_thread"), threads.c.block_seq, messages)
    .where(threads.c.partition_id == bindparam("here"), threads.c.last_seq > threads.c.block_seq)
    .order_by(threads.c.id, messages.c.seq)
)
_OPEN = _UNCUT.select_from(threads).outerjoin(messages, and_(_SAID_SINCE, messages.c.seq > threads.c.block_seq))
_OVERLAPPING = (
    _UNCUT.select_from(threads)
    .outerjoin(_newest, _UNTIL)
    .outerjoin(
        messages,
        and_(_SAID_SINCE, messages.c.seq >= func.coalesce(_newest.c.first_seq, threads.c.block_seq + 1)),
    )
)
_NEWEST_LABEL = select(func.coalesce(func.max(blocks.c.number), 0), ANY).where(
    blocks.c.partition_id == bindparam("here"), blocks.c.day == bindparam("day")
)
_later = blocks.alias()
_first_end = select(func.min(_later.c.last_seq)).where(
    _later.c.partition_id == messages.c.partition_id,
    _later.c.thread == messages.c.thread,
    _later.c.last_seq >= messages.c.seq,
)
_HOLDING = (
    select(messages.c.seq.label("seq"), blocks)
    .select_from(messages)
    .join(
        blocks,
        and_(
            blocks.c.partition_id == messages.c.partition_id,
            blocks.c.thread == messages.c.thread,
            blocks.c.last_seq == _first_end.correlate(messages).scalar_subquery(),
            blocks.c.first_seq <= messages.c.seq,
        ),
    )
    .where(messages.c.partition_id == bindparam("here"), messages.c.seq.in_(bindparam("seqs", expanding=True)))
)


# ------------------------------------------------------------------------------------------- cut from threads


def tails(
    connection: Connection, partition_id: int, partition: Partition, overlap: int, thread: str | None = None
) -> tuple[Tail, ...]:
    """Return what no block holds yet; costs what is new, not what is old."""
    query = _OVERLAPPING if overlap else _OPEN
    query = query if thread is None else query.where(threads.c.thread == thread)
    found: dict[str, list[Any]] = {}
    for row in connection.execute(query, {"here": partition_id}):
        found.setdefault(row.open_thread, []).append(row)
    return tuple(_tail(partition, name, rows, overlap) for name, rows in found.items())


def _tail(partition: Partition, thread: str, rows: Sequence[Any], overlap: int) -> Tail:
    after: int = rows[0].block_seq
    held = [stored(partition, row) for row in rows if row.id is not None]
    before = [message for message in held if message.seq <= after]
    return Tail(
        thread=thread,
        after_seq=after,
        overlap=tuple(before[-overlap:]) if overlap else (),
        messages=tuple(held[len(before) :]),
    )


def tail_starts(connection: Connection, places: Mapping[int, Partition]) -> dict[tuple[Partition, str], int]:
    """Return the last place in a block, of each thread that has more; 0 where none is."""
    open_ = (threads.c.partition_id.in_(list(places)), threads.c.last_seq > threads.c.block_seq)
    found = connection.execute(select(threads.c.partition_id, threads.c.thread, threads.c.block_seq).where(*open_))
    return {(places[row.partition_id], row.thread): row.block_seq for row in found}


def _thread(
    connection: Connection, partition_id: int, partition: Partition, thread: str, *conditions: ColumnElement[bool]
) -> tuple[StoredMessage, ...]:
    here = (messages.c.partition_id == partition_id, messages.c.thread == thread)
    query = select(messages).where(*here, *conditions).order_by(messages.c.seq)
    return tuple(stored(partition, row) for row in connection.execute(query))


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
            continue  # another process was first
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
        inside: Its messages, oldest first.
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
    _record(connection, partition_id, block)
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
        partition: The same, by its fields.
        times: When the first words of each block were said.
    """
    last: dict[str, int] = {}
    found: list[str] = []
    graves = True
    for said in times:
        day = f"{said.year:04}{said.month:02}{said.day:02}"  # the date where it was said
        if day not in last:
            last[day], graves = connection.execute(_NEWEST_LABEL, {"here": partition_id, "day": day}).one()
        last[day] += 1
        while graves and tombstones.among(connection, "block", partition, [f"{day}_{last[day]:02}"]):
            last[day] += 1
        found.append(f"{day}_{last[day]:02}")
    return tuple(found)


def _record(connection: Connection, partition_id: int, block: Block) -> None:
    """Write the row of a new block.

    Args:
        connection: A write transaction that holds the partition's lock.
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


# ------------------------------------------------------------------------------------------------------- read


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


def read_holding(
    connection: Connection, places: Mapping[int, Partition], seqs: Mapping[int, Sequence[int]]
) -> dict[tuple[Partition, int], Block]:
    """Return the block that holds each of these messages, by partition and place: of several, the one where it was new."""
    found: dict[tuple[Partition, int], Block] = {}
    for number, some in seqs.items():
        for chunk in chunks(list(some)):
            for row in connection.execute(_HOLDING, {"here": number, "seqs": chunk}):
                found[places[number], row.seq] = _block(places[number], row)
    return found


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


@dataclass(frozen=True, slots=True)
class Extent:
    """Which words a block holds, and what was made of them."""

    thread: str
    first_seq: int
    last_seq: int
    entered: bool = False
    """Whether it has an index entry."""
    hides: bool = False
    """Whether any of its words are withheld."""
    done: set[tuple[str, str]] = field(default_factory=set)
    """The work on it that is done, by topic and recipe."""

    def holds(self, message: Row[Any]) -> bool:
        """Return whether it holds a message of its partition."""
        return bool(message.thread == self.thread and self.first_seq <= message.seq <= self.last_seq)


class Extents(dict[tuple[int, str], Extent]):
    """Blocks that are there, by partition and label."""

    def require(self, partition_id: int, label: str) -> None:
        """Return if there is such a block.

        Raises:
            NotFoundError: There is none.
        """
        if (partition_id, label) not in self:
            raise NotFoundError(f"There is no block {label} here.")


def extents(connection: Connection, partition_ids: Collection[int], labels: Collection[str]) -> Extents:
    """Return those of these blocks that are there."""
    found = Extents()
    for chunk in chunks(list(labels)):
        for row in connection.execute(_EXTENTS, {"here": list(partition_ids), "labels": chunk}):
            new = Extent(row.thread, row.first_seq, row.last_seq, row.entered, row.hides)
            extent = found.setdefault((row.partition_id, row.block_id), new)
            if row.state == "done":
                extent.done.add((row.topic, row.recipe))
    return found


# ---------------------------------------------------------------------------------------------- index entries


def read_summaries(
    connection: Connection, places: Mapping[int, Partition], ids: Sequence[str] | None
) -> tuple[BlockSummary, ...]:
    """Return index entries, oldest first."""
    query = select(summaries).where(summaries.c.partition_id.in_(list(places)))
    queries = [query] if ids is None else [query.where(summaries.c.block_id.in_(chunk)) for chunk in chunks(ids)]
    found = {(row.partition_id, row.block_id): row for query in queries for row in connection.execute(query)}
    ordered = sorted(found.values(), key=lambda row: (row.start_time, row.partition_id, row.block_id))
    return tuple(BlockSummary.from_json(row.body) for row in ordered)


def write_summaries(
    connection: Connection, numbers: Numbers, there: Extents, entries: Sequence[BlockSummary], *, keep: bool = False
) -> None:
    """Write the index entries of blocks, in place of those that they had.

    Args:
        there: The blocks that are there.
        keep: Whether those that they had are kept beside them, since words are withheld, and may be shown again.

    Raises:
        NotFoundError: There is no such block.
    """
    for entry in entries:
        there.require(numbers[entry.partition], entry.block_id)
    rows = [
        {
            "partition_id": numbers[entry.partition],
            "block_id": entry.block_id,
            "start_time": micros(entry.start_time),
            "end_time": micros(entry.end_time),
            "body": entry.to_json(),
        }
        for entry in entries
    ]
    if rows:
        connection.execute(_summarised(connection.dialect.name, keep=keep), rows)


@cache
def _summarised(dialect: str, *, keep: bool) -> Insert:
    statement = upsert(dialect, summaries)
    given = {name: statement.excluded[name] for name in ("start_time", "end_time", "body")}
    before = {"original": func.coalesce(summaries.c.original, summaries.c.body) if keep else None}
    return statement.on_conflict_do_update(index_elements=["partition_id", "block_id"], set_=given | before)


def read_by(connection: Connection, partition_ids: Sequence[int], reader: str, recipe: str) -> tuple[str, ...]:
    """Return the labels of the blocks of conversations that someone read, the newest first, but for those that failed.

    Args:
        reader: As the index entries name it: a model, or `extractive`.
        recipe: The way of summarising whose failures are left out.
    """
    mine = and_(blocks.c.partition_id == summaries.c.partition_id, blocks.c.block_id == summaries.c.block_id)
    failed = select(work.c.block_id).where(
        work.c.partition_id == summaries.c.partition_id,
        work.c.block_id == summaries.c.block_id,
        work.c.recipe == recipe,
        work.c.state == "failed",
    )
    query = (
        select(summaries.c.block_id)
        .join(blocks, mine)
        .where(
            summaries.c.partition_id.in_(partition_ids),
            summaries.c.body.contains(f'"extractor": {json.dumps(reader)}', autoescape=True),
            *(~blocks.c.thread.startswith(each) for each in _STATEMENTS),
            ~failed.exists(),
        )
        .order_by(summaries.c.start_time.desc(), blocks.c.id.desc())
    )
    return tuple(connection.execute(query).scalars())


# -------------------------------------------------------------------------------- brought from another ledger


def bring(connection: Connection, partition_id: int, brought: Brought, recorded_at: datetime) -> Iterator[Block]:
    """Record messages and blocks under the partition's lock; yield the blocks that are new.

    Args:
        brought: The messages, and the blocks that hold them.

    Raises:
        MessageChangedError: A message is recorded with other content.
        ConflictError: A block is there with other messages, its thread goes another way here, or waits for its blocks.
    """
    said = {message.message_id: message for message in brought.messages}
    _check_threads(connection, partition_id, brought.messages)
    ids, key = [message.message_id for message in brought.messages], partition_rows.key_of(brought.partition)
    if (there := message_rows.known(connection, partition_id, key, ids)) is not None:  # none: it brings no message
        message_rows.add(connection, partition_id, brought.messages, recorded_at, {}, there=there)
    known = _known_blocks(connection, partition_id, [block.block_id for block in brought.blocks])
    for block in brought.blocks:
        seqs = _seqs(connection, partition_id, block)
        if block.block_id not in known:
            made = Block(
                block_id=block.block_id,
                partition=brought.partition,
                thread=block.thread,
                first_seq=seqs[0],
                last_seq=seqs[-1],
                start_time=min(said[each].time for each in block.message_ids),
                end_time=max(said[each].time for each in block.message_ids),
            )
            _record(connection, partition_id, made)
            end(connection, partition_id, made)
            yield made
        elif known[block.block_id] != (block.thread, seqs[0], seqs[-1]):
            raise ConflictError([block.block_id], "A block of this name holds other words here: use another scope.")


def _check_threads(connection: Connection, partition_id: int, given: Collection[Message]) -> None:
    """Check that no thread has an open end here: it would count as cut once a later block is recorded."""
    for chunk in chunks(sorted({message.thread for message in given})):
        query = select(threads.c.thread).where(
            threads.c.partition_id == partition_id,
            threads.c.thread.in_(chunk),
            threads.c.last_seq > threads.c.block_seq,
        )
        if waiting := connection.execute(query).scalars().all():
            raise ConflictError(waiting, "What was said there waits for its blocks: run summarize(close=True) first.")


def _known_blocks(
    connection: Connection, partition_id: int, block_ids: Collection[str]
) -> dict[str, tuple[str, int, int]]:
    query = select(blocks).where(blocks.c.partition_id == partition_id)
    found = (connection.execute(query.where(blocks.c.block_id.in_(chunk))) for chunk in chunks(list(block_ids)))
    return {row.block_id: (row.thread, row.first_seq, row.last_seq) for rows in found for row in rows}


def _seqs(connection: Connection, partition_id: int, block: BroughtBlock) -> list[int]:
    """Return the seqs of a block's messages; they are all that their thread has from the first to the last of them."""
    here = (messages.c.partition_id == partition_id, messages.c.thread == block.thread)
    query = select(messages.c.seq, messages.c.message_id).where(*here).order_by(messages.c.seq)
    ends = (block.message_ids[0], block.message_ids[-1])
    bounds = [row.seq for row in connection.execute(query.where(or_(*(messages.c.message_id == end for end in ends))))]
    held = connection.execute(query.where(messages.c.seq.between(bounds[0], bounds[-1]))).all() if bounds else []
    if tuple(row.message_id for row in held) != block.message_ids:
        raise ConflictError([block.block_id], "Its thread goes another way here: use another scope.")
    return [row.seq for row in held]


def end(connection: Connection, partition_id: int, block: Block) -> None:
    """Let its thread end with this block, unless it has a later one."""
    here = (threads.c.partition_id == partition_id, threads.c.thread == block.thread)
    connection.execute(
        update(threads).where(*here, threads.c.block_seq < block.last_seq).values(block_seq=block.last_seq)
    )
