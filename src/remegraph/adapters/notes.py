"""Recalled memory among the messages for a model: as data, next to the words that it was recalled for.

On later turns it stays in its place: a provider's prompt cache serves what a prompt begins with, and a note that is
gone on the next turn would end that before the last turn's tool output. What was in which place is kept in this process alone,
never in the host's state; see docs/decisions/0032-notes-stay-where-they-stood.md.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping, Sequence
from hashlib import blake2b
from threading import Lock
from typing import Self

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage

from remegraph.engine.frame import RECALLED, shown_ids
from remegraph.importers.turns import left_out
from remegraph.models import Scope

__all__ = [
    "Note",
    "Notes",
    "Turn",
    "inject",
    "newest_answer",
    "newest_words",
    "passages",
    "person_speaks_last",
    "previous_words",
    "replaced",
    "turns",
]


class Note(str):
    """The note for the newest words of a person, as text, and the places of the notes of earlier turns.

    Args:
        text: All of it.
        news: What of it no earlier note says.
        earlier: Earlier notes, by the conversation up to the words that they come before.
    """

    __slots__ = ("earlier", "news")

    news: str
    earlier: Mapping[str, str]

    def __new__(cls, text: str = "", news: str | None = None, earlier: Mapping[str, str] | None = None) -> Self:
        """Make a note."""
        note = super().__new__(cls, text)
        note.news = text if news is None else news
        note.earlier = earlier or {}
        return note


def inject(messages: Sequence[AnyMessage], memory: str) -> list[AnyMessage]:
    """Return the messages for a model with what was recalled before the newest words of a person.

    It is a human message, since memory has no more authority than a user, and never goes into the state: capture leaves
    it out all the same. Notes of earlier turns stay where they were, so a provider's prompt cache serves all that was
    sent before, and what they say is not said again.

    Args:
        messages: The conversation; it is not changed.
        memory: What was recalled, as node and middleware give it, or any text; nothing is added for none.
    """
    earlier = memory.earlier if isinstance(memory, Note) else {}
    places = passages(messages)
    notes = {start: earlier[course] for course, start in places[:-1] if course in earlier}
    all_there = len(notes) == len(earlier)
    if newest := memory.news if isinstance(memory, Note) and all_there else str(memory):
        notes[places[-1][1] if places else 0] = newest
    found: list[AnyMessage] = []
    for at in range(len(messages) + 1):
        if note := notes.get(at):
            found.append(HumanMessage(note, additional_kwargs={RECALLED: shown_ids(note)}))
        found.extend(messages[at : at + 1])
    return found


class Notes:
    """Notes shown before a person's words in the prompts of conversations, in this process: bounded, the idle go first.

    A note is found by all that was said up to these words, as a provider's cache finds a prompt: where the host edited,
    trimmed or went back on anything before, it is not there. Safe to use from any thread.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: OrderedDict[tuple[Scope, str], dict[str, Note]] = OrderedDict()

    def of(self, scope: Scope, thread: str, courses: Collection[str]) -> dict[str, Note]:
        """Return the notes of a conversation, in its order.

        Args:
            scope: Whose.
            thread: The conversation.
            courses: What was said up to each of a person's words; see `passages`.
        """
        with self._lock:
            kept = self._kept.get((scope, thread), {})
            return {course: kept[course] for course in courses if course in kept}

    def keep(self, scope: Scope, thread: str, notes: Mapping[str, Note], gone: Collection[str] = ()) -> None:
        """Keep notes of a conversation in mind, each in the place of an older one.

        Args:
            scope: Whose.
            thread: The conversation.
            notes: By the conversation up to the words that they come before.
            gone: Those that are there no more.
        """
        with self._lock:
            kept = self._kept.pop((scope, thread), {})
            stay = {course: note for course, note in kept.items() if course not in notes and course not in gone}
            newest = list((stay | dict(notes)).items())[-_MOST_NOTES:]
            self._kept[scope, thread] = dict(newest)
            while len(self._kept) > _MOST_THREADS:
                self._kept.popitem(last=False)


def passages(messages: Sequence[BaseMessage]) -> list[tuple[str, int]]:
    """Return the places where a person speaks, several messages in a row as one: a digest of all said so far, and where.

    Instructions and notes count for nothing, nor do marks for a provider's cache, which hosts move about.
    """
    digest, found = blake2b(digest_size=16), list[tuple[str, int]]()
    start = None
    for at, message in enumerate(messages):
        if message.type == "system" or (RECALLED in message.additional_kwargs and message.type != "tool"):
            continue
        if _is_person(message):
            start = at if start is None else start
        elif start is not None:
            found.append((digest.hexdigest(), start))
            start = None
        digest.update(json.dumps(_cache_key(message), default=str).encode() + b"\n")
    return [*found, (digest.hexdigest(), start)] if start is not None else found


def _cache_key(message: BaseMessage) -> tuple[object, ...]:
    """Return what makes a message the same to a provider's cache."""
    parts = [message.content] if isinstance(message.content, str) else message.content
    told = [
        part if isinstance(part, str) else {key: part[key] for key in part if key != "cache_control"} for part in parts
    ]
    texts = [part.get("text") if isinstance(part, dict) and part.get("type") == "text" else part for part in told]
    calls = (
        [(call["id"], call["name"], call["args"]) for call in message.tool_calls]
        if isinstance(message, AIMessage)
        else []
    )
    return message.type, texts, calls, getattr(message, "tool_call_id", "")


def newest_words(messages: Sequence[BaseMessage]) -> str:
    """Return what a person said last, several messages in a row as one text; empty where no person spoke."""
    start, end = _newest_turn(messages)
    return "\n".join(filter(None, (message.text.strip() for message in messages[start:end])))


def newest_answer(messages: Sequence[BaseMessage]) -> str:
    """Return what the agent answered to the newest words of a person; nothing where it has not answered yet."""
    _, end = _newest_turn(messages)
    return "\n".join(filter(None, (message.text.strip() for message in messages[end:] if message.type == "ai")))


def previous_words(messages: Sequence[BaseMessage]) -> str:
    """Return what a person said the time before; see `newest_words`."""
    start, _ = _newest_turn(messages)
    return newest_words(messages[:start])


def person_speaks_last(messages: Sequence[BaseMessage]) -> bool:
    """Return whether the newest message is a person's: an answer is due."""
    return bool(messages) and _is_person(messages[-1])


_MOST_THREADS, _MOST_NOTES = 1000, 64
"""Conversations whose notes are kept in mind, and the newest notes of each."""


class Turn:
    """Messages of a run to be recorded while it is under way: others may take some of them out of the state before its end.

    What is removed stays, as it was said; what comes back under another id is what was said.

    Args:
        messages: The conversation.
        due: The ids of what is not recorded yet.
    """

    def __init__(self, messages: Sequence[BaseMessage], due: Collection[str]) -> None:
        self._recorded = {message.id for message in messages if message.id and message.id not in due}
        self._cache_key: list[BaseMessage] = []
        self.recalled: Note | None = None
        """The note of this run."""
        self.asked = ""
        """The words that it was recalled for."""
        self.note(messages)

    def note(self, messages: Sequence[BaseMessage]) -> None:
        """Follow how the run continues."""
        now = [message for message in messages if self._is_new(message)]
        held, known = {message.id for message in now}, {message.id for message in self._cache_key}
        again = {_part(message) for message in now if message.id not in known}
        stay = [message for message in self._cache_key if message.id in held or _part(message) not in again]
        self._cache_key = _in_order(stay, now)

    def within(self, messages: Sequence[BaseMessage]) -> list[BaseMessage]:
        """Return the conversation with all of it.

        Args:
            messages: The conversation at the end of the run.
        """
        self.note(messages)
        said = iter(self._cache_key)
        found: list[BaseMessage] = []
        for message in messages:
            if self._is_new(message):
                found.extend(_until(message, said))
            else:
                found.append(message)
        return [*found, *said]

    def _is_new(self, message: BaseMessage) -> bool:
        said = isinstance(message, ToolMessage) or not left_out(None, message.additional_kwargs)
        return said and message.id not in self._recorded


def replaced(messages: Sequence[BaseMessage], newer: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return messages with newer ones after them, or in the place of those with the same id.

    What is removed stays: it was said.

    Args:
        messages: The conversation.
        newer: What was said since, or was changed.
    """
    said = [message for message in newer if message.type != "remove"]
    forms = {message.id: message for message in said if message.id}
    held = {message.id for message in messages if message.id}
    before = [forms.get(message.id, message) if message.id else message for message in messages]
    return [*before, *(message for message in said if message.id not in held)]


def turns(messages: Sequence[object]) -> int:
    """Return how often a person has spoken."""
    return sum(isinstance(message, BaseMessage) and _is_person(message) for message in messages)


def _newest_turn(messages: Sequence[BaseMessage]) -> tuple[int, int]:
    """Return where the newest words of a person begin and end; the very beginning where no person spoke."""
    end = len(messages)
    while end and not _is_person(messages[end - 1]):
        end -= 1
    start = end
    while start and _is_person(messages[start - 1]):
        start -= 1
    return start, end


def _part(message: BaseMessage) -> tuple[str, ...]:
    """Return which part of its turn a message is, whatever its id: the question, a call, its result, the answer."""
    if isinstance(message, ToolMessage):
        return message.type, message.tool_call_id
    calls = message.tool_calls if isinstance(message, AIMessage) else ()
    return message.type, *(call["id"] or "" for call in calls)


def _until(message: BaseMessage, said: Iterator[BaseMessage]) -> Iterator[BaseMessage]:
    for each in said:
        yield each
        if each is message:
            return


def _in_order(stay: Sequence[BaseMessage], now: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return what is there now, with what stays before whatever came after it."""
    places = {message.id: place for place, message in enumerate(now)}
    found: list[BaseMessage] = []
    taken = 0
    for message in stay:
        place = places.get(message.id)
        if place is None:
            found.append(message)
        elif place >= taken:
            found.extend(now[taken : place + 1])
            taken = place + 1
    return [*found, *now[taken:]]


def _is_person(message: BaseMessage) -> bool:
    """Return whether a person said it: recalled memory and summaries of frameworks are human messages, too."""
    return isinstance(message, HumanMessage) and not left_out("user", message.additional_kwargs)
