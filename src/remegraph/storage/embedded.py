"""A text is embedded once, whatever record says it: its vector is found again by the digest of the text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from sqlalchemy import Connection, select

from remegraph.errors import DimensionError
from remegraph.storage.rows import chunks, digest
from remegraph.storage.tables import vectors

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from remegraph.ports import Embedder, Vectors
    from remegraph.storage.database import Database

__all__ = ["embed", "units"]


def embed(database: Database, embedder: Embedder, embedder_id: int, texts: Sequence[str]) -> Vectors:
    """Return the vectors of texts, one row each; only texts that this embedder never saw are given to it.

    Args:
        database: The ledger.
        embedder: The embedder.
        embedder_id: Its number.
        texts: The texts.

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
        rows: What the embedder gave.
        count: How many texts it was given.
        embedder: The embedder.

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
