"""What two items of the MEK protocol have against each other: the same again, more of the same, or the contrary (K4).

It is read from the keys of their contents: entity and attribute, concept and property, the steps of a workflow. Nothing is
read out of sentences; there a slot tells, or a model, or a person.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from remegraph.models import ConflictKind, EpisodeContent, Memory, MemoryContent, ProfileContent, SemanticContent
from remegraph.models.exchange import WorkflowStep
from remegraph.rules.duplicates import content_digest
from remegraph.rules.forms import in_form
from remegraph.rules.saying import likings
from remegraph.rules.slots import canonical, same

__all__ = ["Finding", "compare"]

_AGAINST = ("likes", "dislikes")


@dataclass(frozen=True, slots=True)
class Finding:
    """What one memory is to another that was there before, and in what they differ."""

    kind: ConflictKind
    reason: str


@dataclass(frozen=True, slots=True)
class _Keys:
    """The content of an item, as far as its keys let it be compared."""

    about: str
    facts: frozenset[tuple[str, str]]
    """Each attribute with each value that it has."""
    single: Mapping[str, str]
    """The attributes with one value, which is no list."""


def compare(new: Memory, old: Memory) -> Finding | None:
    """Return what a memory is to one that was there before; nothing where their contents have no keys in common.

    A contradiction is another value of the same attribute of the same entity, or a thing that one likes and the other
    dislikes. A superset has all that the other has, and more; of workflows, all steps of the other, in their order.

    Args:
        new: The memory.
        old: What was known.
    """
    mine, yours = in_form(new), in_form(old)
    if mine is None or yours is None or isinstance(mine, EpisodeContent) or isinstance(yours, EpisodeContent):
        return None
    if isinstance(mine, ProfileContent | SemanticContent):
        return None if not isinstance(yours, type(mine)) else _of_keys(_keys(mine), _keys(yours))
    if isinstance(yours, ProfileContent | SemanticContent) or min(len(mine.steps), len(yours.steps)) < 2:
        return None
    if same(new, old):
        return Finding("redundancy", "They say the same.")
    return _of_steps(mine.steps, yours.steps)


def _of_keys(mine: _Keys, yours: _Keys) -> Finding | None:
    if mine.about != yours.about or not mine.facts or not yours.facts:
        return None
    if mine.facts == yours.facts:
        return Finding("redundancy", "They say the same.")
    for key in sorted(mine.single.keys() & yours.single.keys()):
        if mine.single[key] != yours.single[key] and key not in _AGAINST:
            return Finding("contradiction", f"Each gives {key!r} another value.")
    if _liked(mine, 0) & _liked(yours, 1) or _liked(mine, 1) & _liked(yours, 0):
        return Finding("contradiction", "One likes what the other dislikes.")
    return _more("all that the {} has, and more", new=mine.facts > yours.facts, old=mine.facts < yours.facts)


def _more(what: str, *, new: bool, old: bool) -> Finding | None:
    """Return which of two says more, if one does."""
    if new == old:
        return None
    kind: ConflictKind = "superset" if new else "subset"
    one, other = ("newer", "older") if new else ("older", "newer")
    return Finding(kind, f"The {one} has {what.format(other)}.")


def _keys(content: MemoryContent) -> _Keys:
    if isinstance(content, ProfileContent):
        about, values = f"entity {content.entity_name}", content.attributes
        ties = [(each.relation_type, each.target_entity) for each in content.relations]
    else:
        assert isinstance(content, SemanticContent)  # the forms with keys are these two
        about, values = f"concept {content.concept_name}", content.properties
        ties = [(each.relation_type, each.target_concept) for each in content.relations]
        ties += [("definition", content.definition)] if content.definition else []
    named = {likings().get(canonical(key), canonical(key)): value for key, value in values.items()}
    facts = {(key, each) for key, value in named.items() for each in _values(value)}
    single = {key: _value(value) for key, value in named.items() if not isinstance(value, list | dict | None)}
    return _Keys(
        canonical(about), frozenset(facts | {(canonical(key), canonical(value)) for key, value in ties}), single
    )


def _values(value: Any) -> Iterator[str]:
    for each in value if isinstance(value, list) else [value]:
        if each not in (None, ""):
            yield _value(each)


def _value(value: Any) -> str:
    return canonical(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True))


def _liked(keys: _Keys, side: int) -> frozenset[str]:
    return frozenset(value for key, value in keys.facts if key == _AGAINST[side])


def _of_steps(mine: tuple[WorkflowStep, ...], yours: tuple[WorkflowStep, ...]) -> Finding | None:
    return _more("all steps of the {}, and more", new=_has_steps_of(mine, yours), old=_has_steps_of(yours, mine))


def _has_steps_of(one: tuple[WorkflowStep, ...], other: tuple[WorkflowStep, ...]) -> bool:
    """Return whether one workflow has the steps of the other, in their order."""
    left = iter(one)
    return all(any(_words(mine) == _words(step) for mine in left) for step in other)


def _words(step: WorkflowStep) -> str:
    return content_digest(f"{step.name} {step.description}")
