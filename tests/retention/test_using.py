"""What becomes of a memory that an answer drew on: it is noted, kept longer, and ranked first; it is borne out by nothing."""

from __future__ import annotations

import pytest

from remegraph import InputError, NotFoundError
from tests.retention.conftest import DAY, House
from tests.talk import replied

pytestmark = pytest.mark.requirement("G10")


@pytest.mark.requirement("F5")
def test_what_an_answer_used_is_noted_and_forgotten_later(house: House) -> None:
    """Ten memories are shown for a question and one of them answers it: that one is worth keeping."""
    kit, clock, ann = house.kit, house.clock, house.ann
    nuts, cat = house.told("Tom is allergic to walnuts.", "Tom has a grey cat.")
    clock.move(10 * DAY)
    found = kit.recall("What about Tom?", scope=ann)
    assert len(found.memories) == 2
    question, answer = "What about Tom?", "Tom is allergic to walnuts."
    assert kit.retention.answered(answer, question=question, context=found.context, scope=ann) == (nuts.memory_id,)
    for write in (lambda: None, kit.drain):
        write()
        used, shown = (kit.explain(each.memory_id, scope=ann) for each in (nuts, cat))
        assert (len(used.uses), shown.uses) == (1, ())
        assert used.forget_at is not None
        assert shown.forget_at is not None
        assert used.forget_at > shown.forget_at + 10 * DAY
        known = [kit.retention.metadata(each.memory_id, scope=ann) for each in (nuts, cat)]
        assert [each.access_count for each in known] == [1, 1]
        assert known[0].utility_score == pytest.approx(2 / 3)
        assert known[1].utility_score == pytest.approx(1 / 3)


def test_an_agent_may_say_itself_what_it_used(house: House) -> None:
    """An agent that cites its sources knows better than its words; what it may not see, it cannot have used."""
    kit, ann, bob = house.kit, house.ann, house.ann.evolve(user="bob")
    tea, cat = house.saved("Ann likes sencha tea."), house.saved("Ann has a grey cat.")
    kit.retention.used([tea.memory_id], scope=ann)
    assert len(kit.explain(tea.memory_id, scope=ann).uses) == 1
    for wrong, scope in (([cat.memory_id, "nowhere"], ann), ([cat.memory_id], bob)):
        with pytest.raises(NotFoundError):
            kit.retention.used(wrong, scope=scope)
    for misread in (cat.memory_id, [7]):
        with pytest.raises(InputError):
            kit.retention.used(misread, scope=ann)  # type: ignore[arg-type]  # the point of the test
    kit.retention.used([], scope=ann)
    assert kit.explain(cat.memory_id, scope=ann).uses == ()


def test_use_moves_the_ranking_where_the_settings_let_it_count(house: House) -> None:
    """Of two memories that answer a question alike, the one that was of use comes first."""
    kit, useful = house.kit, house.agent("useful")
    red, blue = (house.saved(f"Ann keeps tea in a {colour} tin.", scope=useful) for colour in ("red", "blue"))
    order = [hit.record_id for hit in kit.recall("tea", scope=useful).memories]
    last = order[-1]
    assert set(order) == {red.memory_id, blue.memory_id}
    for _ in range(3):
        kit.retention.used([last], scope=useful)
    kit.drain()
    first, other = kit.recall("tea", scope=useful).memories
    assert first.record_id == last
    assert first.contributions["utility"] > other.contributions["utility"]
    assert "utility" in first.why


@pytest.mark.requirement("X6")
def test_an_answer_that_repeats_a_memory_bears_it_out_by_nothing(house: House) -> None:
    """An echo is no second witness: a memory must not grow surer because the agent quotes it."""
    kit, ann = house.kit, house.ann
    (nuts,) = house.told("Tom is allergic to walnuts.")
    found = kit.recall("What about Tom?", scope=ann)
    answer = "Tom is allergic to walnuts."
    kit.add_messages([replied(answer, thread="asked", minutes=60 * 24)], scope=ann)
    assert kit.retention.answered(answer, context=found.context, scope=ann) == (nuts.memory_id,)
    kit.summarize(scope=ann, close=True)
    (now,) = [each for each in kit.memories(scope=ann) if each.memory_id == nuts.memory_id]
    assert now == nuts


def test_a_context_that_was_tampered_with_is_refused(house: House) -> None:
    """A host that cuts the context in the middle learns of it, instead of noting at random."""
    kit, ann = house.kit, house.ann
    house.saved("Ann likes sencha tea.")
    context = kit.recall("tea", scope=ann).context
    head, topic, line, _ = context.splitlines()
    with pytest.raises(InputError, match="cut or changed"):
        kit.retention.answered("Sencha.", context=f"{head}\n{topic}\n{line[:30]}", scope=ann)
    for other in ("", "Ann likes sencha tea."):
        assert kit.retention.answered("Sencha tea.", context=other, scope=ann) == ()
