"""Which result answers which tool call, and what was heard of a call as it happened: one call, counted once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

from remegraph.models import Message, ToolCall, ToolRecord

__all__ = ["Called", "called", "joined", "twin"]

T = TypeVar("T")


class Called(NamedTuple):
    """A tool call in a conversation."""

    at: int
    """The place of the message that asks for it."""
    call: ToolCall
    answer: int | None
    """The place of its result; none where nothing answers it."""


def called(messages: Sequence[Message]) -> list[Called]:
    """Return the tool calls of a conversation in their order, each with its result.

    A result answers the newest message that waits for one of its id, and there the first such call: hosts use ids again,
    and some give none.

    Args:
        messages: In their order.
    """
    found: list[Called] = []
    waiting: defaultdict[str, list[int]] = defaultdict(list)
    for at, message in enumerate(messages):
        if message.role == "tool" and (asked := waiting[message.tool_call_id]):
            place = asked.pop()
            found[place] = found[place]._replace(answer=at)
        places = range(len(found), len(found) + len(message.tool_calls))
        found += [Called(at, call, None) for call in message.tool_calls]
        for place in reversed(places):
            waiting[found[place].call.call_id].append(place)
    return found


def twin(known: Iterable[ToolRecord], new: ToolRecord) -> ToolRecord | None:
    """Return the record of the same call, if there is one.

    The same id for the same tool and arguments is the same call, unless two messages asked for it: some models begin
    to number their calls anew with each answer.

    Args:
        known: Records of its partition with its call id.
        new: A record.
    """
    alike = sorted(
        (each for each in known if each.digest == new.digest or (not each.digest and each.message_id)),
        key=lambda each: each.time,
    )
    unread = [each for each in alike if not each.message_id]
    if new.message_id:
        return next((each for each in alike if each.message_id == new.message_id), next(iter(unread), None))
    return next(iter(unread), alike[-1] if alike else None)


def joined(known: ToolRecord, new: ToolRecord) -> ToolRecord:
    """Return one record of two of the same call: each fills what the other lacks.

    Of what was heard twice, the newer counts: it was tried again. Between what was heard and what was read, a failure
    holds, with what the messages say of it; times are those that were heard: messages are often recorded all at once, when
    a run is over.

    Args:
        known: What was recorded before.
        new: What is recorded now.
    """
    first, second = (known, new) if new.message_id else (new, known)
    read = next((each for each in (new, known) if each.message_id), new)
    saw = first
    if read.message_id:
        saw = next((each for each in (first, second) if each.ok is False), first)
    if saw.ok is None:
        saw = second
    return known.evolve(
        block_id=read.block_id,
        message_id=read.message_id,
        digest=new.digest or known.digest,
        ok=saw.ok,
        error=(read.error or saw.error) if saw.ok is False else "",
        seconds=_first(first.seconds, second.seconds),
        input_tokens=_first(first.input_tokens, second.input_tokens),
        output_tokens=_first(first.output_tokens, second.output_tokens),
        time=first.time,
    )


def _first(one: T | None, other: T | None) -> T | None:
    return other if one is None else one
