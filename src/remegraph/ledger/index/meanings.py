"""Vectors of messages, where the embedder knows meaning: in SQL, and in memory for the partitions asked for last.

A message never changes, and a partition records its messages in order of seq, under its lock. They are embedded in
that order, too: those that have a vector come first, and what is still to do begins behind the newest of them.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from sqlalchemy import Connection, and_, bindparam, func, select

from remegraph.ledger import withheld
from remegraph.ledger.index.vectors import Key, cosines
from remegraph.ledger.rows import chunks
from remegraph.ledger.schema import messages, partitions
from remegraph.ledger.schema import vectors as vector_rows
from remegraph.ports import Meant

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from remegraph.ports import Vectors

__all__ = ["MeaningCache", "Meanings", "cosines", "count", "newest_embedded", "texts_after", "there"]

_KIND = "message"
_MOST_BYTES = 128 << 20  # of all partitions together: 170,000 messages at 384 dimensions, 21,000 at 3,072
_AT_ONCE = 2_048
_LONGEST = 2_000  # characters: providers refuse long texts, and the beginning says what a message is about


_EMBEDDED = and_(
    vector_rows.c.partition_id == messages.c.partition_id,
    vector_rows.c.kind == _KIND,
    vector_rows.c.record_id == messages.c.message_id,
    vector_rows.c.embedder_id == bindparam("embedder_id"),
)
_NEWER = (  # said once: building a statement costs as much as running it
    select(messages.c.seq, vector_rows.c.vector)
    .join_from(messages, vector_rows, _EMBEDDED)
    .where(messages.c.partition_id == bindparam("here"), messages.c.seq > bindparam("last"))
    .order_by(messages.c.seq.desc())
)
_ERASURES = select(partitions.c.erasures).where(partitions.c.id == bindparam("here"))


def newest_embedded(connection: Connection, embedder_id: int, partition_id: int) -> int:
    """Return the seq of the newest message of a partition that this embedder has a vector of; 0 if there is none."""
    query = select(messages.c.seq).join(vector_rows, _EMBEDDED).where(messages.c.partition_id == partition_id)
    newest = query.order_by(messages.c.seq.desc()).limit(1)
    return connection.execute(newest, {"embedder_id": embedder_id}).scalar() or 0


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
        seq: That of the message before them.
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


@dataclass(frozen=True, slots=True)
class Meanings:
    """The vectors of a partition's messages as one matrix, in order of seq."""

    seqs: NDArray[np.int32]
    rows: NDArray[np.float16]
    """Half as exact as they are stored, in half the room: a cosine is right to a thousandth."""
    erasures: int
    """How many the partition had seen."""

    def near(self, vector: Vectors) -> Meant:
        """Return how near each message is to a unit vector."""
        return Meant(self.seqs, cosines(self.rows, vector))


class MeaningCache:
    """The vectors of messages of the partitions asked for last, extended by what is new; safe to share between threads."""

    def __init__(self) -> None:
        self._cached: OrderedDict[tuple[int, int], Meanings] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, connection: Connection, embedder_id: int, partition_id: int) -> Meanings:
        """Return the vectors of a partition: those in memory, and what was embedded since."""
        place = (embedder_id, partition_id)
        erasures = connection.execute(_ERASURES, {"here": partition_id}).scalar_one()
        with self._lock:
            old = self._cached.get(place)
        new = _extended(connection, place, old if old is not None and old.erasures == erasures else None, erasures)
        with self._lock:
            newest = self._cached.get(place)
            if newest is None or (newest.erasures, newest.seqs.size) <= (new.erasures, new.seqs.size):
                self._cached[place] = new
            self._cached.move_to_end(place)
            while len(self._cached) > 1 and sum(kept.rows.nbytes for kept in self._cached.values()) > _MOST_BYTES:
                self._cached.popitem(last=False)
        return new

    def clear(self) -> None:
        """Keep nothing."""
        with self._lock:
            self._cached.clear()


def _extended(connection: Connection, place: tuple[int, int], old: Meanings | None, erasures: int) -> Meanings:
    last = int(old.seqs[-1]) if old is not None and old.seqs.size else 0
    where = {"embedder_id": place[0], "here": place[1], "last": last}
    seqs: list[int] = []
    parts: list[NDArray[np.float16]] = []
    found = connection.execute(_NEWER, where, execution_options={"yield_per": _AT_ONCE})
    for rows in found.partitions():  # the newest first, until there is no room
        seqs += [row.seq for row in rows]
        parts.append(
            np.frombuffer(b"".join(row.vector for row in rows), "<f4").reshape(len(rows), -1).astype(np.float16)
        )
        if sum(part.nbytes for part in parts) > _MOST_BYTES:
            break
    found.close()
    if old is not None and not seqs:
        return old
    if not seqs:
        return Meanings(np.empty(0, np.int32), np.empty((0, 0), np.float16), erasures)
    new_seqs, new_rows = np.array(seqs[::-1], np.int32), np.concatenate(parts)[::-1]
    if old is not None and old.seqs.size:
        new_seqs, new_rows = np.concatenate([old.seqs, new_seqs]), np.concatenate([old.rows, new_rows])
    most = max(_MOST_BYTES // new_rows[0].nbytes, 1)
    return Meanings(new_seqs[-most:], np.ascontiguousarray(new_rows[-most:]), erasures)
