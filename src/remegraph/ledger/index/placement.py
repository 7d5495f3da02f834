"""Which collection of the vector index holds which shelf.

A shelf is what is searched together: one kind of record in one partition. One collection for all would make each
query wait for everybody's vectors, one for each would cost megabytes per user; so shelves share collections of
about eight thousand vectors, and a larger shelf gets its own.

The names of all collections of a ledger begin alike and like no other ledger's: two may use one Chroma server.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Literal
from uuid import uuid4

from sqlalchemy import Connection, and_, delete, exists, func, select, true

from remegraph.errors import SetupError
from remegraph.ledger.rows import chunks, insert_rows
from remegraph.ledger.schema import collections, dirty, partitions, projections, vectors
from remegraph.settings import Settings

__all__ = [
    "CAPACITY",
    "NOTE",
    "RESERVED",
    "SPLIT_AT",
    "IndexName",
    "Shelf",
    "assign",
    "collection_names",
    "held",
    "homes",
    "inhabitants",
    "misnamed",
    "named",
    "namespace",
    "noted",
    "overfull",
    "owned",
    "release",
    "release_all",
    "release_empty",
    "searched",
    "size",
]

CAPACITY = 8_000
"""Vectors that a collection holds when it takes in a further shelf."""

SPLIT_AT = 12_000
"""Vectors from which on shelves that grew together are parted."""

RESERVED = 100
"""Vectors that a shelf counts as at least: most are new when they get their place, and grow."""

NOTE = "index"
"""Where a ledger notes which index it has, among its projections."""

_PREFIX = "remegraph"

IndexName = Literal["chroma", "pgvector"]

Shelf = tuple[int, str]
"""Number of the partition, and kind."""


def noted(connection: Connection) -> IndexName | None:
    """Return which index a ledger on PostgreSQL has noted; none as long as it has had none but chroma."""
    query = select(projections.c.generation).where(projections.c.name == NOTE)
    found: IndexName | None = connection.execute(query).scalar_one_or_none()
    return found


def held(connection: Connection) -> IndexName | None:
    """Return which index a ledger on PostgreSQL has; none as long as nothing was brought into one."""
    used = select(collections.c.name).limit(1)
    return noted(connection) or ("chroma" if connection.execute(used).first() else None)


def named(settings: Settings) -> IndexName | None:
    """Return which index settings name; none where they leave it to the ledger."""
    return settings.index or (None if settings.chroma_url is None else "chroma")


def misnamed(connection: Connection, name: IndexName | None) -> SetupError | None:
    """Return what is wrong where a ledger has another index than the one that is named; nothing where it has that."""
    has = None if connection.dialect.name == "sqlite" else held(connection)
    if name is None or has in (None, name):
        return None
    return SetupError(
        f"The index of the ledger is {has}, and these settings name {name}.",
        f"Set REMEGRAPH_INDEX={has}; or have all change over: `remegraph migrate --apply --change-index` with these settings.",
    )


def homes(connection: Connection, embedder_id: int, partition_ids: Iterable[int] | None = None) -> dict[Shelf, str]:
    """Return the collections of shelves, of these partitions or all; those without a place are left out."""
    query = select(collections.c.partition_id, collections.c.kind, collections.c.name).where(
        collections.c.embedder_id == embedder_id
    )
    if partition_ids is not None:
        query = query.where(collections.c.partition_id.in_(list(partition_ids)))
    return {(row.partition_id, row.kind): row.name for row in connection.execute(query)}


def inhabitants(connection: Connection, names: Iterable[str]) -> dict[str, set[Shelf]]:
    """Return all shelves of these collections."""
    found: dict[str, set[Shelf]] = defaultdict(set)
    query = select(collections.c.name, collections.c.partition_id, collections.c.kind)
    for row in connection.execute(query.where(collections.c.name.in_(list(names)))):
        found[row.name].add((row.partition_id, row.kind))
    return found


def collection_names(connection: Connection) -> set[str]:
    """Return the names of all collections that are in use, of all embedders."""
    return set(connection.execute(select(collections.c.name).distinct()).scalars())


def namespace(name: str) -> str:
    """Return how the names of all collections of a ledger begin, given one of them."""
    return name.rpartition("-")[0]


def owned(name: str, names: Iterable[str]) -> bool:
    """Return whether a collection is this ledger's, given the names that it uses."""
    return any(namespace(name) == namespace(other) for other in names)


def assign(connection: Connection, embedder_id: int, shelves: Iterable[Shelf]) -> None:
    """Give shelves a place: the first collection that has room, or a new one.

    Args:
        connection: A connection that excludes others who assign.
        shelves: The shelves; those that have a place keep it.
    """
    wanted = set(shelves)
    wanted -= homes(connection, embedder_id, {partition_id for partition_id, _ in wanted}).keys()
    if not wanted:
        return
    names = collection_names(connection)
    prefix = namespace(min(names)) if names else f"{_PREFIX}-{uuid4().hex[:12]}"
    number = max((_number(name) for name in names), default=0)
    fill = _fill(connection, embedder_id)
    sizes = _reserved(connection, embedder_id, wanted)
    rows: list[dict[str, object]] = []
    for shelf in sorted(wanted):
        size = sizes[shelf]
        name = next((name for name in fill if fill[name] + size <= CAPACITY), None)
        if name is None:
            number += 1
            name = f"{prefix}-{number}"
        fill[name] += size
        rows.append({"partition_id": shelf[0], "kind": shelf[1], "embedder_id": embedder_id, "name": name})
    insert_rows(connection, collections, rows)


def overfull(connection: Connection, embedder_id: int, names: Iterable[str]) -> list[tuple[Shelf, str]]:
    """Return the shelves, largest first, that have to leave collections that grew too large.

    None of them would fit into the collection that it leaves again.
    """
    leaving: list[tuple[Shelf, str]] = []
    for name in sorted(names):
        query = select(collections.c.partition_id, collections.c.kind).where(
            collections.c.embedder_id == embedder_id, collections.c.name == name
        )
        sizes = _reserved(connection, embedder_id, [(row.partition_id, row.kind) for row in connection.execute(query)])
        largest = sorted(sizes, key=lambda shelf: (sizes[shelf], shelf))
        if sum(sizes.values()) <= SPLIT_AT:
            continue
        while len(largest) > 1 and sum(sizes[shelf] for shelf in largest) > CAPACITY:
            leaving.append((largest.pop(), name))
    return leaving


def release(connection: Connection, embedder_id: int, shelf: Shelf) -> None:
    """Take its place from a shelf."""
    connection.execute(
        delete(collections).where(
            collections.c.partition_id == shelf[0],
            collections.c.kind == shelf[1],
            collections.c.embedder_id == embedder_id,
        )
    )


def release_empty(connection: Connection, names: Iterable[str]) -> None:
    """Take the places in these collections from shelves that have no vectors any more."""
    held = exists().where(
        vectors.c.partition_id == collections.c.partition_id,
        vectors.c.kind == collections.c.kind,
        vectors.c.embedder_id == collections.c.embedder_id,
    )
    connection.execute(delete(collections).where(collections.c.name.in_(list(names)), ~held))


def release_all(connection: Connection) -> None:
    """Take their places from all shelves of all embedders."""
    connection.execute(delete(collections))


def size(connection: Connection, embedder_id: int, shelves: Iterable[Shelf]) -> int:
    """Return how many vectors these shelves have, or will have once all marks are applied."""
    return sum(_sizes(connection, embedder_id, shelves).values())


def searched(connection: Connection, embedder_id: int, exact_limit: int) -> set[Shelf]:
    """Return the shelves that some search asks the index for, and not SQL alone, since it sees too many vectors.

    Args:
        exact_limit: Vectors of one kind that are compared in SQL.
    """
    query = (
        select(
            partitions.c.tenant, partitions.c.user, vectors.c.partition_id, vectors.c.kind, func.count().label("size")
        )
        .join_from(vectors, partitions, vectors.c.partition_id == partitions.c.id)
        .where(vectors.c.embedder_id == embedder_id)
        .group_by(partitions.c.tenant, partitions.c.user, vectors.c.partition_id, vectors.c.kind)
    )
    rows = connection.execute(query).all()
    of_user: dict[tuple[str, str | None, str], int] = defaultdict(int)
    for row in rows:
        of_user[row.tenant, row.user, row.kind] += row.size
    of_any: dict[tuple[str, str], int] = defaultdict(int)  # the most that one user has
    for (tenant, user, kind), size in of_user.items():
        of_any[tenant, kind] = max(of_any[tenant, kind], size if user is not None else 0)

    def seen_with(tenant: str, user: str | None, kind: str) -> int:
        """Return how many vectors a scope may see that sees these: a user's, and those of all users."""
        mine = of_any[tenant, kind] if user is None else of_user[tenant, user, kind]
        return mine + of_user[tenant, None, kind]

    return {(row.partition_id, row.kind) for row in rows if seen_with(row.tenant, row.user, row.kind) > exact_limit}


def _reserved(connection: Connection, embedder_id: int, shelves: Iterable[Shelf]) -> dict[Shelf, int]:
    """Return how many vectors each shelf counts as where it is given a place."""
    sizes = _sizes(connection, embedder_id, shelves)
    return {shelf: max(RESERVED, size) for shelf, size in sizes.items()}


def _sizes(connection: Connection, embedder_id: int, shelves: Iterable[Shelf]) -> dict[Shelf, int]:
    """Return how many vectors each shelf has, or will have once all marks are applied."""
    sizes = dict.fromkeys(shelves, 0)
    partition_ids = sorted({partition_id for partition_id, _ in sizes})
    for table, which in ((vectors, vectors.c.embedder_id == embedder_id), (dirty, true())):
        place = (table.c.partition_id, table.c.kind)
        counted = select(*place, func.count().label("size")).where(which).group_by(*place)
        for chunk in chunks(partition_ids):  # not shelf by shelf: each number of them would be a statement to compile
            for row in connection.execute(counted.where(table.c.partition_id.in_(chunk))):
                shelf = (row.partition_id, row.kind)
                if shelf in sizes:
                    sizes[shelf] = max(sizes[shelf], row.size)
    return sizes


def _fill(connection: Connection, embedder_id: int) -> dict[str, int]:
    """Return how many vectors each collection counts as holding, the oldest collection first."""
    same = and_(
        vectors.c.partition_id == collections.c.partition_id,
        vectors.c.kind == collections.c.kind,
        vectors.c.embedder_id == collections.c.embedder_id,
    )
    query = (
        select(collections.c.name, func.count(vectors.c.record_id).label("size"))
        .select_from(collections.outerjoin(vectors, same))
        .where(collections.c.embedder_id == embedder_id)
        .group_by(collections.c.partition_id, collections.c.kind, collections.c.name)
    )
    fill: dict[str, int] = defaultdict(int)
    for row in sorted(connection.execute(query), key=lambda row: _number(row.name)):
        fill[row.name] += max(RESERVED, row.size)
    return fill


def _number(name: str) -> int:
    return int(name.rpartition("-")[2])
