"""Results as tables in Markdown, as they stand in the docs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isfinite

from evals._metrics import interval
from evals._results import METRICS, STALE_FIRST, Result

__all__ = ["OURS", "PART", "by_category", "by_memory"]

OURS = "remegraph"
PART = "– "
"""Before the name of what is a part of ours."""


def by_memory(results: Mapping[str, Result]) -> Iterator[str]:
    """Yield the lines of a table with all metrics, a row for each memory.

    Args:
        results: By name.
    """
    stale = any(STALE_FIRST in row.values for result in results.values() for row in result.rows)
    heads = ["", *METRICS, "tokens", "ms", "R@10 within", *([STALE_FIRST, "within"] if stale else [])]
    yield _line(heads)
    yield "|" + "---|" * len(heads)
    for name, result in results.items():
        tokens = f"{result.tokens:,.0f}" if isfinite(result.tokens) else "–"
        cells = [*(f"{result.mean(metric):.3f}" for metric in METRICS), tokens, f"{result.milliseconds(50):.1f}"]
        cells.append(_within(result, "R@10"))
        if stale:
            known = len(result.values(STALE_FIRST))
            cells += [f"{result.mean(STALE_FIRST):.3f}", _within(result, STALE_FIRST)] if known else ["–", "–"]
        yield _line([f"**{name}**" if name == OURS else name, *cells])


def by_category(results: Mapping[str, Result], metric: str) -> Iterator[str]:
    """Yield the lines of a table of one metric, a row for each memory, a column for each category.

    Args:
        results: By name.
        metric: Which.
    """
    parts = {name: result.parts(lambda row: row.category) for name, result in results.items()}
    counts = {category: len(part.rows) for category, part in next(iter(parts.values())).items()}
    yield _line([metric, *(f"{category} ({count})" for category, count in counts.items())])
    yield "|" + "---|" * (1 + len(counts))
    for name, part in parts.items():
        cells = [f"{part[category].mean(metric):.3f}" for category in counts]
        yield _line([f"**{name}**" if name == OURS else name, *cells])


def _within(result: Result, metric: str) -> str:
    low, high = interval(result.values(metric))
    return f"{low:.3f} to {high:.3f}"


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"
