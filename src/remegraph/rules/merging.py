"""Whether a statement is new, says what a memory says already, or replaces one (the memory writer's rules)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from remegraph.models import Claim, Memory
from remegraph.rules.claims import conflicting
from remegraph.rules.codes import codes, differently_coded
from remegraph.rules.conflicts import Said, compare, said
from remegraph.rules.duplicates import at_odds, content_digest
from remegraph.rules.wording import holds

__all__ = ["Alike", "Decision", "decide", "joined"]


@dataclass(frozen=True, slots=True)
class Alike:
    """A live memory near a statement."""

    memory: Memory
    similarity: float | None
    """Cosine, 0 to 1; none where it could not be measured."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What shall become of a statement: it is refused, merged into `target`, or new."""

    refusal: str = ""
    target: Alike | None = None
    replaced: tuple[Memory, ...] = ()
    may_contradict: tuple[Memory, ...] = ()


def decide(
    content: str,
    claims: Sequence[Claim],
    known: Sequence[Alike],
    *,
    threshold: float,
    by_person: bool,
    settles_knowledge: bool = True,
    named: Sequence[Memory] = (),
    said_at: datetime | None = None,
) -> Decision:
    """Decide by words, slots and similarity, in this order.

    The same words are merged, never kept twice. What contradicts a memory, where the slots parse on both sides,
    replaces it. What is similar strictly above the threshold is merged, unless the two are at odds: then both are kept.
    Knowledge that may not be settled stays as it is: what it says already is refused, what contradicts it is kept beside.
    A policy is replaced only where it is named, and takes on no more than its own words.

    Args:
        content: The statement.
        claims: What it states, in slots.
        known: The live memories most like it.
        threshold: Similarity that must be exceeded for a merge.
        by_person: Whether a person states it, or an application for them; else a model does.
        settles_knowledge: Whether the statement may change knowledge.
        named: Memories that a person wants replaced, whatever they say.
        said_at: When it was said, if not now: it replaces nothing that was said later.
    """
    digest = content_digest(content)
    fixed = () if settles_knowledge else tuple(one.memory for one in known if one.memory.usage == "knowledge")
    twin = next((one for one in known if content_digest(one.memory.content) == digest), None)
    if twin is not None and twin.memory not in named:
        if named:
            return Decision(refusal=f"Memory {twin.memory.memory_id} says it already: it replaces nothing.")
        return _known(twin.memory) if twin.memory in fixed else Decision(target=twin)
    against = tuple(one.memory for one in known if conflicting(claims, one.memory.claims))
    beside = tuple(memory for memory in against if memory in fixed or (said_at and memory.said_at > said_at))
    replaced = (*named, *(memory for memory in against if memory not in beside and memory not in named))
    for memory in replaced:
        if (refusal := _guarded(memory, by_person=by_person)) and memory not in named:
            return Decision(refusal=refusal)
    if replaced or against:
        return Decision(replaced=replaced, may_contradict=beside)
    similar = [one for one in known if one.similarity is not None and one.similarity > threshold]
    similar.sort(key=lambda one: (-(one.similarity or 0.0), one.memory.memory_id))
    may_contradict = tuple(one.memory for one in similar if at_odds(content, one.memory.content))
    kept_apart = [one for one in similar if one.memory in may_contradict or _contrary(content, claims, one.memory)]
    for one in similar:
        if one not in kept_apart and not _guarded(one.memory, by_person=by_person):
            return _known(one.memory) if one.memory in fixed else Decision(target=one)
    return Decision(may_contradict=may_contradict)


def _contrary(content: str, claims: Sequence[Claim], memory: Memory) -> bool:
    """Return whether a statement, told by whoever told a memory, is the contrary of it."""
    known = said(memory)
    finding = compare(Said.of(content, known.who, claims), known)
    return finding is not None and finding.kind == "contradiction"


def _guarded(memory: Memory, *, by_person: bool) -> str:
    """Return why a statement may not replace a memory that it does not name, nor add to its words; empty: it may."""
    if memory.is_core and not by_person:
        return f"It contradicts memory {memory.memory_id}, a core rule that only a person may change."
    if memory.memory_class == "policy":
        return (
            f"It contradicts memory {memory.memory_id}, a policy: a person may name it in `supersedes` to replace it."
        )
    return ""


def _known(memory: Memory) -> Decision:
    return Decision(refusal=f"Memory {memory.memory_id} says it already, as knowledge.")


def joined(old: str, new: str) -> str:
    """Return one text that holds what both say: the one that holds all words of the other, else both, one per line."""
    if content_digest(old) == content_digest(new) or _holds(old, new):
        return old
    return new if _holds(new, old) else f"{old}\n{new}"


def _holds(one: str, other: str) -> bool:
    return holds(one, other) and codes(other) <= codes(one) and not differently_coded(one, other)
