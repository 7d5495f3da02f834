"""The active tier: a few memories stand ready in the process, and no query is needed for them."""

from __future__ import annotations

import pytest

from remegraph import MemoryKit, NotFoundError
from remegraph.models import Memory
from remegraph.testing import InMemoryVectorIndex
from tests.retention.conftest import DAY, House
from tests.talk import statements

pytestmark = pytest.mark.requirement("K2")


def use(house: House, *memories: Memory, times: int = 4) -> None:
    """Let answers draw on memories, and have that written down."""
    for _ in range(times):
        house.kit.retention.used([memory.memory_id for memory in memories], scope=house.ann)
    house.kit.drain()


def active(house: House) -> list[str]:
    """What stands ready."""
    return [memory.content for memory in house.kit.retention.active(scope=house.ann)]


def test_what_is_used_often_stands_ready_until_it_is_not(house: House) -> None:
    """The matters of the week are at hand when a session begins; last month's are looked up."""
    kit, clock, ann = house.kit, house.clock, house.ann
    tea, cat = house.saved("Ann likes sencha tea."), house.saved("Bob has a grey cat.")
    assert (active(house), kit.explain(tea.memory_id, scope=ann).tier) == ([], "long_term")
    use(house, tea)
    assert active(house) == [tea.content]
    assert kit.explain(tea.memory_id, scope=ann).tier == "active"
    assert kit.explain(cat.memory_id, scope=ann).tier == "long_term"
    clock.move(6 * DAY)
    assert active(house) == [tea.content]
    clock.move(20 * DAY)
    assert (active(house), kit.explain(tea.memory_id, scope=ann).tier) == ([], "long_term")


def test_it_is_served_from_the_process_without_a_query(house: House) -> None:
    """Asking on every turn costs one look at the newest rows: no search, no vector, no memory read again."""
    kit, ann = house.kit, house.ann
    tea = house.saved("Ann likes sencha tea.")
    use(house, tea)
    first = kit.retention.active(scope=ann)
    with statements(kit) as said:
        assert kit.retention.active(scope=ann) is first
    (look,) = said
    assert "body" not in look
    house.saved("Bob has a grey cat.")
    with statements(kit) as said:
        assert kit.retention.active(scope=ann) == first
    assert len(said) > 1, "somebody wrote: it is computed anew"


def test_what_another_process_writes_is_seen_and_a_restart_computes_the_same(house: House) -> None:
    """Nothing of it is stored, so nothing of it can be lost or out of date."""
    kit, clock, ann = house.kit, house.clock, house.ann
    tea, cat = house.saved("Ann likes sencha tea."), house.saved("Bob has a grey cat.")
    use(house, tea)
    assert active(house) == [tea.content]
    with MemoryKit.open(
        settings=kit.settings, model=None, embedder=None, index=InMemoryVectorIndex(), clock=clock
    ) as other:
        assert [memory.content for memory in other.retention.active(scope=ann)] == [tea.content]
        for _ in range(4):
            other.retention.used([cat.memory_id], scope=ann)
    assert sorted(active(house)) == sorted([tea.content, cat.content])


def test_a_person_has_the_last_word_and_the_journal_keeps_it(house: House) -> None:
    """A pack, or a person, puts a memory on the desk; it stays there, and says since when and by whom."""
    kit, clock, ann = house.kit, house.clock, house.ann
    tea, cat = house.saved("Ann likes sencha tea."), house.saved("Bob has a grey cat.")
    use(house, tea)
    ready = kit.retention.pin(cat.memory_id, scope=ann)
    assert (ready.version, kit.retention.pin(cat.memory_id, scope=ann)) == (2, ready)
    assert kit.retention.pin(tea.memory_id, scope=ann, active=False).resident is False
    assert active(house) == [cat.content]
    clock.move(400 * DAY)
    assert active(house) == [cat.content]
    last = kit.explain(cat.memory_id, scope=ann).trace.events[-1]
    assert (last.action, last.actor, last.version) == ("activate", "remy", 2)
    kit.forget(cat.memory_id, scope=ann)
    assert active(house) == []
    for wrong in (cat.memory_id, "nowhere"):
        with pytest.raises(NotFoundError):
            kit.retention.pin(wrong, scope=ann)
    assert kit.admin.verify().healthy


@pytest.mark.requirement("X5")
def test_nobody_elses_memory_ever_stands_ready(house: House) -> None:
    """What is served without a query is served without a check by the query: the scope alone decides."""
    kit, ann = house.kit, house.ann
    tea = house.saved("Ann likes sencha tea.", importance=0.9)
    for other in (ann.evolve(user="mallory"), ann.evolve(tenant="elsewhere"), ann.evolve(agent="otto")):
        assert kit.retention.active(scope=other) == ()
        for ready in (True, False):
            with pytest.raises(NotFoundError):
                kit.retention.pin(tea.memory_id, scope=other, active=ready)
    assert active(house) == [tea.content]


def test_it_comes_first_in_the_context_within_bounds_and_budget(house: House) -> None:
    """Where an agent wants it, it is there whatever is asked, and what is asked for still has room."""
    kit, ready = house.kit, house.agent("ready")
    said = ("No calls before nine.", "Answer in French.", "Never mention the party.", "Prices are in euros.")
    rules = [house.saved(rule, importance=0.9, scope=ready) for rule in said]
    house.saved("Ann likes sencha tea.", scope=ready)
    found = kit.recall("sencha", scope=ready)
    assert len(found.active) == 3
    assert all(memory.content in found.context for memory in found.active)
    assert "sencha" in found.context
    assert kit.explain(rules[0].memory_id, scope=ready).reviews == (), "standing ready is no review"
    small = kit.settings.recall.evolve(context_tokens=70)
    with MemoryKit.open(
        settings=kit.settings.evolve(recall=small), model=None, embedder=None, index=InMemoryVectorIndex()
    ) as tight:
        cut = tight.recall("sencha", scope=ready)
    assert len(cut.context) <= 4 * 70
    assert any(memory.content in cut.context for memory in cut.active)
    assert "budget" in cut.left_out.values()
    assert kit.recall("sencha", scope=ready, topics=["personal:Bob"]).active == ()
    assert kit.recall("sencha", scope=house.ann).active == ()


async def test_what_is_in_mind_brings_its_like_to_the_front(house: House) -> None:
    """Of what stands ready, the task at hand says what comes first."""
    kit, ann = house.kit, house.ann
    tea, cat = (house.saved(text, importance=0.9) for text in ("Ann likes sencha tea.", "Bob has a grey cat."))
    for about, first in (("The cat of Bob is ill.", cat), ("Buy sencha tea now!", tea)):
        kit.working.sense(about, scope=ann, task=about, attention=1)
        assert kit.retention.active(scope=ann, task=about)[0].content == first.content
        assert await kit.retention.aactive(scope=ann, task=about) == kit.retention.active(scope=ann, task=about)
