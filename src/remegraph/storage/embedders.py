"""Which embedders the ledger has had, and which one's vectors are searched.

All functions take a connection; whoever calls them decides on the transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import Connection, Row, delete, select, update

from remegraph.errors import DimensionError, EmbedderMismatchError
from remegraph.storage.database import upsert
from remegraph.storage.tables import collections, embedders, vectors

if TYPE_CHECKING:
    from remegraph.ports import Embedder

__all__ = ["current", "forget_others", "make_current", "number_of", "require"]

_CURRENT = select(embedders.c.id, embedders.c.name, embedders.c.dimension).where(embedders.c.current)


def current(connection: Connection) -> Row[int, str, int] | None:
    """Return the number, name and dimension of the ledger's embedder; none before the first."""
    return connection.execute(_CURRENT).one_or_none()


def require(connection: Connection, embedder: Embedder) -> int:
    """Return the number of the ledger's embedder, which must be this one.

    Raises:
        EmbedderMismatchError: It is another one.
    """
    known = current(connection)
    if known is None:
        raise EmbedderMismatchError("The ledger has no embedder yet.", "Open its vectors by VectorProjection.open.")
    if (known.name, known.dimension) != (embedder.name, embedder.dimension):
        raise EmbedderMismatchError(
            f"The ledger's vectors come from {known.name} ({known.dimension} dimensions), "
            f"not from {embedder.name} ({embedder.dimension})."
        )
    return int(known.id)


def number_of(connection: Connection, embedder: Embedder) -> int:
    """Return the number of an embedder, recorded now where it is new; it is not made current.

    Raises:
        DimensionError: An embedder of this name is recorded with another dimension.
    """
    values = {"name": embedder.name, "dimension": embedder.dimension, "current": False}
    connection.execute(upsert(connection.dialect.name, embedders).values(values).on_conflict_do_nothing())
    query = select(embedders.c.id, embedders.c.dimension).where(embedders.c.name == embedder.name)
    recorded: Row[int, int] = connection.execute(query).one()
    if recorded.dimension != embedder.dimension:
        raise DimensionError(
            f"The ledger knows {embedder.name} with {recorded.dimension} dimensions, not {embedder.dimension}.",
            "Give the embedder a name of its own for each length.",
        )
    return int(recorded.id)


def make_current(connection: Connection, embedder_id: int) -> None:
    """Make an embedder the one whose vectors are searched."""
    connection.execute(update(embedders).values(current=embedders.c.id == embedder_id))


def forget_others(connection: Connection, embedder_id: int) -> None:
    """Delete the vectors and the places in the index that are not of this embedder."""
    connection.execute(delete(vectors).where(vectors.c.embedder_id != embedder_id))
    connection.execute(delete(collections).where(collections.c.embedder_id != embedder_id))
