"""What is noted at once and written down later: nobody waits for it, and who writes anyway takes it along."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic, TypeVar

from remegraph.kit.health import Health

__all__ = ["Notes"]

T = TypeVar("T")


class Notes(ABC, Generic[T]):
    """Notes that are not written yet. Safe to use from any thread; what a crash takes was never promised.

    Args:
        many: After each so many, they should be written down soon.
        health: Told of notes that cannot be written.
    """

    def __init__(self, many: int, health: Health) -> None:
        self._many = many
        self._health = health
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
        """Write down what is noted, once another write of it is over. If that fails, it stays noted.

        What can never be written costs no other note: each is written by itself then, and that one is dropped.
        """
        with self._writing:
            with self._lock:
                taken, self._waiting = self._waiting, []
            parts = [taken] if taken else []
            try:
                while parts:
                    part = parts[0]
                    done = self._written(part) or len(part) == 1
                    parts[:1] = [] if done else [[each] for each in part]
            except BaseException:
                with self._lock:
                    self._waiting[:0] = [each for part in parts for each in part]
                raise

    def _written(self, part: Sequence[T]) -> bool:
        """Write these down; return false where one of them is at fault, which is reported once it is alone."""
        from sqlalchemy.exc import DataError, IntegrityError

        try:
            self._write(part)
        except (OverflowError, TypeError, ValueError, DataError, IntegrityError) as error:
            if len(part) == 1:
                self._health.note("background", error)
            return False
        return True

    @abstractmethod
    def _write(self, taken: Sequence[T]) -> None:
        """Write these down: all of them, or fail; what is written twice must count once, or nothing be written."""
