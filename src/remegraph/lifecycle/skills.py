"""How skills go, and which one is chosen: the one place where heads and outcomes come together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter

from remegraph.errors import NotFoundError
from remegraph.language.plain import folded
from remegraph.models import Memory, Partition, Skill, SkillChoice, SkillFigures
from remegraph.ports import Archive, Tally
from remegraph.rules.choosing import choose, wilson
from remegraph.rules.conditions import Facts, Predicate, predicates_of, unmet
from remegraph.rules.procedures import read_workflow

__all__ = ["choice", "figures", "histories", "variants"]

_UNTRIED = Tally()


def figures(archive: Archive, memories: Sequence[Memory]) -> list[SkillFigures]:
    """Return how the head versions of skills have gone so far, in their order.

    Args:
        archive: Counts the outcomes.
        memories: Skills.
    """
    found = archive.outcomes(_places(memories), [memory.memory_id for memory in memories])
    heads = ((memory, read_workflow(memory)) for memory in memories)
    return [
        _figures(memory, skill.name, skill.version, found.get((memory.partition, memory.memory_id, skill.version)))
        for memory, skill in heads
    ]


def histories(archive: Archive, memory: Memory) -> tuple[SkillFigures, ...]:
    """Return how each version of a skill that was run has gone, the oldest first.

    Args:
        archive: Counts the outcomes.
        memory: The skill.
    """
    name = read_workflow(memory).name
    found = archive.outcomes([memory.partition], [memory.memory_id])
    tallies = sorted(((version, tally) for (_, _, version), tally in found.items()), key=itemgetter(0))
    return tuple(_figures(memory, name, version, tally) for version, tally in tallies)


def variants(memories: Iterable[Memory], task: str) -> list[Memory]:
    """Return the skills of a task: those whose task has these words.

    Args:
        memories: Skills.
        task: The task.
    """
    return [memory for memory in memories if folded(read_workflow(memory).task) == folded(task)]


def choice(
    archive: Archive, memories: Sequence[Memory], facts: Facts | None, predicates: Mapping[str, Predicate]
) -> SkillChoice:
    """Return the variant to use, and why.

    Args:
        archive: Counts the outcomes.
        memories: All variants, at least one.
        facts: What is known; with it, variants whose preconditions do not hold are left out.
        predicates: What the host registered, by name.

    Raises:
        NotFoundError: No variant can be used now.
    """
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
    """Return why a skill cannot be used now, if so."""
    if unknown := sorted(predicates_of(skill.preconditions) - predicates.keys()):
        return f"No predicate {unknown[0]!r} is registered."
    what = unmet(skill.preconditions, facts, predicates)
    return f"Does not hold: {what}." if what else ""


def _places(memories: Sequence[Memory]) -> list[Partition]:
    return list(dict.fromkeys(memory.partition for memory in memories))


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
