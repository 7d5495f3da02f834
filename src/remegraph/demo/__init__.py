"""A bundled conversation: an agent named Remy, two people, several days. Original, in English and Chinese.

Ann moves from Lisbon to Porto, gives up coffee and keeps hating mushrooms; 小林 loves them and plans a trip. Remy looks
things up with a search that often times out and a page reader that never does, and learns how Ann judges annual reports.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import as_file, files

from remegraph.exchange.conversations import read_conversations
from remegraph.kit import MemoryKit
from remegraph.models import Progress, Scope, SummaryReport

__all__ = ["PEOPLE", "SELF", "Person", "Played", "play"]

SELF = "I am Remy, a research assistant. I keep answers short and name my sources."
"""What Remy is configured to know of itself."""


@dataclass(frozen=True, slots=True)
class Person:
    """One of the people that Remy talks with."""

    scope: Scope
    file: str
    """Name of the conversation file in this package."""
    question: str
    """What the demo asks for them."""


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


def play(kit: MemoryKit, progress: Callable[[Progress], None] | None = None) -> tuple[Played, ...]:
    """Record both conversations in a kit and summarise them. A second time changes nothing.

    Args:
        kit: The memory.
        progress: Told how far it is.
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
