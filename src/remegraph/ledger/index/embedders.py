"""Embedders: which ones the ledger has had, which one's vectors are searched, and vectors made by it.

A text is embedded once, whatever record says it: its vector is found again by the digest of the text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from sqlalchemy import Connection, Row, delete, select, update

from remegraph.errors import DimensionError, EmbedderMismatchError
from remegraph.ledger.rows import chunks, digest, upsert
from remegraph.ledger.schema import collections, embedders, vectors

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from remegraph.ledger.database import Database
    from remegraph.ports import Embedder, Vectors

__all__ = ["current", "embed", "forget_others", "make_current", "number_of", "require", "units"]

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


def embed(database: Database, embedder: Embedder, embedder_id: int, texts: Sequence[str]) -> Vectors:
    """Return the vectors of texts, one row each; only texts that this embedder never saw are given to it.

    Raises:
        ModelUnavailableError: The embedder did not answer.
        DimensionError: It gave vectors of another length than it says, or not finite ones.
    """
    digests = {text: digest(text) for text in texts}
    with database.read() as connection:
        known = _known(connection, embedder_id, digests.values())
    new = [text for text, name in digests.items() if name not in known]
    if new:
        rows = units(embedder.embed(new), len(new), embedder)
        known |= {digests[text]: row for text, row in zip(new, rows, strict=True)}
    return np.stack([known[digests[text]] for text in texts])


def units(rows: Vectors, count: int, embedder: Embedder) -> Vectors:
    """Return vectors as finite float32 rows of unit length; a zero vector stays zero.

    Args:
        count: How many texts it was given.

    Raises:
        DimensionError: The shape is not (count, dimension), or a number is not finite.
    """
    checked = np.asarray(rows, dtype=np.float32)
    if checked.shape != (count, embedder.dimension):
        raise DimensionError(
            f"{embedder.name} gave an array of shape {checked.shape}, not {(count, embedder.dimension)}.",
            "Give an embedder that returns one vector per text, of the dimension that it names.",
        )
    if not np.isfinite(checked).all():
        raise DimensionError(
            f"{embedder.name} gave a vector with numbers that are not finite.", "Repair or change the embedder."
        )
    lengths = np.linalg.norm(checked, axis=1, keepdims=True)
    return (checked / np.where(lengths > 0, lengths, 1)).astype(np.float32, copy=False)


def _known(connection: Connection, embedder_id: int, digests: Iterable[str]) -> dict[str, NDArray[np.float32]]:
    found: dict[str, NDArray[np.float32]] = {}
    query = select(vectors.c.text_digest, vectors.c.vector).where(vectors.c.embedder_id == embedder_id)
    for some in chunks(list(digests)):
        rows = connection.execute(query.where(vectors.c.text_digest.in_(some)))
        found |= {row.text_digest: np.frombuffer(row.vector, "<f4").astype(np.float32) for row in rows}
    return found
