"""What the reviser holds against a change of memory by rules alone (R11)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Literal

from remegraph.rules.coverage import uncovered
from remegraph.rules.quotes import find_quote
from remegraph.rules.slots import relation, same
from remegraph.rules.telling import unreported

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
    say the same words or give a slot the same value, and those that give a slot of one value several. What was so before the change
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
    return (
        *_evidence(messages, [memory for memory in live if memory.memory_id in changed]),
        *_omissions(messages, live, lenience),
        *_duplicates(pairs),
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


def _duplicates(pairs: Sequence[tuple[Memory, Memory]]) -> Iterator[Objection]:
    for old, new in pairs:
        if same(new, old):
            yield Objection(
                "duplicate",
                new.topic.key,
                f"They say the same: {old.content!r} and {new.content!r}.",
                (old.memory_id, new.memory_id),
            )


def _conflicts(pairs: Sequence[tuple[Memory, Memory]]) -> Iterator[Objection]:
    for old, new in pairs:
        if old.status == new.status == "disputed" or old.firm or new.firm:
            continue  # said so already; or it was linked when it was written, and nothing may touch what is firm
        if old.valid_to or new.valid_to:
            continue  # one of them holds the slot no more
        earlier, later = sorted((old, new), key=lambda memory: memory.said_at)
        if relation(later, earlier, one_source=True) == "disputes":  # the later of two takes the earlier's place itself
            reason = f"Two live memories hold {old.canonical_topic}: {old.content!r} and {new.content!r}."
            yield Objection("conflict", new.topic.key, reason, (old.memory_id, new.memory_id))
