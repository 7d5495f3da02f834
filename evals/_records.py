"""What an eval is about: stores of messages, and questions with the ids of what answers them."""

from __future__ import annotations

import json
from typing import Any, NotRequired, TypedDict

__all__ = ["Message", "Question", "Store", "said"]


class Message(TypedDict):
    """A message of a store."""

    id: str
    thread: str
    name: str
    role: str
    content: str
    time: str
    tool_calls: NotRequired[list[dict[str, Any]]]
    tool_call_id: NotRequired[str]
    ok: NotRequired[bool]


class Question(TypedDict):
    """What is asked of a store."""

    text: str
    gold: list[str]
    stale: NotRequired[list[str]]
    """What answered it once, and does no more."""
    category: NotRequired[str]
    answer: NotRequired[str]
    time: NotRequired[str]


class Store(TypedDict):
    """One memory, and what is asked of it."""

    store: str
    language: NotRequired[str]
    messages: list[Message]
    questions: list[Question]
    gold_unit: NotRequired[str]


def said(message: Message) -> str:
    """Return a message as every memory is given it: who says what, and the calls that it asks for."""
    calls = (
        f" {call['name']} {json.dumps(call['args'], ensure_ascii=False)}" for call in message.get("tool_calls", ())
    )
    return f"{message['name']}: {message['content']}{''.join(calls)}"
