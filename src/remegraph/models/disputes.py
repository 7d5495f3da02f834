"""Which contradictions are open, and what that does to a memory (K4, G7).

Two memories are in conflict where a link says that they contradict each other, or may, and both are live. A link
`settled` between the two, whose reason is the decision, ends it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from remegraph.models import (
    ConflictKind,
    EpisodeContent,
    Link,
    LinkType,
    Memory,
    MemoryContent,
    ProfileContent,
    SemanticContent,
)
from remegraph.models.exchange import WorkflowStep
from remegraph.models.forms import in_form
from remegraph.models.identity import canonical, content_digest, same
from remegraph.models.item_text import likings
from remegraph.text.scripts import simplified
from remegraph.text.tokens import query_tokens

__all__ = [
    "CONTRARY",
    "TELLING",
    "Finding",
    "Pair",
    "at_variance",
    "compare",
    "crowded",
    "disputed",
    "opposing",
    "pair_of",
    "settled",
]


_AGAINST = ("likes", "dislikes")

_MOSTLY = 0.6
"""Share of the words of the shorter rule that the other holds, where both speak of the same."""

_FORBIDS = re.compile(
    r"\b(?:never|not|no|don't|doesn't|must ?n't|may not|cannot|can't|avoid|forbidden|prohibited|without|nicht|nie|niemals|"
    r"keine?[nmrs]?|verboten|nunca|jamás|prohibido|evita[r]?|sin)\b|禁止|严禁|切勿|不得|不要|不可以?|不能|不许|不准|不应该?|不该|"
    r"不再|别|勿|避免|不",
    re.IGNORECASE,
)
_MAY = re.compile(
    r"\b(?:do|does|always|must|should|may|can|please|immer|muss|müssen|soll|darf|dürfen|siempre|debe[ns]?|puede[ns]?)\b|"
    r"必须|一律|总是|应该?|可以|允许|需要|请|都|要",
    re.IGNORECASE,
)
"""What orders or allows, and tells nothing of what is spoken of."""


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
    """
    if new.memory_class == old.memory_class == "policy":
        return _of_rules(new.content, old.content)
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


def _of_rules(mine: str, yours: str) -> Finding | None:
    """Return that one rule forbids what the other does not, where they speak of the same."""
    (mine, forbidden), (yours, forbidden_there) = (_FORBIDS.subn(" ", simplified(each)) for each in (mine, yours))
    one, other = (set(query_tokens(_MAY.sub(" ", each))) for each in (mine, yours))
    alike = len(one & other) >= _MOSTLY * min(len(one), len(other))
    if bool(forbidden) == bool(forbidden_there) or not alike:
        return None
    return Finding("contradiction", "One rule forbids what the other does not.")


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


CONTRARY: tuple[LinkType, ...] = ("contradicts", "may_contradict")
"""Links of which each says that its two ends do not agree."""

TELLING: tuple[LinkType, ...] = (*CONTRARY, "settled")
"""Links that tell which contradictions there are, and which of them are settled."""

_RAISE = 0.1
"""How much more important a memory is that somebody must look at."""

_LIMIT = 0.89
"""Only a person makes a core rule of it."""

Pair = frozenset[str]
"""The ids of two memories."""


def pair_of(link: Link) -> Pair:
    """Return both ends of a link, whichever way it goes."""
    return frozenset({link.source_id, link.target_id})


def settled(links: Iterable[Link]) -> dict[Pair, str]:
    """Return which pairs are settled, and how."""
    return {pair_of(link): link.reason for link in links if link.type == "settled"}


def opposing(links: Collection[Link], *, shown: bool = False) -> set[Pair]:
    """Return the pairs that contradict each other, or may, as far as it is not settled.

    With `shown` those count, too, that were settled by keeping both: who asks for one shall see the other.
    """
    over = {pair for pair, decision in settled(links).items() if not (shown and decision == "keep_both")}
    return {pair_of(link) for link in links if link.type in CONTRARY} - over


def disputed(memory: Memory) -> Memory:
    """Return a memory as one that is in dispute, and more important by .1; what is firm or core stays what it is.

    One that is not live stays what it is.
    """
    if not memory.live or memory.is_core or memory.firm or memory.status == "disputed":
        return memory
    return memory.evolve(status="disputed", importance=max(memory.importance, min(memory.importance + _RAISE, _LIMIT)))


_CHOICE = "Add (keep them all), or let one supersede the others."


def crowded(topic: str, memory_ids: Collection[str]) -> str:
    """Return the warning that several memories hold what may have one current truth only."""
    return f"{len(memory_ids)} live memories hold {topic}: {', '.join(sorted(memory_ids))}. {_CHOICE}"


def at_variance(link: Link) -> str:
    """Return the warning that two memories contradict each other, or may."""
    verb = "contradicts" if link.type == "contradicts" else "may contradict"
    return f"Memory {link.source_id} {verb} memory {link.target_id}. {_CHOICE}"
