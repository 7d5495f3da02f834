"""A conversation that its host hands over repeatedly: what of it is recorded, and under which ids.

Hosts give all messages of a thread after each turn. Messages known to the ledger are recognised by id and compared as
they are; only the rest is read in full.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime, tzinfo
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard
from uuid import UUID, uuid5

from remegraph.engine.frame import RECALLED
from remegraph.importers.messages import ORIGIN, ROLES, LangChainMessage, at_index, listed, to_message
from remegraph.models import REVISES, Message, Role
from remegraph.models.base import encodable

if TYPE_CHECKING:
    from remegraph.ports import Recorded

__all__ = ["Course", "Lookup", "News", "Received", "Turns", "left_out"]

_IDS = UUID("5b0a3c0e-6a0b-4c53-8d0e-2f3a4f3f7c11")
"""Namespace of the ids that follow from content; changing it records whole conversations twice."""

_SUMMARY = ("lc_source", "summarization")
"""Key in `additional_kwargs` of the message by which LangChain replaces those it removed."""


@dataclass(frozen=True, slots=True)
class Received:
    """One received message, by its id; read in full only if necessary."""

    message_id: str
    value: Message | LangChainMessage
    index: int
    own_id: bool = True
    """Whether the host gave the id; else it follows from the place in the list and the content."""

    @property
    def role(self) -> Role | None:
        """The speaker."""
        return self.value.role if isinstance(self.value, Message) else _role(self.value)


@dataclass(frozen=True, slots=True)
class Course:
    """A conversation as its host gives it."""

    heard: tuple[Received, ...]
    gap: int = -1
    """Index of the newest message that may replace others: instructions, a framework's summary; -1: there is none."""

    def without(self, off: Collection[str]) -> Course:
        """Return it without some messages and the answers to them, which may repeat what they say."""
        kept: list[Received] = []
        silent = False
        for each in self.heard:
            silent = each.message_id in off or (silent and each.role != "user")
            if not silent:
                kept.append(each)
        return Course(tuple(kept), self.gap)


class Lookup(Protocol):
    """Reads what a partition holds, to the letter; see `Archive.recorded`."""

    def __call__(
        self,
        ids: Sequence[str] | None = None,
        *,
        revising: Collection[str] = (),
        thread: str | None = None,
        after: int = 0,
        dropped: bool | None = None,
    ) -> Mapping[str, Recorded]:
        """Return messages by id, in the order of recording."""
        ...


@dataclass(frozen=True, slots=True)
class News:
    """Messages that the ledger lacks, and the number that it has."""

    messages: tuple[Message, ...]
    known: int
    revised: int
    """How many of the messages are revisions."""
    outdated: tuple[str, ...] = ()
    """Ids of older forms of edited messages, to be hidden before the newer ones are recorded."""
    current: tuple[str, ...] = ()
    """Ids of forms that were hidden as outdated, and that the host has come back to."""


@dataclass
class Turns:
    """Reads the conversation of one thread."""

    thread: str
    agent: str | None
    now: datetime
    timezone: tzinfo | None
    _: KW_ONLY
    take: Callable[[Message], Message] | None = None
    _kinds: dict[type, bool] = field(default_factory=dict, init=False)

    def read(self, values: Iterable[object]) -> Course:
        """Return the messages that were said, each with its id; one without an id gets the same one every time."""
        found: list[Received] = []
        gap = -1
        for index, value in enumerate(listed(values)):
            if self._from_langchain(value):
                if value.type == "remove":
                    continue
                kwargs = getattr(value, "additional_kwargs", None)
                if left_out(_role(value), kwargs):
                    gap = gap if _was_recalled(kwargs) else index
                    continue
                if message_id := _usable(getattr(value, "id", None)):
                    found.append(Received(message_id, value, index))
                    continue
            message = self._read(value, index)
            if left_out(message.role, _kwargs(message)):
                gap = gap if _was_recalled(_kwargs(message)) else index
            elif message.message_id:
                found.append(Received(message.message_id, message, index))
            else:
                message = message.evolve(message_id=self._by_place(message, len(found)))
                found.append(Received(message.message_id, message, index, own_id=False))
        return Course(tuple(found), gap)

    def by_place(self, course: Course) -> dict[str, str]:
        """Return, by id, the id that each message would have if its host had given none."""
        return {
            each.message_id: self._by_place(self._read(each.value, each.index), at)
            for at, each in enumerate(course.heard)
        }

    def _by_place(self, message: Message, at: int) -> str:
        return _derived([self.agent, message.thread, at, message.role, message.content])

    def given_again(self, course: Course, known: Collection[str], recorded: Lookup) -> dict[str, str]:
        """Return which messages are recorded under another id, with that id: where nothing keeps ids between runs.

        Before its newest words, the list begins as the thread does, or as its end does, and an answer is among what both
        have: a person may say the same words again, but not a whole exchange. Calls of tools and their results may be
        missing from the list.

        Args:
            course: The list.
            known: Ids that are recorded.
            recorded: Reads the thread.
        """
        newest = max((at for at, each in enumerate(course.heard) if each.role == "user"), default=0)
        unknown = takewhile(lambda each: each.message_id not in known, course.heard[:newest])
        new = [self._read(each.value, each.index) for each in unknown]
        if not new:
            return {}
        rows = [Message.model_validate(found.body) for found in recorded(thread=self.thread).values()]
        for start, row in enumerate(rows):
            if _same(row, new[0]):
                again, end = _in_step(rows, new, start)
                exchange = {"user", "assistant"} <= {message.role for message, _ in again}
                if exchange and (start == 0 or end == len(rows)):
                    return {message.message_id: same.message_id for message, same in again}
        return {}

    def places(self, course: Course) -> list[tuple[str, str]]:
        """Return thread and id of each message of a list."""
        return [
            (each.value.thread if isinstance(each.value, Message) else self.thread, each.message_id)
            for each in course.heard
        ]

    def news(self, heard: Sequence[Received], known: Mapping[str, Recorded], recorded: Lookup) -> News:
        """Return what the ledger lacks of it. A message whose content was replaced is new, under an id of its own."""
        words = {name: _words_of(found.body) for name, found in known.items()}
        lacking: dict[str, Message] = {}
        forms: dict[str, str] = {}
        revisions: set[str] = set()
        for each in heard:
            before = words.get(each.message_id)
            if before is not None and _looks_like(each.value, before):
                forms[each.message_id] = each.message_id
                continue
            message = self._read(each.value, each.index)
            said = _words(message)
            if before is None:
                words[message.message_id] = said
            elif before == said:
                forms[message.message_id] = message.message_id
                continue
            else:
                extra = message.extra if isinstance(message.extra, dict) else {"extra": message.extra}
                extra = {**extra, REVISES: message.message_id}
                message = message.evolve(message_id=_derived([message.message_id, *said]), extra=extra)
                forms[each.message_id] = message.message_id
                revisions.add(message.message_id)
            lacking.setdefault(message.message_id, message)
        edited = {name: form for name, form in forms.items() if name != form or _is_outdated(known.get(name))}
        held = recorded(sorted({*edited.values(), *revisions})) if edited or revisions else {}
        for name in held:
            lacking.pop(name, None)
        outdated, current = self._compared(edited, known, held, recorded)
        return News(
            tuple(lacking.values()), len(heard) - len(lacking), len(revisions & lacking.keys()), outdated, current
        )

    def _compared(
        self, edited: Mapping[str, str], known: Mapping[str, Recorded], held: Mapping[str, Recorded], recorded: Lookup
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the forms that are shown and older than the host's, and the host's own where they are hidden as older.

        Hosts that restart their numbers in each thread give one id to two messages: only forms of this thread count.
        """
        unsettled = {
            name: form
            for name, form in edited.items()
            if name in known
            and (
                form not in held
                or _is_outdated(held[form])
                or (self._is_here(known[name]) and not _is_outdated(known[name]))
            )
        }
        if not unsettled:
            return (), ()
        forms = {name: known[name] for name in unsettled} | dict(recorded(revising=list(unsettled)))
        mine = dict.fromkeys(unsettled.values())
        others = {name: found for name, found in forms.items() if name not in mine and self._is_here(found)}
        outdated = (name for name, found in others.items() if not _is_outdated(found))
        return tuple(outdated), tuple(name for name in mine if _is_outdated(held.get(name)))

    def _is_here(self, found: Recorded) -> bool:
        return bool(found.body["thread"] == self.thread)

    def _from_langchain(self, value: object) -> TypeGuard[LangChainMessage]:
        """Check once for each class: the check by shape is expensive."""
        kind = type(value)
        if kind not in self._kinds:
            self._kinds[kind] = isinstance(value, LangChainMessage)
        return self._kinds[kind]

    def _read(self, value: object, index: int) -> Message:
        with at_index(index):
            message = to_message(value, thread=self.thread, default_time=self.now, timezone=self.timezone)
            return self.take(message) if self.take else message


def _same(one: Message, other: Message) -> bool:
    return (one.role, one.text) == (other.role, other.text)


def _of_tools(message: Message) -> bool:
    return message.role == "tool" or bool(message.tool_calls)


def _in_step(rows: Sequence[Message], new: Sequence[Message], start: int) -> tuple[list[tuple[Message, Message]], int]:
    """Return the messages that are the same as recorded ones from a place on, in pairs, and the place after the last."""
    pairs: list[tuple[Message, Message]] = []
    end = start
    for message in new:
        at = end
        while at < len(rows) and _of_tools(rows[at]) and not _same(rows[at], message):
            at += 1
        if at == len(rows) or not _same(rows[at], message):
            break
        pairs.append((message, rows[at]))
        end = at + 1
    return pairs, end


_Words = tuple[Role | None, Any, list[tuple[Any, Any, Any]], str]
"""The identity of a message: its speaker and content, and the calls it makes or answers."""


def _words(message: Message) -> _Words:
    calls: list[tuple[Any, Any, Any]] = [(call.name, call.args, call.call_id) for call in message.tool_calls]
    return (message.role, message.content, calls, message.tool_call_id)


def _words_of(body: Mapping[str, Any]) -> _Words:
    calls = [(call["name"], call["args"], call["call_id"]) for call in body["tool_calls"]]
    return (body["role"], body["content"], calls, body["tool_call_id"])


def _looks_like(value: Message | LangChainMessage, words: _Words) -> bool:
    """Whether a message matches this, as far as that can be seen without reading it in full."""
    if isinstance(value, Message):
        return _words(value) == words
    calls = [(call.get("name"), call.get("args"), call.get("id") or "") for call in getattr(value, "tool_calls", ())]
    return (_role(value), value.content, calls, getattr(value, "tool_call_id", None) or "") == words


def _is_outdated(found: Recorded | None) -> bool:
    return found is not None and "edited" in found.dropped


def left_out(role: Role | None, kwargs: object) -> bool:
    """Return whether a message is not part of the talk: instructions, a framework's summary, or injected memory.

    The result of a tool that recalls stays: a call belongs to its result.
    """
    if role == "system":
        return True
    key, value = _SUMMARY
    return isinstance(kwargs, Mapping) and (kwargs.get(key) == value or (_was_recalled(kwargs) and role != "tool"))


def _was_recalled(kwargs: object) -> bool:
    return isinstance(kwargs, Mapping) and RECALLED in kwargs


def _role(value: LangChainMessage) -> Role | None:
    return ROLES.get(value.type.removesuffix("MessageChunk").lower())


def _usable(message_id: object) -> str:
    """Return the id if it is valid for the ledger, else an empty text."""
    usable = isinstance(message_id, str) and "\x00" not in message_id and encodable(message_id)
    return str(message_id) if usable else ""


def _kwargs(message: Message) -> object:
    """Return what LangChain calls `additional_kwargs`, of a message that came from there."""
    kept = message.extra.get(ORIGIN) if isinstance(message.extra, dict) else None
    data = kept.get("data") if isinstance(kept, dict) else None
    return data.get("additional_kwargs") if isinstance(data, dict) else None


def _derived(origin: Sequence[object]) -> str:
    return str(uuid5(_IDS, json.dumps(origin, sort_keys=True)))
