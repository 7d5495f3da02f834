"""What a context shows beside the best: what is at stake, and more of what was found; and how its names come back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from remegraph import MemoryKit, NotFoundError, Scope
from remegraph.engine.frame import short_id, shown_ids, shown_texts
from remegraph.models import RecallFilter
from remegraph.text.tokens import estimate_tokens
from tests.talk import ANN, open_kit, replied, said

NUTS = "One cashew sent Priya off in an ambulance, she is allergic."
BOWLS = "What shall I put out in bowls for film night?"


@pytest.fixture
def kit(tmp_path: Path) -> Iterator[MemoryKit]:
    with open_kit(tmp_path) as opened:
        yield opened


def talk(kit: MemoryKit) -> None:
    kit.add_messages([said(f"The weather is grey on day {day}.", minutes=day) for day in range(30)], scope=ANN)
    kit.add_messages([said(NUTS, minutes=40)], scope=ANN)
    kit.add_messages([said(f"The garden is wet on day {day}.", minutes=50 + day) for day in range(30)], scope=ANN)


def test_what_is_at_stake_is_shown_though_the_question_shares_no_word_with_it(kit: MemoryKit) -> None:
    """Nobody asks for the allergy of a guest before the bowls stand there."""
    talk(kit)
    found = kit.recall(BOWLS, scope=ANN, depth="messages", budget=300)
    assert NUTS in found.context
    assert [NUTS in hit.text for hit in found.beside] == [True]
    assert NUTS not in kit.recall(BOWLS, scope=ANN, depth="memories").context


def test_what_is_at_stake_takes_no_room_from_what_is_asked(kit: MemoryKit) -> None:
    """Who asks when it rained needs no allergy beside the answer; it took two fifths of every context."""
    kit.add_messages([said(f"The weather is grey on day {day}.", minutes=day) for day in range(30)], scope=ANN)
    kit.add_messages([said(NUTS, thread="film", minutes=200)], scope=ANN)
    asked: dict[str, Any] = {"scope": ANN, "depth": "messages", "budget": 200}
    assert NUTS not in kit.recall("On which days was the weather grey?", **asked).context
    assert NUTS in kit.recall(BOWLS, **asked).context


def test_what_bears_on_the_question_comes_before_what_else_is_at_stake(kit: MemoryKit) -> None:
    """Among many warnings the one that the question touches is shown."""
    long = (
        f"{NUTS} It was a quiet evening until then, with rain on the roof and the two of us on the steps of the shed."
    )
    kit.add_messages([said(long)], scope=ANN)
    orders = ("the red lamp", "a bell at noon", "that old pump", "every second valve", "our north gate", "Tim's winch")
    texts = [f"It is forbidden by court order, never touch {what}." for what in orders]
    kit.add_messages([said(text, minutes=200 + at) for at, text in enumerate(texts)], scope=ANN)
    assert long in kit.recall(BOWLS, scope=ANN, depth="messages", budget=200).context


def test_what_the_agent_said_itself_is_not_at_stake(kit: MemoryKit) -> None:
    """It repeats what was told, or knows it from elsewhere; the person's own words are shown."""
    kit.add_messages([replied(NUTS)], scope=ANN)
    kit.add_messages([said(f"The garden is wet on day {day}.", minutes=50 + day) for day in range(30)], scope=ANN)
    assert not kit.recall(BOWLS, scope=ANN, depth="messages", budget=300).beside


def test_where_there_is_room_what_matters_is_shown_though_it_shares_no_word(kit: MemoryKit) -> None:
    """Words tell little of what bears on a question: "how does she get to work" finds no "20 minutes' walk"."""
    kit.save("walk", "Ann has a 20 minute walk, downhill there.", scope=ANN)
    kit.add_messages([said(f"The office is grey on day {day}.", minutes=day) for day in range(80)], scope=ANN)
    kit.save("desk", "Ann has a desk in the office.", scope=ANN)
    assert "20 minute walk" in kit.recall("What is in the office?", scope=ANN, k=1).context


def test_who_says_what_may_be_shown_is_shown_nothing_else(kit: MemoryKit) -> None:
    """A filter, a topic or a time is a limit."""
    talk(kit)
    for only in ({"only": RecallFilter(min_trust=0.9)}, {"topics": ["task:x"]}, {"time_start": kit.context.clock()}):
        assert NUTS not in kit.recall(BOWLS, scope=ANN, depth="messages", **only).context


def test_what_was_forgotten_is_not_at_stake(kit: MemoryKit) -> None:
    """Forgetting reaches every way by which something is found."""
    talk(kit)
    saved = kit.save("Priya", NUTS, scope=ANN).memory
    assert saved is not None
    kit.forget(saved.memory_id, scope=ANN)
    assert "cashew" not in kit.recall(BOWLS, scope=ANN, depth="messages").context


def test_what_is_at_stake_is_known_from_the_moment_it_is_kept_until_it_is_forgotten(kit: MemoryKit) -> None:
    """It is looked up once for as far as somebody's memory has come, and no further."""
    asked: dict[str, Any] = {"scope": ANN, "depth": "memories", "k": 1, "budget": 120}
    for number in range(12):
        kit.save(f"bowl {number}", f"For film night Ann likes to put out bowls of kind {number}.", scope=ANN)
    assert "cashew" not in kit.recall(BOWLS, **asked).context
    saved = kit.save("Priya", NUTS, scope=ANN).memory
    assert saved is not None
    assert "cashew" in kit.recall(BOWLS, **asked).context
    kit.forget(saved.memory_id, scope=ANN)
    assert "cashew" not in kit.recall(BOWLS, **asked).context


def test_the_budget_is_used_for_what_bears_on_the_question_beyond_the_best(kit: MemoryKit) -> None:
    """Ten found, five shown at an eighth of the budget: the answer stood in the eleventh."""
    for number in range(30):
        kit.save(f"box {number}", f"Ann keeps key {number} in the shed.", scope=ANN)
    kit.save("cat", "Ann has a cat.", scope=ANN)
    found = kit.recall("Which keys are in the shed?", scope=ANN, k=5)
    assert len(found.memories) == 5
    assert len(shown_ids(found.context)) >= 30
    assert len(found.beside) >= 25
    assert estimate_tokens(found.context) <= 2000
    assert {hit.record_id for hit in found.beside}.isdisjoint(hit.record_id for hit in found.memories)


def test_what_a_context_calls_a_memory_finds_it_again(kit: MemoryKit) -> None:
    """A model that reads eight letters of an id says them to its tools."""
    saved = kit.save("Priya", NUTS, scope=ANN).memory
    assert saved is not None
    (name,) = shown_texts(kit.recall("Priya?", scope=ANN).context)
    assert name == short_id(saved.memory_id) != saved.memory_id
    assert kit.trace(name, scope=ANN).memory.memory_id == saved.memory_id
    assert kit.retention.answered(
        "Priya is allergic: a cashew, an ambulance.", context=kit.recall("Priya?", scope=ANN).context, scope=ANN
    ) == (saved.memory_id,)
    bob = Scope(user="bob", agent="remy")
    with pytest.raises(NotFoundError) as refused:
        kit.forget(name, scope=bob)
    assert saved.memory_id not in str(refused.value)
    assert kit.forget(name, scope=ANN).memory.memory_id == saved.memory_id


def test_what_the_conversation_says_itself_is_not_at_stake(kit: MemoryKit) -> None:
    """The model reads these words anyway, whatever was made of them."""
    talk(kit)
    kit.summarize(scope=ANN, close=True)
    assert NUTS in kit.recall(BOWLS, scope=ANN, depth="messages").context
    here = [message.message_id for message in kit.messages(scope=ANN)]
    assert NUTS not in kit.recall(BOWLS, scope=ANN, depth="memories", without=here).context
