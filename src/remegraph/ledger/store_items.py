"""Key-value items in SQL: what an agent's store keeps beside its memories.

A namespace is a list of labels, compared label by label and never parsed: in its column each label is JSON text, which
holds no line feed, with a line feed behind it, so that a prefix ends where a label ends. Items that have expired are
gone for all reads at once, and deleted at the next write.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    Table,
    and_,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    update,
)

from remegraph.ledger import partitions as partition_rows
from remegraph.ledger.database import Database
from remegraph.ledger.index import vectors
from remegraph.ledger.index.vectors import Key
from remegraph.ledger.rows import chunks, digest, from_micros, micros
from remegraph.ledger.schema import item_namespaces, item_texts, items
from remegraph.models import Partition
from remegraph.ports import Clock, ItemChange, StoredItem

__all__ = ["ItemShelf", "ItemStore"]

_NOBODY = 0  # no partition has this number
_MICROSECOND = timedelta(microseconds=1)


class ItemStore:
    """The items of a ledger, one partition and one transaction at a time."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    @contextmanager
    def read(self, partition: Partition) -> Iterator[ItemShelf]:
        """Give a snapshot of the items of a partition."""
        with self._database.read() as connection:
            partition_id = next(iter(partition_rows.known(connection, [partition])), _NOBODY)
            yield ItemShelf(connection, partition_id, micros(self._clock()))

    @contextmanager
    def write(self, partition: Partition) -> Iterator[ItemShelf]:
        """Give the items of a partition to change; all changes are committed at the end, or none."""
        with self._database.write() as connection:
            partition_id = partition_rows.hold(self._database, connection, [partition])[partition]
            yield ItemShelf(connection, partition_id, micros(self._clock()))


class ItemShelf:
    """The items of one partition in one transaction, in order: by namespace, then by item, the oldest first.

    Args:
        now: In microseconds.
    """

    def __init__(self, connection: Connection, partition_id: int, now: int) -> None:
        self._connection = connection
        self._partition_id = partition_id
        self._now = now
        self._lives = or_(items.c.expires_at.is_(None), items.c.expires_at > now)
        self._left: set[int] = set()  # namespaces that lost an item

    # --------------------------------------------------------------------------------------------- read

    def find(self, namespace: tuple[str, ...], key: str) -> StoredItem | None:
        """Return an item by its name."""
        query = self._select().where(
            item_namespaces.c.path_digest == digest(_path(namespace)), items.c.key_digest == digest(key)
        )
        row = self._connection.execute(query).one_or_none()
        return None if row is None else _item(row)

    def below(self, prefix: tuple[str, ...], *, limit: int | None = None, offset: int = 0) -> list[StoredItem]:
        """Return the items of all namespaces that begin with these labels."""
        query = self._below(self._select(), prefix).order_by(item_namespaces.c.id, items.c.id)
        return [_item(row) for row in self._connection.execute(query.limit(limit).offset(offset))]

    def numbers_below(self, prefix: tuple[str, ...]) -> list[int]:
        """Return the numbers of the items of all namespaces that begin with these labels."""
        query = self._below(self._select(items.c.id), prefix).order_by(item_namespaces.c.id, items.c.id)
        return list(self._connection.execute(query).scalars())

    def texts_below(self, prefix: tuple[str, ...]) -> dict[str, int]:
        """Return the records that such items are found by, with the number of the item of each."""
        query = self._select(item_texts.c.record_id, items.c.id).join(item_texts, item_texts.c.item_id == items.c.id)
        return {row.record_id: row.id for row in self._connection.execute(self._below(query, prefix))}

    def numbered(self, numbers: Sequence[int]) -> dict[int, StoredItem]:
        """Return those of the items that are there, by number."""
        found: dict[int, StoredItem] = {}
        for some in chunks(numbers):
            rows = self._connection.execute(self._select().where(items.c.id.in_(some)))
            found |= {row.id: _item(row) for row in rows}
        return found

    def namespaces(self) -> list[tuple[str, ...]]:
        """Return all namespaces that hold an item, by their labels."""
        query = self._select(item_namespaces.c.path).distinct()
        return sorted(_labels(path) for path in self._connection.execute(query).scalars())

    # -------------------------------------------------------------------------------------------- write

    def apply(self, changes: Sequence[ItemChange]) -> int:
        """Make changes, in this order; what has expired is deleted first. Return how many items that were.

        Args:
            changes: At most one for each name.
        """
        expired = select(items.c.id).where(items.c.partition_id == self._partition_id, items.c.expires_at <= self._now)
        swept = list(self._connection.execute(expired).scalars())
        self._delete(swept)
        for change in changes:
            number = self._number(change)
            if change.value is None:
                self._delete([] if number is None else [number])
            else:
                self._put(change, number)
        self._delete_empty_namespaces()
        return len(swept)

    def touch(self, numbers: Sequence[int]) -> None:
        """Let items live from now on as long as they are given to."""
        for some in chunks(numbers):
            self._connection.execute(
                update(items)
                .where(items.c.partition_id == self._partition_id, items.c.id.in_(some), items.c.expires_at > self._now)
                .values(expires_at=self._now + items.c.ttl)
            )

    def _number(self, change: ItemChange) -> int | None:
        """Return the number of the item that a change is about."""
        query = self._select(items.c.id).where(
            item_namespaces.c.path_digest == digest(_path(change.namespace)), items.c.key_digest == digest(change.key)
        )
        return self._connection.execute(query).scalar()

    def _put(self, change: ItemChange, number: int | None) -> None:
        ttl = None if change.ttl is None else change.ttl // _MICROSECOND
        values = {
            "body": json.dumps(change.value),
            "updated_at": self._now,
            "ttl": ttl,
            "expires_at": None if ttl is None else self._now + ttl,
        }
        if number is None:
            number = self._insert(
                items,
                **values,
                created_at=self._now,
                namespace_id=self._namespace(change.namespace),
                key=json.dumps(change.key),
                key_digest=digest(change.key),
            )
        else:
            self._connection.execute(update(items).where(items.c.id == number).values(values))
        self._set_texts(number, {f"{number}:{digest(text)}": text for text in change.texts})

    def _namespace(self, labels: tuple[str, ...]) -> int:
        """Return the number of a namespace, which is made where it is missing."""
        path = _path(labels)
        query = select(item_namespaces.c.id).where(
            item_namespaces.c.partition_id == self._partition_id, item_namespaces.c.path_digest == digest(path)
        )
        number = self._connection.execute(query).scalar()
        return self._insert(item_namespaces, path=path, path_digest=digest(path)) if number is None else number

    def _insert(self, table: Table, **values: Any) -> int:
        query = insert(table).values(partition_id=self._partition_id, **values).returning(table.c.id)
        number: int = self._connection.execute(query).scalar_one()
        return number

    def _set_texts(self, number: int, texts: Mapping[str, str]) -> None:
        """Give an item its texts; those that it has already keep their vectors."""
        query = select(item_texts.c.record_id).where(item_texts.c.item_id == number)
        held = set(self._connection.execute(query).scalars())
        for some in chunks(sorted(held - texts.keys())):
            self._delete_texts(and_(item_texts.c.partition_id == self._partition_id, item_texts.c.record_id.in_(some)))
        new = [
            {"partition_id": self._partition_id, "record_id": name, "item_id": number, "body": json.dumps(texts[name])}
            for name in texts
            if name not in held
        ]
        if new:
            self._connection.execute(insert(item_texts), new)
            self._mark(texts.keys() - held)

    def _delete(self, numbers: Sequence[int]) -> None:
        for some in chunks(numbers):
            self._delete_texts(item_texts.c.item_id.in_(some))
            gone = delete(items).where(items.c.id.in_(some)).returning(items.c.namespace_id)
            self._left.update(self._connection.execute(gone).scalars())

    def _delete_texts(self, which: ColumnElement[bool]) -> None:
        self._mark(self._connection.execute(select(item_texts.c.record_id).where(which)).scalars())
        self._connection.execute(delete(item_texts).where(which))

    def _delete_empty_namespaces(self) -> None:
        held = exists().where(items.c.namespace_id == item_namespaces.c.id)
        for some in chunks(sorted(self._left)):
            self._connection.execute(delete(item_namespaces).where(item_namespaces.c.id.in_(some), ~held))
        self._left.clear()

    def _mark(self, record_ids: Iterable[str]) -> None:
        """Notify the indexer that records came or went."""
        vectors.mark(self._connection, [Key(self._partition_id, "item", name) for name in record_ids])

    # ------------------------------------------------------------------------------------------ queries

    def _select(self, *columns: ColumnElement[Any]) -> Select[Any]:
        """Select from the items that live, with their namespaces."""
        wanted = columns or (*_COLUMNS,)
        return (
            select(*wanted)
            .select_from(items)
            .join(item_namespaces, item_namespaces.c.id == items.c.namespace_id)
            .where(items.c.partition_id == self._partition_id, self._lives)
        )

    @staticmethod
    def _below(query: Select[Any], prefix: tuple[str, ...]) -> Select[Any]:
        path = _path(prefix)
        return query.where(func.substr(item_namespaces.c.path, 1, len(path)) == path)


_COLUMNS = (
    items.c.id,
    item_namespaces.c.path,
    items.c.key,
    items.c.body,
    items.c.created_at,
    items.c.updated_at,
    items.c.ttl,
)


def _path(labels: tuple[str, ...]) -> str:
    return "".join(f"{json.dumps(label)}\n" for label in labels)


def _labels(path: str) -> tuple[str, ...]:
    return tuple(json.loads(label) for label in path.splitlines())


def _item(row: Row[Any]) -> StoredItem:
    return StoredItem(
        number=row.id,
        namespace=_labels(row.path),
        key=json.loads(row.key),
        value=json.loads(row.body),
        created_at=from_micros(row.created_at),
        updated_at=from_micros(row.updated_at),
        expires=row.ttl is not None,
    )
