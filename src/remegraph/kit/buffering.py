"""What is noted now and written down later, so that nobody waits for it (DESIGN, invariant 8)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeVar

__all__ = ["WriteBuffer"]

T = TypeVar("T")

_MANY = 256
"""After each so many, they should be written down soon."""


class WriteBuffer(Generic[T]):
    """Notes that are not written yet. Safe to use from any thread; what a crash takes was never promised.

    Args:
        write: Writes notes.
    """

    def __init__(self, write: Callable[[Sequence[T]], None]) -> None:
        self._write = write
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._waiting: list[T] = []

    def put(self, notes: Iterable[T]) -> bool:
        """Note these; tell whether it is time to write.

        Args:
            notes: What to write down.
        """
        with self._lock:
            before = len(self._waiting)
            self._waiting.extend(notes)
            return before // _MANY < len(self._waiting) // _MANY

    def noted(self) -> Sequence[T]:
        """Return what is noted and not written, oldest first."""
        with self._lock:
            return tuple(self._waiting)

    def flush(self) -> None:
        """Write down what is noted, once another write of it is over. If that fails, it stays noted."""
        with self._writing:
            with self._lock:
                taken, self._waiting = self._waiting, []
            try:
                self._write(taken)
            except BaseException:
                with self._lock:
                    self._waiting[:0] = taken
                raise
