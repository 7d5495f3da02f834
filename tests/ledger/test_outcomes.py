"""How skills went, as both ledgers count it."""

from __future__ import annotations

import pytest

from remegraph.errors import NotFoundError
from remegraph.models import SkillOutcome
from remegraph.ports import Tally
from tests.ledger.conftest import ANN, BOB, Ledger


@pytest.mark.requirement("B10")
def test_the_ledger_counts_each_run_once_by_version_and_place(ledger: Ledger) -> None:
    """The first word on a run stands; means are those of the runs that tell; each run is a use of the skill."""
    memory, other = ledger.learn(), ledger.learn(partition=BOB)
    ids = [memory.memory_id, other.memory_id]
    first = SkillOutcome(
        memory_id=memory.memory_id, version=1, run_id="a", ok=True, at=ledger.now, seconds=2, tokens=10
    )
    assert ledger.archive.add_outcome(ANN, first) == first
    ledger.wait(60)
    again = first.evolve(ok=False, at=ledger.now, version=2)
    assert ledger.archive.add_outcome(ANN, again) == first
    untimed = first.evolve(tokens=None)
    ledger.archive.add_outcome(ANN, untimed.evolve(run_id="b", ok=False))
    ledger.archive.add_outcome(ANN, first.evolve(run_id="c", tokens=2**40))
    ledger.archive.add_outcome(ANN, untimed.evolve(run_id="d", version=2, seconds=None))
    ledger.archive.add_outcome(BOB, first.evolve(memory_id=other.memory_id, ok=False))
    assert ledger.archive.outcomes([ANN], ids) == {
        (ANN, memory.memory_id, 1): Tally(3, 2, 2.0, (10 + 2**40) / 2),
        (ANN, memory.memory_id, 2): Tally(1, 1, None, None),
    }
    assert ledger.archive.reviews([ANN], ids)[ANN, memory.memory_id].used == 4


def test_an_outcome_of_a_skill_that_another_process_erased_is_refused(ledger: Ledger) -> None:
    """It would be counted for nobody, and be all that is left of an erased person's work."""
    memory = ledger.learn()
    outcome = SkillOutcome(memory_id=memory.memory_id, version=1, run_id="a", ok=True, at=ledger.now)
    ledger.lose_names(lambda: ledger.say(BOB, "hello"))
    with pytest.raises(NotFoundError):
        ledger.archive.add_outcome(ANN, outcome)
    assert ledger.archive.counts()["outcomes"] == 0


def test_memories_are_read_by_layer(ledger: Ledger) -> None:
    """Skills are found without reading everything else."""
    memory = ledger.learn()
    assert ledger.archive.memories([ANN], layers=["episodic"]) == (memory,)
    assert ledger.archive.memories([ANN], layers=["procedural"]) == ()
