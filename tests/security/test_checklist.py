"""The checklist of the layers (section 6): every memory of a lived-in store answers for itself."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import get_args

import pytest

from remegraph import AgentMemorySettings, LifecyclePolicy, MemoryKit, Scope, Settings
from remegraph.demo import PEOPLE, play
from remegraph.models import MOVES, Layer, Memory
from remegraph.testing import FrozenClock, InMemoryVectorIndex
from tests.retention.skilled import deploying, refunding
from tests.talk import NOON, said

pytestmark = [pytest.mark.requirement("B14", "X6"), pytest.mark.slow]

ANN = Scope(user="walked", agent="remy")
TAUGHT = Scope(user="walked", agent="pupil")
TEA = ("I drink sencha tea from Uji.", "I keep my sencha tea at the office.", "Bob gave me sencha tea from Uji.")


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryKit]:
    """A store with all that memories can be: learned, said, saved, consolidated, tried, taught, waiting, forgotten."""
    clock = FrozenClock(NOON)
    fading = AgentMemorySettings(lifecycle=LifecyclePolicy(half_life=14))
    settings = Settings(home=tmp_path_factory.mktemp("walked"), agent=fading)
    with MemoryKit.open(settings=settings, model=None, embedder=None, index=InMemoryVectorIndex(), clock=clock) as kit:
        for number, text in enumerate(TEA):
            kit.add_messages([said(text, thread=str(number)).evolve(time=clock())], scope=ANN)
            kit.summarize(scope=ANN, close=True)
        kit.retention.consolidate(scope=ANN)
        kit.add_messages(refunding("r", "7", "8"), scope=ANN)
        kit.summarize(scope=ANN, close=True)
        kit.skills.learn("r", task="Refund an order", scope=ANN)
        tried = kit.skills.add(deploying(), scope=ANN)
        kit.skills.record_outcome(tried.memory_id, ok=True, scope=ANN)
        kit.save("rule", "Ann never wants mails on Sundays.", scope=ANN, importance=0.95)
        spare = kit.save("note", "Ann has a spare key.", scope=ANN).memory
        assert spare is not None
        kit.forget(spare.memory_id, scope=ANN)
        kit.knowledge.absorb(kit.knowledge.share("sencha tea deploy site", scope=ANN).items, scope=TAUGHT)
        play(kit)
        clock.move(timedelta(days=200))
        kit.retention.maintain(scope=ANN)
        yield kit


def everything(kit: MemoryKit) -> list[tuple[Scope, Memory]]:
    """Each memory of each scope, whatever became of it."""
    scopes = (ANN, TAUGHT, *(person.scope for person in PEOPLE))
    return [(scope, memory) for scope in scopes for memory in kit.memories(scope=scope, statuses=tuple(MOVES))]


def test_every_memory_says_where_it_is_when_it_goes_what_it_came_from_and_what_befell_it(walked: MemoryKit) -> None:
    """我在哪一层？我什么时候会被忘？我是从哪抽象来的？审计事件: a memory that cannot answer must not be there."""
    found = everything(walked)
    unanswered = [
        f"{memory.memory_id}: {what}" for scope, memory in found for what in _unanswered(walked, scope, memory)
    ]
    assert unanswered == []
    assert len(found) > 30


def test_the_store_that_is_walked_holds_all_sorts(walked: MemoryKit) -> None:
    """Else the walk proves little."""
    found = [memory for _, memory in everything(walked)]
    assert {memory.layer for memory in found} >= {"episodic", "long_term", "procedural"}
    assert {memory.status for memory in found} >= {"active", "quarantined", "deleted", "archived", "superseded"}
    assert any(memory.origin is not None for memory in found)
    assert {memory.topic.type for memory in found} >= {"self", "personal", "task", "tool"}


def _unanswered(kit: MemoryKit, scope: Scope, memory: Memory) -> Iterator[str]:
    """Yield the questions of the checklist that a memory leaves open."""
    told = kit.explain(memory.memory_id, scope=scope)
    trace = told.trace
    if told.layer not in get_args(Layer) or not told.tier:
        yield "which layer?"
    if not told.weight.formula or (told.forget_at is None and 0 < told.weight.value < 1 and memory.live):
        yield "when is it forgotten, and why?"
    sources = {
        link.target_id for link in trace.links if link.type == "derived_from" and link.source_id == memory.memory_id
    }
    if not (trace.quotes or sources or trace.missing):
        yield "what was it abstracted from?"
    events = [event for event in trace.events if event.record_id == memory.memory_id]
    if [version.version for version in trace.versions] != list(range(1, memory.version + 1)):
        yield "which versions did it have?"
    if {version.version for version in trace.versions} - {event.version for event in events}:
        yield "which event made each version?"
    if not all(event.actor and event.action and event.operation_id and event.chain for event in events):
        yield "who did it?"
