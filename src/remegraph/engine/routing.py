"""Which shelves a block may go to: a model names topics, code decides which exist or may be made (R6, R7)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from remegraph.language.plain import plain
from remegraph.models import Message, Partition, Scope, Shelf, Topic
from remegraph.settings import Settings, SummaryPolicy

__all__ = [
    "as_known",
    "at_home",
    "called_tools",
    "home",
    "own",
    "person",
    "resolve",
    "self_topic",
    "shelves_for",
    "tool_topic",
]

_GENERIC = frozenset({"assistant", "ai", "bot", "agent", "助手", "机器人"})
"""Names of an assistant that are no person's."""


def home(scope: Scope, boundary: Literal["user", "agent"]) -> Partition:
    """Return where what is learned lives: with the user, or with the agent where its users are one team.

    Where no agent is named, nobody is a team: it would be shared with all users of all agents.
    """
    own = scope.partition()
    return own if boundary == "user" or scope.agent is None else own.evolve(user=None)


def own(visible: Iterable[Partition], scope: Scope, boundary: Literal["user", "agent"]) -> list[Partition]:
    """Return those of the visible partitions whose memories are this user's to change, or their team's."""
    shared = home(scope, boundary)
    return [each for each in visible if each == shared or each.user == scope.user]


def at_home(scope: Scope, settings: Settings) -> bool:
    """Return whether what all agents of the user own is the caller's to change: none is named, or they are one team."""
    return scope.agent is None or settings.for_agent(scope.agent).library == "shared"


def self_topic() -> Topic:
    """Return the shelf of what the agent knows of itself."""
    return Topic(type="self", target_name="self", description="The agent itself: name, role, duties, style.")


def tool_topic(name: str) -> Topic:
    """Return the shelf of what is known of a tool."""
    return Topic(type="tool", target_name=name, description=f"Experience with the tool {name}.")


def as_known(topic: Topic, shelves: Iterable[Shelf]) -> Topic:
    """Return a topic as it is written on its shelf, if there is one: case and outer space make no other shelf.

    Args:
        topic: As somebody writes it.
        shelves: Those of one partition.
    """
    known = (shelf.topic for shelf in shelves)
    return next((each for each in known if (each.type, each.target) == (topic.type, topic.target)), topic)


def person(message: Message, scope: Scope) -> str | None:
    """Return the person who speaks, or None for the agent, a tool or the system.

    A user without a name is the scope's user; a named assistant that is not the agent is a second person. Whoever wrote
    a document does not speak here.
    """
    if message.is_document:
        return None
    if message.role == "user":
        return plain(message.name.strip()) or scope.user
    named = plain(message.name.strip())
    if message.role == "assistant" and named and named.casefold() not in _GENERIC | {(scope.agent or "").casefold()}:
        return named
    return None


def called_tools(messages: Iterable[Message]) -> tuple[str, ...]:
    """Return the tools called in these messages, in order."""
    return tuple(dict.fromkeys(plain(call.name) for message in messages for call in message.tool_calls if call.name))


def shelves_for(
    scope: Scope, where: Partition, messages: Sequence[Message], existing: Iterable[Shelf], policy: SummaryPolicy
) -> tuple[Shelf, ...]:
    """Return the shelves a block may go to: those that exist, and those that may always be made.

    Always allowed are self, the persons who speak, the tools called, the tasks the host names, and the
    tasks of the allow-list.

    Args:
        scope: Who calls.
        where: Where new shelves are made.
        messages: The block.
        existing: The topic index.
        policy: Holds the allow-list.
    """
    found = {shelf.topic.key.casefold(): shelf for shelf in existing}
    people = dict.fromkeys(name for message in messages if (name := person(message, scope)))
    tasks = dict.fromkeys([*(plain(message.task) for message in messages if message.task), *policy.allowed_topics])
    made = [
        self_topic(),
        *(Topic(type="personal", target_name=name, description=f"What is known of {name}.") for name in people),
        *(tool_topic(name) for name in called_tools(messages)),
        *(Topic(type="task", target_name=name, description=f"How to go about {name}.") for name in tasks),
    ]
    for topic in made:
        found.setdefault(topic.key.casefold(), Shelf(partition=where, topic=topic))
    return tuple(found.values())


def resolve(
    keys: Iterable[str], allowed: Iterable[Shelf], where: Partition, policy: SummaryPolicy
) -> tuple[tuple[Shelf, ...], tuple[str, ...]]:
    """Return the shelves that these keys name, and the keys that name none.

    A task that does not exist yet is made only where the policy lets a model invent topics.

    Args:
        keys: Keys `type:name`, as a model wrote them.
        allowed: Shelves that may be used.
        where: Where a new shelf is made.
        policy: Whether a model may invent topics.
    """
    known = {shelf.topic.key.strip().casefold(): shelf for shelf in allowed}  # a name may end in a space
    found: dict[str, Shelf] = {}
    refused: list[str] = []
    for key in dict.fromkeys(key.strip() for key in keys):
        kind, _, name = key.partition(":")
        shelf = known.get(key.casefold())
        if shelf is None and policy.create_topics and kind.strip() == "task" and name.strip() and "\x00" not in name:
            shelf = Shelf(partition=where, topic=Topic(type="task", target_name=name.strip()))
        if shelf is None:
            refused.append(key)
        else:
            found.setdefault(shelf.topic.key.casefold(), shelf)
    return tuple(found.values()), tuple(refused)
