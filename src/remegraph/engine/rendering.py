"""Records as data for a prompt: one line each, text as JSON strings, so that none can pose as another line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from remegraph.engine.tasks import Pictured
from remegraph.language.times import datetime_tool, describe
from remegraph.models import Memory, Message, Scope, Shelf
from remegraph.ports import Draft
from remegraph.prompts import Language
from remegraph.rules.objections import Objection
from remegraph.rules.perceiving import marks
from remegraph.rules.standing import QUARANTINE_BELOW
from remegraph.rules.trajectories import Call

__all__ = [
    "attachment_lines",
    "block_lines",
    "call_lines",
    "draft_lines",
    "memory_lines",
    "name_of_agent",
    "objection_lines",
    "reason_lines",
    "topic_lines",
]

_TOOL_TEXT_LIMIT = 2000
"""Characters of a tool's output that a prompt shows; the ledger holds it whole."""


def block_lines(messages: Sequence[Message], language: Language) -> str:
    """Return a block as numbered lines, the day and zone on top and relative dates resolved; tool output is cut.

    Attachments are marked behind the words, outside the quotation marks: nobody said that.
    """
    lines = [f"({describe(messages[0].time)})"]
    day = messages[0].time.date()
    for number, message in enumerate(messages, start=1):
        if message.time.date() != day:
            day = message.time.date()
            lines.append(f"({describe(message.time)})")
        text = message.text if message.trust >= QUARANTINE_BELOW else message.text[:_TOOL_TEXT_LIMIT]
        role = "document" if message.is_document else message.role
        who = role if message.name in {"", role} else f"{_quoted(message.name)[1:-1]} ({role})"
        calls = "".join(f" -> {_quoted(call.name)[1:-1]}({_quoted(call.args)})" for call in message.tool_calls)
        beside = "".join(f" {_quoted(mark)[1:-1]}" for mark in marks(message, language, told=False))
        failed = " failed" if message.ok is False else ""
        times = datetime_tool(text, message.time) if message.trust >= QUARANTINE_BELOW else ""
        lines.append(f"{number} {who}{failed}: {_quoted(text)}{calls}{beside}{times and f' ({times})'}")
    return "\n".join(lines)


def attachment_lines(pictured: Sequence[Pictured]) -> str:
    """Return attachments as numbered lines: what each is, and which message it belongs to."""
    return "\n".join(
        f"{number} {each.attachment.kind} {_quoted(each.attachment.name)}, message {each.number}"
        for number, each in enumerate(pictured, start=1)
    )


def call_lines(calls: Sequence[Call]) -> str:
    """Return tool calls as numbered lines, without a word of their results."""
    return "\n".join(
        f"{number} {_quoted(call.tool)[1:-1]}({_quoted(call.args)})" for number, call in enumerate(calls, start=1)
    )


def name_of_agent(scope: Scope) -> str:
    """Return what the agent is called in a block: its name, or its role."""
    return _quoted(scope.agent or "assistant")[1:-1]


def topic_lines(shelves: Iterable[Shelf]) -> str:
    """Return a topic index, one key and description per line."""
    return "\n".join(
        f"{_quoted(shelf.topic.key)[1:-1]} - {_quoted(shelf.topic.description)[1:-1]}" for shelf in shelves
    )


def memory_lines(memories: Iterable[tuple[str, Memory]]) -> str:
    """Return memories, one per line, each under the short name given; knowledge and policies are marked as such."""
    lines = (
        f"{_quoted(name)[1:-1]} [{memory.said_at:%Y-%m-%d}{_mark(memory)}] {_quoted(memory.content)}"
        for name, memory in memories
    )
    return "\n".join(lines) or "-"


def _mark(memory: Memory) -> str:
    return f", {'knowledge' if memory.usage == 'knowledge' else 'policy'}" if memory.firm else ""


def objection_lines(objections: Iterable[Objection]) -> str:
    """Return objections, one per line."""
    return reason_lines(f"{item.topic}: {item.kind}: {item.reason}" for item in objections) or "-"


def reason_lines(reasons: Iterable[str]) -> str:
    """Return reasons, one per line."""
    return "\n".join(f"- {_quoted(reason)[1:-1]}" for reason in reasons)


def draft_lines(drafts: Iterable[Draft]) -> str:
    """Return knowledge that is to be said in general, one piece per line, numbered from 1."""
    return "\n".join(
        _quoted({"n": number, "kind": draft.kind, "fields": dict(draft.fields)})
        for number, draft in enumerate(drafts, start=1)
    )


def _quoted(value: object) -> str:
    """JSON keeps a text on one line; lone surrogates, which no model takes, become a replacement mark."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace").decode("utf-8")
