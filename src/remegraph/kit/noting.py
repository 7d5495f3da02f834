"""What is noted at once and written down later: nobody waits for it, and who writes anyway takes it along."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic, TypeVar

__all__ = ["Notes"]

T = TypeVar("T")


class Notes(ABC, Generic[T]):
    """Notes that are not written yet. Safe to use from any thread; what a crash takes was never promised.

    Args:
        many: After each so many, they should be written down soon.
    """

    def __init__(self, many: int) -> None:
        self._many = many
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._waiting: list[T] = []

    def add(self, found: Sequence[T]) -> bool:
        """Note these; tell whether it is time to write.

        Args:
            found: What is to be noted.
        """
        with self._lock:
            before = len(self._waiting)
            self._waiting.extend(found)
            return before // self._many < len(self._waiting) // self._many

    def noted(self) -> Sequence[T]:
        """Return what is noted, oldest first."""
        with self._lock:
            return list(self._waiting)

    def flush(self) -> None:
        """Write down what is noted, once another write of it is over. If that fails, it stays noted."""
        with self._writing:
            with self._lock:
                taken, self._waiting = self._waiting, []
            if not taken:
                return
            try:
                self._write(taken)
            except BaseException:
                with self._lock:
                    self._waiting[:0] = taken
                raise

    @abstractmethod
    def _write(self, taken: Sequence[T]) -> None:
        """Write these down: all of them, or fail; what is written twice must count once, or nothing be written."""
