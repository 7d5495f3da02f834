"""Generated talk: as much as is asked for, the same every time, with the word frequencies of language."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta

from remegraph import MemoryKit, Message, Scope
from remegraph.models import ChangeSet, Memory, MemoryChange, Partition, Shelf, Topic

__all__ = ["AGENT", "PER_MEMORY", "Talk", "learn"]

AGENT = "remy"
PER_MEMORY = 5
"""Messages for each memory."""

_BEGAN = datetime(2025, 1, 1, 9, tzinfo=UTC)
_SYLLABLES = "ba ko mi tu ze ra li po fen dor".split(), "lan tor vin der mas kel nu gar".split()
_ENDINGS = "a e o um is er an ot".split()
_VOCABULARY = ["".join(parts) for parts in itertools.product(*_SYLLABLES, *_SYLLABLES[:1], _ENDINGS)]
_LONG_TAIL = 3
"""Added to the rank in Zipf's law: the most frequent word is not in every sentence."""


class Talk:
    """Messages, memories and questions of users, made of words whose frequency falls with their rank.

    Args:
        seed: Names the talk.
    """

    def __init__(self, seed: int = 1) -> None:
        self._random = random.Random(seed)
        self._weights = list(itertools.accumulate(1 / (rank + _LONG_TAIL) for rank in range(len(_VOCABULARY))))
        self._spoken = itertools.count()

    @staticmethod
    def scope(user: int) -> Scope:
        """Return the scope of a user, by number."""
        return Scope(user=f"user {user}", agent=AGENT)

    def messages(self, count: int) -> list[Message]:
        """Return new messages."""
        return [
            Message(
                role="user" if number % 2 else "assistant",
                name="Ann" if number % 2 else AGENT,
                content=self._sentence(),
                time=_BEGAN + timedelta(minutes=number),
            )
            for number in itertools.islice(self._spoken, count)
        ]

    def memories(
        self, partition: Partition, count: int, operation: str, contents: Iterable[str] | None = None
    ) -> ChangeSet:
        """Return a change set that makes so many new memories, of these contents where some are given."""
        said = iter(contents) if contents is not None else iter(self._sentence, "")
        topic = Topic(type="personal", target_name="Ann")
        made = [
            Memory(
                memory_id=f"{operation} {number}",
                partition=partition,
                topic=topic,
                content=next(said),
                said_at=_BEGAN,
                recorded_at=_BEGAN,
            )
            for number in range(count)
        ]
        return ChangeSet(
            operation_id=operation,
            actor="eval",
            recorded_at=_BEGAN,
            at_home=True,
            shelves=(Shelf(partition=partition, topic=topic),),
            changes=tuple(MemoryChange(memory=memory, expected_version=0, action="create") for memory in made),
        )

    def questions(self, count: int, users: int) -> Iterator[tuple[Scope, str]]:
        """Yield questions of three words each, with the user who asks."""
        for _ in range(count):
            words = self._words(3)
            yield (
                self.scope(self._random.randrange(users)),
                f"What did I say about {words[0]}, {words[1]} and {words[2]}?",
            )

    def _sentence(self) -> str:
        return f"I like {' '.join(self._words(self._random.randint(5, 25)))}."

    def _words(self, count: int) -> list[str]:
        return self._random.choices(_VOCABULARY, cum_weights=self._weights, k=count)


def learn(kit: MemoryKit, *changes: ChangeSet) -> tuple[int, float]:
    """Commit memories past the summariser and index them; return how many, and seconds of the processor for indexing."""
    parts = kit.context.parts()
    for change in changes:
        parts.archive.commit(change)
    began = time.process_time()
    return parts.projection.sync(), time.process_time() - began
