"""Vectors: what makes them, the index that holds them, and the projection that keeps it true to the ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from remegraph.deadlines import Patience
from remegraph.errors import VectorIndexError
from remegraph.models import HitKind, IndexState, Mismatch, Partition

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

__all__ = [
    "WHOLE",
    "Embedder",
    "Nearest",
    "Projection",
    "RecordKind",
    "VectorIndex",
]


RecordKind = HitKind | Literal["item"]
"""What is searched by vectors: memories and blocks; and items, of which recall knows nothing."""


class Embedder(Protocol):
    """Turns texts into unit vectors."""

    @property
    def name(self) -> str:
        """Names the embedder and its version; recorded with every vector."""
        ...

    @property
    def dimension(self) -> int:
        """Length of its vectors."""
        ...

    @property
    def semantic(self) -> bool:
        """Whether it knows meaning (a trained model), or only shared words."""
        ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one float32 row of unit length per text, shape (len(texts), dimension).

        Raises:
            ModelUnavailableError: It did not answer.
            DimensionError: The vectors have another length.
        """
        ...


WHOLE = ""
"""Stands for the whole index where a collection is named."""


class VectorIndex(Protocol):
    """A disposable index of vectors, in collections. An error means: the outcome is unknown."""

    def upsert(self, collection: str, ids: Sequence[str], shelves: Sequence[str], vectors: Vectors) -> None:
        """Write records; each belongs to one shelf of the collection (its partition and kind)."""
        ...

    def delete(self, collection: str, ids: Sequence[str]) -> None:
        """Remove records; unknown ids are no error."""
        ...

    def query(self, collection: str, shelves: Sequence[str] | None, vector: Vectors, k: int) -> list[tuple[str, float]]:
        """Return ids and cosine similarities of the k nearest on these shelves, best first.

        No shelves named means the whole collection, which Chroma searches many times faster than a part.
        """
        ...

    def unreached(self, collection: str, ids: Sequence[str], vectors: Vectors) -> list[str]:
        """Return those of these records that a search for their own vector does not find: a graph is approximate."""
        ...

    def ids(self, collection: str) -> set[str]:
        """Return all ids of a collection; empty where it does not exist."""
        ...

    def collections(self) -> set[str]:
        """Return the names of all collections."""
        ...

    def drop(self, collection: str) -> None:
        """Remove a collection; an unknown one is no error."""
        ...

    def damage(self, *, thorough: bool = False) -> Mapping[str, str]:
        """Return what is wrong, by collection, or for `WHOLE`; empty if it is sound.

        Args:
            thorough: Look into the files, however well they were left.
        """
        ...

    def reset(self) -> bool:
        """Throw everything away; false, and nothing done, where others may share the index."""
        ...

    def shred(self) -> bool:
        """Clear the files of what was removed; false, and nothing done, where they are not ours."""
        ...

    def close(self) -> None:
        """Give everything back."""
        ...


@dataclass(frozen=True, slots=True)
class Nearest:
    """A record near a vector."""

    partition: Partition
    record_id: str
    similarity: float
    """Cosine, -1 to 1."""


class Projection(Protocol):
    """Vectors over the ledger: what the engine searches, what the indexer keeps true."""

    @property
    def failure(self) -> VectorIndexError | None:
        """How the index failed a search; none since it answers again."""
        ...

    def sync(self) -> int:
        """Apply the dirty set to the index; return how many records were applied."""
        ...

    def nearest(
        self,
        partitions: Sequence[Partition],
        kind: RecordKind,
        vector: Vectors,
        k: int,
        allowed: Sequence[str] | None = None,
        *,
        patience: Patience | None = None,
    ) -> tuple[Sequence[Nearest], IndexState]:
        """Return the k nearest live records, best first, and where they were searched.

        Records still in the dirty set are searched too, exactly. Falls back to SQL where the index fails or is late.

        Args:
            partitions: Where to look.
            kind: memory, block or item.
            vector: A unit vector, shape (dimension,).
            k: How many.
            allowed: Only these records; a planner chooses exact search or over-fetching.
            patience: How long to wait for the index.
        """
        ...

    def embed_messages(self, partition: Partition) -> int:
        """Embed the messages of a partition that have no vector yet; return how many there were.

        Only an embedder that knows meaning makes vectors of messages. They stay in SQL.
        """
        ...

    def cosines(self, partition: Partition, vector: Vectors, message_ids: Sequence[str]) -> NDArray[np.float64]:
        """Return the cosine of a unit vector with each of these messages; 0 of those that have no vector yet."""
        ...

    def meanings(self, partition: Partition, memory_ids: Sequence[str]) -> Mapping[str, Vectors]:
        """Return the unit vectors of those of these memories that have one, by id.

        Only an embedder that knows meaning can tell more than the words do: with another, there are none.
        """
        ...

    def verify(self) -> tuple[int, tuple[Mismatch, ...]]:
        """Compare the index with the ledger by ids and by hits; return vectors compared and differences."""
        ...

    def rebuild(self) -> int:
        """Make the index anew from the ledger's vectors; return how many were written."""
        ...

    def close(self) -> None:
        """Give everything back."""
        ...
