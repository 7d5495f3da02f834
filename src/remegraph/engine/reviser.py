"""The reviser (R11): rules first, a model where they flag; what still fails is settled, not dropped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from remegraph.engine.routing import person
from remegraph.engine.tasks import Proposal, ReviewTask
from remegraph.models import Link, Memory, MemoryChange, Scope, StoredMessage, WorkState
from remegraph.prompts import Language
from remegraph.rules.disputes import disputed
from remegraph.rules.objections import Objection, review

__all__ = ["Settled", "inspect", "settle"]

_LENIENCE = 0.75
"""Where a model weighs the flags: finds nine omissions in ten, and costs one clean block in four a call
(`python -m evals.reviser --lenience 0.75`)."""


@dataclass(frozen=True, slots=True)
class Settled:
    """A proposal as far as it is sound, and why a person should look, if so."""

    changes: tuple[MemoryChange, ...]
    links: tuple[Link, ...]
    state: WorkState
    reason: str


def inspect(
    scope: Scope,
    messages: Sequence[StoredMessage],
    proposals: Iterable[Proposal],
    language: Language,
    *,
    weighed: bool,
) -> ReviewTask:
    """Return what there is to review, with what the rules flag.

    Args:
        scope: Who called.
        messages: The block.
        proposals: The newest proposal of each topic.
        language: Of the block.
        weighed: Whether a model will weigh what is flagged: then the rules may flag too much rather than too little.
    """
    proposals = tuple(proposals)
    before = {memory.memory_id: memory for proposal in proposals for memory in proposal.similar}
    after = before | {change.memory.memory_id: change.memory for item in proposals for change in item.changes}
    spoken = [
        message.evolve(role="user", name=name) if (name := person(message, scope)) else message for message in messages
    ]
    live = tuple(memory for memory in after.values() if memory.live or memory.status == "quarantined")
    return ReviewTask(
        messages=tuple(messages),
        topics=tuple(proposal.shelf.topic for proposal in proposals),
        before=tuple(before.values()),
        after=live,
        flags=review(spoken, tuple(before.values()), live, lenience=_LENIENCE if weighed else 0.0),
        language=language,
    )


def settle(proposal: Proposal, objections: Sequence[Objection], *, weighed: bool) -> Settled:
    """Keep what is sound of a proposal that is not sent back any more (REQUIREMENTS, disagreements 5).

    Where a part of it never became valid, the rest is kept, and the topic has failed: it can be tried again.
    A new memory whose words are not found is left out, and one that repeats another, if a model weighed that
    too: rules alone are not sure enough to lose a statement. Memories in conflict are all kept, flagged as
    disputed and linked. What is missing cannot be made up here: it waits for a person, where a model misses it, too.

    Args:
        proposal: The last attempt.
        objections: What the reviser said of it.
        weighed: Whether a model weighed what the rules flagged.
    """
    if not weighed:
        objections = [objection for objection in objections if objection.kind != "duplicate"]
    unsound = {
        memory_id
        for objection in objections
        if objection.kind in {"duplicate", "evidence"}
        for memory_id in _newest(objection, proposal.changes)
    }
    kept = {change.memory.memory_id: change for change in proposal.changes if change.memory.memory_id not in unsound}
    links = [link for link in proposal.links if link.source_id not in unsound and link.target_id not in unsound]
    known = {memory.memory_id: memory for memory in proposal.similar}
    for objection in objections:
        if objection.kind == "conflict":
            links.extend(_dispute(objection, kept, known))
    reasons = "; ".join(f"{item.kind}: {item.reason}" for item in objections)
    if proposal.failure:  # of the rest
        reasons = "; ".join(filter(None, (proposal.failure, reasons)))
    waits = any(weighed or objection.kind != "omission" for objection in objections)
    state: WorkState = "failed" if proposal.failure else "review" if waits else "done"
    return Settled(tuple(kept.values()), tuple(links), state, reasons)


def _newest(objection: Objection, changes: Sequence[MemoryChange]) -> Iterable[str]:
    """Of the memories named, one that this proposal creates (of two, the later); none if it creates none."""
    created = [change.memory.memory_id for change in changes if change.expected_version == 0]
    named = [memory_id for memory_id in created if memory_id in objection.memory_ids]
    return named[-1:]


def _dispute(objection: Objection, kept: dict[str, MemoryChange], known: Mapping[str, Memory]) -> Iterable[Link]:
    """Flag the memories named as disputed, in place, and yield the links that join them; a core rule stays as it is."""
    named = [memory_id for memory_id in objection.memory_ids if memory_id in kept or memory_id in known]
    if len(named) < 2:
        return
    for memory_id in named:
        change = kept.get(memory_id)
        if change is None:
            old = known[memory_id]
            if (now := disputed(old)) is not old:
                memory = now.evolve(version=old.version + 1)
                kept[memory_id] = MemoryChange(memory=memory, expected_version=old.version, action="dispute")
        elif change.memory.status == "active":
            kept[memory_id] = change.evolve(memory=disputed(change.memory))
    *others, newest = named  # as `Disputes` links them: the same link again is no second one
    for other in others:
        yield Link(source_id=newest, type="contradicts", target_id=other, reason=objection.reason)
