"""Which memory repeats, replaces or contradicts another; and how several become one (K4, G7).

By identity, slot, time and the keys of contents alone: likeness decides nothing.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, Literal

from remegraph.models import (
    ConflictKind,
    EpisodeContent,
    Link,
    LinkType,
    Memory,
    MemoryChange,
    MemoryContent,
    Origin,
    ProfileContent,
    SemanticContent,
)
from remegraph.models.exchange import WorkflowStep
from remegraph.models.forms import in_form
from remegraph.models.item_text import likings
from remegraph.text.scripts import simplified
from remegraph.text.sentences import sentences
from remegraph.text.tokens import query_tokens

__all__ = [
    "CONTRARY",
    "TELLING",
    "Alike",
    "Decision",
    "Finding",
    "Pair",
    "Relation",
    "Statement",
    "at_variance",
    "attribute",
    "canonical",
    "compare",
    "content_digest",
    "crowded",
    "decide",
    "derived",
    "disputed",
    "folded_together",
    "holds",
    "joined",
    "joint_origin",
    "opposing",
    "pair_of",
    "relation",
    "revision",
    "same",
    "settled",
    "twins",
]


_OUTER = re.compile(r"^[\W_]+|[\W_]+$")


@lru_cache(maxsize=1 << 12)  # each memory is compared with every other of its topic
def content_digest(text: str) -> str:
    """Return the SHA-256 of `text` without case, outer punctuation and differences of space and width."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    folded = _OUTER.sub("", " ".join(folded.split()))
    return hashlib.sha256(folded.encode("utf-8", "surrogatepass")).hexdigest()


Relation = Literal["same", "supersedes", "disputes", "beside"]
"""The relation of a statement to an earlier one: a repetition, its successor, a contradiction, or unrelated."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement, with its slot."""

    content: str
    said_at: datetime
    canonical_topic: str = ""
    slot_value: str = ""
    slot_many: bool = False


def canonical(topic: str) -> str:
    """Return a slot, or canonical topic, in the form used for comparison, part by part: `Database : Choice` is `database:choice`."""
    parts = unicodedata.normalize("NFKC", topic).casefold().split(":")
    return ":".join(" ".join(part.split()) for part in parts)


def attribute(name: str) -> str:
    """Return the name of an attribute as a slot has it: `Lives in` is `lives_in`."""
    return re.sub(r"[\s-]+", "_", name.strip().casefold())


def same(new: Memory | Statement, old: Memory | Statement) -> bool:
    """Return whether two memories say the same: in the same normalised words, or one value of one slot."""
    return content_digest(new.content) == content_digest(old.content) or holds(old, new.canonical_topic, new.slot_value)


def holds(memory: Memory | Statement, canonical_topic: str, value: str) -> bool:
    """Return whether a memory gives a slot that value.

    Without a slot or a value it does not: unknown is not a value.
    """
    if not canonical_topic or canonical_topic != memory.canonical_topic:
        return False
    return bool(value) and canonical(value) == canonical(memory.slot_value)


def relation(new: Memory | Statement, old: Memory | Statement, *, one_source: bool) -> Relation:
    """Return how a memory relates to an older one of the same library, by identity, slot and time alone.

    The later value of a slot replaces the earlier only if the same source says both.
    """
    if same(new, old):
        return "same"
    if not new.canonical_topic or new.canonical_topic != old.canonical_topic or new.slot_many or old.slot_many:
        return "beside"
    return "supersedes" if one_source and new.said_at > old.said_at else "disputes"


@dataclass(frozen=True, slots=True)
class Alike:
    """A live memory near a statement."""

    memory: Memory
    similarity: float | None
    """Cosine, 0 to 1; None if it could not be measured."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision on a statement: refused, merged into `target`, or new."""

    refusal: str = ""
    target: Alike | None = None
    replaced: tuple[Memory, ...] = ()
    similar: tuple[Alike, ...] = ()
    """Memories more similar than the threshold, the most similar first: linked, and otherwise unchanged."""


def decide(
    statement: Statement,
    known: Sequence[Alike],
    *,
    threshold: float,
    by_person: bool,
    one_source: Callable[[str], bool],
    settles_knowledge: bool = True,
    named: Sequence[Memory] = (),
) -> Decision:
    """Decide by words, by slot, and by what a person names; likeness only links.

    The same words, or the same value of a slot, are merged, never kept twice. A later value of a slot that holds one
    replaces the earlier. What is similar, strictly above the threshold, is kept and linked. Knowledge that may not
    be settled stays as it is: a repetition of it is refused. A policy is replaced only where it is named. `known` are
    the live memories most like it, and those of its slot. `by_person` holds for an application that states it for a
    person, too; else a model does. `named` are memories that a person wants replaced, whatever they say.
    """
    fixed = () if settles_knowledge else tuple(one.memory for one in known if one.memory.usage == "knowledge")
    digest = content_digest(statement.content)
    worded = [one for one in known if content_digest(one.memory.content) == digest]
    if worded and named and worded[0].memory not in named:
        return Decision(refusal=f"Memory {worded[0].memory.memory_id} says it already: it replaces nothing.")
    twins = [*worded, *(one for one in known if same(statement, one.memory))]
    twin = next((one for one in twins if one.memory not in named), None)
    if twin is not None and not named:
        if twin.memory in fixed:
            return Decision(refusal=f"Memory {twin.memory.memory_id} says it already, as knowledge.")
        if twin in worded or not _guarded(twin.memory, by_person=by_person):
            return Decision(target=twin)
    replaced = list(named)
    for one in known:
        memory = one.memory
        if memory in fixed or memory in named:
            continue
        what = relation(statement, memory, one_source=one_source(memory.memory_id))
        if what in {"supersedes", "disputes"} and (refusal := _guarded(memory, by_person=by_person)):
            return Decision(refusal=refusal)
        if what == "supersedes":
            replaced.append(memory)
    similar = [one for one in known if one.similarity is not None and one.similarity > threshold]
    similar = [one for one in similar if one.memory not in replaced]
    similar.sort(key=lambda one: (-(one.similarity or 0.0), one.memory.memory_id))
    return Decision(replaced=tuple(replaced), similar=tuple(similar))


def _guarded(memory: Memory, *, by_person: bool) -> str:
    """Return why a statement may not replace a memory that it does not name, nor add to its words; empty: it may."""
    if memory.is_core and not by_person:
        return f"It contradicts memory {memory.memory_id}, a core rule that only a person may change."
    if memory.memory_class == "policy":
        return (
            f"It contradicts memory {memory.memory_id}, a policy: a person may name it in `supersedes` to replace it."
        )
    return ""


# ------------------------------------------------------------------------------------------ contradictions

# Two memories are in conflict where a link says that they contradict each other, or may, and both are live. A link
# `settled` between the two, whose reason is the decision, ends it.

CONTRARY: tuple[LinkType, ...] = ("contradicts", "may_contradict")
"""Links that say that their two ends disagree."""

TELLING: tuple[LinkType, ...] = (*CONTRARY, "settled")
"""Links that show which contradictions exist, and which of them are settled."""

_RAISE = 0.1
"""How much more important a memory in dispute is."""

_LIMIT = 0.89
"""Only a person turns it into a core rule."""

Pair = frozenset[str]
"""The ids of two memories."""


def pair_of(link: Link) -> Pair:
    """Return both ends of a link, whichever way it goes."""
    return frozenset({link.source_id, link.target_id})


def settled(links: Iterable[Link]) -> dict[Pair, str]:
    """Return the settled pairs, and how each was settled."""
    return {pair_of(link): link.reason for link in links if link.type == "settled"}


def opposing(links: Collection[Link], *, shown: bool = False) -> set[Pair]:
    """Return the pairs that contradict each other, or may, and are not settled.

    With `shown`, pairs settled by keeping both count, too: a reader of one should see the other.
    """
    over = {pair for pair, decision in settled(links).items() if not (shown and decision == "keep_both")}
    return {pair_of(link) for link in links if link.type in CONTRARY} - over


def disputed(memory: Memory) -> Memory:
    """Return a memory as disputed, and more important by .1; firm memories and core rules do not change.

    A memory that is not live does not change either.
    """
    if not memory.live or memory.is_core or memory.firm or memory.status == "disputed":
        return memory
    return memory.evolve(status="disputed", importance=max(memory.importance, min(memory.importance + _RAISE, _LIMIT)))


_CHOICE = "Add (keep them all), or let one supersede the others."


def crowded(topic: str, memory_ids: Collection[str]) -> str:
    """Return the warning that several memories hold something that can have only one current value."""
    return f"{len(memory_ids)} live memories hold {topic}: {', '.join(sorted(memory_ids))}. {_CHOICE}"


def at_variance(link: Link) -> str:
    """Return the warning that two memories contradict each other, or may."""
    verb = "contradicts" if link.type == "contradicts" else "may contradict"
    return f"Memory {link.source_id} {verb} memory {link.target_id}. {_CHOICE}"


# ------------------------------------------------------------------------------------------ several made one


def joined(old: str, new: str) -> str:
    """Return one text that says what both say: the one that has all sentences of the other, else with those that it lacks."""
    mine, yours = _sentences(old), _sentences(new)
    if yours.keys() <= mine.keys():
        return old
    if mine.keys() <= yours.keys():
        return new
    return "\n".join([old, " ".join(text for digest, text in yours.items() if digest not in mine)])


def _sentences(text: str) -> dict[str, str]:
    return {content_digest(span.text): span.text for span in sentences(text)}


def revision(memory: Memory, at: datetime, action: str, reason: str = "", **fields: Any) -> MemoryChange:
    """Return the change by which the next version of a memory follows its head."""
    after = memory.evolve(**fields, version=memory.version + 1, recorded_at=at)
    return MemoryChange(memory=after, expected_version=memory.version, action=action, reason=reason)


def twins(memories: Iterable[Memory]) -> Iterator[tuple[Memory, Sequence[Memory]]]:
    """Yield each memory that others of its topic repeat, with those: the same words, or the same value of one slot.

    The one to keep is the most important, then the one said most often, then the oldest. Not merged are skills,
    knowledge, policies, and disputed memories, whose copies matter.
    """
    groups: defaultdict[Hashable, list[Memory]] = defaultdict(list)
    for memory in memories:
        if memory.status != "disputed" and not memory.firm and memory.layer != "procedural":
            slot = (memory.canonical_topic, canonical(memory.slot_value))
            says = slot if all(slot) else content_digest(memory.content)
            period = (memory.valid_from, memory.valid_to)
            groups[memory.topic.type, memory.topic.target, memory.perspective, period, says].append(memory)
    for group in groups.values():
        kept, *others = sorted(group, key=_rank)
        if others:
            yield kept, others


def _rank(memory: Memory) -> tuple[float, int, float, str]:
    return (-memory.importance, -memory.merges, memory.recorded_at.timestamp(), memory.memory_id)


def folded_together(kept: Memory, others: Sequence[Memory]) -> Memory:
    """Return the next version of a memory, with the content and evidence of the others.

    It does not count as said more often, as the copies need not come from several witnesses.
    """
    content, all_of_them = kept.content, (kept, *others)
    for other in others:
        content = joined(content, other.content)
    return kept.evolve(
        version=kept.version + 1,
        content=content,
        when_to_use=kept.when_to_use.replace(kept.content, content),
        evidence=tuple(dict.fromkeys(item for each in all_of_them for item in each.evidence)),
        block_ids=tuple(dict.fromkeys(block_id for each in all_of_them for block_id in each.block_ids)),
        tags=tuple(dict.fromkeys(tag for each in all_of_them for tag in each.tags)),
        supersedes=tuple(dict.fromkeys((*kept.supersedes, *(other.memory_id for other in others)))),
        layer="long_term" if any(each.layer == "long_term" for each in all_of_them) else kept.layer,
        status="active" if any(each.status == "active" for each in all_of_them) else kept.status,
        trust=min(each.trust for each in all_of_them),
        origin=derived(all_of_them),
        said_at=max(each.said_at for each in all_of_them),
    )


def derived(sources: Iterable[Memory]) -> Origin | None:
    """Return the origin of a memory made of others: all their agents; None if all are the agent's own.

    The one that counts most comes first.
    """
    given = [memory.origin for memory in sources if memory.origin is not None]
    if not given:
        return None
    first, *others = given
    for other in others:
        first = joint_origin(first, other)
    return first


def joint_origin(origin: Origin, other: Origin) -> Origin:
    """Return an origin with the agents of another behind its own."""
    return origin.evolve(agents=tuple(dict.fromkeys((*origin.agents, *other.agents))), at=max(origin.at, other.at))


# ------------------------------------------------------------------------------------------- keys of contents

_AGAINST = ("likes", "dislikes")

_MOSTLY = 0.6
"""Share of the words of the shorter rule in the other, from which both are about the same."""

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
"""Words that order or allow, without saying anything about the subject."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The relation of a memory to an earlier one, and how they differ."""

    kind: ConflictKind
    reason: str


@dataclass(frozen=True, slots=True)
class _Keys:
    """The content of an item, as far as its keys let it be compared."""

    about: str
    facts: frozenset[tuple[str, str]]
    """Each attribute with each value that it has."""
    single: Mapping[str, str]
    """The attributes with a single value."""


def compare(new: Memory, old: Memory) -> Finding | None:
    """Return how a memory relates to an existing one; None if their contents have no keys in common.

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
    """Return the contradiction between two rules on the same subject if only one forbids it."""
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
