"""One kit whose time is moved by hand; each test talks to it as a person of its own."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

import pytest

from remegraph import AgentMemorySettings, MemoryKit, Scope, Settings
from remegraph.models import Memory
from remegraph.testing import FrozenClock, InMemoryVectorIndex
from tests.governance.crew import NUMBERS, Crew
from tests.talk import NOON

DAY = timedelta(days=1)


@dataclass(frozen=True)
class Office:
    """The kit, its clock, and who works here in this test."""

    kit: MemoryKit
    clock: FrozenClock
    ann: Scope

    def saved(self, content: str, scope: Scope | None = None) -> Memory:
        """Save a statement, a day after the one before."""
        self.clock.move(DAY)
        city = content.removeprefix("Ann lives in ").rstrip(".") if content.startswith("Ann lives in ") else ""
        slot = "ann:lives_in" if city else ""
        memory = self.kit.save("note", content, scope=scope or self.ann, slot=slot, value=city).memory
        assert memory is not None
        return memory

    def head(self, memory: Memory, scope: Scope | None = None) -> Memory:
        """Read the head version of a memory."""
        return self.kit.trace(memory.memory_id, scope=scope or self.ann).memory

    def moved(self, *cities: str, scope: Scope | None = None) -> list[Memory]:
        """Let Ann move from city to city; return what was remembered each time, as it is now."""
        memories = [self.saved(f"Ann lives in {city}.", scope) for city in cities]
        return [self.head(memory, scope) for memory in memories]


@pytest.fixture(scope="package")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[MemoryKit, FrozenClock]]:
    """The kit and its clock."""
    clock, home = FrozenClock(NOON), tmp_path_factory.mktemp("office")
    with MemoryKit.open(home, model=None, embedder=None, index=InMemoryVectorIndex(), clock=clock) as kit:
        yield kit, clock


_NUMBERS = itertools.count(1)


@pytest.fixture
def office(opened: tuple[MemoryKit, FrozenClock]) -> Office:
    """The kit as a person sees it whom nobody has met before."""
    return Office(*opened, Scope(user=f"ann{next(_NUMBERS)}", agent="remy", project="atlas"))


@pytest.fixture(scope="package")
def working(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[MemoryKit, FrozenClock]]:
    """One kit for all tests of sharing; each has a user of its own."""
    clock, home = FrozenClock(NOON), tmp_path_factory.mktemp("crew")
    settings = Settings(home=home, agents={"team": AgentMemorySettings(library="shared")})
    with MemoryKit.open(
        settings=settings, ledger_url="sqlite://", model=None, embedder=None, index=InMemoryVectorIndex(), clock=clock
    ) as kit:
        yield kit, clock


@pytest.fixture
def crew(working: tuple[MemoryKit, FrozenClock]) -> Crew:
    """The agents of somebody whom they have just met."""
    user = f"ann{next(NUMBERS)}"
    return Crew(*working, *(Scope(user=user, agent=agent, project="atlas") for agent in ("scout", "writer", "third")))
