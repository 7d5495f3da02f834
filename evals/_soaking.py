"""What a process does in a soak, turn after turn: talk, summarise, recall, forget, maintain."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from multiprocessing.connection import Connection

from evals._talk import Talk
from remegraph import MemoryKit, Message, Settings
from remegraph.ledger.index.embedders import HashedEmbedder

__all__ = ["TURN", "Done", "Labour", "open_kit", "work_until_killed"]

TURN = 24
"""Messages of a turn: a conversation of its own, and one block."""

_TOLD = 5
"""One of so many messages tells something; the others are what people say beside that."""

_FORGET, _MAINTAIN = 10, 20
"""In one of so many turns a memory is forgotten; in one of so many the user's memories are maintained."""

_DIMENSION = 128
"""Of the vectors: making long ones is not what is soaked."""

_DAYS = 90
"""Conversations are up to so old: some of what they told has faded."""

_SMALL_TALK = (
    "Good morning!",
    "Thank you, that helps.",
    "Could you say that again?",
    "Let me think about it for a moment.",
    "All right, go on.",
    "Of course. Anything else?",
)


@dataclass(frozen=True, slots=True)
class Done:
    """What was acknowledged: messages of a user that are durable, a memory that is forgotten, or a run of maintenance."""

    user: int
    messages: tuple[str, ...] = ()
    forgotten: str | None = None
    maintained: bool = False


class Labour:
    """The work of one process, the same for the same seed.

    Args:
        name: Begins the ids of its messages.
        seed: Of all that is random.
        users: How many talk with the agent.
    """

    def __init__(self, name: str, seed: int, users: int) -> None:
        self._name = name
        self._random = random.Random(seed)
        self._talk = Talk(seed)
        self._users = users
        self._began = datetime.now(UTC)
        self._turns = itertools.count(1)

    def turn(self, kit: MemoryKit) -> Iterator[Done]:
        """Do one turn, and yield what is done as it is acknowledged."""
        number, user = next(self._turns), self._random.randrange(self._users)
        scope = self._talk.scope(user)
        receipt = kit.add_messages(self._conversation(f"{self._name} {number}"), scope=scope)
        yield Done(user, messages=receipt.message_ids)
        report = kit.summarize(scope=scope, close=True)
        ((_, question),) = self._talk.questions(1, self._users)
        kit.recall(question, scope=scope, depth="messages")
        if report.memory_ids and self._random.randrange(_FORGET) == 0:
            forgotten = self._random.choice(report.memory_ids)
            kit.forget(forgotten, scope=scope)
            yield Done(user, forgotten=forgotten)
        if self._random.randrange(_MAINTAIN) == 0:
            kit.retention.maintain(scope=scope)
            yield Done(user, maintained=True)

    def _conversation(self, thread: str) -> list[Message]:
        began = self._began - timedelta(minutes=self._random.randrange(24 * 60 * _DAYS))
        told = iter(self._talk.messages(TURN))
        return [
            (each if number % _TOLD == 1 else each.evolve(content=self._random.choice(_SMALL_TALK))).evolve(
                message_id=f"{thread} {number}", thread=thread, time=began + timedelta(seconds=number)
            )
            for number, each in enumerate(told)
        ]


def open_kit(settings: Settings) -> MemoryKit:
    """Open a home without a model.

    Args:
        settings: Of the home.
    """
    return MemoryKit.open(settings=settings, model=None, embedder=HashedEmbedder(_DIMENSION))


def work_until_killed(settings: Settings, labour: Labour, told: Connection) -> None:
    """Work on a home that others may work on, too, and tell what is done.

    Args:
        settings: Of the home.
        labour: What to do.
        told: Gets each `Done` once it is acknowledged.
    """
    with open_kit(settings) as kit:
        while True:
            for done in labour.turn(kit):
                told.send(done)
