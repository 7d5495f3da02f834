"""A vector index in memory, for tests that are not about Chroma: exact, and open at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from remegraph.errors import VectorIndexError

if TYPE_CHECKING:
    from remegraph.ports import Vectors

__all__ = ["InMemoryVectorIndex"]

_SAME = 0.999  # of a cosine, between float32 vectors


class InMemoryVectorIndex:
    """A `VectorIndex` in memory: exact, for small collections, gone when closed."""

    def __init__(self) -> None:
        self._collections: dict[str, dict[str, tuple[str, Vectors]]] = {}

    def upsert(self, collection: str, ids: Sequence[str], shelves: Sequence[str], vectors: Vectors) -> None:
        """Write records, by copy; the collection is made where it is missing."""
        records = self._collections.setdefault(collection, {})
        records.update(zip(ids, zip(shelves, np.array(vectors, np.float32), strict=True), strict=True))

    def delete(self, collection: str, ids: Sequence[str]) -> None:
        """Remove records; unknown ids and collections are no error."""
        for name in ids:
            self._collections.get(collection, {}).pop(name, None)

    def query(self, collection: str, shelves: Sequence[str] | None, vector: Vectors, k: int) -> list[tuple[str, float]]:
        """Return ids and cosine similarities of the k nearest on these shelves (or all), best first.

        Raises:
            VectorIndexError: There is no such collection.
        """
        if collection not in self._collections:
            raise VectorIndexError(f"There is no collection {collection}.")
        near = [
            (name, _cosine(vector, other))
            for name, (shelf, other) in self._collections[collection].copy().items()
            if shelves is None or shelf in shelves
        ]
        return sorted(near, key=lambda hit: (-hit[1], hit[0]))[:k]

    def unreached(self, collection: str, ids: Sequence[str], vectors: Vectors) -> list[str]:
        """Return those of these records that it does not hold with these vectors: all that it holds is found."""
        held = self._collections.get(collection, {})
        return [
            name
            for name, vector in zip(ids, vectors, strict=True)
            if vector.any() and (name not in held or _cosine(vector, held[name][1]) < _SAME)
        ]

    def ids(self, collection: str) -> set[str]:
        """Return all ids of a collection; empty where it does not exist."""
        return set(self._collections.get(collection, ()))

    def collections(self) -> set[str]:
        """Return the names of all collections."""
        return set(self._collections)

    def drop(self, collection: str) -> None:
        """Remove a collection; an unknown one is no error."""
        self._collections.pop(collection, None)

    def damage(self, *, thorough: bool = False) -> Mapping[str, str]:  # noqa: ARG002 - nothing to look at
        """Return nothing: memory does not rot."""
        return {}

    def reset(self) -> bool:
        """Refuse: tests may share it."""
        return False

    def shred(self) -> bool:
        """Do nothing: there are no files."""
        return True

    def close(self) -> None:
        """Forget everything."""
        self._collections.clear()


def _cosine(one: Vectors, other: Vectors) -> float:
    length = float(np.linalg.norm(one) * np.linalg.norm(other))
    return float(one @ other) / length if length else 0.0
