"""Messages as columns, kept in memory and extended by what is new: what windows are composed from."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field

import numpy as np
from sqlalchemy import Connection, and_, bindparam, select

from remegraph.ports import Layout
from remegraph.storage.tables import messages, partitions, texts

__all__ = ["EMPTY_LAYOUT", "LayoutCache"]

_NONE = np.empty(0, dtype=np.int32)
_NO = np.empty(0, dtype=np.bool_)
EMPTY_LAYOUT = Layout(_NONE, _NONE, _NONE, _NO, _NO)
"""Of a partition that does not exist."""

_INDEXED = and_(
    texts.c.partition_id == messages.c.partition_id,
    texts.c.kind == "message",
    texts.c.record_id == messages.c.message_id,
)
_NEWER = (  # said once: building a statement costs as much as running it
    select(messages.c.seq, messages.c.thread, messages.c.role, texts.c.length, texts.c.asks)
    .join_from(messages, texts, _INDEXED)
    .where(messages.c.partition_id == bindparam("here"), messages.c.seq > bindparam("last"))
    .order_by(messages.c.seq)
)
_ERASURES = select(partitions.c.erasures).where(partitions.c.id == bindparam("here"))

_MOST_MESSAGES = 200_000  # about 3 MB


@dataclass(frozen=True, slots=True)
class _Cached:
    layout: Layout
    erasures: int
    """How many the partition had seen."""
    threads: dict[str, int] = field(default_factory=dict)


class LayoutCache:
    """The columns of the partitions asked for last; safe to share between threads."""

    def __init__(self) -> None:
        self._cached: OrderedDict[int, _Cached] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, connection: Connection, partition_id: int) -> Layout:
        """Return the columns of a partition: those in memory, and what was recorded since.

        Args:
            connection: A snapshot.
            partition_id: Where.
        """
        erasures = connection.execute(_ERASURES, {"here": partition_id}).scalar_one()
        with self._lock:
            old = self._cached.get(partition_id)
        if old is None or old.erasures != erasures:
            old = _Cached(EMPTY_LAYOUT, erasures)
        new = _extended(connection, partition_id, old)
        with self._lock:
            newest = self._cached.get(partition_id)
            if newest is None or _goes_on(newest, new):  # another thread may be ahead
                self._cached[partition_id] = new
            self._cached.move_to_end(partition_id)
            while (
                len(self._cached) > 1 and sum(kept.layout.seqs.size for kept in self._cached.values()) > _MOST_MESSAGES
            ):
                self._cached.popitem(last=False)
        return new.layout

    def forget(self, partition_id: int) -> None:
        """Read the columns of a partition anew: what a message is found by has changed.

        Args:
            partition_id: Where.
        """
        with self._lock:
            self._cached.pop(partition_id, None)

    def clear(self) -> None:
        """Keep nothing: whoever closes a ledger wants its memory back now, not when cycles are next looked for."""
        with self._lock:
            self._cached.clear()


def _extended(connection: Connection, partition_id: int, old: _Cached) -> _Cached:
    last = int(old.layout.seqs[-1]) if old.layout.seqs.size else 0
    rows = connection.execute(_NEWER, {"here": partition_id, "last": last}).all()
    if not rows:
        return old
    threads = dict(old.threads)
    numbers = [threads.setdefault(row.thread, len(threads)) for row in rows]
    layout = old.layout
    return _Cached(
        Layout(
            np.concatenate([layout.seqs, np.array([row.seq for row in rows], dtype=np.int32)]),
            np.concatenate([layout.threads, np.array(numbers, dtype=np.int32)]),
            np.concatenate([layout.lengths, np.array([row.length for row in rows], dtype=np.int32)]),
            np.concatenate([layout.asks, np.array([row.asks for row in rows], dtype=np.bool_)]),
            np.concatenate([layout.users, np.array([row.role == "user" for row in rows], dtype=np.bool_)]),
        ),
        old.erasures,
        threads,
    )


def _goes_on(one: _Cached, other: _Cached) -> bool:
    return (one.erasures, one.layout.seqs.size) <= (other.erasures, other.layout.seqs.size)
