"""Recalled memory among the messages for a model: as data, next to the words that it was recalled for."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage

from remegraph.exchange.turns import left_out
from remegraph.rules.context import RECALLED, shown_ids

__all__ = [
    "inject",
    "newest_answer",
    "newest_turn",
    "newest_words",
    "person_speaks_last",
    "previous_words",
    "replaced",
    "turns",
    "with_seen",
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


def newest_turn(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return the newest words of a person and all that came after them.

    Args:
        messages: The conversation.
    """
    start, _ = _newest_turn(messages)
    return list(messages[start:])


def with_seen(messages: Sequence[BaseMessage], seen: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return a conversation with what was taken out of its newest turn while that was under way.

    Args:
        messages: The conversation.
        seen: The turn as it was seen before.
    """
    held = {message.id for message in seen}
    start = next((at for at, message in enumerate(messages) if message.id in held), max(0, len(messages) - 1))
    return [*messages[:start], *replaced(seen, messages[start:])]


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


def _is_person(message: BaseMessage) -> bool:
    """Return whether a person said it: recalled memory and summaries of frameworks are human messages, too."""
    return isinstance(message, HumanMessage) and not left_out("user", message.additional_kwargs)
