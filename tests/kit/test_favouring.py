"""Ranking by age, use and importance, as an agent's settings switch it on."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from remegraph import AgentMemorySettings, MemoryKit, RetrievalPolicy, Scope, Settings
from remegraph.language.embedding import HashedEmbedder
from remegraph.testing import FrozenClock
from tests.talk import NOON

OLD, NEW = "The red tin in the kitchen is for tea.", "A blue jar by the window holds tea."


@pytest.mark.requirement("F6", "B5", "G10")
def test_an_agent_that_favours_the_new_and_the_often_used_gets_them_first(tmp_path: Path) -> None:
    """The same question: what is recent and often recalled comes first, where the settings say so."""
    clock = FrozenClock(NOON)
    agents = {
        "newest": AgentMemorySettings(library="shared", retrieval=RetrievalPolicy(time_decay=True)),
        "usual": AgentMemorySettings(library="shared", retrieval=RetrievalPolicy(frequency_boost=True)),
        "plain": AgentMemorySettings(library="shared"),
    }
    settings = Settings(home=tmp_path, agents=agents)
    with MemoryKit.open(settings=settings, model=None, embedder=HashedEmbedder(64), clock=clock) as kit:
        plain, newest, usual = (Scope(user="ann", agent=name) for name in ("plain", "newest", "usual"))
        old = kit.save("personal", OLD, scope=plain).memory.memory_id
        clock.move(timedelta(days=60))
        new = kit.save("personal", NEW, scope=plain).memory.memory_id
        for _ in range(5):
            kit.recall("red tin", scope=plain, k=1)
        kit.drain()

        def first(scope: Scope) -> str:
            return kit.recall("tea", scope=scope).memories[0].record_id

        assert (first(newest), first(usual)) == (new, old)
        assert "recency" in kit.recall("tea", scope=newest).memories[0].contributions
