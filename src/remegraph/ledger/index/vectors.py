"""Vectors in SQL: what is embedded, what the index has not seen yet, and exact search.

A vector belongs to a record (partition, kind, id) and an embedder, and names the text it was made of by digest:
a text that stayed the same is never embedded again. All functions take a connection; the caller decides
on the transaction. Those that write need the lock of the partitions that they write.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

import numpy as np
from sqlalchemy import (
    ColumnElement,
    CompoundSelect,
    Connection,
    Delete,
    FromClause,
    Insert,
    Row,
    Select,
    and_,
    bindparam,
    delete,
    exists,
    func,
    literal,
    or_,
    select,
    tuple_,
    union_all,
)

from remegraph.ledger.database import Database
from remegraph.ledger.rows import chunks, digest, upsert
from remegraph.ledger.schema import dirty, item_texts, memories, partitions, summaries, vectors
from remegraph.models import LIVE, BlockSummary, Memory
from remegraph.models.standing import TOMBSTONES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from remegraph.ports import Vectors

__all__ = [
    "KINDS",
    "Key",
    "count_live",
    "dirty_keys",
    "embedded_digests",
    "forget",
    "keys_of",
    "live_bodies",
    "live_keys",
    "mark",
    "mark_everything",
    "mark_live",
    "mark_partitions",
    "marks",
    "nearest",
    "note_unreached",
    "partition_ids",
    "pending",
    "read",
    "text_of",
    "unmark",
    "unreached",
    "write",
]

KINDS = ("memory", "block", "item")
"""The kinds of records that have vectors."""

_UNREACHED = "unreached"
"""Stands for a mark where the index holds a record, and no search leads to it: it is searched in SQL, for good."""

_FEW, _MANY = 8, 100  # records that one statement names
_AT_ONCE = 512  # vectors in memory during a search: a few megabytes are twice as fast as one large piece


class Key(NamedTuple):
    """Names a record that has a vector."""

    partition_id: int
    kind: str
    record_id: str


# --------------------------------------------------------------------------------------------- records


def live_bodies(connection: Connection, keys: Sequence[Key]) -> dict[Key, str]:
    """Return the JSON of those records that are live: memories by status, blocks once they have a summary.

    A text of an item is a record of its own.
    """
    found: dict[Key, str] = {}
    for size, some in _slots(keys):
        found |= {_key(row): row.body for row in connection.execute(_bodies(size), some)}
    return found


def count_live(connection: Connection, kind: str) -> int:
    """Return how many live records of a kind there are."""
    return connection.execute(select(func.count()).select_from(_live(kind))).scalar_one()


def live_keys(connection: Connection, kind: str, after: Key | None, limit: int) -> list[Key]:
    """Return the next live records of a kind, in the order of their keys.

    Args:
        kind: One of `KINDS`.
        after: The last one of the page before; none for the first page.
    """
    records = _live(kind)
    place = (records.c.partition_id, records.c.record_id)
    query = select(*place).order_by(*place).limit(limit)
    if after is not None:
        query = query.where(tuple_(*place) > (after.partition_id, after.record_id))
    return [Key(row.partition_id, kind, row.record_id) for row in connection.execute(query)]


def text_of(key: Key, body: str) -> str:
    """Return the text of a record that is embedded: of a memory its indexed text, of a block its summary."""
    if key.kind == "item":
        text: str = json.loads(body)
        return text
    return Memory.from_json(body).indexed_text if key.kind == "memory" else BlockSummary.from_json(body).summary


# ------------------------------------------------------------------------------------------- dirty set


def mark(connection: Connection, keys: Iterable[Key]) -> None:
    """Add records to the dirty set: the index has to look at them again."""
    rows = [{**key._asdict(), "mark": uuid4().hex} for key in keys]
    if rows:
        statement = upsert(connection.dialect.name, dirty)
        again = statement.on_conflict_do_update(index_elements=_place(dirty), set_={"mark": statement.excluded.mark})
        connection.execute(again, rows)


def mark_live(connection: Connection, partition_id: int) -> None:
    """Add all live records of a partition to the dirty set."""
    for kind in KINDS:
        records = _live(kind)
        query = select(records.c.partition_id, literal(kind), records.c.record_id, literal(uuid4().hex))
        statement = upsert(connection.dialect.name, dirty).from_select(
            ["partition_id", "kind", "record_id", "mark"], query.where(records.c.partition_id == partition_id)
        )
        connection.execute(
            statement.on_conflict_do_update(index_elements=_place(dirty), set_={"mark": statement.excluded.mark})
        )


def marks(connection: Connection, after: Key | None, limit: int) -> dict[Key, str]:
    """Return the next marks of the dirty set, in the order of their keys.

    Args:
        after: The last key of the page before; none for the first page.
    """
    query = select(*_place(dirty), dirty.c.mark).where(_PENDING).order_by(*_place(dirty)).limit(limit)
    if after is not None:
        query = query.where(tuple_(*_place(dirty)) > tuple(after))
    return {_key(row): row.mark for row in connection.execute(query)}


def unmark(connection: Connection, applied: Mapping[Key, str]) -> None:
    """Remove the marks of applied records, where they are still those that were seen.

    A mark that has gone meanwhile was removed by someone who applied the record at the same time: which of the two
    wrote last is unknown, so the record is marked again.

    Args:
        connection: A connection that holds the partitions' locks.
        applied: The marks that were seen before the records were applied.
    """
    now: dict[Key, str] = {}
    for size, some in _slots(applied):
        now |= {_key(row): row.mark for row in connection.execute(_marks(size), some)}
    for size, some in _slots(key for key, seen in applied.items() if now.get(key) == seen):
        connection.execute(_unmark(size), some)
    mark(connection, [key for key in applied if key not in now])


def pending(connection: Connection) -> int:
    """Return the size of the dirty set."""
    return connection.execute(select(func.count()).select_from(dirty).where(_PENDING)).scalar_one()


def note_unreached(connection: Connection, found: Sequence[Key], lost: Sequence[Key]) -> None:
    """Note which records no search of the index leads to.

    Args:
        connection: A connection that holds the partitions' locks.
        found: Records to which one leads.
        lost: Records to which none does; one that is marked again stays so.
    """
    for size, some in _slots(found):
        connection.execute(_reached(size), some)
    rows = [{**key._asdict(), "mark": _UNREACHED} for key in lost]
    if rows:
        connection.execute(upsert(connection.dialect.name, dirty).on_conflict_do_nothing(), rows)


def unreached(connection: Connection, partition_ids: Iterable[int]) -> set[Key]:
    """Return the records of these partitions that are noted so."""
    query = select(*_place(dirty)).where(dirty.c.partition_id.in_(list(partition_ids)), ~_PENDING)
    return {_key(row) for row in connection.execute(query)}


def dirty_keys(connection: Connection, partition_ids: Iterable[int], kind: str) -> set[Key]:
    """Return what is to be searched in SQL of these partitions and this kind: what waits, and what is never found."""
    query = select(*_place(dirty)).where(dirty.c.partition_id.in_(list(partition_ids)), dirty.c.kind == kind)
    return {_key(row) for row in connection.execute(query)}


# --------------------------------------------------------------------------------------------- vectors


def write(connection: Connection, embedder_id: int, texts: Mapping[Key, str], rows: Vectors) -> None:
    """Write the vectors of records, in place of those that they had from this embedder.

    Args:
        connection: A connection that holds the partitions' locks.
        texts: The embedded text of each record.
        rows: Their vectors, shape (len(texts), dimension).
    """
    values = [
        {**key._asdict(), "embedder_id": embedder_id, "text_digest": digest(text), "vector": row.tobytes()}
        for (key, text), row in zip(texts.items(), rows.astype("<f4"), strict=True)
    ]
    if values:
        connection.execute(_written(connection.dialect.name), values)


@cache
def _written(dialect: str) -> Insert:
    statement = upsert(dialect, vectors)
    given = {name: statement.excluded[name] for name in ("text_digest", "vector")}
    return statement.on_conflict_do_update(index_elements=[*_place(vectors), vectors.c.embedder_id], set_=given)


def read(connection: Connection, embedder_id: int, keys: Sequence[Key]) -> tuple[list[Key], Vectors]:
    """Return those of the records that have a vector of this embedder, and the vectors, one row each."""
    found: list[Key] = []
    blobs: list[bytes] = []
    for size, some in _slots(keys):
        for row in connection.execute(_vectors(size), {**some, "embedder_id": embedder_id}):
            found.append(_key(row))
            blobs.append(row.vector)
    return found, _matrix(blobs)


def keys_of(connection: Connection, embedder_id: int, shelf: tuple[int, str]) -> list[Key]:
    """Return the records of a shelf (partition, kind) that have a vector of this embedder."""
    query = select(*_place(vectors)).where(_shelves(embedder_id, [shelf[0]], shelf[1]))
    return [_key(row) for row in connection.execute(query)]


def embedded_digests(connection: Connection, embedder_id: int, keys: Sequence[Key]) -> dict[Key, str]:
    """Return, of those records that have a vector of this embedder, the digest of the text it was made of."""
    found: dict[Key, str] = {}
    for size, some in _slots(keys):
        rows = connection.execute(_digests(size), {**some, "embedder_id": embedder_id})
        found |= {_key(row): row.text_digest for row in rows}
    return found


def forget(connection: Connection, keys: Sequence[Key]) -> None:
    """Delete the vectors of records that are gone for good, of all embedders; of those that may come back, none."""
    for size, some in _slots(keys):
        connection.execute(_forget(size), some)


# ---------------------------------------------------------------------------------------------- search


def nearest(
    connection: Connection,
    embedder_id: int,
    partition_ids: Iterable[int],
    kind: str,
    *,
    vector: Vectors,
    k: int,
    only: Iterable[str] | None = None,
    few: bool = False,
) -> list[tuple[Key, float]]:
    """Return the k live records nearest to a vector, best first, with their cosines: exact, in bounded memory.

    Args:
        kind: One of `KINDS`.
        vector: Unit vector, shape (dimension,).
        only: Ids to look at; all unless given.
        few: Whether there are so few that all may be in memory at once: then PostgreSQL is asked once.
    """
    options = {} if few else {"yield_per": _AT_ONCE}
    where = {"embedder_id": embedder_id, "partition_ids": list(partition_ids), "kind": kind}
    parts = [{}] if only is None else [{"record_ids": some} for some in chunks(list(dict.fromkeys(only)))]
    query = _searched(kind, named=only is not None)
    best: list[tuple[Key, float]] = []
    for part in parts:
        found = connection.execute(query, {**where, **part}, execution_options=options)
        for rows in found.partitions(_AT_ONCE):
            similarities = cosines(_matrix([row.vector for row in rows]), vector)
            best = _best(best + [(_key(rows[at]), float(similarities[at])) for at in _top(similarities, k)], k)
    return best


def cosines(rows: NDArray[np.float16] | Vectors, vector: Vectors) -> NDArray[np.float64]:
    """Return the cosine of each unit row with a unit vector, rounded so that it does not depend on the rows beside it.

    Not by `@`: after a product of some size OpenBLAS keeps all other cores waiting for work for 100 ms.
    """
    parts = [
        np.vecdot(rows[at : at + _AT_ONCE].astype(np.float32, copy=False), vector)
        for at in range(0, len(rows), _AT_ONCE)
    ]
    return np.round(np.concatenate([np.empty(0), *parts]), 6)


@cache
def _searched(kind: str, *, named: bool) -> Select[int, str, str, bytes]:
    """Return the query for the vectors of live records, of all or of those that are named."""
    records = _live(kind)
    same = and_(records.c.partition_id == vectors.c.partition_id, records.c.record_id == vectors.c.record_id)
    query = select(*_place(vectors), vectors.c.vector).join(records, same).where(_asked_for())
    return query.where(vectors.c.record_id.in_(bindparam("record_ids", expanding=True))) if named else query


def _asked_for() -> ColumnElement[bool]:
    return and_(
        vectors.c.partition_id.in_(bindparam("partition_ids", expanding=True)),
        vectors.c.kind == bindparam("kind"),
        vectors.c.embedder_id == bindparam("embedder_id"),
    )


def _top(similarities: NDArray[np.float64], k: int) -> list[int]:
    """Return the places of the k greatest, and of all that equal the least of them."""
    if len(similarities) <= k:
        return list(range(len(similarities)))
    least = np.partition(similarities, -k)[-k]
    return [int(at) for at in np.flatnonzero(similarities >= least)]


def _best(hits: list[tuple[Key, float]], k: int) -> list[tuple[Key, float]]:
    return sorted(hits, key=lambda hit: (-hit[1], hit[0]))[:k]


def _matrix(blobs: Sequence[bytes]) -> Vectors:
    if not blobs:
        return np.empty((0, 0), np.float32)
    return np.frombuffer(b"".join(blobs), dtype="<f4").reshape(len(blobs), -1).astype(np.float32, copy=False)


# --------------------------------------------------------------------------------------------- helpers


def _live(kind: str) -> FromClause:
    """Return the live records of a kind as (partition_id, record_id, body)."""
    if kind == "item":
        return select(item_texts.c.partition_id, item_texts.c.record_id, item_texts.c.body).subquery()
    if kind == "block":
        return select(summaries.c.partition_id, summaries.c.block_id.label("record_id"), summaries.c.body).subquery()
    query = select(memories.c.partition_id, memories.c.memory_id.label("record_id"), memories.c.body)
    return query.where(memories.c.status.in_(LIVE)).subquery()


def _shelves(embedder_id: int, partition_ids: Iterable[int], kind: str) -> ColumnElement[bool]:
    return and_(
        vectors.c.partition_id.in_(list(partition_ids)), vectors.c.kind == kind, vectors.c.embedder_id == embedder_id
    )


def _place(table: FromClause) -> tuple[ColumnElement[int], ColumnElement[str], ColumnElement[str]]:
    return table.c.partition_id, table.c.kind, table.c.record_id


def _key(row: Row[*tuple[Any, ...]]) -> Key:
    return Key(row.partition_id, row.kind, row.record_id)


# ------------------------------------------------------------------ statements about records by name

# Said once: building a statement costs as much as running it. So all name equally few or equally many records, one clause
# for each: SQLite reads a whole table for `(a, b, c) IN (...)`.


def _slots(keys: Iterable[Key]) -> Iterator[tuple[int, dict[str, int | str]]]:
    """Yield how many `_among` names and its parameters, until all are named; the last is repeated to fill up."""
    named = list(keys)
    for first in range(0, len(named), _MANY):
        some = named[first : first + _MANY]
        size = _FEW if len(some) <= _FEW else _MANY
        some += some[-1:] * (size - len(some))
        yield size, {f"{field}_of_{at}": value for at, key in enumerate(some) for field, value in key._asdict().items()}


def _among(table: FromClause, size: int) -> ColumnElement[bool]:
    """Return the condition that a row is of one of the records that `_slots` names."""
    fields = [field for field in Key._fields if field in table.c]
    return or_(*(and_(*(table.c[field] == bindparam(f"{field}_of_{at}") for field in fields)) for at in range(size)))


def _of_embedder(size: int) -> ColumnElement[bool]:
    return and_(_among(vectors, size), vectors.c.embedder_id == bindparam("embedder_id"))


@cache
def _bodies(size: int) -> CompoundSelect[int, str, str, str]:
    found: list[Select[int, str, str, str]] = []
    for kind in KINDS:
        records = _live(kind)
        named = (
            and_(
                records.c.partition_id == bindparam(f"partition_id_of_{at}"),
                records.c.record_id == bindparam(f"record_id_of_{at}"),
                literal(kind) == bindparam(f"kind_of_{at}"),
            )
            for at in range(size)
        )
        columns = (records.c.partition_id, literal(kind).label("kind"), records.c.record_id, records.c.body)
        found.append(select(*columns).where(or_(*named)))
    return union_all(*found)


_PENDING = dirty.c.mark != _UNREACHED
_MAY_COME_BACK = exists().where(
    vectors.c.kind == "memory",
    memories.c.memory_id == vectors.c.record_id,
    memories.c.partition_id == vectors.c.partition_id,
    memories.c.status.not_in(TOMBSTONES),
)


@cache
def _marks(size: int) -> Select[Any]:
    return select(*_place(dirty), dirty.c.mark).where(_among(dirty, size))


@cache
def _unmark(size: int) -> Delete:
    return delete(dirty).where(_among(dirty, size))


@cache
def _reached(size: int) -> Delete:
    return delete(dirty).where(_among(dirty, size), ~_PENDING)


@cache
def _vectors(size: int) -> Select[Any]:
    return select(*_place(vectors), vectors.c.vector).where(_of_embedder(size))


@cache
def _digests(size: int) -> Select[Any]:
    return select(*_place(vectors), vectors.c.text_digest).where(_of_embedder(size))


@cache
def _forget(size: int) -> Delete:
    return delete(vectors).where(_among(vectors, size), ~_MAY_COME_BACK)


def partition_ids(database: Database) -> list[int]:
    """Return the numbers of all partitions."""
    with database.read() as connection:
        return list(connection.execute(select(partitions.c.id)).scalars())


def mark_partitions(database: Database, numbers: Iterable[int]) -> None:
    """Mark all live records of partitions, each partition in a transaction of its own."""
    for number in numbers:
        with database.write([number], derived=True) as connection:
            mark_live(connection, number)


def mark_everything(database: Database) -> None:
    """Mark all live records."""
    mark_partitions(database, partition_ids(database))
