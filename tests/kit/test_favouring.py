"""Ranking by age, use and importance, as an agent's settings switch it on."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from remegraph import AgentMemorySettings, MemoryKit, RetrievalPolicy, Scope, Settings
from remegraph.language.embedding import HashedEmbedder
from remegraph.models import Hit
from remegraph.testing import FrozenClock
from tests.talk import NOON

OLD, NEW = "The red tin in the kitchen is for tea.", "A blue jar by the window holds tea."


@pytest.mark.requirement("F6", "B5", "G10")
def test_an_agent_that_favours_the_new_and_the_often_used_gets_them_first(tmp_path: Path) -> None:
    """The same question: what is recent and often recalled comes first, where the settings say so."""
    clock = FrozenClock(NOON)
    agents = {
        "newest": AgentMemorySettings(retrieval=RetrievalPolicy(time_decay=True)),
        "usual": AgentMemorySettings(retrieval=RetrievalPolicy(frequency_boost=True)),
    }
    settings = Settings(home=tmp_path, agents=agents)
    with MemoryKit.open(settings=settings, model=None, embedder=HashedEmbedder(64), clock=clock) as kit:
        ann = Scope(user="ann")
        kit.save("personal", OLD, scope=ann)
        clock.move(timedelta(days=60))
        kit.save("personal", NEW, scope=ann)
        for _ in range(5):
            kit.recall("red tin", scope=ann, k=1)
        kit.drain()

        def first(agent: str) -> Hit:
            return kit.recall("tea", scope=Scope(user="ann", agent=agent)).memories[0]

        assert (first("newest").text, first("usual").text) == (NEW, OLD)
        assert first("newest").contributions["recency"] > 0
        assert first("nobody special").contributions.keys() == {"text", "dense"}
