"""Ranking by age, use and importance, as an agent's settings switch it on."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from remegraph import AgentMemorySettings, MemoryKit, RetrievalPolicy, Scope, Settings
from remegraph.ledger.index.embedders import HashedEmbedder
from remegraph.models import Hit
from remegraph.testing import FrozenClock
from tests.talk import NOON


def memory_id(kit: MemoryKit, content: str, scope: Scope) -> str:
    memory = kit.save("personal", content, scope=scope).memory
    assert memory is not None
    return memory.memory_id


OLD, NEW = "The red tin in the kitchen is for tea.", "A blue jar by the window holds tea."


@pytest.mark.requirement("F6", "B5", "G10")
def test_an_agent_that_favours_the_new_and_the_often_used_gets_them_first(tmp_path: Path) -> None:
    """The same question: what is recent and often recalled comes first, where the settings say so."""
    clock = FrozenClock(NOON)
    agents = {
        "newest": AgentMemorySettings(retrieval=RetrievalPolicy(apply_time_decay=True)),
        "usual": AgentMemorySettings(retrieval=RetrievalPolicy(apply_frequency_boost=True)),
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


@pytest.mark.requirement("B5", "G10", "F6")
def test_of_equals_what_answers_drew_on_comes_first_with_nothing_switched_on(tmp_path: Path) -> None:
    """What helped once helps again; that it was merely found says nothing."""
    tins = ["The tea is in the red tin, not in the green one.", "The tea is in the green tin, not in the red one."]
    with MemoryKit.open(home=tmp_path, model=None) as kit:
        ann = Scope(user="ann")
        saved = {text: memory_id(kit, text, ann) for text in tins}

        def order() -> list[str]:
            return [hit.text for hit in kit.recall("Which tin is the tea in?", scope=ann, review=False).memories]

        *_, last = before = order()
        for _ in range(5):
            kit.recall(last, scope=ann, k=1)
        kit.drain()
        assert order() == before, "it was found, and nothing more"

        kit.retention.used([saved[last]] * 3, scope=ann)
        kit.drain()

        assert order()[0] == last
        assert "used" in kit.recall("tea", scope=ann).memories[0].contributions


@pytest.mark.requirement("B5", "G10")
def test_use_lifts_no_memory_over_one_that_bears_far_more_on_the_question(tmp_path: Path) -> None:
    """A favourite must not crowd out the answer: it gains at most a tenth of its own relevance."""
    with MemoryKit.open(home=tmp_path, model=None) as kit:
        ann = Scope(user="ann")
        favourite = memory_id(kit, "The lease of the shop ends in August.", ann)
        kit.save("personal", "The north gate of the zoo opens at seven.", scope=ann)
        for _ in range(50):
            kit.retention.used([favourite], scope=ann)
        kit.drain()

        hits = kit.recall("When does the north gate of the zoo open?", scope=ann).memories

        assert [hit.text.split()[1] for hit in hits] == ["north", "lease"]
        assert hits[1].contributions["used"] <= 0.1 * (hits[1].score - hits[1].contributions["used"])


@pytest.mark.requirement("F4", "G4")
def test_of_equals_one_of_low_priority_comes_last(tmp_path: Path) -> None:
    """What faded makes way for what did not; asked for itself, it is still found."""
    clock = FrozenClock(NOON)
    with MemoryKit.open(home=tmp_path, model=None, clock=clock) as kit:
        ann = Scope(user="ann")
        kit.save("personal", "The red tin holds tea.", scope=ann, importance=0.1)
        clock.move(timedelta(days=120))
        for colour in ("green", "brown"):
            kit.save("personal", f"The {colour} tin holds tea.", scope=ann)
        first = kit.recall("Which red tin holds tea?", scope=ann, review=False).memories[0]
        faded = {move.memory.memory_id for move in kit.retention.maintain(scope=ann).moves if move.to == "low_priority"}
        assert faded == {first.record_id}

        hits = kit.recall("Which tin holds tea?", scope=ann).memories

        assert (hits[-1].record_id, hits[-1].status) == (first.record_id, "low_priority")
        assert hits[-1].score < 0.8 * hits[0].score
        assert kit.recall("Which red tin holds tea?", scope=ann).memories[0].record_id == first.record_id
