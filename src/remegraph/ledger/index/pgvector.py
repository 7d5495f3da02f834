"""pgvector as a vector index: in the PostgreSQL that the ledger is in, through the ledger's own connections.

A search compares all vectors that it may see, which is exact, and quick up to some ten thousand: the rows of a shelf are
found by an ordinary index. A graph that all users shared would be slower and miss a fifth of what is near, as it leads
through vectors of others. So only a collection that grew large gets a graph (HNSW), which is then of one shelf.

Vectors are kept in half precision, at half the room: the index proposes, and the ledger, which has them in full, decides.

The tables are made like those of procrastinate, by an account that may; a role that may only change rows does all but make graphs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from sqlalchemy import (
    ARRAY,
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    Float,
    ForeignKey,
    Identity,
    Index,
    Integer,
    MetaData,
    Row,
    Select,
    Table,
    Text,
    and_,
    any_,
    bindparam,
    cast,
    delete,
    exc,
    func,
    or_,
    select,
    text,
    true,
)
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateIndex, DropIndex
from sqlalchemy.types import UserDefinedType

from remegraph.errors import SetupError, VectorIndexError
from remegraph.ledger.database import EVERYBODY, Database
from remegraph.ledger.migrations import VECTORS, lacks_pgvector
from remegraph.ledger.schema import collections as used

if TYPE_CHECKING:
    from remegraph.ports import Vectors

__all__ = ["LARGE", "PgvectorIndex", "complete", "lacking", "orphaned", "sweep"]

LARGE = 20_000
"""Number of vectors from which on a collection gets a graph: comparing as many takes some 15 milliseconds."""

_LONGEST = 4_000  # dimensions that a graph can have
_NEAR = 10  # hits that are looked at for a record, given its own vector
_SAME = 0.001  # cosine distance between a vector and itself, in half precision
_WIDTH = (200, 1_000)  # candidates that a graph is searched for at least, and at most: pgvector takes no more
_LEAST_VERSION = (0, 8)
_GRAPH = "pgvector_graph_"

_EXTENSION = text("SELECT extversion FROM pg_extension WHERE extname = 'vector'")
_EXTEND = text("CREATE EXTENSION IF NOT EXISTS vector")
_INLINE = text("ALTER TABLE pgvector_records ALTER COLUMN embedding SET STORAGE MAIN")
"""Vectors stay in their rows: looked up elsewhere, each would cost as much as a hundred comparisons."""
_OWNED = text("SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = to_regclass('pgvector_records')")
_ALONG_GRAPH = text(
    # Without sorting: PostgreSQL would compare all where it has not counted them since they were written.
    "SELECT set_config('enable_sort', 'off', true), set_config('hnsw.ef_search', :width, true),"
    " set_config('hnsw.iterative_scan', 'relaxed_order', true)"
)
_BUILD_IN_MEMORY = text(
    # Alone: what processes share is 64 MB in a container, and more would fail.
    "SELECT set_config('maintenance_work_mem', '256MB', true), set_config('max_parallel_maintenance_workers', '0', true)"
)


class _HalfVector(UserDefinedType["Vectors"]):
    """pgvector's type of 16-bit floats.

    Args:
        dimension: Of a graph; a column may hold vectors of any length.
    """

    cache_ok = True

    def __init__(self, dimension: int | None = None) -> None:
        self.dimension = dimension

    def get_col_spec(self, **_: Any) -> str:
        """Return how it is called in SQL."""
        return "halfvec" if self.dimension is None else f"halfvec({self.dimension})"

    def bind_processor(self, dialect: object) -> Any:  # noqa: ARG002 - SQLAlchemy's signature
        """Return what writes a vector as text."""
        return _written


def _written(vector: Vectors) -> str:
    return str(vector.astype(np.float16).tolist())


_metadata = MetaData()
_collections = Table(
    "pgvector_collections",
    _metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("dimension", Integer, nullable=False),
)
_records = Table(
    VECTORS,
    _metadata,
    Column("collection_id", BigInteger, ForeignKey(_collections.c.id, ondelete="CASCADE"), primary_key=True),
    Column("record_id", Text, primary_key=True),
    Column("shelf", Text, nullable=False),
    Column("embedding", _HalfVector, nullable=False),
    Index("pgvector_records_by_shelf", "collection_id", "shelf"),
)


class PgvectorIndex:
    """pgvector as a `VectorIndex`.

    Args:
        database: The ledger, on PostgreSQL, with the tables of `open`.
        migrate: never: no graph is made or removed.
    """

    def __init__(self, database: Database, *, migrate: Literal["auto", "never"] = "auto") -> None:
        self._database = database
        with database.read() as connection:
            self._may_change = migrate == "auto" and bool(connection.execute(_OWNED).scalar_one())
        self._closed = False

    @classmethod
    def open(cls, database: Database, *, migrate: Literal["auto", "never"] = "auto") -> Self:
        """Open the index; make its tables where they are missing.

        Args:
            database: The ledger.
            migrate: never: they are there, or it is refused.

        Raises:
            SetupError: The ledger is not on PostgreSQL, or the server has no pgvector of 2024 or later.
            SchemaTooOldError: The tables are missing, and may not be made.
        """
        with database.read() as connection:
            lacks = lacks_pgvector(connection)
        if lacks is not None:
            if migrate == "never":
                raise lacks
            with database.write([EVERYBODY]) as connection:
                _extend(connection)
                _metadata.create_all(connection)
                connection.execute(_INLINE)
        return cls(database, migrate=migrate)

    def upsert(self, collection: str, ids: Sequence[str], shelves: Sequence[str], vectors: Vectors) -> None:
        """Write records; the collection is made where it is missing.

        Args:
            vectors: float32, shape (len(ids), dimension).
        """
        rows = [
            {"record_id": name, "shelf": shelf, "embedding": vector}
            for name, shelf, vector in sorted(zip(ids, shelves, vectors, strict=True), key=lambda row: row[0])
        ]
        with self._writing(collection) as connection:
            found = _made(connection, collection, vectors.shape[1])
            if found.dimension != vectors.shape[1]:
                raise VectorIndexError(
                    f"pgvector has vectors of dimension {found.dimension} in {collection}, not {vectors.shape[1]}."
                )
            if rows:
                connection.execute(_UPSERT, [{"collection_id": found.id, **row} for row in rows])

    def delete(self, collection: str, ids: Sequence[str]) -> None:
        """Remove records; unknown ids and collections are no error."""
        with self._writing(collection) as connection:
            connection.execute(_DELETE, {"name": collection, "record_ids": list(ids)})

    def query(self, collection: str, shelves: Sequence[str] | None, vector: Vectors, k: int) -> list[tuple[str, float]]:
        """Return the k nearest on these shelves, best first.

        Args:
            collection: Name of the collection, which must exist.
            shelves: Where to look; the whole collection where none.
            vector: float32, shape (dimension,).

        Returns:
            Ids with cosine similarities; fewer than k where the shelves hold fewer.
        """
        if k < 1 or (shelves is not None and not shelves):
            return []
        with self._reading(collection) as connection:
            found = _required(connection, collection)
            asked: dict[str, Any] = {"collection_id": found.id, "vector": vector, "k": k}
            if found.graph is not None and shelves is None:
                connection.execute(_ALONG_GRAPH, {"width": str(min(max(2 * k, _WIDTH[0]), _WIDTH[1]))})
                rows = connection.execute(_along_graph(found.dimension), asked)
            elif shelves is None:
                rows = connection.execute(_ALL, asked)
            else:
                rows = connection.execute(_OF_SHELVES, {**asked, "shelves": list(shelves)})
            return [(row.record_id, 1.0 - row.distance) for row in rows]

    def unreached(self, collection: str, ids: Sequence[str], vectors: Vectors) -> list[str]:
        """Return those of these records that a search for their own vector does not find.

        Args:
            collection: Name of the collection, which must exist.
            vectors: Theirs, float32, shape (len(ids), dimension).
        """
        looked_for = [at for at in range(len(ids)) if vectors[at].any()]  # nothing is near to zero
        with self._reading(collection) as connection:
            found = _required(connection, collection)
            if found.graph is not None:
                connection.execute(_ALONG_GRAPH, {"width": str(_WIDTH[0])})
            reached = connection.execute(
                _REACHED if found.graph is None else _reached_along_graph(found.dimension),
                {
                    "collection_id": found.id,
                    "record_ids": [ids[at] for at in looked_for],
                    "vectors": [_written(vectors[at]) for at in looked_for],
                },
            )
            known = set(reached.scalars())
        return [ids[at] for at in looked_for if ids[at] not in known]

    def ids(self, collection: str) -> set[str]:
        """Return all ids of a collection; empty where it does not exist."""
        with self._reading(collection) as connection:
            return set(connection.execute(_IDS, {"name": collection}).scalars())

    def collections(self) -> set[str]:
        """Return the names of all collections."""
        with self._reading("the list of collections") as connection:
            return set(connection.execute(select(_collections.c.name)).scalars())

    def drop(self, collection: str) -> None:
        """Remove a collection; an unknown one is no error."""
        with self._writing(collection) as connection:
            self._remove(connection, _collections.c.name == collection)

    def optimize(self, collection: str) -> None:
        """Make a graph for a collection that grew large, where this role may."""
        if not self._may_change:
            return
        with self._reading(collection) as connection:
            lacks = _UNGRAPHED.where(_collections.c.name == collection)
            wanted = connection.execute(lacks, {"large": LARGE}).first() is not None
        if wanted:
            with self._writing(collection) as connection:
                found = _required(connection, collection)
                connection.execute(_BUILD_IN_MEMORY)
                connection.execute(CreateIndex(_graph(found.id, found.dimension), if_not_exists=True))

    def damage(self, *, thorough: bool = False) -> Mapping[str, str]:  # noqa: ARG002 - nothing to look at
        """Return nothing: the server looks after its tables."""
        return {}

    def reset(self) -> bool:
        """Remove everything: no other ledger is in these tables."""
        with self._writing("all collections") as connection:
            self._remove(connection, true())
        return True

    def shred(self) -> bool:
        """Do nothing: who clears the files of the ledger clears these."""
        return True

    def close(self) -> None:
        """Let it not be used any more; the connections are the ledger's."""
        self._closed = True

    def _remove(self, connection: Connection, which: ColumnElement[bool]) -> None:
        gone = connection.execute(select(*_PLACE).where(which)).all()
        connection.execute(delete(_collections).where(which))
        for each in gone:
            if each.graph is not None and self._may_change:
                connection.execute(DropIndex(_graph(each.id, each.dimension), if_exists=True))

    @contextmanager
    def _reading(self, collection: str) -> Iterator[Connection]:
        """Read beside the call's own snapshot: a search that is given up would hold up what the call reads next."""
        with self._outcome_unknown(collection), self._database.read(apart=True) as connection:
            yield connection

    @contextmanager
    def _writing(self, collection: str) -> Iterator[Connection]:
        with self._outcome_unknown(collection), self._database.write(derived=True) as connection:
            yield connection

    @contextmanager
    def _outcome_unknown(self, collection: str) -> Iterator[None]:
        """The boundary to the server: whatever fails becomes a `VectorIndexError`."""
        if self._closed:
            raise VectorIndexError("The vector index was closed.", "Open it again.")
        try:
            yield
        except (SetupError, exc.SQLAlchemyError) as error:
            raise VectorIndexError(f"pgvector failed on {collection}: {error}") from error


# ------------------------------------------------------------------------------------------- upkeep


def orphaned(connection: Connection) -> bool:
    """Return whether there are collections that the ledger does not use: those of its original, or of another time."""
    return (
        lacks_pgvector(connection) is None
        and connection.execute(select(select(_collections.c.id).where(_UNUSED).exists())).scalar_one()
    )


def sweep(connection: Connection) -> None:
    """Remove what is `orphaned`.

    Args:
        connection: A connection that excludes others who assign collections.
    """
    if lacks_pgvector(connection) is None:
        connection.execute(delete(_collections).where(_UNUSED))


def lacking(connection: Connection) -> str:
    """Return what is to be made by a role that may change tables, in words; nothing where all is there.

    Raises:
        SetupError: The ledger is not on PostgreSQL.
    """
    if lacks_pgvector(connection) is not None:
        return "The tables of pgvector."
    ungraphed = connection.execute(_UNGRAPHED, {"large": LARGE}).all()
    return f"Graphs of pgvector for {len(ungraphed)} large collections." if ungraphed else ""


def complete(database: Database) -> None:
    """Make what is `lacking`.

    Raises:
        SetupError: See `PgvectorIndex.open`.
        VectorIndexError: It failed.
    """
    with closing(PgvectorIndex.open(database)) as index:
        with database.read() as connection:
            names = connection.execute(_UNGRAPHED, {"large": LARGE}).scalars().all()
        for name in names:
            index.optimize(name)


def _extend(connection: Connection) -> None:
    """Have the extension in this database.

    Raises:
        SetupError: The server does not have it, or it is older than half vectors and searches that go on.
    """
    if connection.execute(_EXTENSION).scalar() is None:
        try:
            connection.execute(_EXTEND)
        except exc.DBAPIError as error:
            raise SetupError(
                f"PostgreSQL makes no extension vector ({str(error.orig).strip()}).",
                "Have its administrator install pgvector and run CREATE EXTENSION vector in this database; or set "
                "REMEGRAPH_INDEX=chroma.",
            ) from error
    version = str(connection.execute(_EXTENSION).scalar_one())
    if tuple(map(int, version.split(".")[:2])) < _LEAST_VERSION:
        raise SetupError(
            f"pgvector {version} is too old.", "Install 0.8 or later, and run ALTER EXTENSION vector UPDATE."
        )


# -------------------------------------------------------------------------------------------- statements


def _distance(vector: ColumnElement[Any], dimension: int | None = None) -> ColumnElement[float]:
    """Return the cosine distance of a record from a vector; written with a dimension, it is what a graph is made of."""
    half = _HalfVector(dimension)
    kept = _records.c.embedding if dimension is None else cast(_records.c.embedding, half)
    return kept.op("<=>", return_type=Float())(cast(vector, half)).label("distance")


def _nearest(*where: ColumnElement[bool]) -> Select[str, float]:
    distance = _distance(_VECTOR)
    query = select(_records.c.record_id, distance).where(_records.c.collection_id == bindparam("collection_id"), *where)
    return query.order_by(distance, _records.c.record_id).limit(bindparam("k"))


@cache
def _along_graph(dimension: int) -> Select[str, float]:
    """Return the search that PostgreSQL finds a graph for: it looks for one by the number itself, and by no parameter."""
    distance = _distance(_VECTOR, dimension)
    return select(_records.c.record_id, distance).where(_THIS).order_by(distance).limit(bindparam("k"))


@cache
def _reached_along_graph(dimension: int) -> Select[str]:
    """Return the search, for many records at once, that finds them themselves, or enough that are as near."""
    distance = _distance(_ASKED.c.vector, dimension)
    near = select(_records.c.record_id, distance).where(_THIS).order_by(distance).limit(_NEAR).lateral()
    itself = func.bool_or(and_(near.c.record_id == _ASKED.c.record_id, near.c.distance <= _SAME))
    others = and_(func.count() == _NEAR, func.max(near.c.distance) <= _SAME)
    query = select(_ASKED.c.record_id).join_from(_ASKED, near, true())
    return query.group_by(_ASKED.c.record_id).having(or_(itself, others))


def _made(connection: Connection, name: str, dimension: int) -> Row[int, int, Any]:
    """Return the place of a collection, which is made where it is missing."""
    query = select(*_PLACE).where(_collections.c.name == name)
    if (found := connection.execute(query).first()) is not None:
        return found
    new = postgresql.insert(_collections).values(name=name, dimension=dimension)
    connection.execute(new.on_conflict_do_nothing())
    return connection.execute(query).one()


def _required(connection: Connection, name: str) -> Row[int, int, Any]:
    """Return the place of a collection.

    Raises:
        VectorIndexError: There is none.
    """
    found = connection.execute(select(*_PLACE).where(_collections.c.name == name)).first()
    if found is None:
        raise VectorIndexError(f"pgvector has no collection {name}.")
    return found


def _graph(collection_id: int, dimension: int) -> Index:
    """Return the graph of a collection."""
    table = _records.to_metadata(MetaData())  # else all graphs would be made with the table
    return Index(
        f"{_GRAPH}{collection_id}",
        cast(table.c.embedding, _HalfVector(dimension)).label("vector"),
        postgresql_using="hnsw",
        postgresql_ops={"vector": "halfvec_cosine_ops"},
        postgresql_where=table.c.collection_id == collection_id,
    )


_VECTOR = bindparam("vector", type_=_HalfVector())
_THIS = _records.c.collection_id == bindparam("collection_id", type_=BigInteger, literal_execute=True)
_ASKED = (
    func.unnest(cast(bindparam("record_ids"), ARRAY(Text)), cast(bindparam("vectors"), ARRAY(Text)))
    .table_valued("record_id", "vector", name="asked")
    .render_derived()
)
_NAMED = select(_collections.c.id).where(_collections.c.name == bindparam("name")).scalar_subquery()
_PLACE = (
    _collections.c.id,
    _collections.c.dimension,
    func.to_regclass(func.concat(_GRAPH, _collections.c.id)).label("graph"),
)
_UNUSED = _collections.c.name.not_in(select(used.c.name))
_SIZE = (
    select(func.count())
    .select_from(
        select(_records.c.collection_id)
        .where(_records.c.collection_id == _collections.c.id)
        .limit(bindparam("large"))
        .correlate(_collections)
        .lateral()
    )
    .scalar_subquery()
)
_UNGRAPHED = select(_collections.c.name).where(
    _collections.c.dimension <= _LONGEST, _PLACE[2].is_(None), bindparam("large") <= _SIZE
)

_NEW = postgresql.insert(_records)
_UPSERT = _NEW.on_conflict_do_update(
    index_elements=["collection_id", "record_id"], set_={name: _NEW.excluded[name] for name in ("shelf", "embedding")}
)
_DELETE = delete(_records).where(
    _records.c.collection_id == _NAMED, _records.c.record_id == any_(bindparam("record_ids", type_=ARRAY(Text)))
)
_IDS = select(_records.c.record_id).where(_records.c.collection_id == _NAMED)
_ALL = _nearest()
_OF_SHELVES = _nearest(_records.c.shelf == any_(bindparam("shelves", type_=ARRAY(Text))))
_REACHED = (
    select(_ASKED.c.record_id)
    .join_from(_ASKED, _records, _records.c.record_id == _ASKED.c.record_id)
    .where(_records.c.collection_id == bindparam("collection_id"), _distance(_ASKED.c.vector) <= _SAME)
)
