"""A conversation as its host holds it, again and again: what of it is recorded, and under which ids.

Hosts give all messages of a thread after each turn. What the ledger knows is told by id and compared as it is; only
the rest is read in full.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard
from uuid import UUID, uuid5

from remegraph.exchange.chat import ORIGIN, ROLES, LangChainMessage, at_index, listed, to_message
from remegraph.models import REVISES, Message, Role
from remegraph.models.base import encodable
from remegraph.rules.context import RECALLED

if TYPE_CHECKING:
    from remegraph.ports import Recorded  # which imports numpy

__all__ = ["Course", "Heard", "Lookup", "News", "Turns", "left_out"]

_IDS = UUID("5b0a3c0e-6a0b-4c53-8d0e-2f3a4f3f7c11")
"""Namespace of the ids that follow from content; changing it records whole conversations twice."""

_SUMMARY = ("lc_source", "summarization")
"""What LangChain writes into `additional_kwargs` of the message that stands for those it removed."""


@dataclass(frozen=True, slots=True)
class Heard:
    """One message that was said, by its id; read in full where it had to be."""

    message_id: str
    value: Message | LangChainMessage
    index: int
    own_id: bool = True
    """Whether the host gave the id; else it follows from the place in the list and from what is said."""

    @property
    def role(self) -> Role | None:
        """Who speaks."""
        return self.value.role if isinstance(self.value, Message) else _role(self.value)


@dataclass(frozen=True, slots=True)
class Course:
    """A conversation as its host gives it."""

    heard: tuple[Heard, ...]
    gap: int = -1
    """Index of the newest message that may stand for others: instructions, a framework's summary; -1: there is none."""


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
    """What the ledger lacks, and how much it has."""

    messages: tuple[Message, ...]
    known: int
    revised: int
    """How many of the messages are revisions."""
    outdated: tuple[str, ...] = ()
    """Ids of older forms of what the host edited: they are to be hidden before the newer ones are recorded."""
    current: tuple[str, ...] = ()
    """Ids of forms that were hidden as outdated, and that the host has come back to."""


class Turns:
    """Reads the conversation of one thread.

    Args:
        thread: The conversation of messages that name none.
        agent: Who captures, none if there is one only: messages without an id are told apart by it, too.
        now: The time of messages that have none.
        timezone: The zone of times that name none.
        take: Takes the bytes of attachments out of a message.
    """

    def __init__(
        self,
        thread: str,
        agent: str | None,
        now: datetime,
        timezone: tzinfo | None,
        *,
        take: Callable[[Message], Message] | None = None,
    ) -> None:
        self.thread = thread
        self._agent = agent
        self._now = now
        self._timezone = timezone
        self._take = take
        self._kinds: dict[type, bool] = {}

    def heard(self, values: Iterable[object]) -> Course:
        """Return what was said, each with its id; a message without one gets the same id every time.

        Raises:
            MessageError: A message cannot be recorded; names it by its index.
        """
        found: list[Heard] = []
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
                    found.append(Heard(message_id, value, index))
                    continue
            message = self._read(value, index)
            if left_out(message.role, _kwargs(message)):
                gap = gap if _was_recalled(_kwargs(message)) else index
            elif message.message_id:
                found.append(Heard(message.message_id, message, index))
            else:
                message = self._named(message, len(found))
                found.append(Heard(message.message_id, message, index, own_id=False))
        return Course(tuple(found), gap)

    def news(self, heard: Sequence[Heard], known: Mapping[str, Recorded], recorded: Lookup) -> News:
        """Return what of it the ledger lacks. A message whose content was replaced is news under an id of its own.

        Args:
            heard: What was said.
            known: What of it is recorded, by id.
            recorded: Looks into the ledger for revisions.

        Raises:
            MessageError: A message cannot be recorded; names it by its index.
        """
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
                message = _revision(message, said)
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
        self,
        edited: Mapping[str, str],
        known: Mapping[str, Recorded],
        held: Mapping[str, Recorded],
        recorded: Lookup,
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the forms that are shown and older than the host's, and the host's own where they are hidden as older.

        Hosts that number messages anew in each thread give one id to two messages: only forms of this thread count.

        Args:
            edited: The ids of the forms that the host has, by the ids of what they revise.
            known: What is recorded under the latter.
            held: What is recorded under the former.
            recorded: Looks for other forms; not asked where all is as it was left.
        """
        unsettled = {
            name: form
            for name, form in edited.items()
            if name in known and (form not in held or _is_outdated(held[form]) or self._is_shown_here(known[name]))
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

    def _is_shown_here(self, found: Recorded) -> bool:
        return self._is_here(found) and not _is_outdated(found)

    def _from_langchain(self, value: object) -> TypeGuard[LangChainMessage]:
        """Asked once for each class: the check by shape costs more than all else here."""
        kind = type(value)
        if kind not in self._kinds:
            self._kinds[kind] = isinstance(value, LangChainMessage)
        return self._kinds[kind]

    def _read(self, value: object, index: int) -> Message:
        with at_index(index):
            message = to_message(value, thread=self.thread, default_time=self._now, timezone=self._timezone)
            return self._take(message) if self._take else message

    def _named(self, message: Message, position: int) -> Message:
        origin = [self._agent, message.thread, position, message.role, message.content]
        return message.evolve(message_id=_derived(origin))


_Words = tuple[Role | None, Any, list[tuple[Any, Any, Any]], str]
"""What makes a message the same: who said what, and which calls it asks for or answers."""


def _words(message: Message) -> _Words:
    calls: list[tuple[Any, Any, Any]] = [(call.name, call.args, call.call_id) for call in message.tool_calls]
    return (message.role, message.content, calls, message.tool_call_id)


def _words_of(body: Mapping[str, Any]) -> _Words:
    calls = [(call["name"], call["args"], call["call_id"]) for call in body["tool_calls"]]
    return (body["role"], body["content"], calls, body["tool_call_id"])


def _looks_like(value: Message | LangChainMessage, words: _Words) -> bool:
    """Whether a message says this, as far as that can be seen without reading it in full."""
    if isinstance(value, Message):
        return _words(value) == words
    calls = [(call.get("name"), call.get("args"), call.get("id") or "") for call in getattr(value, "tool_calls", ())]
    return (_role(value), value.content, calls, getattr(value, "tool_call_id", None) or "") == words


def _is_outdated(found: Recorded | None) -> bool:
    return found is not None and "edited" in found.dropped


def left_out(role: Role | None, kwargs: object) -> bool:
    """Return whether nobody said this: instructions, a framework's summary, or memory that was put before the model.

    The result of a tool that recalls stays: a call belongs to its result.

    Args:
        role: Who speaks, as far as a role tells it.
        kwargs: What LangChain calls `additional_kwargs`.
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
    """Return the id if the ledger can be asked for it; reading the message in full tells what is wrong with others."""
    usable = isinstance(message_id, str) and "\x00" not in message_id and encodable(message_id)
    return str(message_id) if usable else ""


def _kwargs(message: Message) -> object:
    """Return what LangChain calls `additional_kwargs`, of a message that came from there."""
    kept = message.extra.get(ORIGIN) if isinstance(message.extra, dict) else None
    data = kept.get("data") if isinstance(kept, dict) else None
    return data.get("additional_kwargs") if isinstance(data, dict) else None


def _revision(message: Message, said: _Words) -> Message:
    extra = message.extra if isinstance(message.extra, dict) else {"extra": message.extra}
    new_id = _derived([message.message_id, *said])
    return message.evolve(message_id=new_id, extra={**extra, REVISES: message.message_id})


def _derived(origin: Sequence[object]) -> str:
    return str(uuid5(_IDS, json.dumps(origin, sort_keys=True)))
