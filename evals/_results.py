"""What one memory was worth in a comparison, question by question."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from evals import _metrics

__all__ = ["METRICS", "Result"]

METRICS = ("R@1", "R@5", "R@10", "R@20", "nDCG@10", "MRR", "all@10")


@dataclass
class Result:
    """What one memory was worth, question by question."""

    version: str
    values: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """By metric."""
    tokens: list[float] = field(default_factory=list)
    categories: list[str] = field(default_factory=list)

    def mean(self, metric: str, category: str | None = None) -> float:
        """Return the mean of a metric, of one category if it is named."""
        values = zip(self.values[metric], self.categories, strict=True)
        return statistics.fmean(value for value, each in values if category in {None, each})

    def add(self, ranked: Sequence[str], gold: Sequence[str], tokens: Mapping[str, int], category: str) -> None:
        """Add what was ranked for a question."""
        for metric in METRICS:
            self.values[metric].append(_value(metric, ranked, gold))
        self.tokens.append(_metrics.tokens_to_all(ranked, gold, tokens))
        self.categories.append(category)


def _value(metric: str, ranked: Sequence[str], gold: Sequence[str]) -> float:
    name, _, k = metric.partition("@")
    if name == "MRR":
        return _metrics.reciprocal_rank(ranked, gold)
    measures = {"R": _metrics.recall, "nDCG": _metrics.ndcg, "all": _metrics.recall_all}
    return measures[name](ranked, gold, int(k))
