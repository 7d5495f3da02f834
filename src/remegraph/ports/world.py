"""What is given from outside: the time, and ids that are new."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

__all__ = [
    "Clock",
    "NewId",
]


class Clock(Protocol):
    """Tells the time; the only source of now."""

    def __call__(self) -> datetime:
        """Return the aware current time."""
        ...


class NewId(Protocol):
    """Gives ids that were never given before."""

    def __call__(self) -> str:
        """Return a new id."""
        ...
