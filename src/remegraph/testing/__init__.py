"""Test doubles, shipped so that applications can use them too: for chat models in `chat`, for everything else here."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import wraps
from typing import TYPE_CHECKING, Any

import numpy as np

from remegraph.errors import VectorIndexError
from remegraph.testing.chat import (
    FAULTS,
    Answer,
    FaultyChatModel,
    ModelCall,
    ProviderError,
    ScriptedChatModel,
    Step,
    refusal,
    spoken,
    truncated,
)

if TYPE_CHECKING:
    from remegraph.ports import Vectors

__all__ = [
    "FAULTS",
    "Answer",
    "FailingCall",
    "FaultyChatModel",
    "FrozenClock",
    "InMemoryVectorIndex",
    "ModelCall",
    "ProviderError",
    "ScriptedChatModel",
    "SequentialIds",
    "Step",
    "refusal",
    "spoken",
    "truncated",
]


class FrozenClock:
    """A clock that does not move by itself.

    Args:
        start: The time that it shows first; aware.
    """

    def __init__(self, start: datetime = datetime(2025, 1, 1, 12, tzinfo=UTC)) -> None:
        self._now = start

    def __call__(self) -> datetime:
        """Return the time that it shows."""
        return self._now

    def move(self, by: timedelta) -> None:
        """Advance by some time, or go back by a negative one."""
        self._now += by


class SequentialIds:
    """Ids in order: `id-0001`, `id-0002`, ...

    Args:
        prefix: What each begins with.
    """

    def __init__(self, prefix: str = "id-") -> None:
        self._prefix = prefix
        self._numbers = itertools.count(1)

    def __call__(self) -> str:
        """Return the next id."""
        return f"{self._prefix}{next(self._numbers):04d}"


_SAME = 0.999  # of a cosine, between float32 vectors


class InMemoryVectorIndex:
    """A `VectorIndex` in memory: exact, for small collections, lost when closed."""

    def __init__(self) -> None:
        self._collections: dict[str, dict[str, tuple[str, Vectors]]] = {}

    def upsert(self, collection: str, ids: Sequence[str], shelves: Sequence[str], vectors: Vectors) -> None:
        """Write copies of records; the collection is created if it is missing."""
        records = self._collections.setdefault(collection, {})
        records.update(zip(ids, zip(shelves, np.array(vectors, np.float32), strict=True), strict=True))

    def delete(self, collection: str, ids: Sequence[str]) -> None:
        """Remove records; unknown ids and collections are not an error."""
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
        """Return the records that it does not hold with these vectors."""
        held = self._collections.get(collection, {})
        return [
            name
            for name, vector in zip(ids, vectors, strict=True)
            if vector.any() and (name not in held or _cosine(vector, held[name][1]) < _SAME)
        ]

    def ids(self, collection: str) -> set[str]:
        """Return all ids of a collection; empty if it does not exist."""
        return set(self._collections.get(collection, ()))

    def collections(self) -> set[str]:
        """Return the names of all collections."""
        return set(self._collections)

    def drop(self, collection: str) -> None:
        """Remove a collection; an unknown one is not an error."""
        self._collections.pop(collection, None)

    def optimize(self, collection: str) -> None:
        """Do nothing: it compares all vectors."""

    def damage(self, *, thorough: bool = False) -> Mapping[str, str]:  # noqa: ARG002 - nothing to look at
        """Return nothing: memory does not decay."""
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
    return float(np.vecdot(one, other)) / length if length else 0.0


class FailingCall:
    """Makes the n-th call through its doors fail, once, and counts all calls.

    For n = 1, 2, ... until a run is clean, this shows that no single failure loses or doubles anything.

    Args:
        n: Which call fails, from 1; 0: none.
        late: Whether the call does its work before it fails, as when the answer of a server is lost.
    """

    def __init__(self, n: int, *, late: bool = False) -> None:
        self.n = n
        self.late = late
        self.calls: list[str] = []
        """The doors called so far, in order."""
        self._lock = threading.Lock()

    @property
    def failed(self) -> str:
        """The door whose call failed; empty if none has yet."""
        return self.calls[self.n - 1] if 0 < self.n <= len(self.calls) else ""

    def guard(self, thing: object, doors: Mapping[str, Callable[[], Exception]]) -> None:
        """Make methods of an object doors.

        Args:
            thing: The object; its methods are replaced in place.
            doors: The error that each method raises when it fails, by the method's name.
        """
        for name, error in doors.items():
            setattr(thing, name, self._door(getattr(thing, name), f"{type(thing).__name__}.{name}", error))

    def _door(self, method: Callable[..., Any], name: str, error: Callable[[], Exception]) -> Callable[..., Any]:
        @wraps(method)
        def call(*args: Any, **kwargs: Any) -> Any:
            with self._lock:
                self.calls.append(name)
                fails = len(self.calls) == self.n
            if fails and not self.late:
                raise error()
            result = method(*args, **kwargs)
            if fails:
                raise error()
            return result

        return call
