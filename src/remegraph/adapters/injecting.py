"""Recalled memory among the messages for a model: as data, next to the words that it was recalled for."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage

from remegraph.exchange.turns import left_out
from remegraph.rules.context import RECALLED, shown_ids

__all__ = [
    "Turn",
    "inject",
    "newest_answer",
    "newest_words",
    "person_speaks_last",
    "previous_words",
    "replaced",
    "turns",
]


def inject(messages: Sequence[AnyMessage], memory: str) -> list[AnyMessage]:
    """Return the messages for a model with what was recalled before the newest words of a person.

    It is a human message, since memory has no more authority than a user, and never goes into the state: capture leaves
    it out all the same. What stands before it is the same on every turn, so a provider's prompt cache still serves.

    Args:
        messages: The conversation; it is not changed.
        memory: What was recalled, as text; nothing is added for none.
    """
    if not memory:
        return list(messages)
    note = HumanMessage(memory, additional_kwargs={RECALLED: shown_ids(memory)})
    start, _ = _newest_turn(messages)
    return [*messages[:start], note, *messages[start:]]


def newest_words(messages: Sequence[BaseMessage]) -> str:
    """Return what a person said last, several messages in a row as one text; nothing where nobody spoke.

    Args:
        messages: The conversation.
    """
    start, end = _newest_turn(messages)
    return "\n".join(filter(None, (message.text.strip() for message in messages[start:end])))


def newest_answer(messages: Sequence[BaseMessage]) -> str:
    """Return what the agent answered to the newest words of a person; nothing where it has not answered yet.

    Args:
        messages: The conversation.
    """
    _, end = _newest_turn(messages)
    return "\n".join(filter(None, (message.text.strip() for message in messages[end:] if message.type == "ai")))


def previous_words(messages: Sequence[BaseMessage]) -> str:
    """Return what a person said the time before; see `newest_words`.

    Args:
        messages: The conversation.
    """
    start, _ = _newest_turn(messages)
    return newest_words(messages[:start])


def person_speaks_last(messages: Sequence[BaseMessage]) -> bool:
    """Return whether the newest message is a person's: an answer is due.

    Args:
        messages: The conversation.
    """
    return bool(messages) and _is_person(messages[-1])


class Turn:
    """What is to be recorded of a run while it is under way: others may take parts of it out of the state before its end.

    What is removed stays, as it was said; what comes back under another id is what was said.

    Args:
        messages: The conversation.
        due: The ids of what is not recorded yet.
    """

    def __init__(self, messages: Sequence[BaseMessage], due: Collection[str]) -> None:
        self._recorded = {message.id for message in messages if message.id and message.id not in due}
        self._said: list[BaseMessage] = []
        self.note(messages)

    def note(self, messages: Sequence[BaseMessage]) -> None:
        """Take in how the run goes on.

        Args:
            messages: The conversation.
        """
        now = [message for message in messages if self._is_new(message)]
        held, known = {message.id for message in now}, {message.id for message in self._said}
        again = {_part(message) for message in now if message.id not in known}
        stay = [message for message in self._said if message.id in held or _part(message) not in again]
        self._said = _in_order(stay, now)

    def within(self, messages: Sequence[BaseMessage]) -> list[BaseMessage]:
        """Return the conversation with all of it.

        Args:
            messages: The conversation at the end of the run.
        """
        self.note(messages)
        said = iter(self._said)
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
    """Return how often a person has spoken.

    Args:
        messages: The conversation.
    """
    return sum(isinstance(message, BaseMessage) and _is_person(message) for message in messages)


def _newest_turn(messages: Sequence[BaseMessage]) -> tuple[int, int]:
    """Return where the newest words of a person begin and end; the very beginning where nobody spoke."""
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
