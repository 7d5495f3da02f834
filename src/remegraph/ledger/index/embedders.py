"""Embedders: the one that needs no model, the ones the ledger has had, and vectors made by the current one.

A text is embedded once, whatever record says it: its vector is found again by the digest of the text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Row, and_, bindparam, delete, func, select, update

from remegraph.errors import DimensionError, EmbedderMismatchError
from remegraph.ledger.rows import chunks, digest, upsert
from remegraph.ledger.schema import collections, embedders, vectors
from remegraph.text.tokens import stop_words, token_counts

if TYPE_CHECKING:
    from remegraph.ledger.database import Database
    from remegraph.ports import Embedder, Vectors

__all__ = [
    "HashedEmbedder",
    "current",
    "embed",
    "forget_others",
    "held",
    "make_current",
    "number_of",
    "require",
    "units",
]

_NAMED = embedders.c.id, embedders.c.name, embedders.c.dimension
_CURRENT = select(*_NAMED).where(embedders.c.current)
_HELD = (
    select(*_NAMED, vectors.c.kind, func.count().label("vectors"))
    .outerjoin_from(
        embedders,
        vectors,
        and_(
            vectors.c.embedder_id == embedders.c.id,
            vectors.c.partition_id.in_(bindparam("partition_ids", expanding=True)),
            vectors.c.kind.in_(
                ("memory", "block", "item")
            ),  # of messages there are many, and they are not searched here
        ),
    )
    .where(embedders.c.current)
    .group_by(*_NAMED, vectors.c.kind)
)


def current(connection: Connection) -> Row[int, str, int] | None:
    """Return the number, name and dimension of the ledger's embedder; none before the first."""
    return connection.execute(_CURRENT).one_or_none()


def require(connection: Connection, embedder: Embedder) -> int:
    """Return the number of the ledger's embedder, which must be this one.

    Raises:
        EmbedderMismatchError: It is another one.
    """
    return _required(current(connection), embedder)


def held(connection: Connection, embedder: Embedder, partition_ids: Sequence[int]) -> tuple[int, dict[str, int]]:
    """Return the number of the ledger's embedder, and how many vectors of it these partitions hold, by kind.

    Those of records that are not live are counted, too.

    Raises:
        EmbedderMismatchError: It is another one.
    """
    rows = connection.execute(_HELD, {"partition_ids": partition_ids}).all()
    return _required(rows[0] if rows else None, embedder), {row.kind: row.vectors for row in rows if row.kind}


def _required(known: Row[*tuple[Any, ...]] | None, embedder: Embedder) -> int:
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


_VERSION = 1
_NGRAM = 3
# Tried on LoCoMo (recall@10): stop words at 1.0, 0.3, 0.1 gave .356, .444, .435; n-grams at 0, 0.5, 0.8 .430, .434, .444.
# Lengths of 256, 512, 1,024 and 2,048: .396, .422, .444, .464 there, and .621, .660, .675, .687 on MemDaily.
_NGRAMS_WEIGHT = 0.8
_STOP_WEIGHT = 0.3
_ROWS_AT_ONCE = 256


@lru_cache(maxsize=1 << 12)
def _features(token: str) -> tuple[NDArray[np.uint64], NDArray[np.float64]]:
    """Return the hashes of a token and of its character n-grams, and their weights: 1, and what the n-grams share."""
    padded = f"<{token}>"
    grams = [padded[at : at + _NGRAM] for at in range(len(padded) - _NGRAM + 1)] if len(token) > 2 else []
    hashes = [blake2b(f.encode(), digest_size=8).digest() for f in (token + " ", *grams)]
    weights = np.array([1.0, *[_NGRAMS_WEIGHT / max(len(grams), 1) ** 0.5] * len(grams)])
    return np.frombuffer(b"".join(hashes), dtype="<u8"), weights * (_STOP_WEIGHT if token in stop_words() else 1.0)


class HashedEmbedder:
    """Embeds by signed feature hashing of words and their character trigrams, with sublinear term frequencies.

    Needs no download and knows any script, but no synonyms. After Weinberger et al. 2009, "Feature Hashing for Large
    Scale Multitask Learning".

    Args:
        dimension: Length of the vectors.
    """

    semantic = False

    def __init__(self, dimension: int = 1024) -> None:
        self.dimension = dimension
        self.name = f"hashed-ngram-{_VERSION}:{dimension}"

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit vector per text, shape (len(texts), dimension); the same in every process.

        A text without words gets the first unit vector.
        """
        parts = [self._rows(texts[at : at + _ROWS_AT_ONCE]) for at in range(0, len(texts), _ROWS_AT_ONCE)]
        return np.concatenate([np.empty((0, self.dimension), np.float32), *parts])

    def _rows(self, texts: Sequence[str]) -> NDArray[np.float32]:
        hashes: list[NDArray[np.uint64]] = []
        weights: list[NDArray[np.float64]] = []
        sizes = np.zeros(len(texts), np.int64)
        for row, text in enumerate(texts):
            for token, count in token_counts(text).items():
                hashed, weight = _features(token)
                hashes.append(hashed)
                weights.append(weight * (1 + np.log(count)))
                sizes[row] += len(hashed)
        rows: NDArray[np.float64] = np.zeros((len(texts), self.dimension))
        if hashes:
            every = np.concatenate(hashes)
            places = np.repeat(np.arange(len(texts)), sizes) * self.dimension + (every % self.dimension).astype(
                np.int64
            )
            signs = np.where(every >> np.uint64(63), 1.0, -1.0)
            rows += np.bincount(places, signs * np.concatenate(weights), rows.size).reshape(rows.shape)
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        rows[norms[:, 0] == 0, 0] = 1.0  # no words, or words that cancel out
        return (rows / np.where(norms, norms, 1.0)).astype(np.float32)
