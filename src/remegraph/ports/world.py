"""What is given from outside: the time, ids that are new, how a model counts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

__all__ = [
    "Attention",
    "Clock",
    "NewId",
    "TokenCounter",
]


class Attention(Protocol):
    """Scores how much attention a text deserves."""

    def __call__(self, text: str, before: Sequence[str], /) -> float:
        """Return a number from 0 to 1.

        Args:
            text: What was said or sensed.
            before: What was said or sensed shortly before it, oldest first.
        """
        ...


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
