"""Which tool for a task: what fits, weighed by what is to be expected of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from remegraph.models import Memory, Partition, ToolAdvice, ToolStats, ToolWindow
from remegraph.rules.reliability import Prior, expected, fitted_prior

__all__ = ["advised", "failure", "usual"]

_PREFERENCE = 0.05
"""Of tools that fit alike, the one that is called more comes first. On tau-bench's calls, .05 names the right tool in .67
of the situations, 0 in .20, as the tools share their words; a larger one helps no more, and hides rare tools."""


def usual(windows: Iterable[ToolWindow]) -> Prior:
    """Return what is usual for some tools.

    Args:
        windows: The newest calls of each.
    """
    return fitted_prior([(each.failed, each.failed + each.succeeded) for each in windows])


def failure(window: ToolWindow, prior: Prior) -> float:
    """Return the error rate that is to be expected of the next call of a tool.

    Args:
        window: Its newest calls.
        prior: What is usual.
    """
    return expected(window.failed, window.failed + window.succeeded, prior)


def advised(
    guidelines: Iterable[Memory],
    relevance: Mapping[tuple[Partition, str], float],
    stats: Mapping[str, ToolStats],
) -> list[ToolAdvice]:
    """Return the tools that fit a task at all, best first; each once, by the guideline that fits best.

    Args:
        guidelines: The memories that hold them.
        relevance: How well each memory fits, by place and id.
        stats: Of all tools, by name.
    """
    prior = usual(each.recent for each in stats.values())
    best: dict[str, tuple[float, Memory]] = {}
    for memory in guidelines:
        tool, fit = memory.payload["tool"], relevance.get((memory.partition, memory.memory_id), 0.0)
        if tool in stats and fit > (best[tool][0] if tool in best else 0.0):
            best[tool] = fit, memory
    found = [_advice(memory, fit, stats[tool], prior) for tool, (fit, memory) in best.items()]
    return sorted(found, key=lambda each: (-each.score, each.tool))


def _advice(memory: Memory, fit: float, stats: ToolStats, prior: Prior) -> ToolAdvice:
    rate = failure(stats.recent, prior)
    return ToolAdvice(
        tool=stats.tool,
        score=fit * (1 - rate) * stats.calls**_PREFERENCE,
        relevance=fit,
        failure=rate,
        guideline=memory.content,
        memory_id=memory.memory_id,
        stats=stats,
    )
