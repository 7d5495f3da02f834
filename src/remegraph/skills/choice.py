"""The choice among skills for one task, by a lower bound of their success rates after some trials; and among tools.

The bounds are those of Wilson's score interval: with few runs they are wide, and without any they are 0 and 1.

A lower bound alone never tries again what began badly. So a variant is on trial while it has fewer runs than 2 + 3 ×
ln(1 + runs of all) and its upper bound reaches the best lower bound: what is shown to be worse is left alone, what is
undecided is tried again, less and less often. Of those on trial the one with the fewest runs is next. Measured by
`python -m evals skills`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Literal

from remegraph.errors import NotFoundError
from remegraph.models import (
    Condition,
    Memory,
    Partition,
    Skill,
    SkillChoice,
    SkillFigures,
    ToolAdvice,
    ToolStats,
    ToolWindow,
)
from remegraph.models.skills import Operator, read_workflow
from remegraph.models.tools import Prior, expected, fitted_prior, interval
from remegraph.ports import Tally
from remegraph.text.scripts import folded

if TYPE_CHECKING:
    from remegraph.ledger.archive import Archive

__all__ = [
    "Facts",
    "Predicate",
    "advised",
    "choice",
    "choose",
    "described",
    "failure",
    "figures",
    "histories",
    "predicates_of",
    "unmet",
    "usual",
    "variants",
    "wilson",
]


Facts = Mapping[str, Any]
"""Known facts, as nested mappings."""

Predicate = Callable[[Facts], bool]
"""A check that the host registers."""

_MISSING = object()


def unmet(conditions: Iterable[Condition], facts: Facts, predicates: Mapping[str, Predicate]) -> str:
    """Return the first condition that does not hold, in words; empty where all hold."""
    return next((described(each) for each in conditions if not _holds(each, facts, predicates)), "")


def predicates_of(conditions: Iterable[Condition]) -> set[str]:
    """Return the names of the predicates that conditions ask for."""
    return {each.predicate for each in conditions if each.predicate}


def described(condition: Condition) -> str:
    """Return a condition in words."""
    if condition.predicate:
        return condition.predicate
    return f"{condition.field} {condition.operator} {json.dumps(condition.value, ensure_ascii=False)}"


def _holds(condition: Condition, facts: Facts, predicates: Mapping[str, Predicate]) -> bool:
    if condition.predicate:
        known = predicates.get(condition.predicate)
        return known is not None and bool(known(facts))
    found = _found(facts, condition.field)
    if condition.operator == "exists":
        return (found is not _MISSING) == bool(condition.value)
    return found is not _MISSING and _COMPARES[condition.operator](found, condition.value)


def _found(facts: Any, path: str) -> Any:
    for name in path.split("."):
        if not isinstance(facts, Mapping) or name not in facts:
            return _MISSING
        facts = facts[name]
    return facts


def _contains(found: Any, value: Any) -> bool:
    if isinstance(found, str):
        return isinstance(value, str) and value in found
    return isinstance(found, list | tuple) and value in found


def _numbers(*values: Any) -> bool:
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


_COMPARES: Mapping[Operator, Callable[[Any, Any], bool]] = {
    "equals": lambda found, value: bool(found == value),
    "differs": lambda found, value: bool(found != value),
    "contains": _contains,
    "at_least": lambda found, value: _numbers(found, value) and found >= value,
    "at_most": lambda found, value: _numbers(found, value) and found <= value,
}


_Z = 1.0
"""Half of the width of the interval, in standard deviations. 1.645 costs half as much regret again."""

_TRIALS, _MORE_TRIALS = 2, 3

Verdict = tuple[SkillFigures, Literal["only", "trial", "bound"], str]
"""A choice: what, how, and the rule with its figures."""


def wilson(successes: int, runs: int) -> tuple[float, float]:
    """Return the lower and the upper bound of a success rate."""
    return interval(successes, runs, _Z)


def choose(variants: Sequence[SkillFigures]) -> Verdict:
    """Return the variant to use next; the same one for the same figures."""
    best = min(variants, key=lambda each: (-each.lower, each.memory_id))
    runs = sum(each.runs for each in variants)
    trials = _TRIALS + _MORE_TRIALS * math.log1p(runs)
    open_ones = [each for each in variants if each.runs < trials and each.upper >= best.lower]
    if len(variants) == 1:
        return best, "only", f"{_label(best)} is the only one: {best.successes} successes in {best.runs} runs"
    if any(each is not best for each in open_ones):
        chosen = min(open_ones, key=lambda each: (each.runs, each.memory_id))
        why = (
            f"{_label(chosen)} is on trial: its {chosen.runs} runs are fewer than {_TRIALS} + {_MORE_TRIALS} × "
            f"ln(1 + {runs} runs of all) = {trials:.1f}, and its upper bound {chosen.upper:.2f} reaches the best lower "
            f"bound {best.lower:.2f}"
        )
        return chosen, "trial", why
    following = min((each for each in variants if each is not best), key=lambda each: (-each.lower, each.memory_id))
    why = (
        f"{_label(best)} has the highest lower bound: {best.lower:.2f}, of {best.successes} successes in {best.runs} "
        f"runs; the next is {_label(following)} with {following.lower:.2f}, of {following.successes} successes in "
        f"{following.runs} runs"
    )
    return best, "bound", why


def _label(figures: SkillFigures) -> str:
    return f"{figures.name!r} (version {figures.version})"


_UNTRIED = Tally()


def figures(archive: Archive, memories: Sequence[Memory]) -> list[SkillFigures]:
    """Return the figures of the current versions of skills, in order."""
    places = list(dict.fromkeys(memory.partition for memory in memories))
    found = archive.outcomes(places, [memory.memory_id for memory in memories])
    heads = ((memory, read_workflow(memory)) for memory in memories)
    return [
        _figures(memory, skill.name, skill.version, found.get((memory.partition, memory.memory_id, skill.version)))
        for memory, skill in heads
    ]


def histories(archive: Archive, memory: Memory) -> tuple[SkillFigures, ...]:
    """Return the figures of each version of a skill that was run, the oldest first."""
    name = read_workflow(memory).name
    found = archive.outcomes([memory.partition], [memory.memory_id])
    tallies = sorted(((version, tally) for (_, _, version), tally in found.items()), key=itemgetter(0))
    return tuple(_figures(memory, name, version, tally) for version, tally in tallies)


def variants(memories: Iterable[Memory], task: str) -> list[Memory]:
    """Return the skills whose task has these words."""
    return [memory for memory in memories if folded(read_workflow(memory).task) == folded(task)]


def choice(
    archive: Archive, memories: Sequence[Memory], facts: Facts | None, predicates: Mapping[str, Predicate]
) -> SkillChoice:
    """Return the variant to use, and why."""
    skills = {memory.memory_id: read_workflow(memory) for memory in memories}
    missing = {name: _missing(skill, facts, predicates) for name, skill in skills.items() if facts is not None}
    left_out = {name: why for name, why in missing.items() if why}
    usable = figures(archive, [memory for memory in memories if memory.memory_id not in left_out])
    if not usable:
        raise NotFoundError(f"No variant can be used now: {' '.join(left_out.values())}", "See their preconditions.")
    chosen, how, why = choose(usable)
    others = sorted((each for each in usable if each is not chosen), key=lambda each: each.memory_id)
    return SkillChoice(
        skill=skills[chosen.memory_id], figures=chosen, how=how, why=why, others=tuple(others), left_out=left_out
    )


def _missing(skill: Skill, facts: Facts, predicates: Mapping[str, Predicate]) -> str:
    """Return why a skill cannot be used now, or an empty text."""
    if unknown := sorted(predicates_of(skill.preconditions) - predicates.keys()):
        return f"No predicate {unknown[0]!r} is registered."
    what = unmet(skill.preconditions, facts, predicates)
    return f"Does not hold: {what}." if what else ""


def _figures(memory: Memory, name: str, version: int, tally: Tally | None) -> SkillFigures:
    tally = tally or _UNTRIED
    lower, upper = wilson(tally.successes, tally.runs)
    return SkillFigures(
        memory_id=memory.memory_id,
        name=name,
        version=version,
        runs=tally.runs,
        successes=tally.successes,
        lower=lower,
        upper=upper,
        seconds=tally.seconds,
        tokens=tally.tokens,
    )


# ------------------------------------------------------------------------------------------- tools

_PREFERENCE = 0.05
"""Of tools that fit equally well, the one called more often comes first. On tau-bench's calls, .05 names the right tool in .67
of the situations, 0 in .20, as the tools share their words; a larger one helps no more, and hides rare tools."""


def usual(windows: Iterable[ToolWindow]) -> Prior:
    """Return the prior for some tools."""
    return fitted_prior([(each.failed, each.failed + each.succeeded) for each in windows])


def failure(window: ToolWindow, prior: Prior) -> float:
    """Return the error rate that is to be expected of the next call of a tool."""
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
