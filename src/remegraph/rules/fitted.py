"""Decisions by weighed signs: logistic models whose weights stand in a data file that anybody can read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

from remegraph.rules.tables import table

__all__ = ["Model", "model"]


@dataclass(frozen=True, slots=True)
class Model:
    """A weight for each sign, and the sum from which on the answer is yes."""

    threshold: float
    weights: Mapping[str, float]

    def score(self, signs: Mapping[str, float]) -> float:
        """Return by how much the weighed signs exceed the threshold; above 0 the answer is yes.

        Args:
            signs: Each sign's value; a sign without a weight does not count.
        """
        return sum(weight * signs[name] for name, weight in self.weights.items()) - self.threshold


@cache
def model(question: Literal["omission"], language: Literal["en", "zh"]) -> Model:
    """Return the model for one question; the weights serve both languages, each has a threshold of its own.

    Args:
        question: Whether a statement is an omission.
        language: The language of the statement.
    """
    told = table("weights")[question]
    return Model(float(told["threshold"][language]), {name: float(value) for name, value in told["weights"].items()})
