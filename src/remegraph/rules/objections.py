"""What the reviser holds against a change of memory by rules alone (R11)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Literal

from remegraph.rules.claims import conflicting, of_different_values
from remegraph.rules.coverage import uncovered
from remegraph.rules.duplicates import near_duplicate
from remegraph.rules.quotes import find_quote
from remegraph.rules.telling import of_narrator, unreported

if TYPE_CHECKING:
    from remegraph.models import Memory, Message

__all__ = ["Objection", "review"]


@dataclass(frozen=True, slots=True)
class Objection:
    """One thing that is wrong with a change, and why."""

    kind: Literal["evidence", "omission", "duplicate", "conflict"]
    topic: str
    """Key of the topic that it concerns: the memory's, or `personal:<speaker>` for a statement."""
    reason: str
    memory_ids: tuple[str, ...] = ()
    message_id: str = ""
    statement: str = ""


def review(
    messages: Sequence[Message], before: Sequence[Memory], after: Sequence[Memory], *, lenience: float = 0.0
) -> tuple[Objection, ...]:
    """Check the memories of the touched topics as they would stand after a change.

    Looked for are quotes that the messages do not hold, statements that no memory covers, memories of one topic that
    say the same, and memories that contradict each other without being marked as disputed. What was so before the change
    is not held against it. Quotes of messages outside the block cannot be checked here and are not.

    Args:
        messages: The messages of the block.
        before: The memories of the touched topics before the change.
        after: All of them after it, new and old.
        lenience: How readily omissions are reported; see `uncovered`.

    Returns:
        The objections: evidence, omissions, duplicates, conflicts.
    """
    known = {(memory.memory_id, memory.version): memory for memory in before}
    live = [memory for memory in after if memory.live]
    changed = {memory.memory_id for memory in live if known.get((memory.memory_id, memory.version)) != memory}
    pairs = [
        (old, new)
        for old, new in combinations(live, 2)
        if (old.memory_id in changed or new.memory_id in changed) and old.topic.key == new.topic.key
    ]
    names = {message.speaker for message in messages}
    return (
        *_evidence(messages, [memory for memory in live if memory.memory_id in changed]),
        *_omissions(messages, live, lenience),
        *_duplicates(pairs, names),
        *_conflicts(pairs),
    )


def _evidence(messages: Sequence[Message], memories: Sequence[Memory]) -> Iterator[Objection]:
    texts = {message.message_id: message.text for message in messages}
    for memory in memories:
        for evidence in memory.evidence:
            text = None if evidence.attachment else texts.get(evidence.message_id)  # into those, the commit looks
            if text is not None and find_quote(evidence.quote, text) is None:
                yield Objection(
                    "evidence",
                    memory.topic.key,
                    f"The message does not hold the quote {evidence.quote!r}.",
                    (memory.memory_id,),
                    evidence.message_id,
                    evidence.quote,
                )


def _omissions(messages: Sequence[Message], memories: Sequence[Memory], lenience: float) -> Iterator[Objection]:
    speakers = {message.message_id: message.speaker for message in messages}
    for omission in uncovered(messages, [unreported(memory.content) for memory in memories], lenience=lenience):
        topic = f"personal:{speakers[omission.message_id]}"
        yield Objection("omission", topic, omission.reason, (), omission.message_id, omission.statement)


def _duplicates(pairs: Sequence[tuple[Memory, Memory]], names: set[str]) -> Iterator[Objection]:
    for old, new in pairs:
        if _of_agent(old) != _of_agent(new):
            continue
        if of_different_values(old.claims, new.claims):
            continue
        mine, yours = unreported(old.content), unreported(new.content)
        if near_duplicate(mine, yours, names | {new.topic.target_name}):
            yield Objection(
                "duplicate",
                new.topic.key,
                f"May say the same: {old.content!r} and {new.content!r}.",
                (old.memory_id, new.memory_id),
            )


def _of_agent(memory: Memory) -> bool:
    """Whether it is the agent's "I": it says nothing of the person who says "I" in the block."""
    return memory.perspective == "first-person" and of_narrator(memory.content)


def _conflicts(pairs: Sequence[tuple[Memory, Memory]]) -> Iterator[Objection]:
    for old, new in pairs:
        if old.status == new.status == "disputed" or old.firm or new.firm:
            continue  # said so already; or it was linked when it was written, and nothing may touch what is firm
        if conflicting(old.claims, new.claims):
            reason = f"Contradict each other: {old.content!r} and {new.content!r}."
        elif old.canonical_topic and old.canonical_topic == new.canonical_topic:
            reason = f"Two live memories hold {old.canonical_topic}: {old.content!r} and {new.content!r}."
        else:
            continue
        yield Objection("conflict", new.topic.key, reason, (old.memory_id, new.memory_id))
