"""Vectors of messages, where the embedder knows meaning: in SQL only, looked at for the few that words found.

A message never changes, and a partition records its messages in order of seq, under its lock. They are embedded in
that order, too: those that have a vector come first, and what is still to do begins behind the newest of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from sqlalchemy import Connection, and_, func, select

from remegraph.storage import vectors, withheld
from remegraph.storage.rows import chunks
from remegraph.storage.tables import messages
from remegraph.storage.tables import vectors as vector_rows
from remegraph.storage.vectors import Key

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from remegraph.ports import Vectors

__all__ = ["cosines", "count", "newest_embedded", "texts_after", "there"]

_KIND = "message"
_LONGEST = 2_000  # characters: providers refuse long texts, and the beginning says what a message is about


def newest_embedded(connection: Connection, embedder_id: int, partition_id: int) -> int:
    """Return the seq of the newest message of a partition that this embedder has a vector of; 0 if there is none."""
    same = and_(
        vector_rows.c.partition_id == messages.c.partition_id,
        vector_rows.c.kind == _KIND,
        vector_rows.c.record_id == messages.c.message_id,
        vector_rows.c.embedder_id == embedder_id,
    )
    query = select(messages.c.seq).join(vector_rows, same).where(messages.c.partition_id == partition_id)
    return connection.execute(query.order_by(messages.c.seq.desc()).limit(1)).scalar() or 0


def count(connection: Connection, partition_ids: Sequence[int]) -> int:
    """Return how many messages these partitions hold."""
    query = select(func.count()).select_from(messages)
    counts = (
        connection.execute(query.where(messages.c.partition_id.in_(some))).scalar_one()
        for some in chunks(partition_ids)
    )
    return sum(counts)


def texts_after(connection: Connection, partition_id: int, seq: int, limit: int) -> tuple[dict[Key, str], int]:
    """Return the texts of the next messages of a partition, as they are embedded, and the seq of the last of them.

    Args:
        connection: A connection.
        partition_id: Where.
        seq: That of the message before them.
        limit: How many.
    """
    query = select(messages.c.message_id, messages.c.body, messages.c.withheld, messages.c.seq)
    query = query.where(messages.c.partition_id == partition_id, messages.c.seq > seq)
    rows = connection.execute(query.order_by(messages.c.seq).limit(limit)).all()
    texts = {Key(partition_id, _KIND, row.message_id): _text(row.body, row.withheld) for row in rows}
    return texts, int(rows[-1].seq) if rows else seq


def there(connection: Connection, keys: Sequence[Key]) -> set[Key]:
    """Return those of the messages that are still there."""
    found: set[Key] = set()
    for some in chunks(keys):
        here = (messages.c.partition_id == some[0].partition_id, messages.c.message_id.in_([key[2] for key in some]))
        ids = connection.execute(select(messages.c.message_id).where(*here)).scalars()
        found |= {Key(some[0].partition_id, _KIND, each) for each in ids}
    return found


def _text(body: str, stored: str | None) -> str:
    message = withheld.words(body, stored)
    return f"{message.speaker}: {message.text}"[:_LONGEST]


def cosines(
    connection: Connection, embedder_id: int, partition_id: int, vector: Vectors, message_ids: Sequence[str]
) -> NDArray[np.float64]:
    """Return the cosine of a unit vector with each of these messages; 0 of those that have no vector.

    Args:
        connection: A connection.
        embedder_id: Number of the embedder.
        partition_id: Where.
        vector: Unit vector, shape (dimension,).
        message_ids: The messages.
    """
    found, rows = vectors.read(connection, embedder_id, [Key(partition_id, _KIND, each) for each in message_ids])
    known = dict(zip((key.record_id for key in found), (rows @ vector if found else ()), strict=True))
    return np.array([known.get(each, 0.0) for each in message_ids], dtype=np.float64)
