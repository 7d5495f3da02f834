"""A bundled conversation: an agent named Remy, two people, several days. Original, in English and Chinese.

Ann moves from Lisbon to Porto, gives up coffee and keeps hating mushrooms; 小林 loves them and plans a trip. Remy looks
things up with a search that often times out and a page reader that never does, and learns how Ann judges annual reports.
What a large language model answered to every prompt of it is bundled, too, so that it runs offline.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import as_file, files
from typing import Any

from remegraph.errors import SetupError
from remegraph.importers.conversations import read_conversations
from remegraph.kit import MemoryKit
from remegraph.models import Progress, Scope, SummaryReport
from remegraph.testing import Answer, ModelCall, ScriptedChatModel, Step

__all__ = ["ANSWERS", "PEOPLE", "SELF", "Person", "Played", "answers", "key", "model", "play"]

ANSWERS = "answers.jsonl"
"""Name of the file with what a model answered, in this package."""

SELF = "I am Remy, a research assistant. I keep answers short and name my sources."
"""Remy's configured self-knowledge."""

_PLAYED_ON = re.compile(rf"\[\d{{4}}-\d\d-\d\d\](?= {re.escape(json.dumps(SELF))})")
"""The day on which the demo is played: Remy's self-knowledge is recorded then, and prompts show that day beside it."""


@dataclass(frozen=True, slots=True)
class Person:
    """One of the people that Remy talks with."""

    scope: Scope
    file: str
    """Name of the conversation file in this package."""
    question: str
    """The question that the demo asks for them."""


ANN = Person(
    Scope(user="Ann", agent="remy"), "ann.jsonl", "Where does Ann live now? Does she like coffee or green tea?"
)
XIAOLIN = Person(Scope(user="小林", agent="remy"), "xiaolin.jsonl", "小林喜欢喝什么，打算什么时候去成都？")
PEOPLE = (ANN, XIAOLIN)


@dataclass(frozen=True, slots=True)
class Played:
    """A conversation that was recorded and summarised."""

    person: Person
    added: int
    known: int
    report: SummaryReport


@cache
def answers() -> Mapping[str, Any]:
    """Return what a model answered, by the keys of its prompts."""
    lines = (files("remegraph.demo") / ANSWERS).read_text(encoding="utf-8").splitlines()
    return {each["key"]: each["answer"] for each in map(json.loads, lines)}


def key(call: ModelCall) -> str:
    """Return the key of a prompt: a hash of the form that it asks for and of all that it says.

    The day on which the demo is played is left out.

    Args:
        call: The prompt.
    """
    return sha256(f"{call.schema}\n{_PLAYED_ON.sub('[today]', call.text)}".encode()).hexdigest()[:16]


def model(step: Step | None = None) -> ScriptedChatModel:
    """Return a chat model that answers the prompts of the demo as a real one did; it knows no other.

    Args:
        step: How to answer instead, where answers are recorded anew.
    """

    def recorded(call: ModelCall) -> Answer:
        answer: Answer | None = answers().get(key(call))
        if answer is None:
            return SetupError(
                "The demo has no recorded answer to a prompt: settings or prompts are others than when it was recorded.",
                "Unset the REMEGRAPH_ variables, or pass `model=` a chat model of yours.",
            )
        return answer

    script = dict.fromkeys(("DigestAnswer", "ProposalAnswer"), step or recorded)
    return ScriptedChatModel(script=script, model_name="recorded")


def play(kit: MemoryKit, progress: Callable[[Progress], None] | None = None) -> tuple[Played, ...]:
    """Record both conversations in a kit and summarise them. A second time changes nothing.

    Args:
        kit: The memory.
        progress: Called with how far it is.
    """
    kit.remember_self(SELF, scope=ANN.scope)
    played = []
    for person in PEOPLE:
        added = known = 0
        with as_file(files("remegraph.demo") / person.file) as path:
            for conversation in read_conversations(path, timezone=None):
                receipt = kit.add_messages(conversation.messages, scope=person.scope)
                added += receipt.added
                known += receipt.known
        report = kit.summarize(scope=person.scope, close=True, progress=progress)
        played.append(Played(person, added, known, report))
    return tuple(played)
