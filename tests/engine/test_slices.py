"""Where threads are cut into blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remegraph.engine.slices import cut, overlap
from remegraph.models import Cut, Partition, Role, StoredMessage, ToolCall
from remegraph.ports import Tail
from remegraph.settings import SlicingPolicy

pytestmark = pytest.mark.requirement("R2")

Strategy = Literal["combined", "window", "gap", "task", "length"]
HOME = Partition(tenant="t", user="u")
NOON = datetime(2024, 3, 1, 12, tzinfo=UTC)


def said(
    seq: int,
    minutes: float | None = None,
    *,
    role: Role = "user",
    text: str = "Hello.",
    task: str = "",
    calls: Sequence[str] = (),
    answers: str = "",
) -> StoredMessage:
    time = NOON + timedelta(minutes=seq if minutes is None else minutes)
    return StoredMessage(
        partition=HOME,
        seq=seq,
        message_id=str(seq),
        recorded_at=time,
        role=role,
        content=text,
        time=time,
        task=task,
        tool_calls=tuple(ToolCall(name="search", call_id=call) for call in calls),
        tool_call_id=answers,
    )


def call(seq: int, *ids: str, minutes: float | None = None) -> StoredMessage:
    return said(seq, minutes, role="assistant", calls=ids)


def result(seq: int, answers: str, minutes: float | None = None) -> StoredMessage:
    return said(seq, minutes, role="tool", answers=answers)


def tail_of(*messages: StoredMessage, after: int = 0, overlap: Sequence[StoredMessage] = ()) -> Tail:
    return Tail(thread="main", after_seq=after, overlap=tuple(overlap), messages=messages)


def ranges(cuts: Sequence[Cut]) -> list[tuple[int, int]]:
    return [(one.first_seq, one.last_seq) for one in cuts]


def test_nothing_to_cut_gives_no_blocks() -> None:
    """An empty thread is not an error."""
    assert cut(tail_of(), SlicingPolicy(), close=True) == ()


def test_a_silence_ends_a_block() -> None:
    """What was said before lunch and after dinner are two episodes."""
    tail = tail_of(said(1, 0), said(2, 1), said(3, 1 + 180), said(4, 182))

    assert ranges(cut(tail, SlicingPolicy(), close=True)) == [(1, 2), (3, 4)]


def test_the_open_end_waits_until_it_is_closed() -> None:
    """A talk that goes on is not summarised half-way."""
    tail = tail_of(said(1), said(2), said(3))

    assert cut(tail, SlicingPolicy()) == ()
    assert ranges(cut(tail, SlicingPolicy(), close=True)) == [(1, 3)]


def test_another_task_ends_a_block() -> None:
    """A block is about one task."""
    tail = tail_of(said(1, task="book"), said(2, task="book"), said(3, task="cook"), said(4, task="cook"))

    assert ranges(cut(tail, SlicingPolicy())) == [(1, 2)]


def test_a_result_without_a_task_belongs_to_the_task_of_its_call() -> None:
    """Hosts seldom label tool results; that is no change of task."""
    asked = call(2, "a").evolve(task="book")
    tail = tail_of(said(1, task="book"), asked, result(3, "a"), said(4, task="book"), said(5, task="cook"))

    assert ranges(cut(tail, SlicingPolicy())) == [(1, 4)]


@pytest.mark.parametrize("strategy", ["combined", "length"])
def test_a_block_is_cut_as_soon_as_it_is_too_long(strategy: Strategy) -> None:
    """A monologue is cut at the limit, in messages or in tokens."""
    by_count = SlicingPolicy(strategy=strategy, max_messages=2)
    by_tokens = SlicingPolicy(strategy=strategy, max_tokens=25)
    long = [said(seq, text="x" * 40) for seq in (1, 2, 3, 4, 5)]

    assert ranges(cut(tail_of(*long), by_count)) == [(1, 2), (3, 4)]
    assert ranges(cut(tail_of(*long), by_tokens)) == [(1, 2), (3, 4)]


def test_a_window_counts_from_the_first_message_of_its_block() -> None:
    """Fixed windows of five minutes, as the design document describes them."""
    tail = tail_of(said(1, 3), said(2, 7.9), said(3, 8), said(4, 12), said(5, 30))

    assert ranges(cut(tail, SlicingPolicy(strategy="window"), close=True)) == [(1, 2), (3, 4), (5, 5)]


def test_blocks_of_fixed_length_share_what_the_overlap_asks_for() -> None:
    """With an overlap nothing is torn out of its context."""
    policy = SlicingPolicy(strategy="length", max_messages=4, overlap=2)
    tail = tail_of(*map(said, range(1, 9)))
    later = tail_of(said(9), after=8, overlap=[said(7), said(8)])

    assert ranges(cut(tail, policy, close=True)) == [(1, 4), (3, 6), (5, 8)]
    assert [one.after_seq for one in cut(tail, policy, close=True)] == [0, 4, 6]
    assert ranges(cut(later, policy, close=True)) == [(7, 9)]


def test_an_overlap_as_long_as_a_block_still_moves_on() -> None:
    """A strange policy gives strange blocks, never an endless loop."""
    policy = SlicingPolicy(strategy="length", max_messages=2, overlap=5)

    cuts = cut(tail_of(*map(said, range(1, 5))), policy, close=True)

    assert [one.last_seq for one in cuts] == [2, 3, 4]


def test_a_late_message_is_no_gap() -> None:
    """A message that arrives hours late splits neither itself nor what follows from the talk."""
    tail = tail_of(said(1, 600), said(2, 10), said(3, 601))

    assert ranges(cut(tail, SlicingPolicy(), close=True)) == [(1, 3)]


def test_a_call_and_its_results_stay_together_across_a_gap() -> None:
    """A tool that runs overnight still explains the call that started it."""
    tail = tail_of(call(1, "a", "b", minutes=0), result(2, "a", 1), said(3, 500), result(4, "b", 900), said(5, 2000))

    assert ranges(cut(tail, SlicingPolicy())) == [(1, 4)]


def test_a_block_grows_rather_than_part_a_call_from_its_result() -> None:
    """The limit is a wish, the pair is a promise."""
    policy = SlicingPolicy(max_messages=2)
    tail = tail_of(call(1, "a", "b", "c"), result(2, "a"), result(3, "b"), result(4, "c"), said(5), said(6), said(7))

    assert ranges(cut(tail, policy)) == [(1, 4), (5, 6)]


def test_a_call_without_a_result_waits_and_all_after_it() -> None:
    """A block is immutable: it must not be cut while an answer is under way."""
    tail = tail_of(said(1, 0), call(2, "a", minutes=300), said(3, 900), said(4, 1500))

    assert ranges(cut(tail, SlicingPolicy())) == [(1, 1)]
    assert ranges(cut(tail, SlicingPolicy(), close=True)) == [(1, 1), (2, 2), (3, 3), (4, 4)]


def test_what_waits_behind_an_open_call_does_not_count_as_its_unit() -> None:
    """The result may never come; then the messages behind the call were never a part of it."""
    policy = SlicingPolicy(max_messages=3)
    tail = tail_of(said(1), call(2, "a"), said(3), said(4))

    assert cut(tail, policy) == ()
    assert ranges(cut(tail, policy, close=True)) == [(1, 3), (4, 4)]


def test_a_call_id_that_is_used_again_is_another_call() -> None:
    """Some hosts number the calls of each turn from one."""
    turns = [said(1, 0), call(2, "1", minutes=1), result(3, "1", 2), call(4, "1", minutes=600), result(5, "1", 601)]

    assert ranges(cut(tail_of(*turns), SlicingPolicy(), close=True)) == [(1, 3), (4, 5)]


def talk(*texts: str) -> list[StoredMessage]:
    """A person and an agent, in turn."""
    return [said(seq, text=text, role="assistant" if seq % 2 == 0 else "user") for seq, text in enumerate(texts, 1)]


def test_a_block_ends_between_two_turns() -> None:
    """An answer that is cut from its question tells nobody what was asked."""
    tail = tail_of(*talk("I moved.", "Where?", "To Lisbon.", "Noted.", "I like tea.", "So do I."))

    assert ranges(cut(tail, SlicingPolicy(max_messages=3), close=True, turns=True)) == [(1, 2), (2, 4), (5, 6)]
    assert ranges(cut(tail, SlicingPolicy(max_messages=3), close=True)) == [(1, 3), (4, 6)]


def test_a_block_that_begins_with_an_answer_holds_the_question() -> None:
    """The next day somebody says "58.", to what was asked at the end of the last block."""
    (_, asked), answer = talk("I marry in June.", "How many guests?"), said(3, 1500, text="58.")
    tail = tail_of(answer, after=2, overlap=[asked])

    assert ranges(cut(tail, SlicingPolicy(), close=True, turns=True)) == [(2, 3)]
    assert ranges(
        cut(replace(tail, overlap=(said(2, text="Good.", role="assistant"),)), SlicingPolicy(), close=True)
    ) == [(3, 3)]


def test_a_turn_without_end_is_cut_all_the_same() -> None:
    """An agent that works for hours must not make one block of them, which no model can read."""
    steps = [each for seq in range(2, 80, 2) for each in (call(seq, str(seq)), result(seq + 1, str(seq)))]
    cuts = ranges(cut(tail_of(said(1), *steps), SlicingPolicy(max_messages=4), close=True, turns=True))

    assert max(last - first + 1 for first, last in cuts) <= 4 * 4 + 2
    assert all(first == 1 or first % 2 == 0 for first, _ in cuts)


def test_an_overlap_holds_no_result_without_its_call() -> None:
    """A result that nobody asked for misleads the summary."""
    policy = SlicingPolicy(strategy="length", max_messages=3, overlap=1)
    tail = tail_of(said(1), call(2, "a"), result(3, "a"), said(4), said(5))

    assert ranges(cut(tail, policy, close=True)) == [(1, 3), (4, 5)]


@st.composite
def threads(draw: st.DrawFn) -> list[StoredMessage]:
    """Talks with silences, late messages, tasks, questions, and calls whose results come later, never, or under a used id."""
    messages: list[StoredMessage] = []
    minutes = 0.0
    for seq in range(1, draw(st.integers(0, 14)) + 1):
        minutes += draw(st.sampled_from([0, 1, 4, 6, 200, -300]))
        kind = draw(st.sampled_from(["say", "say", "reply", "call", "result"]))
        ids = draw(st.lists(st.sampled_from("abc"), min_size=1, max_size=2))
        task = draw(st.sampled_from(["", "x"]))
        text = draw(st.sampled_from(["", "Hello there.", "How many guests?", "你好，世界。" * 3]))
        if kind == "call":
            messages.append(said(seq, minutes, role="assistant", calls=ids, text=text, task=task))
        elif kind == "result":
            messages.append(said(seq, minutes, role="tool", answers=ids[0], text=text, task=task))
        else:
            messages.append(said(seq, minutes, role="user" if kind == "say" else "assistant", text=text, task=task))
    return messages


policies = st.builds(
    SlicingPolicy,
    strategy=st.sampled_from(["combined", "window", "gap", "task", "length"]),
    max_messages=st.integers(1, 5),
    max_tokens=st.integers(1, 40),
    overlap=st.integers(0, 3),
)


def pairs(messages: Sequence[StoredMessage]) -> list[tuple[int, int]]:
    """Each call with the result that answers it: the newest call of that id that waits."""
    waiting: list[tuple[str, int]] = []
    found: list[tuple[int, int]] = []
    for message in messages:
        mine = [one for one in waiting if message.role == "tool" and one[0] == message.tool_call_id]
        if mine:
            waiting.remove(mine[-1])
            found.append((mine[-1][1], message.seq))
        waiting += [(one.call_id, message.seq) for one in message.tool_calls]
    return found


@given(threads(), policies, st.booleans())
def test_every_message_of_a_closed_thread_is_in_a_block(
    messages: list[StoredMessage], policy: SlicingPolicy, turns: bool
) -> None:
    """Nothing that was said is lost between two blocks, and none is told twice unless asked for, or answered."""
    cuts = cut(tail_of(*messages), policy, close=True, turns=turns)

    held = [seq for one in cuts for seq in range(one.first_seq, one.last_seq + 1)]
    assert set(held) == {message.seq for message in messages}
    assert [one.after_seq for one in cuts] == [0, *(one.last_seq for one in cuts)][: len(cuts)]
    assert [one.last_seq for one in cuts] == sorted({one.last_seq for one in cuts})
    told = [message for message in messages for _ in range(held.count(message.seq) - 1)]
    if policy.strategy != "length" or policy.overlap == 0:
        assert held == sorted(held)
        assert all(message.text == "How many guests?" for message in told)
        assert turns or not told


@given(threads(), policies, st.booleans())
def test_a_call_is_never_cut_from_its_result(messages: list[StoredMessage], policy: SlicingPolicy, turns: bool) -> None:
    """Who learns what a tool does needs both."""
    cuts = cut(tail_of(*messages), policy, close=True, turns=turns)

    for asked, answered in pairs(messages):
        assert any(one.first_seq <= asked and answered <= one.last_seq for one in cuts)


@given(threads(), policies)
def test_a_question_and_its_answer_share_a_block(messages: list[StoredMessage], policy: SlicingPolicy) -> None:
    """Who reads "58." must read "How many guests?" before it, whoever of the two asks."""
    cuts = cut(tail_of(*messages), policy, close=True, turns=True)

    answers = {("user", "assistant"), ("assistant", "user")}
    for one, other in pairwise(messages):
        if one.text == "How many guests?" and (one.role, other.role) in answers and not one.tool_calls:
            assert any(each.first_seq <= one.seq and other.seq <= each.last_seq for each in cuts)


@given(threads(), policies, st.booleans(), st.data())
def test_cutting_in_two_runs_equals_cutting_once(
    messages: list[StoredMessage], policy: SlicingPolicy, turns: bool, data: st.DataObject
) -> None:
    """When summarize() is called does not change what is remembered."""
    now = data.draw(st.integers(0, len(messages)))
    first = cut(tail_of(*messages[:now]), policy, turns=turns)
    rest, most = tail_of(*messages), overlap(policy, turns=turns)
    if first:
        newest = [one for one in messages if first[-1].first_seq <= one.seq <= first[-1].last_seq]
        left = tuple(one for one in messages if one.seq > first[-1].last_seq)
        rest = replace(rest, after_seq=first[-1].last_seq, messages=left, overlap=tuple(newest[-most:] if most else ()))

    assert first + cut(rest, policy, close=True, turns=turns) == cut(
        tail_of(*messages), policy, close=True, turns=turns
    )
