"""From what was accepted to the one change set of a block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from remegraph.engine.reviser import Settled, settle
from remegraph.engine.tasks import Proposal
from remegraph.models import (
    Block,
    BlockSummary,
    ChangeSet,
    Scope,
    StoredMessage,
    ToolRecord,
    Work,
)
from remegraph.rules.naming import operation_id
from remegraph.rules.objections import Objection
from remegraph.rules.tool_outcomes import call_digest, error_line, outcome
from remegraph.rules.tool_records import called
from remegraph.settings import SummaryPolicy

__all__ = ["change_set", "tool_records"]


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
        failure: Why the digest is not a model's, or empty; none where it stood already and only topics were redone.
        policy: Names the recipe.
        actor: Who thought.
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
    work = [_work(block, key, policy.recipe, settled[key], proposal.attempt) for key, proposal in proposals.items()]
    orphans: dict[str, list[str]] = {}
    for item in objections:
        if item.topic not in proposals:
            orphans.setdefault(item.topic, []).append(f"{item.kind}: {item.reason}")
    for key, reasons in orphans.items():
        work.append(_work(block, key, policy.recipe, Settled((), (), "review", "; ".join(reasons)), 0))
    if failure is not None:
        reason = failure or (f"topics refused: {', '.join(refused)}" if refused else "")
        digest = Settled((), (), "failed" if failure else "done", reason)
        work.insert(0, _work(block, "", policy.recipe, digest, 1))
    redo = failure is None
    done = [(each.topic, each.state, each.attempts) for each in work]
    return ChangeSet(
        operation_id=operation_id(block.partition.to_json(), block.block_id, policy.recipe, done, now if redo else ""),
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
        work=tuple(work),
    )


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
    """Read the tool calls of a block and how they went off its messages (R12).

    Args:
        block: The block.
        messages: Its messages.
    """
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
