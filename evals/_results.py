"""What one memory was worth on the stores of a file, question by question."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from evals import _metrics
from evals._records import Question

__all__ = ["METRICS", "STALE_FIRST", "Result", "Row", "row_of"]

METRICS = ("R@1", "R@5", "R@10", "R@20", "nDCG@10", "MRR", "all@10")
STALE_FIRST = "stale first"


@dataclass(frozen=True, slots=True)
class Row:
    """One question: what was found for it, and what that is worth."""

    store: str
    category: str
    found: tuple[str, ...]
    """Messages, or threads where those are what counts."""
    values: Mapping[str, float]
    """By metric; `stale first` only where something is stale."""
    tokens: float
    """Read when the last gold one has been; infinite where one is missing."""
    best: float
    """What R@10 could be at most: there may be more gold than ten."""
    seconds: float
    """Of the processor."""


@dataclass
class Result:
    """What one memory was worth."""

    version: str
    rows: list[Row] = field(default_factory=list)

    def values(self, metric: str) -> NDArray[np.float64]:
        """Return a metric of each question that has it."""
        return np.array([row.values[metric] for row in self.rows if metric in row.values])

    def mean(self, metric: str) -> float:
        """Return the mean of a metric."""
        return float(self.values(metric).mean())

    @property
    def best(self) -> float:
        """What R@10 could be at most."""
        return float(np.mean([row.best for row in self.rows]))

    @property
    def tokens(self) -> float:
        """Tokens read in the middle one of the questions."""
        return float(np.median([row.tokens for row in self.rows]))

    def milliseconds(self, percentile: float) -> float:
        """Return a percentile of the processor time that a search took."""
        return float(np.percentile([row.seconds for row in self.rows], percentile)) * 1000

    def parts(self, of: Callable[[Row], str]) -> dict[str, Result]:
        """Return results of the questions that are alike, by what they have in common, sorted."""
        names = sorted({of(row) for row in self.rows})
        return {name: Result(self.version, [row for row in self.rows if of(row) == name]) for name in names}


def row_of(store: str, question: Question, found: Sequence[str], tokens: Mapping[str, int], seconds: float) -> Row:
    """Return what was found for a question, with all metrics.

    Args:
        store: Where it was asked.
        question: What was asked.
        found: What was found, best first.
        tokens: Of everything that can be found.
        seconds: How long the search kept the processor busy.
    """
    gold, stale = question["gold"], question.get("stale")
    values = {metric: _value(metric, found, gold) for metric in METRICS}
    if stale:
        values[STALE_FIRST] = _metrics.stale_first(found, gold, stale)
    return Row(
        store=store,
        category=question.get("category", "all"),
        found=tuple(found),
        values=values,
        tokens=_metrics.tokens_to_all(found, gold, tokens),
        best=min(1.0, 10 / len(set(gold))),
        seconds=seconds,
    )


def _value(metric: str, found: Sequence[str], gold: Sequence[str]) -> float:
    name, _, k = metric.partition("@")
    if name == "MRR":
        return _metrics.reciprocal_rank(found, gold)
    measures = {"R": _metrics.recall, "nDCG": _metrics.ndcg, "all": _metrics.recall_all}
    return measures[name](found, gold, int(k))
