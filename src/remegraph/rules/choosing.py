"""Which of several skills for one task: by a lower bound of the success rate, after each has had its trials.

The bounds are those of Wilson's score interval: with few runs they are wide, and without any they are 0 and 1.

A lower bound alone never tries again what began badly. So a variant is on trial while it has fewer runs than
2 + 3 × ln(1 + runs of all) and its upper bound reaches the best lower bound: what is shown to be worse is left alone,
what is open is looked at again, ever more seldom. Of those on trial the one with the fewest runs is next. Measured by `python -m evals skills`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from remegraph.models import SkillFigures
from remegraph.rules.reliability import interval

__all__ = ["Verdict", "choose", "wilson"]

_Z = 1.0
"""Half of the width of the interval, in standard deviations. 1.645 costs half as much regret again."""

_TRIALS, _MORE_TRIALS = 2, 3

Verdict = tuple[SkillFigures, Literal["only", "trial", "bound"], str]
"""What was chosen, how, and the rule with its figures."""


def wilson(successes: int, runs: int) -> tuple[float, float]:
    """Return the lower and the upper bound of a success rate.

    Args:
        successes: How many runs succeeded.
        runs: How many there were.
    """
    return interval(successes, runs, _Z)


def choose(variants: Sequence[SkillFigures]) -> Verdict:
    """Return the variant to use next; the same one for the same figures.

    Args:
        variants: At least one.
    """
    best = min(variants, key=lambda each: (-each.lower, each.memory_id))
    runs = sum(each.runs for each in variants)
    trials = _TRIALS + _MORE_TRIALS * math.log1p(runs)
    open_ones = [each for each in variants if each.runs < trials and each.upper >= best.lower]
    if len(variants) == 1:
        return best, "only", f"{_told(best)} is the only one: {best.successes} successes in {best.runs} runs"
    if any(each is not best for each in open_ones):
        chosen = min(open_ones, key=lambda each: (each.runs, each.memory_id))
        return chosen, "trial", _on_trial(chosen, best, trials, runs)
    return best, "bound", _best(best, [each for each in variants if each is not best])


def _on_trial(chosen: SkillFigures, best: SkillFigures, trials: float, runs: int) -> str:
    return (
        f"{_told(chosen)} is on trial: its {chosen.runs} runs are fewer than {_TRIALS} + {_MORE_TRIALS} × ln(1 + {runs} "
        f"runs of all) = {trials:.1f}, and its upper bound {chosen.upper:.2f} reaches the best lower bound "
        f"{best.lower:.2f}"
    )


def _best(best: SkillFigures, others: Sequence[SkillFigures]) -> str:
    next_best = min(others, key=lambda each: (-each.lower, each.memory_id))
    return (
        f"{_told(best)} has the highest lower bound: {best.lower:.2f}, of {best.successes} successes in {best.runs} "
        f"runs; the next is {_told(next_best)} with {next_best.lower:.2f}, of {next_best.successes} successes in "
        f"{next_best.runs} runs"
    )


def _told(figures: SkillFigures) -> str:
    return f"{figures.name!r} (version {figures.version})"
