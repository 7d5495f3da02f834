"""Compares the vector index with the ledger, by ids and by hits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from remegraph.models import Mismatch
from remegraph.ports import WHOLE, Embedder, VectorIndex
from remegraph.storage import embedders, shelves, vectors
from remegraph.storage.database import Database
from remegraph.storage.indexer import index_id, key_of
from remegraph.storage.rows import digest
from remegraph.storage.vectors import KINDS, Key

if TYPE_CHECKING:
    from sqlalchemy import Connection

__all__ = ["UNREACHED", "differences"]

UNREACHED = "not found by its own vector"
"""The problem of a record that the index holds and its graph, which is approximate, does not lead to."""

_PAGE = 500


def differences(
    database: Database,
    index: VectorIndex | None,
    embedder: Embedder,
    sample: int,
    *,
    thorough: bool = True,
    exact_limit: int = 0,
) -> tuple[int, tuple[Mismatch, ...]]:
    """Compare; see `VectorProjection.verify`. What recall finds in SQL need not be found by the index."""
    with database.read() as connection:
        embedder_id = embedders.require(connection, embedder)
        found = [Mismatch(where="dirty set", record_id=key.record_id, problem="pending") for key in _dirty(connection)]
        embedded: list[Key] = []
        for key, problem in _records(connection, embedder_id):
            if problem:
                found.append(Mismatch(where="vectors", record_id=key.record_id, problem=problem))
            else:
                embedded.append(key)
        homes = shelves.homes(connection, embedder_id)
    if index is None:
        return len(embedded), tuple(found)
    damage = index.damage(thorough=thorough)
    found += [Mismatch(where=name or "index", record_id="", problem=f"damaged: {damage[name]}") for name in damage]
    if WHOLE in damage:
        return len(embedded), tuple(found)
    expected: dict[str, set[str]] = {home: set() for home in homes.values() if home not in damage}
    for key in embedded:
        if home := homes.get(key[:2]):
            expected.get(home, set()).add(index_id(key))
        else:
            found.append(Mismatch(where="collections", record_id=key.record_id, problem="missing"))
    for home, names in sorted(expected.items()):
        held = index.ids(home)
        found += [Mismatch(where=home, record_id=name, problem="missing") for name in sorted(names - held)]
        found += [Mismatch(where=home, record_id=name, problem="extra") for name in sorted(held - names)]
    used, existing = set(homes.values()), index.collections()
    found += [
        Mismatch(where=name, record_id="", problem="extra")
        for name in sorted(existing - used)
        if shelves.owned(name, used)
    ]
    step = max(1, -(-len(embedded) // max(1, sample)))
    searched = expected.keys() & existing
    placed = {key: homes[key[:2]] for key in embedded[::step] if homes.get(key[:2]) in searched}
    found += _lost(database, index, embedder_id, placed, exact_limit)
    return len(embedded), tuple(found)


def _dirty(connection: Connection) -> Iterator[Key]:
    after: Key | None = None
    while page := vectors.marks(connection, after, _PAGE):
        yield from page
        after = next(reversed(page))


def _records(connection: Connection, embedder_id: int) -> Iterator[tuple[Key, str]]:
    """Yield each live record, and what is wrong with its vector."""
    for kind in KINDS:
        after: Key | None = None
        while page := vectors.live_keys(connection, kind, after, _PAGE):
            bodies = vectors.live_bodies(connection, page)
            digests = vectors.embedded_digests(connection, embedder_id, page)
            for key in page:
                made_of = digests.get(key)
                current = digest(vectors.text_of(key, bodies[key]))
                yield key, "missing" if made_of is None else "" if made_of == current else "stale"
            after = page[-1]


def _lost(
    database: Database,
    index: VectorIndex,
    embedder_id: int,
    homes: Mapping[Key, str],
    exact_limit: int,
) -> Iterator[Mismatch]:
    """Tell which records recall misses: the index is asked for them, and does not find them by their own vector."""
    by_home: dict[str, list[Key]] = defaultdict(list)
    with database.read() as connection:
        asked = shelves.searched(connection, embedder_id, exact_limit)
        in_sql = vectors.unreached(connection, {key.partition_id for key in homes})
        for key, home in homes.items():
            if key[:2] in asked and key not in in_sql:
                by_home[home].append(key)
        rows = {home: vectors.read(connection, embedder_id, some) for home, some in by_home.items()}
    for home, (read, vectors_of) in sorted(rows.items()):
        for name in index.unreached(home, [index_id(key) for key in read], vectors_of):
            yield Mismatch(where=home, record_id=key_of(name).record_id, problem=UNREACHED)
