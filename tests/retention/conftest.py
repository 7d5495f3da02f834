"""One kit whose time is moved by hand; each test talks to it as a person of its own."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import get_args

import pytest

from remegraph import AgentMemorySettings, LifecyclePolicy, MemoryKit, RetrievalPolicy, Scope, Settings
from remegraph.models import Memory
from remegraph.testing import FrozenClock, InMemoryVectorIndex
from tests.talk import NOON, said

DAY = timedelta(days=1)
POLICIES: Sequence[str] = get_args(LifecyclePolicy.model_fields["policy"].annotation)


@dataclass(frozen=True)
class House:
    """The kit, its clock, and who lives in this test."""

    kit: MemoryKit
    clock: FrozenClock
    ann: Scope

    def agent(self, name: str) -> Scope:
        """The same person with another agent: newest, useful, small, keeper, ready, or one named after its policy."""
        return self.ann.evolve(agent=name)

    def told(self, *texts: str, scope: Scope | None = None) -> list[Memory]:
        """Let Ann tell something now, each in a conversation of its own; return the memories of it: episodes."""
        scope = scope or self.ann
        messages = [said(text, thread=text).evolve(time=self.clock()) for text in texts]
        self.kit.add_messages(messages, scope=scope)
        self.kit.summarize(scope=scope, close=True)
        known = {memory.content.removeprefix("Ann: "): memory for memory in self.kit.memories(scope=scope)}
        return [known[text] for text in texts]

    def saved(self, content: str, importance: float = 0.5, scope: Scope | None = None) -> Memory:
        """Save a statement of Ann's, which makes a long-term memory of it."""
        memory = self.kit.save("note", content, scope=scope or self.ann, importance=importance).memory
        assert memory is not None
        return memory

    def statuses(self, scope: Scope | None = None) -> dict[str, str]:
        """The status of each of her memories."""
        return {memory.content: memory.status for memory in self.kit.memories(scope=scope or self.ann)}

    def rows(self) -> dict[str, object]:
        """How many rows tell of memories."""
        tables = {"memories", "versions", "events"}
        return {name: count for name, count in self.kit.admin.stats().items() if name in tables}


def settings_in(home: str) -> Settings:
    """Settings in which each agent remembers in another way."""
    usual = AgentMemorySettings(lifecycle=LifecyclePolicy(half_life=14))
    newest = AgentMemorySettings(retrieval=RetrievalPolicy(apply_time_decay=True, apply_frequency_boost=True))
    useful = AgentMemorySettings(retrieval=RetrievalPolicy(utility_boost=True))
    keeper = AgentMemorySettings(lifecycle=LifecyclePolicy(purge_after=None))
    small = AgentMemorySettings(lifecycle=LifecyclePolicy(max_entries=3))
    ready = AgentMemorySettings(
        retrieval=RetrievalPolicy(active_first=True), lifecycle=LifecyclePolicy(active_entries=3)
    )
    policies = {
        name: AgentMemorySettings(lifecycle=LifecyclePolicy.model_validate({"policy": name})) for name in POLICIES
    }
    agents = {"newest": newest, "useful": useful, "small": small, "keeper": keeper, "ready": ready, **policies}
    return Settings.model_validate({"home": home, "agent": usual, "agents": agents})


@pytest.fixture(scope="session")
def lived_in(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[MemoryKit, FrozenClock]]:
    """The kit and its clock."""
    clock, settings = FrozenClock(NOON), settings_in(str(tmp_path_factory.mktemp("house")))
    index = InMemoryVectorIndex()
    with MemoryKit.open(settings=settings, model=None, embedder=None, index=index, clock=clock) as kit:
        yield kit, clock


_NUMBERS = itertools.count(1)


@pytest.fixture
def house(lived_in: tuple[MemoryKit, FrozenClock]) -> House:
    """The kit as a person sees it whom nobody has met before."""
    return House(*lived_in, Scope(user=f"ann{next(_NUMBERS)}", agent="remy"))
