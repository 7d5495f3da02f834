"""Full text: the engine finds the rows that hold a token, stored counts say how often.

Tokens are turned into plain terms of ASCII letters and digits, so that nothing a person writes is ever read as a query.
The place (partition and kind) is one more term of each row, with an underscore that no token can have; whatever the
index finds is read back through `texts`, by partition, kind and the exact tokens.
"""

from __future__ import annotations

import hashlib
import json
import threading
from array import array
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any

import numpy as np
from sqlalchemy import (
    BindParameter,
    Connection,
    Insert,
    Row,
    TextClause,
    and_,
    bindparam,
    delete,
    func,
    join,
    select,
    text,
)

from remegraph.ledger.rows import chunks, upsert
from remegraph.ledger.schema import messages, partitions, texts, totals
from remegraph.models import HitKind, Partition
from remegraph.ports import Layout, TextMatches

__all__ = ["EMPTY_LAYOUT", "MOST_TERMS", "LayoutCache", "TextEntry", "TextShelf", "match", "put", "remove"]

_LONGEST_TOKEN = 24
_LONGEST_HEX = 12  # in bytes of UTF-8
MOST_TERMS = 40_000
"""Terms of one text: a tsvector holds 1 MiB of them, ours are 25 letters long at most."""

_FEW = 20
"""Tokens up to which a text's counts are searched for each of them: for more, all of them are read in less time."""

_OVERFLOW = "_more"  # stands for the terms beyond that: such a row is always looked at

_PG_INSERT = text(
    """
    WITH put AS (
        INSERT INTO texts (partition_id, kind, record_id, seq, length, counts, asks, terms)
        VALUES (:partition_id, :kind, :record_id, :seq, :length, :counts, :asks,
            array_to_tsvector(CAST(:terms AS text[])))
        RETURNING partition_id, kind, length
    )
    INSERT INTO totals (partition_id, kind, records, tokens) SELECT partition_id, kind, 1, length FROM put
    ON CONFLICT (partition_id, kind)
    DO UPDATE SET records = totals.records + 1, tokens = totals.tokens + excluded.tokens
    """
)
_TOTAL = select(totals.c.records, totals.c.tokens).where(
    totals.c.partition_id == bindparam("partition_id"), totals.c.kind == bindparam("kind")
)
_TOTAL_OF = select(func.count().label("records"), func.coalesce(func.sum(texts.c.length), 0).label("tokens")).where(
    texts.c.partition_id == bindparam("partition_id"),
    texts.c.kind == bindparam("kind"),
    texts.c.record_id.in_(bindparam("record_ids", expanding=True)),
)
_SQLITE_INSERT = (
    "INSERT INTO indexed_texts (partition_id, kind, record_id, seq, length, counts, asks, terms)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)
_HELD = select(texts.c.id, texts.c.kind, texts.c.record_id, texts.c.length, texts.c.counts).where(
    texts.c.partition_id == bindparam("here"),
    texts.c.kind.in_(bindparam("kinds", expanding=True)),
    texts.c.record_id.in_(bindparam("record_ids", expanding=True)),
)
_DELETE = delete(texts).where(texts.c.id.in_(bindparam("ids", expanding=True)))
_FTS_DELETE = text("INSERT INTO texts_fts (texts_fts, rowid, terms) VALUES ('delete', :id, :terms)")

# CROSS JOIN: first the index, then its rows; SQLite's planner would ask the index about each row of the shelf.
# Rows that name no record hold how many records and tokens of a kind there are in all.
_KINDS: BindParameter[str] = bindparam("kinds", expanding=True)
_FTS_MATCH = text(
    """
    SELECT kind, record_id, seq, length, counts FROM texts_fts CROSS JOIN texts ON texts.id = texts_fts.rowid
    WHERE texts_fts MATCH :query AND partition_id = :partition_id AND kind IN :kinds
    UNION ALL
    SELECT kind, NULL, records, tokens, NULL FROM totals WHERE partition_id = :partition_id AND kind IN :kinds
    """
).bindparams(_KINDS)
_PG_MATCH = text(
    """
    SELECT kind, record_id, seq, length, counts FROM texts
    WHERE terms @@ CAST(:query AS tsquery) AND partition_id = :partition_id AND kind IN :kinds
    UNION ALL
    SELECT kind, NULL, records, tokens, NULL FROM totals WHERE partition_id = :partition_id AND kind IN :kinds
    """
).bindparams(_KINDS)

_NO_NUMBERS = np.empty(0, dtype=np.int32)
_NO_FLAGS = np.empty(0, dtype=np.bool_)
EMPTY_LAYOUT = Layout(_NO_NUMBERS, _NO_NUMBERS, _NO_NUMBERS, _NO_FLAGS, _NO_FLAGS)
"""Of a partition that does not exist."""

_INDEXED = and_(
    texts.c.partition_id == messages.c.partition_id,
    texts.c.kind == "message",
    texts.c.record_id == messages.c.message_id,
)
# Said once: building a statement costs as much as running it. A row that names no message is about the partition alone.
_NEWER = (
    select(partitions.c.erasures, messages.c.seq, messages.c.thread, messages.c.role, texts.c.length, texts.c.asks)
    .select_from(partitions)
    .outerjoin(
        # All conditions are inside: SQLite does the inner join first, and otherwise of everyone's messages.
        join(
            messages,
            texts,
            and_(_INDEXED, messages.c.partition_id == bindparam("here"), messages.c.seq > bindparam("last")),
        ),
        messages.c.partition_id == partitions.c.id,
    )
    .where(partitions.c.id == bindparam("here"))
    .order_by(messages.c.seq)
)

_MOST_MESSAGES = 200_000  # about 3 MB


@dataclass(frozen=True, slots=True)
class TextShelf:
    """Where texts are: the records of one kind in one partition."""

    partition_id: int
    kind: HitKind

    @property
    def values(self) -> dict[str, int | str]:
        """As parameters of a statement."""
        return {"partition_id": self.partition_id, "kind": self.kind}


@dataclass(frozen=True, slots=True)
class TextEntry:
    """The tokens of one record."""

    record_id: str
    counts: Mapping[str, int]
    seq: int = 0
    asks: bool = False
    """Whether it ends with a question."""


def put(connection: Connection, entries: Mapping[TextShelf, Sequence[TextEntry]]) -> None:
    """Index records that are not indexed yet."""
    rows: list[dict[str, Any]] = [
        shelf.values
        | {
            "record_id": entry.record_id,
            "seq": entry.seq,
            "length": sum(entry.counts.values()),
            "counts": json.dumps(entry.counts),
            "asks": entry.asks,
            "terms": _terms(shelf, entry.counts),
        }
        for shelf, some in entries.items()
        for entry in some
    ]
    if not rows:
        return
    if connection.dialect.name == "sqlite":
        told = [tuple((row | {"terms": " ".join(row["terms"])}).values()) for row in rows]
        connection.exec_driver_sql(_SQLITE_INSERT, told)
    else:
        connection.execute(_PG_INSERT, rows)


def remove(connection: Connection, records: Mapping[TextShelf, Collection[str]]) -> None:
    """Take records out of the index; those that are not in it are no error."""
    for number in dict.fromkeys(shelf.partition_id for shelf in records):
        wanted = {shelf.kind: set(names) for shelf, names in records.items() if shelf.partition_id == number and names}
        for chunk in chunks(sorted(set().union(*wanted.values()))):
            held = connection.execute(_HELD, {"here": number, "kinds": list(wanted), "record_ids": chunk}).all()
            _take_out(connection, number, [row for row in held if row.record_id in wanted[row.kind]])


def _take_out(connection: Connection, partition_id: int, rows: Sequence[Row[int, str, str, int, str]]) -> None:
    """Take rows of a partition out of the index."""
    if not rows:
        return
    shelves = {kind: TextShelf(partition_id, kind) for kind in dict.fromkeys(row.kind for row in rows)}
    if connection.dialect.name == "sqlite":  # a contentless table needs to be given what it holds
        gone = [{"id": row.id, "terms": " ".join(_terms(shelves[row.kind], json.loads(row.counts)))} for row in rows]
        connection.execute(_FTS_DELETE, gone)
    connection.execute(_DELETE, {"ids": [row.id for row in rows]})
    for kind, shelf in shelves.items():
        lengths = [row.length for row in rows if row.kind == kind]
        lost = {"records": -len(lengths), "tokens": -sum(lengths)}
        connection.execute(_add_to_totals(connection.dialect.name), {**shelf.values, **lost})


def match(
    connection: Connection,
    partition: Partition,
    partition_id: int,
    kinds: Sequence[HitKind],
    tokens: Sequence[str],
    *,
    allowed: Collection[str] | None = None,
) -> dict[HitKind, TextMatches]:
    """Return the records that hold at least one token, and how many records and tokens there are in all, by kind.

    Args:
        tokens: The tokens; repeats count once.
        allowed: Only these records, as if the shelves held no others.
    """
    wanted, among = tuple(dict.fromkeys(tokens)), None if allowed is None else frozenset(allowed)
    counted = _looked_up(wanted) if len(wanted) > _FEW else _looked_for(wanted)
    found = {kind: _Matched() for kind in kinds}
    if wanted:
        query, statement = _query(connection, partition_id, kinds, wanted)
        asked = {"query": query, "partition_id": partition_id, "kinds": list(kinds)}
        for kind, record_id, seq, length, stored in connection.execute(statement, asked):
            if record_id is None:
                found[kind].in_all = seq, length
            elif among is None or record_id in among:
                found[kind].add(record_id, seq, length, counted(stored))
    for kind, matched in found.items() if not wanted or among is not None else ():
        matched.in_all = _totals(connection, TextShelf(partition_id, kind), among)
    return {kind: matched.matches(partition, wanted) for kind, matched in found.items()}


@dataclass(slots=True)
class _Matched:
    """What is found of one kind."""

    record_ids: list[str] = field(default_factory=list)
    seqs: array[int] = field(default_factory=lambda: array("q"))  # an object per match would keep the collector busy
    lengths: array[int] = field(default_factory=lambda: array("q"))
    counts: array[int] = field(default_factory=lambda: array("q"))
    in_all: tuple[int, int] = (0, 0)

    def add(self, record_id: str, seq: int, length: int, held: Sequence[int]) -> None:
        if any(held):
            self.record_ids.append(record_id)
            self.seqs.append(seq)
            self.lengths.append(length)
            self.counts.extend(held)

    def matches(self, partition: Partition, tokens: tuple[str, ...]) -> TextMatches:
        return TextMatches(
            partition,
            tokens,
            self.record_ids,
            np.array(self.seqs, dtype=np.int64),
            np.array(self.lengths, dtype=np.int64),
            np.array(self.counts, dtype=np.int64).reshape(len(self.record_ids), len(tokens)),
            *self.in_all,
        )


def _totals(connection: Connection, shelf: TextShelf, allowed: Collection[str] | None) -> tuple[int, int]:
    """Return how many records and tokens there are, of all or of those allowed: what others hold shifts no ranking."""
    if allowed is None:
        found = connection.execute(_TOTAL, shelf.values).one_or_none()
        return (found.records, found.tokens) if found else (0, 0)
    records = tokens = 0
    for some in chunks(list(allowed)):
        counted = connection.execute(_TOTAL_OF, {**shelf.values, "record_ids": some}).one()
        records, tokens = records + counted.records, tokens + int(counted.tokens)
    return records, tokens


def _query(
    connection: Connection, partition_id: int, kinds: Sequence[HitKind], tokens: Sequence[str]
) -> tuple[str, TextClause]:
    places = [_place(TextShelf(partition_id, kind)) for kind in kinds]
    terms = [*dict.fromkeys(map(_term, tokens)), _OVERFLOW]
    if connection.dialect.name == "sqlite":
        here, alternatives = (" OR ".join(f'"{term}"' for term in some) for some in (places, terms))
        return f"({here}) AND ({alternatives})", _FTS_MATCH
    here, alternatives = (" | ".join(f"'{term}'" for term in some) for some in (places, terms))
    return f"({here}) & ({alternatives})", _PG_MATCH


def _looked_for(tokens: Sequence[str]) -> Callable[[str], list[int]]:
    """Return the counts of a few tokens, as columns: searched for, as reading all of the JSON takes ten times as long.

    Counts are as `put` writes them. No token holds a quote, so what looks like a key is one.
    """
    keys = [f"{json.dumps(token)}: " for token in tokens]

    def counted(stored: str) -> list[int]:
        counts = [0] * len(keys)
        for place, key in enumerate(keys):
            if (at := stored.find(key)) >= 0:
                begins = at + len(key)
                ends = stored.find(",", begins)
                counts[place] = int(stored[begins : ends if ends >= 0 else -1])
        return counts

    return counted


def _looked_up(tokens: Sequence[str]) -> Callable[[str], list[int]]:
    """Return the counts of many tokens, as columns: here reading all of the JSON is faster."""
    places = {token: place for place, token in enumerate(tokens)}

    def counted(stored: str) -> list[int]:
        counts = [0] * len(places)
        for token, count in json.loads(stored).items():
            if (place := places.get(token)) is not None:
                counts[place] = count
        return counts

    return counted


@cache
def _add_to_totals(dialect: str) -> Insert:
    statement = upsert(dialect, totals)
    added = statement.excluded
    return statement.on_conflict_do_update(
        index_elements=["partition_id", "kind"],
        set_={"records": totals.c.records + added.records, "tokens": totals.c.tokens + added.tokens},
    )


def _place(shelf: TextShelf) -> str:
    return f"_{shelf.partition_id}_{shelf.kind}"


def _terms(shelf: TextShelf, counts: Mapping[str, int]) -> list[str]:
    terms = sorted(set(map(_term, counts)))
    overflow = [_OVERFLOW] if len(terms) > MOST_TERMS else []
    return [_place(shelf), *overflow, *terms[:MOST_TERMS]]


@lru_cache(maxsize=1 << 12)
def _term(token: str) -> str:
    """Return a token as ASCII letters and digits; two tokens may share a term, their counts distinguish them."""
    if len(token) <= _LONGEST_TOKEN and token.isascii() and token.isalnum():
        return token.lower()
    data = token.encode("utf-8", "surrogatepass")
    return f"x{data.hex()}" if len(data) <= _LONGEST_HEX else f"h{hashlib.blake2b(data, digest_size=8).hexdigest()}"


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
        """Return the columns of a partition: those in memory, and what was recorded since."""
        with self._lock:
            old = self._cached.get(partition_id)
        new = _extended(connection, partition_id, old or _Cached(EMPTY_LAYOUT, 0))
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
        """Read the columns of a partition again: what a message is found by has changed."""
        with self._lock:
            self._cached.pop(partition_id, None)

    def clear(self) -> None:
        """Keep nothing: memory of a closed ledger is freed now, not at the next garbage collection."""
        with self._lock:
            self._cached.clear()


def _extended(connection: Connection, partition_id: int, old: _Cached) -> _Cached:
    last = int(old.layout.seqs[-1]) if old.layout.seqs.size else 0
    found = connection.execute(_NEWER, {"here": partition_id, "last": last}).all()
    erasures = found[0].erasures if found else old.erasures
    if erasures != old.erasures:  # what is known is stale
        fresh = _Cached(EMPTY_LAYOUT, erasures)
        return _extended(connection, partition_id, fresh) if last else _joined(fresh, found)
    return _joined(old, found)


def _joined(old: _Cached, found: Sequence[Row[*tuple[Any, ...]]]) -> _Cached:
    """Return columns with what is newer; rows that name no message are none."""
    rows = [row for row in found if row.seq is not None]
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
