"""Where a thread is cut into blocks (R2), and what is read of a block and before it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from remegraph.engine.frame import shows_recalled
from remegraph.models import Block, Cut, StoredMessage
from remegraph.models.remnants import MARK
from remegraph.models.tools import called
from remegraph.ports import Tail
from remegraph.settings import ExtractionPolicy, SlicingPolicy, SummaryPolicy
from remegraph.text.sentences import asks
from remegraph.text.tokens import estimate_tokens

if TYPE_CHECKING:
    from remegraph.ledger.archive import Archive

__all__ = ["before", "cut", "due", "overlap", "readable"]

_Messages = Sequence[StoredMessage]

_LONGEST_TURN = 4
"""How many times over the longest block a turn stays whole: some agents work for hours before they answer."""


def due(
    tail: Tail,
    policy: SlicingPolicy,
    extraction: ExtractionPolicy,
    now: datetime,
    *,
    ended: bool = False,
    crowded: bool = False,
) -> tuple[Cut, ...]:
    """Cut the tail of a captured thread as the agent's trigger says: where slicing does, and perhaps at its end.

    Its end is due once the session is over, the turn is (`per-turn`), or nothing was said for a while (`gathered`).
    A request to forget does not wait for that. A turn that is under way, or a call that waits for its
    result, is left for later. `tail` is what no block of the thread holds yet; `ended` says whether the session is
    over. Where too much waits already (`crowded`), tails are cut only as slicing does.
    """
    whole, over = extraction.gathers, tail if ended else answered(tail)
    at_once = ended or (extraction.trigger == "per-turn" and not crowded)
    if not ended and whole:
        if any(message.asked for message in over.messages):
            return cut(over, policy, close=True, turns=True)
        if not crowded and now - tail.messages[-1].recorded_at >= extraction.idle:
            over, at_once = _before_open_call(tail), True
    turns = sum(message.role == "user" for message in over.messages)
    if at_once and turns >= extraction.min_turns:
        return cut(over, policy, close=True, turns=whole)
    return () if ended else cut(tail, policy, turns=whole)


def overlap(policy: SlicingPolicy, *, turns: bool) -> int:
    """Return how many messages before a tail are needed to cut it."""
    return max(policy.overlap if policy.strategy == "length" else 0, int(turns))


def cut(tail: Tail, policy: SlicingPolicy, *, close: bool = False, turns: bool = False) -> tuple[Cut, ...]:
    """Cut the tail of a thread into blocks, oldest first.

    A block ends where the policy's strategy sees a boundary before the next message. What comes after the last boundary
    waits for more, so that cutting now and again later gives the same blocks as cutting once. A tool call and its
    results are never divided: a call without result holds back what follows, and a block grows over its limit if need
    be. The tail is in the order of recording; its times may go backwards. With `close` the thread ends here, so that
    nothing waits. With `turns`, turns are not divided either, except endless ones; if a block
    begins with an answer, its question is in the block, too.

    Returns:
        The blocks that are complete; they share such questions, and messages under strategy "length" with an overlap.
    """
    ends_before = _BOUNDARIES[policy.strategy]
    cuts: list[Cut] = []
    after = tail.after_seq
    block = _OpenBlock(_shared(tail.overlap, tail.messages[:1], policy, turns=turns))
    units = _units(tail.messages, close=close)
    for unit, whole in _turns(units, policy) if turns else units:
        if block.new and ends_before(block, unit, policy):
            cuts.append(block.cut(tail.thread, after))
            after = cuts[-1].last_seq
            block = _OpenBlock(_shared(block.messages, unit, policy, turns=turns))
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


def _before_open_call(tail: Tail) -> Tail:
    """Return the part of a tail before the first call that waits for its result."""
    ends = (at for at, _, answer in called(tail.messages) if answer is None)
    return replace(tail, messages=tail.messages[: next(ends, None)])


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
        # A late message is not the end of the talk: what follows it is not a gap.
        self.latest = max(self.latest, *(message.time for message in unit))
        # A result belongs to the task of its call, whatever task the host gave it.
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

    Unless `close`, a call whose result is missing comes last, with only its first message certain: it may end the
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


def _turns(units: Iterator[tuple[_Messages, bool]], policy: SlicingPolicy) -> Iterator[tuple[_Messages, bool]]:
    """Yield units as turns: what a person says, and everything that follows until a person speaks again."""
    turn: list[StoredMessage] = []
    whole, tokens = True, 0
    for unit, ends in units:
        longest = _LONGEST_TURN * policy.max_messages, _LONGEST_TURN * policy.max_tokens
        if turn and (unit[0].role == "user" or len(turn) > longest[0] or tokens > longest[1]):
            yield turn, whole
            turn, tokens = [], 0
        turn, whole = [*turn, *unit], ends
        tokens += sum(map(_tokens, unit))
    if turn:
        yield turn, whole


def _last_needed(messages: _Messages, *, close: bool) -> list[int]:
    """Return for each message the index of the last one that it must not be cut from; past the end if that is yet to come."""
    last = list(range(len(messages)))
    to_come = None if close else len(messages)
    for at, _, answer in called(messages):
        last[at] = max(last[at], answer or to_come or at)
    return last


def _shared(messages: _Messages, following: _Messages, policy: SlicingPolicy, *, turns: bool) -> _Messages:
    """Return the end of the block before that the next block repeats, without results whose call is not in it."""
    last, first = messages[-1:], following[:1]
    answers = any(one.role != "tool" and asks(one.text) and one.speaker != by.speaker for one in last for by in first)
    most = max(policy.overlap if policy.strategy == "length" else 0, int(turns and answers))
    shared = messages[-most:] if most else ()
    called: set[str] = set()
    start = 0
    for at, message in enumerate(shared):
        if message.role == "tool" and message.tool_call_id not in called:
            start = at + 1
        called.update(call.call_id for call in message.tool_calls)
    return shared[start:]


_BEFORE = 100
"""Messages of a partition before a block to search for those of its thread."""


def readable(rows: Sequence[StoredMessage]) -> tuple[StoredMessage, ...]:
    """Return what is read of a block: everything except what was merely recalled, or is withheld."""
    return tuple(row for row in rows if not shows_recalled(row) and not _hidden(row))


def _hidden(row: StoredMessage) -> bool:
    """Return whether nothing of a message is to be read. The decision on a request still reads what waits for it."""
    return row.hidden and (row.text == MARK or any(note.whole and note.reason != "asked" for note in row.withheld))


def before(archive: Archive, block: Block, policy: SummaryPolicy) -> tuple[StoredMessage, ...]:
    """Return what was said in the thread right before a block: whole messages, as far as the budget goes.

    What a model failed on is left out, so that it does not fail on the next block, too.
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
