"""Records as data for a prompt: one line each, text as JSON strings, so that none can pose as another line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from remegraph.engine.frame import marks
from remegraph.engine.routes import called_tools
from remegraph.engine.schemas import Schema
from remegraph.engine.summary_tasks import DigestTask, Objection, Operation, OwnerRules, Pictured, ProposeTask
from remegraph.engine.trajectories import Call
from remegraph.models import Memory, Message, Scope, Shelf, ToolCall
from remegraph.models.standing import QUARANTINE_BELOW
from remegraph.ports import Draft
from remegraph.prompts import Language, load
from remegraph.text.times import datetime_tool, describe

__all__ = [
    "Line",
    "attachment_lines",
    "block_lines",
    "call_lines",
    "call_text",
    "draft_lines",
    "field_lines",
    "line_of",
    "memory_lines",
    "name_of_agent",
    "name_of_user",
    "objection_lines",
    "operation_lines",
    "reason_lines",
    "rule_lines",
    "statement_text",
    "topic_lines",
    "topics_shown",
]

_TOOL_TEXT_LIMIT = 2000
"""Characters of a tool's output that a prompt shows; the ledger holds it whole."""

_SLOTS = 8
"""Slots of a topic that the index names."""


def block_lines(messages: Sequence[Message], language: Language) -> str:
    """Return a block as numbered lines, the day and zone on top and relative dates resolved; tool output is cut.

    Attachments are marked behind the words, outside the quotation marks: they were not spoken.
    """
    lines = [f"({describe(messages[0].time)})"]
    day = messages[0].time.date()
    for number, message in enumerate(messages, start=1):
        if message.time.date() != day:
            day = message.time.date()
            lines.append(f"({describe(message.time)})")
        line = line_of(message, number, language)
        lines.append(f"{line.speaker}{_quoted(line.text)}{line.calls}{line.beside}")
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Line:
    """A message as a prompt shows it: its words, and the marks around them."""

    speaker: str
    text: str
    calls: str
    beside: str


def line_of(message: Message, number: int, language: Language) -> Line:
    """Return what a prompt shows of a message: number and speaker, words, calls, then marks and dates."""
    text = message.text if message.trust >= QUARANTINE_BELOW else message.text[:_TOOL_TEXT_LIMIT]
    role = "document" if message.is_document else message.role
    who = role if message.name in {"", role} else f"{_quoted(message.name)[1:-1]} ({role})"
    failed = " failed" if message.ok is False else ""
    marked = "".join(f" {_quoted(mark)[1:-1]}" for mark in marks(message, language, told=False))
    times = datetime_tool(text, message.time) if message.trust >= QUARANTINE_BELOW else ""
    return Line(
        speaker=f"{number} {who}{failed}: ",
        text=text,
        calls="".join(f" -> {call_text(call)}" for call in message.tool_calls),
        beside=f"{marked}{times and f' ({times})'}",
    )


def call_text(call: ToolCall) -> str:
    """Return a tool call as a prompt shows it."""
    return f"{_quoted(call.name)[1:-1]}({_quoted(call.args)})"


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


def name_of_user(scope: Scope) -> str:
    """Return the speaker of a user's message without a name."""
    return _quoted(scope.user)[1:-1]


def topic_lines(shelves: Iterable[Shelf], held: Mapping[Shelf, Sequence[str]] | None = None) -> str:
    """Return a topic index, one key and description per line.

    Of the slots that their memories hold, a few are named behind the description.
    """
    return "\n".join(
        f"{_quoted(shelf.topic.key)[1:-1]} - {_quoted(shelf.topic.description)[1:-1]}{_held(shelf, held or {})}"
        for shelf in shelves
    )


def field_lines(schema: Schema | None, language: Language) -> str:
    """Return the fields that a schema gives a topic, and how they are filled; empty if it has none."""
    return "" if schema is None else f"\n{load('schema', language).render(fields=schema.lines())[1]}"


def topics_shown(task: DigestTask) -> str:
    """Return what a block is routed by: the topic index, whether others may be named, and what the agent knows of itself."""
    pairs = load("pair", task.language).render()[1] if len(called_tools(task.messages)) > 1 else ""
    invent = load("invent", task.language).render()[1] if task.invents else ""
    itself = load("itself", task.language).render(memories=memory_lines(("self", each) for each in task.itself))[1]
    return "\n".join(filter(None, (topic_lines(task.shelves, task.held), pairs, invent, itself if task.itself else "")))


def _held(shelf: Shelf, held: Mapping[Shelf, Sequence[str]]) -> str:
    own = f"{shelf.topic.target}:"
    names = [slot.removeprefix(own) for slot in held.get(shelf, ())[:_SLOTS]]
    return f" ({_quoted(', '.join(names))[1:-1]})" if names else ""


def memory_lines(memories: Iterable[tuple[str, Memory]]) -> str:
    """Return memories, one per line, each under the short name given; knowledge and policies are marked as such."""
    lines = (
        f"{_quoted(name)[1:-1]} [{memory.said_at:%Y-%m-%d}{_mark(memory)}] {_quoted(memory.content)}"
        for name, memory in memories
    )
    return "\n".join(lines) or "-"


def _mark(memory: Memory) -> str:
    """Return what else a prompt says of a memory: that nothing changes it, until when it holds, its slot."""
    firm = f", {'knowledge' if memory.usage == 'knowledge' else 'policy'}" if memory.firm else ""
    until = f", until {memory.valid_to:%Y-%m-%d}" if memory.valid_to else ""
    value = f" = {memory.slot_value}" if memory.slot_value else ""
    slot = f", {_quoted(memory.canonical_topic + value)[1:-1]}" if memory.canonical_topic else ""
    return f"{until}{slot}{firm}"


def operation_lines(operations: Mapping[str, Operation], names: Mapping[str, str]) -> str:
    """Return the operations of an attempt, one per line under its short name."""
    lines = (
        " ".join((name, each.action, *(names.get(target, "") for target in each.targets), _quoted(each.content)))
        for name, each in operations.items()
    )
    return "\n".join(lines) or "-"


def before_lines(task: ProposeTask) -> str:
    """Return what a writer knows already: the words before the block, and memories of other topics."""
    parts: list[str] = []
    if task.before:
        messages = block_lines(task.before, task.language)
        parts.append(load("before", task.language).render(messages=messages)[1])
    if task.beside:
        lines = memory_lines((memory.topic.key, memory) for memory in task.beside)
        parts.append(load("beside", task.language).render(memories=lines)[1])
    return "".join(f"{part}\n" for part in parts)


def wish_lines(task: ProposeTask, names: Mapping[str, Memory]) -> str:
    """Return what a writer is asked to settle: requests of the block, and slots of one value that several hold."""
    parts: list[str] = []
    by_id = {memory.memory_id: name for name, memory in names.items()}
    pairs = [[by_id[each] for each in pair if each in by_id] for pair in task.settle]
    if pairs := [pair for pair in pairs if len(pair) > 1]:
        told = "; ".join(", ".join(pair) for pair in pairs)
        parts.append(load("settle", task.language).render(pairs=told)[1])
    if task.wishes:
        numbers = [task.messages.index(message) + 1 for message in task.wishes if message in task.messages]
        lines = memory_lines((name, memory) for name, memory in names.items() if memory in task.meant)
        told = ", ".join(map(str, numbers))
        parts.append(load("wishes", task.language).render(requests=told, memories=lines)[1])
    return "".join(f"{part}\n" for part in parts)


def objection_lines(objections: Iterable[Objection]) -> str:
    """Return objections, one per line."""
    return reason_lines(f"{item.topic}: {item.kind}: {item.reason}" for item in objections) or "-"


def reason_lines(reasons: Iterable[str], *, numbered: bool = False) -> str:
    """Return reasons, one per line."""
    return "\n".join(
        f"{f'{number}.' if numbered else '-'} {_quoted(reason)[1:-1]}" for number, reason in enumerate(reasons, start=1)
    )


def rule_lines(rules: OwnerRules, language: Language) -> str:
    """Return the owner's rules, one per line under its number; a kind with what it covers."""
    kinds = dict(line.split(": ", 1) for line in load("kinds", language).render()[1].splitlines())
    said = [f"{rule}: {kinds[rule]}" if rule in kinds else _quoted(rule)[1:-1] for rule in (*rules.never, *rules.only)]
    never, only = said[: len(rules.never)], "; ".join(said[len(rules.never) :])
    lines = [("rule_never", rule) for rule in never] + ([("rule_only", only)] if only else [])
    return "\n".join(
        load(name, language).render(number=str(number), rule=rule)[1]
        for number, (name, rule) in enumerate(lines, start=1)
    )


def statement_text(memory: Memory) -> str:
    """Return all that a memory would say, with its topic, as one text."""
    value = f"{memory.canonical_topic} = {memory.slot_value}" if memory.canonical_topic or memory.slot_value else ""
    return "; ".join(
        filter(None, (f"{memory.topic.key}: {memory.content}", memory.when_to_use, value, ", ".join(memory.tags)))
    )


def draft_lines(drafts: Iterable[Draft]) -> str:
    """Return knowledge that is to be said in general, one piece per line, numbered from 1."""
    return "\n".join(
        _quoted({"n": number, "kind": draft.kind, "fields": dict(draft.fields)})
        for number, draft in enumerate(drafts, start=1)
    )


def _quoted(value: object) -> str:
    """JSON keeps a text on one line; lone surrogates, which no model takes, become a replacement mark."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace").decode("utf-8")
