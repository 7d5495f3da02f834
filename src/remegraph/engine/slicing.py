"""Where a thread is cut into blocks (R2), and what is read of one and before it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from remegraph.language.tokens import estimate_tokens
from remegraph.models import Block, Cut, StoredMessage
from remegraph.ports import Archive, Tail
from remegraph.rules.context import shows_recalled
from remegraph.rules.tool_records import called
from remegraph.rules.veil import MARK
from remegraph.settings import SlicingPolicy, SummaryPolicy

__all__ = ["answered", "before", "cut", "readable"]

_Messages = Sequence[StoredMessage]


def cut(tail: Tail, policy: SlicingPolicy, *, close: bool = False) -> tuple[Cut, ...]:
    """Cut the tail of a thread into blocks, oldest first.

    A block ends where the policy's strategy sees a boundary before the next message. What comes after the last boundary
    waits for more, so that cutting now and again later gives the same blocks as cutting once. A tool call and its
    results are never divided: a call without result holds back what follows, and a block grows over its limit if need
    be.

    Args:
        tail: The messages that no block holds yet, in the order of recording; their times may go backwards.
        policy: Where to cut.
        close: Whether the thread ends here, so that nothing waits.

    Returns:
        The blocks that are complete; they share messages only under strategy "length" with an overlap.
    """
    ends_before = _BOUNDARIES[policy.strategy]
    cuts: list[Cut] = []
    after = tail.after_seq
    block = _OpenBlock(_shared(tail.overlap, policy))
    for unit, whole in _units(tail.messages, close=close):
        if block.new and ends_before(block, unit, policy):
            cuts.append(block.cut(tail.thread, after))
            after = cuts[-1].last_seq
            block = _OpenBlock(_shared(block.messages, policy))
        if whole:
            block.add(unit)
    if close and block.new:
        cuts.append(block.cut(tail.thread, after))
    return tuple(cuts)


def answered(tail: Tail) -> Tail:
    """Return the part of a tail whose turns are over: up to the agent's last answer that asks for no tool.

    What comes after it, a question that is still open or a call that waits for its result, belongs to the next turn.
    """
    ends = [at for at, message in enumerate(tail.messages) if message.role == "assistant" and not message.tool_calls]
    return replace(tail, messages=tail.messages[: ends[-1] + 1 if ends else 0])


class _OpenBlock:
    """The block that is being filled, and what the boundaries ask of it."""

    def __init__(self, shared: _Messages) -> None:
        self.messages = list(shared)
        self.tokens = sum(map(_tokens, shared))
        self.new = 0
        self.start = self.latest = datetime.min.replace(tzinfo=UTC)
        self.task: str | None = None

    def add(self, unit: _Messages) -> None:
        if not self.new:
            self.start = unit[0].time
        # A late message is not the end of the talk: what follows it is no gap.
        self.latest = max(self.latest, *(message.time for message in unit))
        # A result belongs to the task of its call, whatever the host wrote on it.
        self.task = next((message.task for message in reversed(unit) if message.role != "tool"), self.task)
        self.messages.extend(unit)
        self.tokens += sum(map(_tokens, unit))
        self.new += len(unit)

    def cut(self, thread: str, after: int) -> Cut:
        return Cut(thread=thread, after_seq=after, first_seq=self.messages[0].seq, last_seq=self.messages[-1].seq)


def _after_window(block: _OpenBlock, unit: _Messages, policy: SlicingPolicy) -> bool:
    return unit[0].time - block.start >= policy.window


def _after_gap(block: _OpenBlock, unit: _Messages, policy: SlicingPolicy) -> bool:
    return unit[0].time - block.latest >= policy.gap


def _after_task(block: _OpenBlock, unit: _Messages, _: SlicingPolicy) -> bool:
    return unit[0].role != "tool" and block.task is not None and unit[0].task != block.task


def _over_length(block: _OpenBlock, unit: _Messages, policy: SlicingPolicy) -> bool:
    messages = len(block.messages) + len(unit)
    return messages > policy.max_messages or block.tokens + sum(map(_tokens, unit)) > policy.max_tokens


def _at_any(block: _OpenBlock, unit: _Messages, policy: SlicingPolicy) -> bool:
    return any(ends(block, unit, policy) for ends in (_after_gap, _after_task, _over_length))


_BOUNDARIES: Mapping[str, Callable[[_OpenBlock, _Messages, SlicingPolicy], bool]] = {
    "combined": _at_any,
    "window": _after_window,
    "gap": _after_gap,
    "task": _after_task,
    "length": _over_length,
}


def _tokens(message: StoredMessage) -> int:
    calls = (f"{call.name} {json.dumps(call.args)}" for call in message.tool_calls)
    return estimate_tokens(message.text) + sum(map(estimate_tokens, calls))


def _units(messages: _Messages, *, close: bool) -> Iterator[tuple[_Messages, bool]]:
    """Yield what must stay together, in order: single messages, and calls up to their results.

    Unless `close`, a call whose result is missing is the last; of it only the first message is certain: it may end the
    block before it, but is not whole.
    """
    start = reach = 0
    for at, last in enumerate(_last_needed(messages, close=close)):
        reach = max(reach, last)
        if reach == at:
            yield messages[start : at + 1], True
            start = at + 1
    if start < len(messages):
        yield messages[start : start + 1], False


def _last_needed(messages: _Messages, *, close: bool) -> list[int]:
    """Return for each message the index of the last one that it must not be cut from; past the end if yet to come."""
    last = list(range(len(messages)))
    to_come = None if close else len(messages)
    for at, _, answer in called(messages):
        last[at] = max(last[at], answer or to_come or at)
    return last


def _shared(messages: _Messages, policy: SlicingPolicy) -> _Messages:
    """Return the end of the block before that the next block repeats, without results whose call is not in it."""
    if policy.strategy != "length" or not policy.overlap:
        return ()
    shared = messages[-policy.overlap :]
    called: set[str] = set()
    start = 0
    for at, message in enumerate(shared):
        if message.role == "tool" and message.tool_call_id not in called:
            start = at + 1
        called.update(call.call_id for call in message.tool_calls)
    return shared[start:]


_BEFORE = 100
"""Messages of a partition before a block among which those of its thread are looked for."""


def readable(rows: Sequence[StoredMessage]) -> tuple[StoredMessage, ...]:
    """Return what is read of a block: all but what was merely recalled, or is withheld.

    Args:
        rows: Its messages.
    """
    return tuple(row for row in rows if not shows_recalled(row) and not _hidden(row))


def _hidden(row: StoredMessage) -> bool:
    """Return whether nothing of a message is to be read; what waits for a decision, who decides reads."""
    return row.hidden and (row.text == MARK or any(note.whole and note.reason != "asked" for note in row.withheld))


def before(archive: Archive, block: Block, policy: SummaryPolicy) -> tuple[StoredMessage, ...]:
    """Return what was said in the thread right before a block: whole messages, as far as the budget goes.

    What a model failed on is left out: it must not fail on the next block, too.

    Args:
        archive: The ledger.
        block: The block.
        policy: Says how many tokens, and which work has failed.
    """
    left, first = policy.before_tokens, max(1, block.first_seq - _BEFORE)
    rows = readable(
        archive.messages([block.partition], thread=block.thread, first_seq=first, last_seq=block.first_seq - 1)
    )
    kept: list[StoredMessage] = []
    work = archive.work([block.partition], states=["failed"], recipe=policy.recipe) if rows else ()
    names = sorted({each.block_id for each in work})
    failed = [(each.first_seq, each.last_seq) for each in archive.blocks([block.partition], ids=names)]
    for row in reversed([row for row in rows if not any(first <= row.seq <= last for first, last in failed)]):
        left -= estimate_tokens(row.text)
        if left < 0:
            break
        kept.insert(0, row)
    return tuple(kept)
