"""Make the one change set of a block from what was proposed, and retire what it replaces when the block is read again.

The reviser (R11) goes by rules first, and asks a model where they flag; what still fails is settled, not dropped.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import combinations
from typing import TYPE_CHECKING

from remegraph.engine.routes import person
from remegraph.engine.salience import uncovered
from remegraph.engine.summary_tasks import Objection, Proposal, ReviewTask
from remegraph.errors import ConflictError, ModelUnavailableError
from remegraph.models import (
    FORGOTTEN,
    LIVE,
    Block,
    BlockSummary,
    ChangeSet,
    Link,
    Memory,
    MemoryChange,
    Partition,
    Scope,
    StoredMessage,
    ToolRecord,
    Work,
    WorkState,
)
from remegraph.models.base import operation_id
from remegraph.models.quotes import find_quote
from remegraph.models.supersession import disputed, relation, same
from remegraph.models.tools import call_digest, called, error_line, outcome
from remegraph.prompts import Language
from remegraph.settings import SummaryPolicy

if TYPE_CHECKING:
    from remegraph.ledger.archive import Archive
    from remegraph.models import Message

__all__ = [
    "Settled",
    "change_set",
    "former",
    "giving_way",
    "inspect",
    "is_done",
    "note_outage",
    "review",
    "settle",
    "tool_records",
    "touched_by",
]


_LENIENCE = 0.75
"""Where a model weighs the flags: it finds nine omissions in ten, and costs one clean block in four a call
(`python -m evals.reviser --lenience 0.75`)."""


@dataclass(frozen=True, slots=True)
class Settled:
    """The sound part of a proposal, and why a person should look at it, if so."""

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

    With `weighed`, a model will weigh what is flagged, so the rules may flag too much rather than too little.
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
    """Keep the sound part of a proposal that is no longer sent back (REQUIREMENTS, disagreements 5).

    Where a part of it never became valid, the rest is kept, and the topic has failed: it can be tried again.
    A new memory whose words are not found is left out, and one that repeats another, if a model weighed that
    too: rules alone are not sure enough to lose a statement. Memories in conflict are all kept, flagged as
    disputed and linked. What is missing cannot be supplied here: it waits for a person, if a model reports it as well.
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
    *others, newest = named  # as `Disputes` links them: the same link again is not a second one
    for other in others:
        yield Link(source_id=newest, type="contradicts", target_id=other, reason=objection.reason)


_REPORT = re.compile(
    r"^\s*(?:"
    r"I(?:['’]ve| have)?(?: (?:also|now|just|already|recently|still))*"
    r" (?:learned|learnt|know|found out|noted|noticed|remember|recall|gathered|understood|understand|realised|realized"
    r"|discovered)(?: that\s+|\s+(?=[A-Z]))"
    r"|我(?:已经|已|还|也|现在|今天|刚刚|刚)*(?:了解到|了解|知道|得知|记得|记住|记下|发现|注意到|学到)了?[，,：:]?\s*"
    r")"
)
"""The words that say how the speaker of a statement knows it: "I learned that", 「我了解到」."""


def review(
    messages: Sequence[Message], before: Sequence[Memory], after: Sequence[Memory], *, lenience: float = 0.0
) -> tuple[Objection, ...]:
    """Check the memories of the touched topics as they would be after a change.

    Looked for are quotes that the messages do not hold, statements that no memory covers, memories of one topic that
    say the same words or give a slot the same value, and those that give a slot of one value several. What was there
    before the change is not held against it. Quotes of messages outside the block cannot be checked here.
    `lenience` says how readily omissions are reported; see `uncovered`.

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
            text = None if evidence.attachment else texts.get(evidence.message_id)  # the commit checks those
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
    for omission in uncovered(
        messages, [_REPORT.sub("", memory.content, count=1) for memory in memories], lenience=lenience
    ):
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
            continue  # one of them no longer holds the slot
        earlier, later = sorted((old, new), key=lambda memory: memory.said_at)
        if relation(later, earlier, one_source=True) == "disputes":  # the later of two takes the earlier's place itself
            reason = f"Two live memories hold {old.canonical_topic}: {old.content!r} and {new.content!r}."
            yield Objection("conflict", new.topic.key, reason, (old.memory_id, new.memory_id))


_OF_ITSELF = frozenset({"create", "corroborate", "dispute", "release", "fade", "revive"})
"""Actions by code alone: a memory that they changed still counts as made by the readers of its block."""


def change_set(
    *,
    scope: Scope,
    block: Block,
    messages: Sequence[StoredMessage],
    summary: BlockSummary,
    proposals: Mapping[str, Proposal],
    objections: Sequence[Objection],
    refused: Sequence[str],
    weighed: bool,
    unreviewed: str,
    failure: str | None,
    again: str | None,
    policy: SummaryPolicy,
    actor: str,
    now: datetime,
) -> ChangeSet:
    """Return everything that a block teaches, as one change.

    Args:
        scope: Who called.
        block: The block.
        messages: All its messages.
        summary: Its index entry.
        proposals: The newest proposal of each topic, by topic key.
        objections: What the reviser still says of them.
        refused: Topic keys that a model named and may not use.
        weighed: Whether a model weighed what the rules flagged.
        unreviewed: Why no model reviewed the proposals, where one should have: then a person should.
        failure: Why the digest is not a model's, or empty; None if it existed already and only topics were redone.
        again: Who read it last, if all of it is read again.
        policy: Names the recipe.
        actor: The thinker.
        now: The time of the commit.
    """
    settled = {
        key: settle(proposal, [item for item in objections if item.topic == key], weighed=weighed)
        for key, proposal in proposals.items()
    }
    if unreviewed:
        settled = {
            key: replace(item, state="review", reason=unreviewed) if item.state == "done" else item
            for key, item in settled.items()
        }
    redo = failure is None
    work = _work_of(
        block,
        policy.recipe,
        settled=settled,
        attempts={key: proposal.attempt for key, proposal in proposals.items()},
        objections=objections,
        refused=refused,
        failure=failure,
    )
    anew = redo or again is not None
    done = [(each.topic, each.state, each.attempts) for each in work]
    return ChangeSet(
        operation_id=operation_id(block.partition.to_json(), block.block_id, policy.recipe, done, now if anew else ""),
        actor=f"{scope.agent or 'summarizer'}/{actor}",
        recorded_at=now,
        extracted=True,
        at_home=scope.agent is None,
        shelves=tuple(proposal.shelf for key, proposal in proposals.items() if settled[key].changes),
        changes=tuple(change for item in settled.values() for change in item.changes),
        links=tuple(link for item in settled.values() for link in item.links),
        summaries=() if redo else (summary,),
        tools=() if redo else tool_records(block, messages),
        seen={block.block_id: sum(len(message.withheld) for message in messages)},
        work=work,
        again={} if again is None else {block.block_id: again},
    )


def is_done(archive: Archive, block: Block, recipe: str) -> bool:
    """Return whether a block is done, perhaps by another worker."""
    done = archive.work([block.partition], states=["done"], recipe=recipe)
    return any(each.block_id == block.block_id and not each.topic for each in done)


def note_outage(
    archive: Archive, block: Block, recipe: str, error: ModelUnavailableError, *, actor: str, now: datetime
) -> None:
    """Record on a pending block why it waits, and how often it was tried."""
    for work in archive.work([block.partition], states=["pending"], recipe=recipe):
        if (work.block_id, work.topic) == (block.block_id, ""):
            noted = work.evolve(reason=str(error), attempts=work.attempts + 1)
            changes = ChangeSet(
                operation_id=operation_id("outage", noted.to_json()), actor=actor, recorded_at=now, work=(noted,)
            )
            with suppress(ConflictError):  # another worker has done it
                archive.commit(changes)


def touched_by(conflict: ConflictError, proposals: Mapping[str, Proposal], archive: Archive, scope: Scope) -> list[str]:
    """Return the topics whose memories changed, or got a twin, since their Sub Agent read them."""
    memories = archive.memories(archive.visible(scope), ids=conflict.records)
    changed = {memory.topic.key for memory in memories}
    return [
        key
        for key, proposal in proposals.items()
        if key in changed or any(change.memory.memory_id in conflict.records for change in proposal.changes)
    ]


def former(archive: Archive, home: Partition, block: Block, reader: str) -> tuple[Memory, ...]:
    """Return what one reading of a block made and no one has changed since: it is retired once the block is read again.

    Not included: what other blocks support, what a person or an agent stated or changed, what is firm or was counted.
    """
    homes = list(dict.fromkeys((home, block.partition)))
    made = archive.memories(homes, block_ids=[block.block_id], statuses=sorted({*LIVE, "quarantined"}))
    return tuple(
        memory
        for memory in made
        if (memory.extractor, memory.block_ids, memory.firm) == (reader, (block.block_id,), False)
        and not memory.canonical_topic.endswith(":reliability")
        and all(
            event.action in _OF_ITSELF and (event.action != "create" or event.actor.endswith(f"/{reader}"))
            for event in archive.events([memory.partition], record_id=memory.memory_id)
        )
    )


def giving_way(changes: ChangeSet, gone: Sequence[Memory], reason: str) -> ChangeSet:
    """Return a block's change that also retires what its last reading made, in favour of what rests on the same words now.

    If a part of it failed, nothing is retired until that part is done. `gone` is what `former` returned.
    """
    taken = {each.memory.memory_id for each in changes.changes}
    gone = [memory for memory in gone if memory.memory_id not in taken]
    if not gone or any(each.state == "failed" for each in changes.work):
        return changes
    hidden = {each.message_id for each in changes.withheld if not each.phrases}
    kept = [each.evolve(memory=_in_place_of(each.memory, gone)) for each in changes.changes]
    return changes.evolve(changes=(*kept, *(_retired(memory, hidden, reason) for memory in gone)))


def _in_place_of(memory: Memory, gone: Sequence[Memory]) -> Memory:
    said = {item.message_id for item in memory.evidence}
    olds = [old.memory_id for old in gone if not said.isdisjoint(item.message_id for item in old.evidence)]
    return (
        memory.evolve(supersedes=tuple(dict.fromkeys((*memory.supersedes, *olds)))) if memory.live and olds else memory
    )


def _retired(memory: Memory, hidden: Collection[str], reason: str) -> MemoryChange:
    """Return a memory as it is once another repeats it; one that rests on forgotten words is forgotten with them."""
    forgotten = any(item.message_id in hidden for item in memory.evidence)
    after = memory.evolve(
        version=memory.version + 1,
        status=FORGOTTEN if forgotten else "superseded",
        valid_to=memory.valid_from or memory.said_at,  # it is never shown beside the other, whatever time is asked for
    )
    action = "delete" if forgotten else "supersede"
    return MemoryChange(memory=after, expected_version=memory.version, action=action, reason=reason)


def _work_of(
    block: Block,
    recipe: str,
    *,
    settled: Mapping[str, Settled],
    attempts: Mapping[str, int],
    objections: Sequence[Objection],
    refused: Sequence[str],
    failure: str | None,
) -> tuple[Work, ...]:
    """Return what was done of a block: its digest, its topics, and the topics that the reviser reports as missing."""
    topics = [_work(block, key, recipe, settled[key], attempt) for key, attempt in attempts.items()]
    if failure is None:  # its digest and what it lacks were recorded before
        return tuple(topics)
    orphans: dict[str, list[str]] = {}
    for item in objections:
        if item.topic not in settled:
            orphans.setdefault(item.topic, []).append(f"{item.kind}: {item.reason}")
    missed = [
        _work(block, key, recipe, Settled((), (), "review", "; ".join(reasons)), 0) for key, reasons in orphans.items()
    ]
    reason = failure or (f"topics refused: {', '.join(refused)}" if refused else "")
    digest = Settled((), (), "failed" if failure else "done", reason)
    return (_work(block, "", recipe, digest, 1), *topics, *missed)


def _work(block: Block, topic: str, recipe: str, settled: Settled, attempts: int) -> Work:
    return Work(
        partition=block.partition,
        block_id=block.block_id,
        topic=topic,
        recipe=recipe,
        state=settled.state,
        reason=settled.reason,
        attempts=attempts,
    )


def tool_records(block: Block, messages: Sequence[StoredMessage]) -> tuple[ToolRecord, ...]:
    """Read the tool calls of a block, and how they went, from its messages (R12)."""
    records: list[ToolRecord] = []
    for at, call, answer in called(messages):
        message, result = messages[at], None if answer is None else messages[answer]
        ok = outcome(result.text, told=result.ok) if result else None
        seconds = (result.time - message.time).total_seconds() if result else None
        records.append(
            ToolRecord(
                partition=block.partition,
                block_id=block.block_id,
                message_id=message.message_id,
                call_id=call.call_id,
                tool=call.name,
                digest=call_digest(call.name, call.args),
                ok=ok,
                error=error_line(result.text) if result and ok is False else "",
                seconds=seconds if seconds is not None and seconds >= 0 else None,
                time=message.time,
            )
        )
    return tuple(records)
