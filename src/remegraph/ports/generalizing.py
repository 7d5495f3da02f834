"""Who rewords knowledge before it leaves, where a model does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from remegraph.models import Kind

__all__ = ["Draft", "Generalizer", "Reworded"]


@dataclass(frozen=True, slots=True)
class Draft:
    """Knowledge as rules made it, to be reworded."""

    kind: Kind
    fields: Mapping[str, str]
    """Its prose, by the path of each field."""
    objection: Callable[[Sequence[str]], str]
    """Says what speaks against new texts, in words for who wrote them; empty where nothing does."""


@dataclass(frozen=True, slots=True)
class Reworded:
    """A draft in other words."""

    title: str
    fields: Mapping[str, str]


class Generalizer(Protocol):
    """Finds names that only a reader knows for names, and says things more generally."""

    @property
    def name(self) -> str:
        """Recorded with what it writes."""
        ...

    def names(self, texts: Sequence[str], language: str) -> tuple[str, ...]:
        """Return the names of people, organisations, places and projects that stand in texts.

        Args:
            texts: What memories say.
            language: en or zh.

        Raises:
            InvalidAnswerError: No answer was acceptable, repairs included.
            RequestRefusedError: The provider does not take the question.
            ModelUnavailableError: The model did not answer.
            BudgetExceededError: The call would go over the budget.
        """
        ...

    def generalize(self, drafts: Sequence[Draft], language: str) -> tuple[Reworded | None, ...]:
        """Return drafts as they hold beyond the single case; none where one is to stay as it is.

        Args:
            drafts: What is to be said more generally.
            language: en or zh.

        Raises:
            InvalidAnswerError: No answer was acceptable, repairs included; nothing that is new to a draft is.
            RequestRefusedError: The provider does not take the question.
            ModelUnavailableError: The model did not answer.
            BudgetExceededError: The call would go over the budget.
        """
        ...
