"""Stores made of recorded tool calls, with questions that a rule asks: what is remembered of an agent's own work?

A file holds one call per line: `{"tool", "args", "result", "ok", "task", "trial"}`, as tau-bench's trajectories do
(https://github.com/sierra-research/tau-bench). Each trial is a store: all of its tasks, one after the other, each a
thread. A call becomes two messages, one of the assistant that asks for it, and the tool's answer. Nobody speaks.

The questions are templates by tool, in `tool_calls.toml`, filled with what was asked for or what came back. Gold of a
question are the results of all calls for which the same tool's template says the same.
"""

from __future__ import annotations

import json
import random
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from evals._records import Message, Question, Store

__all__ = ["messages_of", "situations", "tool_call_stores"]

_QUESTIONS = 40
"""Of each category and store, at most."""

_BEGAN = datetime(2024, 5, 15, 9, tzinfo=UTC)
_SLOT = re.compile(r"\{(\w+)\}")


def tool_call_stores(calls: Sequence[Mapping[str, Any]], seed: int = 7) -> Iterator[Store]:
    """Yield a store for each trial.

    Args:
        calls: As the file has them.
        seed: Of the choice of questions.
    """
    trials: dict[int, list[Mapping[str, Any]]] = defaultdict(list)
    for call in calls:
        trials[call["trial"]].append(call)
    for trial, made in sorted(trials.items()):
        messages = [message for number, call in enumerate(made) for message in messages_of(number, call)]
        yield Store(store=f"trial {trial}", messages=messages, questions=_chosen(_questions(made), seed))


def _chosen(questions: Sequence[Question], seed: int) -> list[Question]:
    by_category: dict[str, list[Question]] = defaultdict(list)
    for question in questions:
        by_category[question.get("category", "")].append(question)
    draw = random.Random(seed)
    return [each for alike in by_category.values() for each in draw.sample(alike, min(_QUESTIONS, len(alike)))]


def situations(calls: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Return what a person would ask for, each once, with the tool that is for it; of calls that went well.

    Args:
        calls: As the file has them.
    """
    found: dict[tuple[str, str], None] = {}
    for call in calls:
        values = _values(call)
        for templates in (_templates()["argument"], _templates()["result"]) if call["ok"] else ():
            for template in templates.get(call["tool"], ()):
                if values.keys() >= set(_SLOT.findall(template)):
                    found[template.format(**values), call["tool"]] = None
    return list(found)


def messages_of(number: int, call: Mapping[str, Any]) -> tuple[Message, Message]:
    """Return the request and the answer, a minute after those before, each task on a day of its own.

    Args:
        number: Of the call.
        call: As the file has it.
    """
    thread = f"task {call['task']}"
    time = (_BEGAN + timedelta(days=call["task"], minutes=number)).isoformat()
    asked = {"name": call["tool"], "args": json.loads(call["args"]), "call_id": f"call {number}"}
    request = Message(
        id=f"{number} asked", thread=thread, name="agent", role="assistant", content="", time=time, tool_calls=[asked]
    )
    answer = Message(
        id=_result_id(number),
        thread=thread,
        name=call["tool"],
        role="tool",
        content=call["result"],
        time=time,
        tool_call_id=asked["call_id"],
        ok=call["ok"],
    )
    return request, answer


def _result_id(number: int) -> str:
    return f"{number} answered"


def _questions(calls: Sequence[Mapping[str, Any]]) -> list[Question]:
    """Return all questions that the templates ask, each once, with the results that answer it."""
    gold: dict[tuple[str, str], list[str]] = defaultdict(list)
    for number, call in enumerate(calls):
        values = _values(call)
        for category, templates in _templates().items():
            if call["ok"] is (category == "failure"):
                continue
            for template in templates.get(call["tool"], ()):
                if values.keys() >= set(_SLOT.findall(template)):
                    gold[category, template.format(**values)].append(_result_id(number))
    return [Question(text=text, gold=ids, category=category) for (category, text), ids in gold.items()]


def _values(call: Mapping[str, Any]) -> dict[str, str]:
    """Return the plain values of a call by name: of what came back, and of what was asked for where both have one."""
    try:
        result = json.loads(call["result"])
    except ValueError:
        result = None
    values = _plain(result if isinstance(result, dict) else {}) | _plain(json.loads(call["args"]))
    return {name: str(value) for name, value in values.items() if str(value)}


def _plain(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is no list, of nested fields, too."""
    found: dict[str, Any] = {}
    for name, value in fields.items():
        found |= _plain(value) if isinstance(value, dict) else {} if isinstance(value, list) else {name: value}
    return found


def _templates() -> dict[str, dict[str, list[str]]]:
    text = Path(__file__).with_name("tool_calls.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)
