"""Partitions by number: the only tenancy key that SQL, full text and vectors see.

Numbers that are committed are cached, for each open ledger. A partition that is erased loses its name, and whoever comes
back under it gets a new number. So writers look numbers up again, and whatever reads partitions by their names brings the
cache up to date. All functions take a connection, and are safe to share between threads.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from secrets import token_hex
from typing import Any
from weakref import WeakKeyDictionary

from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    Row,
    Text,
    bindparam,
    cast,
    exists,
    func,
    literal,
    or_,
    select,
)

from remegraph.ledger.database import Database
from remegraph.ledger.rows import chunks, digest, upsert
from remegraph.ledger.schema import events, grants, partitions, reviews
from remegraph.models import Partition, Scope
from remegraph.models import visible as own_first
from remegraph.ports import Pulse

__all__ = [
    "anonymous",
    "around",
    "cached",
    "ensure",
    "every",
    "forget",
    "hold",
    "key_of",
    "known",
    "named",
    "partition_of",
    "pulse",
    "renamed",
]

_OPTIONAL = ("user", "agent", "project")
_CACHED = 10_000
_LONGEST_KEY = 1_000

_CACHES: WeakKeyDictionary[Engine, dict[str, int]] = WeakKeyDictionary()
"""Numbers by key, of each open ledger."""

# Said once: building a statement costs as much as running it.
_PULSE = (
    select(
        partitions,
        *(
            func.coalesce(
                select(func.max(each.c.id)).where(each.c.partition_id == partitions.c.id).scalar_subquery(), 0
            )
            for each in (events, reviews)
        ),
        exists().where(grants.c.reader_id == partitions.c.id),
    )
    .where(partitions.c.tenant == bindparam("tenant"))
    .where(*(or_(partitions.c[name].is_(None), partitions.c[name] == bindparam(name)) for name in _OPTIONAL))
    .order_by(partitions.c.id)
)
_NUMBERS = select(partitions.c.key, partitions.c.id).where(partitions.c.key.in_(bindparam("keys", expanding=True)))


def known(connection: Connection, wanted: Iterable[Partition], *, fresh: bool = False) -> dict[int, Partition]:
    """Return those of the partitions that exist, by number, in the order given; `fresh`: past what is cached."""
    by_key = {key_of(partition): partition for partition in wanted}
    cached = {} if fresh else _cache(connection)
    numbers = {key: cached[key] for key in by_key if key in cached}
    if missing := [key for key in by_key if key not in numbers]:
        numbers |= _remember(connection, _select(connection, missing))
    return {numbers[key]: partition for key, partition in by_key.items() if key in numbers}


def cached(connection: Connection, wanted: Iterable[Partition]) -> dict[Partition, int]:
    """Return the numbers that partitions had when they were last looked up: who writes holds them against the keys."""
    numbers = _cache(connection)
    return {partition: numbers[key] for partition in wanted if (key := key_of(partition)) in numbers}


def ensure(connection: Connection, wanted: Iterable[Partition]) -> dict[Partition, int]:
    """Return the numbers of partitions; what does not exist yet is created.

    New rows are inserted in the order of their keys, so that two writers cannot wait for each other. None is cached: it
    may yet be rolled back.
    """
    by_key = {key_of(partition): partition for partition in wanted}
    numbers = _select(connection, list(by_key))
    new = sorted(by_key.keys() - numbers.keys())
    for key in new:
        values = by_key[key].model_dump()
        connection.execute(
            upsert(connection.dialect.name, partitions).values(key=key, **values).on_conflict_do_nothing()
        )
    if new:
        numbers |= _select(connection, new)
    cached = _cache(connection)
    for key, number in numbers.items():
        if cached.get(key) != number:  # of a partition that was erased
            cached.pop(key, None)
    return {partition: numbers[key] for key, partition in by_key.items()}


def hold(database: Database, connection: Connection, wanted: Sequence[Partition]) -> dict[Partition, int]:
    """Return the numbers of partitions, which are created where they are missing, and lock them.

    A lock may have been held by an erasure: then the name means another partition by now.
    """
    numbers, held = ensure(connection, wanted), dict[Partition, int]()
    while numbers != held:
        database.lock(connection, numbers.values())
        held = numbers
        numbers = held if database.is_sqlite else ensure(connection, wanted)
    return numbers


def forget(connection: Connection) -> None:
    """Look all numbers up again: some partitions have lost their names."""
    _CACHES.pop(connection.engine, None)


def pulse(database: Database, scope: Scope) -> Mapping[Partition, Pulse]:
    """Return how far each partition that the scope may read has come, its own first; within a session it is asked once."""
    return database.once(("pulse", scope), partial(_pulse, scope))


def _pulse(scope: Scope, connection: Connection) -> dict[Partition, Pulse]:
    rows = connection.execute(_PULSE, scope.model_dump()).all()
    found = {partition_of(row): Pulse(*row[-3:]) for row in rows}
    _remember(connection, {key_of(partition): row.id for partition, row in zip(found, rows, strict=True)})
    return {partition: found[partition] for partition in own_first(scope, list(found))}


def every(connection: Connection) -> tuple[Partition, ...]:
    """Return all partitions, in the order of their creation."""
    return tuple(partition_of(row) for row in connection.execute(select(partitions).order_by(partitions.c.id)))


def around(connection: Connection, tenant: str) -> dict[int, Partition]:
    """Return the partitions of a tenant, and those that lost their names, whosever they were, by number."""
    rows = connection.execute(select(partitions).order_by(partitions.c.id))
    return {
        row.id: partition_of(row) for row in rows if row.tenant == tenant or row.tenant.startswith(_nameless(row.id))
    }


def renamed(connection: Connection) -> tuple[int, ...]:
    """Return the partitions whose row says another name than its key."""
    rows = connection.execute(select(partitions).order_by(partitions.c.id))
    return tuple(row.id for row in rows if row.key != key_of(partition_of(row)))


def named() -> ColumnElement[bool]:
    """Return the condition that a partition has not lost its name."""
    nameless = literal("erased-") + cast(partitions.c.id, Text) + "-"
    return func.substr(partitions.c.tenant, 1, func.length(nameless)) != nameless


def partition_of(row: Row[Any]) -> Partition:
    """Return the partition of a row of the table `partitions`."""
    return Partition(tenant=row.tenant, user=row.user, agent=row.agent, project=row.project)


def anonymous(partition_id: int) -> dict[str, str | int | None]:
    """Return the columns of a partition that lost its name: no one's, and found by no one."""
    nobody = Partition(tenant=f"{_nameless(partition_id)}{token_hex(8)}")
    return {**nobody.model_dump(), "key": key_of(nobody), "stored": 0, "minute": 0, "in_minute": 0}


def _nameless(partition_id: int) -> str:
    return f"erased-{partition_id}-"


def key_of(partition: Partition) -> str:
    """Return what is unique to a partition, also where fields are none; short enough for PostgreSQL's indexes."""
    key = json.dumps([partition.tenant, partition.user, partition.agent, partition.project])
    return key if len(key) <= _LONGEST_KEY else digest(key)


def _select(connection: Connection, keys: Sequence[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for chunk in chunks(keys):
        found |= {row.key: row.id for row in connection.execute(_NUMBERS, {"keys": chunk})}
    return found


def _cache(connection: Connection) -> dict[str, int]:
    return _CACHES.setdefault(connection.engine, {})


def _remember(connection: Connection, found: dict[str, int]) -> dict[str, int]:
    """Keep numbers that are committed, and return them."""
    cached = _cache(connection)
    if len(cached) + len(found) > _CACHED:
        cached.clear()
    cached.update(found)
    return found
