"""Times calls of several kinds, by wall clock and by processor."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import TypedDict

import numpy as np

__all__ = ["Stopwatch", "Timing"]


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
