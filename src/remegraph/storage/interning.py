"""Partitions by number: the only tenancy key that SQL, full text and vectors see."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, Row, bindparam, func, or_, select

from remegraph.models import Partition, Scope, visible
from remegraph.ports import Pulse
from remegraph.storage.database import upsert
from remegraph.storage.rows import chunks, digest
from remegraph.storage.tables import events, partitions, reviews

__all__ = ["Interning", "partition_of"]

_OPTIONAL = ("user", "agent", "project")
_CACHED = 10_000
_LONGEST_KEY = 1_000

# Said once: building a statement costs as much as running it.
_VISIBLE = (
    select(partitions)
    .where(partitions.c.tenant == bindparam("tenant"))
    .where(*(or_(partitions.c[name].is_(None), partitions.c[name] == bindparam(name)) for name in _OPTIONAL))
    .order_by(partitions.c.id)
)
_PULSE = _VISIBLE.add_columns(
    *(
        func.coalesce(select(func.max(table.c.id)).where(table.c.partition_id == partitions.c.id).scalar_subquery(), 0)
        for table in (events, reviews)
    )
)


def _key(partition: Partition) -> str:
    """Return what is unique to a partition, also where fields are none; short enough for PostgreSQL's indexes."""
    key = json.dumps([partition.tenant, partition.user, partition.agent, partition.project])
    return key if len(key) <= _LONGEST_KEY else digest(key)


def partition_of(row: Row[Any]) -> Partition:
    """Return the partition of a row of the table `partitions`."""
    return Partition(tenant=row.tenant, user=row.user, agent=row.agent, project=row.project)


class Interning:
    """Gives partitions their numbers. Only committed ones are cached; safe to share between threads."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def known(self, connection: Connection, wanted: Iterable[Partition]) -> dict[int, Partition]:
        """Return those of the partitions that exist, by number, in the order given."""
        by_key = {_key(partition): partition for partition in wanted}
        numbers = self._lookup(connection, list(by_key))
        return {numbers[key]: partition for key, partition in by_key.items() if key in numbers}

    def ensure(self, connection: Connection, wanted: Iterable[Partition]) -> dict[Partition, int]:
        """Return the numbers of partitions; what does not exist yet is created.

        New rows are inserted in the order of their keys, so that two writers cannot wait for each other.
        """
        by_key = {_key(partition): partition for partition in wanted}
        numbers = self._lookup(connection, list(by_key))
        new = sorted(by_key.keys() - numbers.keys())
        for key in new:
            values = by_key[key].model_dump()
            connection.execute(
                upsert(connection.dialect.name, partitions).values(key=key, **values).on_conflict_do_nothing()
            )
        numbers |= self._select(connection, new)  # not cached: the transaction may yet be rolled back
        return {partition: numbers[key] for key, partition in by_key.items()}

    def _lookup(self, connection: Connection, keys: Sequence[str]) -> dict[str, int]:
        found = {key: self._numbers[key] for key in keys if key in self._numbers}
        missing = [key for key in keys if key not in found]
        if missing:
            selected = self._select(connection, missing)
            if len(self._numbers) + len(selected) > _CACHED:
                self._numbers = {}
            self._numbers |= selected
            found |= selected
        return found

    @staticmethod
    def _select(connection: Connection, keys: Sequence[str]) -> dict[str, int]:
        found: dict[str, int] = {}
        for chunk in chunks(keys):
            rows = connection.execute(select(partitions.c.key, partitions.c.id).where(partitions.c.key.in_(chunk)))
            found |= {row.key: row.id for row in rows}
        return found

    @staticmethod
    def visible(connection: Connection, scope: Scope) -> tuple[Partition, ...]:
        """Return the existing partitions that the scope may read, its own first."""
        rows = connection.execute(_VISIBLE, scope.model_dump())
        return visible(scope, [partition_of(row) for row in rows])

    @staticmethod
    def pulse(connection: Connection, scope: Scope) -> dict[Partition, Pulse]:
        """Return the numbers of the newest event and review of each partition that the scope may read, its own first."""
        rows = connection.execute(_PULSE, scope.model_dump())
        found = {partition_of(row): Pulse(*row[-2:]) for row in rows}
        return {partition: found[partition] for partition in visible(scope, list(found))}

    @staticmethod
    def all(connection: Connection) -> tuple[Partition, ...]:
        """Return all partitions, in the order of their creation."""
        return tuple(partition_of(row) for row in connection.execute(select(partitions).order_by(partitions.c.id)))
