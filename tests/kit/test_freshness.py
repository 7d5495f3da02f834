"""What holds now, what held before, and what may not hold: told apart in every recall, without a model."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.talk import ANN, open_kit, said

CHANGES = [
    said("I live in Oslo by the sea."),
    said("My rent is 800 euros a month.", minutes=1),
    said("I live in Rome now.", minutes=3000),
    said("They raised my rent to 870 euros a month.", minutes=3001),
]
CODE = "The code of the back door in Porto these days is"


@pytest.mark.requirement("F7")
def test_a_replaced_fact_is_found_only_where_the_past_is_asked_for(tmp_path: Path) -> None:
    """Where I live has one answer; where I used to live has another, and it is not lost."""
    with open_kit(tmp_path) as kit:
        kit.add_messages(CHANGES, scope=ANN)
        kit.summarize(scope=ANN, close=True)
        now = kit.recall("Where does Ann live?", scope=ANN, depth="messages")
        before = kit.recall("Where did Ann use to live?", scope=ANN, depth="messages")

    assert now.memories[0].text == "Ann: I live in Rome now."
    assert "Oslo" not in "".join(hit.text for hit in now.memories)
    assert [(hit.text, hit.status) for hit in before.memories[:2]] == [
        ("Ann: I live in Oslo by the sea.", "superseded"),
        ("Ann: I live in Rome now.", "active"),
    ]
    assert '"status": "superseded"' in before.context
    assert [hit.text for hit in (now.messages[0], before.messages[0])] == [
        "Ann: I live in Rome now.",
        "Ann: I live in Oslo by the sea.",
    ]


@pytest.mark.requirement("F7")
def test_of_two_statements_the_later_stands_first_and_says_why(tmp_path: Path) -> None:
    """No rule read these as one slot, yet whoever reads the first hit reads what holds."""
    with open_kit(tmp_path) as kit:
        kit.add_messages(CHANGES, scope=ANN)
        kit.summarize(scope=ANN, close=True)
        recall = kit.recall("How much is Ann's rent a month?", scope=ANN, depth="messages")

    for hits in (recall.memories, recall.messages):
        assert [hit.text for hit in hits[:2]] == [f"Ann: {CHANGES[3].text}", f"Ann: {CHANGES[1].text}"]
        assert hits[0].score >= hits[1].score
        assert hits[0].score == pytest.approx(sum(hits[0].contributions.values()))


@pytest.mark.requirement("F7")
def test_an_open_contradiction_comes_with_its_counterpart(tmp_path: Path) -> None:
    """A door code that may be wrong is not told without the other one, whatever the question fits better."""
    with open_kit(tmp_path) as kit:
        one = kit.save("door", f"{CODE} 4711.", scope=ANN).memory
        other = kit.save("door", f"{CODE} 4712.", scope=ANN).memory
        kit.save("garden", "The garden has a pond.", scope=ANN)
        recall = kit.recall("What is the code of the back door, 4711?", scope=ANN, k=1)

    assert one is not None
    assert other is not None
    assert {hit.record_id for hit in recall.memories} == {one.memory_id, other.memory_id}
    first, second = recall.memories
    assert (first.counterpart_of, second.counterpart_of) == ("", first.record_id)
    assert f'"may_contradict": "{first.record_id}"' in recall.context
