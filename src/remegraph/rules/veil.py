"""Words that are withheld: how a message looks without them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from remegraph.models import REVISES, Memory, Message
from remegraph.rules.quotes import find_quote

__all__ = ["MARK", "leaves", "overlap", "silenced", "veiled", "without"]

MARK = "[withheld]"
"""What stands where words are withheld."""


def without(text: str, phrases: Sequence[str], mark: str = MARK) -> str:
    """Return a text with each of these phrases replaced, the longest first.

    Args:
        text: Any text.
        phrases: What must not be read in it.
        mark: What stands in their place.
    """
    for phrase in sorted(phrases, key=len, reverse=True):
        text = text.replace(phrase, mark) if phrase else text
    return text


def veiled(body: Mapping[str, Any], phrases: Sequence[str | None], mark: str = MARK) -> dict[str, Any]:
    """Return a message as plain JSON without what is withheld of it.

    Args:
        body: The message, as plain JSON.
        phrases: What is withheld; None among them: the whole message. Who speaks, and which calls are asked for and
            answered, stays: a conversation keeps its shape.
        mark: What stands in place of the words.
    """
    if None in phrases:
        extra = body.get("extra")
        kept = {REVISES: extra[REVISES]} if isinstance(extra, Mapping) and REVISES in extra else {}
        calls = [{**call, "args": {}} for call in body.get("tool_calls", ())]
        return {**body, "content": mark, "tool_calls": calls, "extra": kept, "task": ""}
    some = [phrase for phrase in phrases if phrase is not None]

    def unsaid(text: str) -> str:
        return without(text, some, mark)

    parts = {name: _changed(body[name], unsaid) for name in ("content", "extra", "task") if name in body}
    calls = [{**call, "args": _changed(call["args"], unsaid)} for call in body.get("tool_calls", ())]
    return {**body, **parts, "tool_calls": calls}


def leaves(message: Message) -> list[str]:
    """Return the texts that a message carries beside what is said in it: arguments of calls, and what a host attached."""
    found: list[str] = []

    def note(text: str) -> str:
        found.append(text)
        return text

    for part in (*(call.args for call in message.tool_calls), message.extra):
        _changed(part, note)
    return found


def silenced(memory: Memory) -> Memory:
    """Return a memory without a word of what it says; where it stands, and which messages it came from, stays.

    Args:
        memory: A version of one that was forgotten.
    """
    return memory.evolve(
        content=MARK,
        summary=MARK,
        when_to_use="",
        payload={},
        slot_value="",
        canonical_topic="",
        evidence=tuple(item.evolve(quote=MARK) for item in memory.evidence),
        tags=(),
    )


def overlap(quote: str, phrases: Sequence[str | None], text: str) -> bool:
    """Return whether words that were quoted from a text are withheld, in part or whole.

    Args:
        quote: The words.
        phrases: What is withheld of the text; None: all of it.
        text: What they were quoted from, as it was said.
    """
    if None in phrases:
        return True
    place = find_quote(quote, text)
    for phrase in phrases:
        if phrase and (phrase in quote or quote in phrase):
            return True
        if phrase and place and any(start < place[1] and place[0] < end for start, end in _places(phrase, text)):
            return True
    return False


def _places(phrase: str, text: str) -> Iterator[tuple[int, int]]:
    start = text.find(phrase)
    while start >= 0:
        yield start, start + len(phrase)
        start = text.find(phrase, start + 1)


def _changed(value: Any, change: Callable[[str], str]) -> Any:
    """Return JSON with each of its texts changed; names of fields stay."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        told = change(str(value))
        return value if told == str(value) else told
    if isinstance(value, list):
        return [_changed(each, change) for each in value]
    if isinstance(value, dict):
        return {name: _changed(each, change) for name, each in value.items()}
    return value
