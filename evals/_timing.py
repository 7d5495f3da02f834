"""Times calls of several kinds, by wall clock and by processor."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from threading import Barrier
from typing import TypedDict

import numpy as np

__all__ = ["Ask", "Stopwatch", "Timing", "loaded"]


class Timing(TypedDict):
    """Milliseconds, by wall clock and (`cpu`) by processor."""

    p50: float
    p95: float
    cpu: float


class Stopwatch:
    """Times calls of several kinds.

    Args:
        processor: Tells the time that the processor spent.
    """

    def __init__(self, processor: Callable[[], float] = time.process_time) -> None:
        self._processor = processor
        self._wall: dict[str, list[float]] = {}
        self._cpu: dict[str, list[float]] = {}

    def time(self, kind: str, call: Callable[[], object]) -> None:
        """Call, and note under its kind how long that took."""
        cpu, wall = self._processor(), time.perf_counter()
        call()
        self._wall.setdefault(kind, []).append(1000 * (time.perf_counter() - wall))
        self._cpu.setdefault(kind, []).append(1000 * (self._processor() - cpu))

    def timing(self, kind: str) -> Timing:
        """Return what calls of a kind took."""
        walls = self._wall[kind]
        return Timing(
            p50=statistics.median(walls),
            p95=float(np.percentile(walls, 95)),
            cpu=statistics.median(self._cpu[kind]),
        )


Ask = Callable[[int], object]
"""Asks the question with this number."""


def loaded(users: int, rounds: int, asking: Callable[[], AbstractContextManager[Ask]]) -> list[float]:
    """Return the milliseconds that each call takes while so many users call at once, one after the other each.

    Args:
        users: Each in a thread of its own.
        rounds: Calls of each.
        asking: Opens what a user asks with.
    """
    together = Barrier(users)

    def one(user: int) -> list[float]:
        taken: list[float] = []
        with asking() as ask:
            ask(user)
            together.wait()
            for number in range(rounds):
                began = time.perf_counter()
                ask(user * rounds + number)
                taken.append(1000 * (time.perf_counter() - began))
        return taken

    with ThreadPoolExecutor(users) as pool:
        return [each for taken in pool.map(one, range(users)) for each in taken]
