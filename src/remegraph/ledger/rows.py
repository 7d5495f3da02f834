"""What every table needs: inserts, times as integers, digests, long lists of ids in pieces."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta, timezone
from functools import cache
from operator import itemgetter
from typing import TypeVar

from sqlalchemy import Connection, Table, func, insert, select
from sqlalchemy.dialects import postgresql, sqlite

from remegraph.ledger.schema import events, messages, metadata, seals

__all__ = [
    "chunks", "counts", "day_of", "digest", "from_micros", "insert_rows", "micros", "minute_of", "newest",
    "offset_seconds", "upsert",
]  # fmt: skip

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_CHUNK = 500  # three lists in one statement stay far under the 32,766 variables that SQLite takes

Item = TypeVar("Item")


def upsert(dialect: str, table: Table) -> sqlite.Insert | postgresql.Insert:
    """Return an INSERT that can say ON CONFLICT.

    Args:
        dialect: `connection.dialect.name`.
    """
    return sqlite.insert(table) if dialect == "sqlite" else postgresql.insert(table)


def insert_rows(connection: Connection, table: Table, rows: Sequence[Mapping[str, object]]) -> None:
    """Insert rows that name the same columns. On SQLite past SQLAlchemy, which costs as much per row as the insert.

    Args:
        rows: At least one; values as the driver takes them.
    """
    if connection.dialect.name != "sqlite":
        connection.execute(insert(table), rows)
        return
    statement, columns = _sqlite_insert(table, tuple(rows[0]))
    connection.exec_driver_sql(statement, list(map(itemgetter(*columns), rows)))


@cache
def _sqlite_insert(table: Table, columns: tuple[str, ...]) -> tuple[str, list[str]]:
    """Return the statement, and the columns in the order of its places."""
    compiled = insert(table).compile(dialect=sqlite.dialect(), column_keys=list(columns))
    return str(compiled), list(compiled.positiontup or ())


def micros(time: datetime) -> int:
    """Return the microseconds since the epoch; exact, unlike `timestamp()`."""
    return (time - _EPOCH) // _MICROSECOND


def minute_of(time: int) -> int:
    """Return the minute since the epoch of a time in microseconds."""
    return time // 60_000_000


def day_of(time: int) -> int:
    """Return the day since the epoch, of UTC, of a time in microseconds."""
    return time // 86_400_000_000


def offset_seconds(time: datetime) -> int:
    """Return the offset of an aware time from UTC, in seconds."""
    return round((time.utcoffset() or timedelta()).total_seconds())


def from_micros(value: int, offset: int = 0) -> datetime:
    """Return the time that `micros` and `offset_seconds` wrote.

    Args:
        value: Microseconds since the epoch.
        offset: Seconds from UTC.
    """
    zone = timezone(timedelta(seconds=offset)) if offset else UTC
    return (_EPOCH.replace(tzinfo=None) + timedelta(seconds=offset, microseconds=value)).replace(tzinfo=zone)


def digest(text: str) -> str:
    """Return the SHA-256 of a text that may hold lone surrogates, in hex."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def chunks(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    """Cut a list into pieces that fit the variables of one statement."""
    return (items[at : at + _CHUNK] for at in range(0, len(items), _CHUNK))


def counts(connection: Connection, partition_ids: Collection[int] | None = None) -> dict[str, int]:
    """Return row counts by table name; where partitions are named, of the tables whose rows have one.

    Args:
        partition_ids: Which partitions; all there is unless given.
    """
    counted: dict[str, int] = {}
    for name, table in metadata.tables.items():
        if table is seals:  # no records
            continue
        query = select(func.count()).select_from(table)
        if partition_ids is not None:
            if "partition_id" not in table.c:
                continue
            query = query.where(table.c.partition_id.in_(list(partition_ids)))
        counted[name] = connection.execute(query).scalar_one()
    return counted


def newest(connection: Connection) -> datetime | None:
    """Return when the newest row of a ledger was recorded; none where there is none."""
    times = [connection.execute(select(func.max(at))).scalar() for at in (messages.c.recorded_at, events.c.time)]
    return max((from_micros(time) for time in times if time is not None), default=None)
