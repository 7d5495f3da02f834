"""What is given from outside: the time, ids that are new, how a model counts."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

__all__ = [
    "Clock",
    "NewId",
    "TokenCounter",
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


class TokenCounter(Protocol):
    """Counts tokens as the model that reads a text does: on this machine, in no time to speak of."""

    def __call__(self, text: str, /) -> int:
        """Return how many tokens the text has."""
        ...
