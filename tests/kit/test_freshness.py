"""What holds now, what held before, and what may not hold: told apart in every recall."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from remegraph.engine.frame import short_id
from remegraph.testing import ModelCall
from tests.talk import ANN, create, digest, open_kit, proposal, said

CHANGES = [
    said("I live in Oslo by the sea."),
    said("My rent is 800 euros a month.", minutes=2000),
    said("I live in Rome now.", minutes=4000),
    said("They raised my rent to 870 euros a month.", minutes=6000),
]
OSLO, RENT, ROME, RAISED = (f"Ann: {message.text}" for message in CHANGES)
CODE = "The code of the back door in Porto these days is"


def learns(call: ModelCall) -> dict[str, Any]:
    """What a model makes of the one message of each block: a memory in her words, with its slot."""
    (message,) = [each for each in CHANGES if each.text in call.text.partition("Block:")[2]]
    slot = "rent" if "rent" in message.text else "lives_in"
    return proposal(create(f"Ann: {message.text}", 1, message.text, slot=slot, value=message.text))


MODEL = {"DigestAnswer": digest("personal:Ann"), "ProposalAnswer": learns, "VerdictAnswer": {"objections": []}}


@pytest.mark.requirement("F7")
def test_a_replaced_fact_is_found_only_where_the_past_is_asked_for(tmp_path: Path) -> None:
    """Where I live has one answer; where I used to live has another, and it is not lost."""
    with open_kit(tmp_path, MODEL) as kit:
        for message in CHANGES:
            kit.add_messages([message], scope=ANN)
            kit.summarize(scope=ANN, close=True)
        now = kit.recall("Where does Ann live?", scope=ANN, depth="messages")
        before = kit.recall("Where did Ann use to live?", scope=ANN, depth="messages")

    assert now.memories[0].text == ROME
    assert OSLO not in {hit.text for hit in now.memories}
    assert [(hit.text, hit.status) for hit in before.memories[:2]] == [(OSLO, "superseded"), (ROME, "active")]
    assert ", superseded]" in before.context
    assert [hit.text for hit in (now.messages[0], before.messages[0])] == [ROME, OSLO]


@pytest.mark.requirement("F7", "X11")
def test_without_a_model_both_statements_stand_dated_and_the_later_first(tmp_path: Path) -> None:
    """Nothing reads a slot out of words, yet whoever reads the first hit reads what holds, and sees since when."""
    with open_kit(tmp_path) as kit:
        kit.add_messages(CHANGES, scope=ANN)
        kit.summarize(scope=ANN, close=True)
        lives = kit.recall("Where does Ann live?", scope=ANN, depth="messages")
        rents = kit.recall("How much is Ann's rent a month?", scope=ANN, depth="messages")

    assert [(hit.text, hit.status) for hit in lives.memories[:2]] == [(ROME, "active"), (OSLO, "active")]
    assert all(str(CHANGES[n].time.date()) in lives.context for n in (0, 2))
    for hits in (rents.memories, rents.messages):
        assert [hit.text for hit in hits[:2]] == [RAISED, RENT]
        assert hits[0].score >= hits[1].score
        assert hits[0].score == pytest.approx(sum(hits[0].contributions.values()))


@pytest.mark.requirement("F7")
def test_an_open_contradiction_comes_with_its_counterpart(tmp_path: Path) -> None:
    """A door code that may be wrong is not told without the other one, whatever the question fits better."""
    slot = "house:back_door_code"
    with open_kit(tmp_path) as kit:
        one = kit.save("door", f"{CODE} 4711.", scope=ANN, slot=slot, value="4711").memory
        other = kit.save("door", f"{CODE} 4712.", scope=ANN, slot=slot, value="4712").memory
        kit.save("garden", "The garden has a pond.", scope=ANN)
        recall = kit.recall("What is the code of the back door, 4711?", scope=ANN, k=1)

    assert one is not None
    assert other is not None
    assert {hit.record_id for hit in recall.memories} == {one.memory_id, other.memory_id}
    first, second = recall.memories
    assert (first.counterpart_of, second.counterpart_of) == ("", first.record_id)
    assert f"may_contradict {short_id(first.record_id)}" in recall.context
