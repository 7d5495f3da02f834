"""What a change set says of blocks: their index entries, and how far the work on them is.

All functions take a connection that holds the locks of the partitions that are written.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Row, func, insert, select

from remegraph.errors import ConflictError, NotFoundError
from remegraph.models import Block, BlockSummary, Partition, Work
from remegraph.storage.database import upsert
from remegraph.storage.rows import micros
from remegraph.storage.tables import blocks, summaries, work

__all__ = ["await_work", "check_open", "extents", "require_block", "set_work", "write_summary"]

Numbers = Mapping[Partition, int]
"""The numbers of partitions."""


def check_open(connection: Connection, numbers: Numbers, wanted: Iterable[Work]) -> None:
    """Check that none of this work is done.

    Raises:
        ConflictError: Some of it is.
    """
    done = [
        f"{one.block_id} {one.topic}".strip()
        for one in wanted
        if connection.execute(
            select(work.c.state).where(
                work.c.partition_id == numbers[one.partition],
                work.c.block_id == one.block_id,
                work.c.topic == one.topic,
                work.c.recipe == one.recipe,
                work.c.state == "done",
            )
        ).first()
    ]
    if done:
        raise ConflictError(done, "This work is done already: take it off the list.")


def extents(connection: Connection, partition_id: int, block_ids: Sequence[str]) -> Sequence[Row[Any]]:
    """Return the rows of these blocks: label, thread, first and last seq."""
    here = (blocks.c.partition_id == partition_id, blocks.c.block_id.in_(block_ids))
    return connection.execute(select(blocks).where(*here)).all() if block_ids else ()


def write_summary(connection: Connection, partition_id: int, summary: BlockSummary, *, keep: bool = False) -> None:
    """Write the index entry of a block, in place of the one that it had.

    Args:
        connection: A write transaction.
        partition_id: Where.
        summary: The entry.
        keep: Whether the one that it had is kept beside it, since words of it are withheld, and may be shown again.

    Raises:
        NotFoundError: There is no such block.
    """
    require_block(connection, partition_id, summary.block_id)
    values = {
        "start_time": micros(summary.start_time),
        "end_time": micros(summary.end_time),
        "body": summary.to_json(),
    }
    statement = upsert(connection.dialect.name, summaries).values(
        partition_id=partition_id, block_id=summary.block_id, **values
    )
    key = ["partition_id", "block_id"]
    before = {"original": func.coalesce(summaries.c.original, summaries.c.body) if keep else None}
    connection.execute(statement.on_conflict_do_update(index_elements=key, set_=values | before))


def await_work(connection: Connection, partition_id: int, new: Sequence[Block], recipe: str) -> None:
    """Mark new blocks as waiting for a way of summarising."""
    waiting = {"topic": "", "recipe": recipe, "state": "pending", "reason": json.dumps(""), "attempts": 0}
    if new:
        connection.execute(
            insert(work), [{"partition_id": partition_id, "block_id": block.block_id, **waiting} for block in new]
        )


def set_work(connection: Connection, numbers: Numbers, wanted: Iterable[Work]) -> None:
    """Write how far work is.

    Raises:
        NotFoundError: There is no such block.
    """
    for one in wanted:
        partition_id = numbers[one.partition]
        require_block(connection, partition_id, one.block_id)
        values = {"state": one.state, "reason": json.dumps(one.reason), "attempts": one.attempts}
        statement = upsert(connection.dialect.name, work).values(
            partition_id=partition_id, block_id=one.block_id, topic=one.topic, recipe=one.recipe, **values
        )
        key = ["partition_id", "block_id", "topic", "recipe"]
        connection.execute(statement.on_conflict_do_update(index_elements=key, set_=values))


def require_block(connection: Connection, partition_id: int, block_id: str) -> None:
    """Check that there is such a block.

    Raises:
        NotFoundError: There is none.
    """
    here = (blocks.c.partition_id == partition_id, blocks.c.block_id == block_id)
    if connection.execute(select(blocks.c.id).where(*here)).first() is None:
        raise NotFoundError(f"There is no block {block_id} here.")
