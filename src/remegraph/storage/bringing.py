"""Words of another ledger, with their blocks: recorded as they were there, or refused."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime

from sqlalchemy import Connection, or_, select, update

from remegraph.errors import ConflictError
from remegraph.models import Block, Brought, BroughtBlock, Message
from remegraph.storage import blocks as block_rows
from remegraph.storage import messages as message_rows
from remegraph.storage.rows import chunks
from remegraph.storage.tables import blocks, messages, threads

__all__ = ["bring"]


def bring(connection: Connection, partition_id: int, brought: Brought, recorded_at: datetime) -> Iterator[Block]:
    """Record messages and blocks under the partition's lock; yield the blocks that are new.

    Args:
        connection: A write transaction.
        partition_id: Where to.
        brought: The messages, and the blocks that hold them.
        recorded_at: When that is.

    Raises:
        MessageChangedError: A message is recorded with other content.
        ConflictError: A block is there with other messages, its thread goes another way here, or waits for its blocks.
    """
    said = {message.message_id: message for message in brought.messages}
    _check_threads(connection, partition_id, brought.messages)
    message_rows.add(connection, partition_id, brought.messages, recorded_at)
    known = _known(connection, partition_id, [block.block_id for block in brought.blocks])
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
            block_rows.record(connection, partition_id, made)
            _end(connection, partition_id, made)
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


def _known(connection: Connection, partition_id: int, block_ids: Collection[str]) -> dict[str, tuple[str, int, int]]:
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


def _end(connection: Connection, partition_id: int, block: Block) -> None:
    """Let its thread end with this block, unless it has a later one."""
    here = (threads.c.partition_id == partition_id, threads.c.thread == block.thread)
    connection.execute(
        update(threads).where(*here, threads.c.block_seq < block.last_seq).values(block_seq=block.last_seq)
    )
