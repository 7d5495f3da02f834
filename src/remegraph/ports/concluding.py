"""Who writes the conclusion of a new long-term memory, where a model does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from remegraph.models import Memory

__all__ = ["Concluded", "Concluder"]


@dataclass(frozen=True, slots=True)
class Concluded:
    """What a model concludes; how sure that is, code counts."""

    conclusion: str
    conditions: tuple[str, ...]


class Concluder(Protocol):
    """Draws a conclusion from similar memories."""

    @property
    def name(self) -> str:
        """Recorded as the extractor of what it writes."""
        ...

    def conclude(self, memories: Sequence[Memory], said: Sequence[str], language: str) -> Concluded | None:
        """Return what the memories have in common; none where no lasting statement holds for all of them.

        Args:
            memories: Similar memories of one topic.
            said: The messages that they came from; the conclusion repeats none of them.
            language: en or zh.

        Raises:
            InvalidAnswerError: No answer was acceptable, repairs included.
            RequestRefusedError: The provider does not take the question.
            ModelUnavailableError: The model did not answer.
            BudgetExceededError: The call would go over the budget.
        """
        ...
