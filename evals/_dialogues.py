"""Long dialogues with what holds after them, read from a folder: what is said, when, and what is asked in the end."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from evals._records import Message, said
from remegraph import Scope

__all__ = ["STATES", "Dialogue", "Fact", "Session", "dialogues"]

State = Literal["current", "gone", "never", "uncertain"]
STATES: tuple[State, ...] = ("current", "gone", "never", "uncertain")

_LATER = timedelta(days=1)
"""How long after the last words everything is asked."""


@dataclass(frozen=True, slots=True)
class Fact:
    """What holds or does not after a dialogue, and the question that tells whether that is known."""

    n: int
    state: State
    fact: str
    question: str
    answer: str
    stale_answer: str
    evidence: Sequence[str] = ()
    """Ids of the messages that tell it."""

    @property
    def shown(self) -> dict[str, str]:
        """What a judge is shown of it."""
        return {name: getattr(self, name) for name in ("state", "fact", "question", "answer", "stale_answer")}


@dataclass(frozen=True, slots=True)
class Session:
    """One conversation of a dialogue."""

    thread: str
    messages: Sequence[Message]

    @property
    def ends(self) -> datetime:
        """When the last words were said."""
        return datetime.fromisoformat(self.messages[-1]["time"])


@dataclass(frozen=True, slots=True)
class Dialogue:
    """What two or more say over months, and the facts that it is held against."""

    name: str
    language: str
    scope: Scope
    sessions: Sequence[Session]
    facts: Sequence[Fact]

    @property
    def messages(self) -> list[Message]:
        """All messages, in their order."""
        return [message for session in self.sessions for message in session.messages]

    @property
    def lines(self) -> dict[str, str]:
        """What was said, a line for each message, by its id."""
        return {
            each["id"]: f"[{each['time'][:16].replace('T', ' ')}] {' '.join(said(each).split())}"
            for each in self.messages
        }

    @property
    def asked_at(self) -> datetime:
        """When its questions are asked."""
        return self.sessions[-1].ends + _LATER


def dialogues(folder: Path, only: Sequence[str] = ()) -> Iterator[Dialogue]:
    """Yield the dialogues of a folder, by name.

    Args:
        folder: Holds a JSON file for each.
        only: Names of those that are wanted; all unless given.
    """
    for path in sorted(folder.glob("*.json")):
        if not only or path.stem in only:
            yield _read(json.loads(path.read_text(encoding="utf-8")))


def _read(raw: dict[str, Any]) -> Dialogue:
    user, agent = (raw[key].partition(",")[0].partition(" (")[0].strip() for key in ("user", "agent"))
    speakers = {"user": user, "assistant": agent, "tool": "tool"}
    sessions = [
        Session(each["thread"], [_message(each["thread"], message, speakers) for message in each["messages"]])
        for each in raw["sessions"]
    ]
    names = [name for name in Fact.__slots__ if name not in {"n", "evidence"}]
    facts = [
        Fact(n, **{name: expected[name] for name in names}, evidence=expected.get("evidence", ()))
        for n, expected in enumerate(raw["expect"])
    ]
    return Dialogue(raw["id"], raw["lang"], Scope(user=user, agent=agent), sessions, facts)


def _message(thread: str, raw: dict[str, Any], speakers: dict[str, str]) -> Message:
    message: Message = {"thread": thread, "name": speakers[raw["role"]], **raw}  # type: ignore[typeddict-item]
    return message
