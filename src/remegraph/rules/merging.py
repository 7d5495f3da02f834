"""Whether a statement is new, says what a memory says already, or replaces one (the memory writer's rules)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from remegraph.language.sentences import sentences
from remegraph.models import Memory
from remegraph.rules.duplicates import content_digest
from remegraph.rules.slots import Statement, relation, same

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
    similar: tuple[Alike, ...] = ()
    """Memories more alike than the threshold, the most alike first: linked, and left as they are."""


def decide(
    statement: Statement,
    known: Sequence[Alike],
    *,
    threshold: float,
    by_person: bool,
    one_source: Callable[[Memory], bool],
    settles_knowledge: bool = True,
    named: Sequence[Memory] = (),
) -> Decision:
    """Decide by words, by slot, and by what a person names; likeness only links.

    The same words, or the same value of a slot, are merged, never kept twice. A later value of a slot that holds one
    replaces the earlier. What is similar strictly above the threshold is kept beside and linked. Knowledge that may not be
    settled stays as it is: what it says already is refused. A policy is replaced only where it is named.

    Args:
        statement: The statement.
        known: The live memories most like it, and those of its slot.
        threshold: Similarity that must be exceeded for a link.
        by_person: Whether a person states it, or an application for them; else a model does.
        one_source: Tells whether a memory comes from who states this.
        settles_knowledge: Whether the statement may change knowledge.
        named: Memories that a person wants replaced, whatever they say.
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
        what = relation(statement, memory, one_source=one_source(memory))
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


def joined(old: str, new: str) -> str:
    """Return one text that holds what both say: the one that has all sentences of the other, else those that it lacks, too."""
    mine, yours = _sentences(old), _sentences(new)
    if yours.keys() <= mine.keys():
        return old
    if mine.keys() <= yours.keys():
        return new
    return "\n".join([old, " ".join(text for digest, text in yours.items() if digest not in mine)])


def _sentences(text: str) -> dict[str, str]:
    return {content_digest(span.text): span.text for span in sentences(text)}
