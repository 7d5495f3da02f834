"""Conclusions that a model writes: one call each, never a quote, and never the model's own figures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from remegraph import Budget, BudgetExceededError, MemoryKit
from remegraph.models import Abstraction, ChangeSet, MemoryChange
from remegraph.testing import Answer, ModelCall
from tests.talk import ANN, create, digest, model_of, open_kit, proposal, said

pytestmark = pytest.mark.requirement("B6")

TEA = ("I drink sencha tea from Uji.", "I keep my sencha tea at the office.", "Bob gave me sencha tea from Uji.")
RIVER = ("I jog along the river on Sundays.", "I jog by the river with Rex.", "My knee hurts when I jog by the river.")
MORE = "I ordered sencha tea from Uji again."
GOOD = {"conclusion": "Sencha from Uji is Ann's tea.", "conditions": ["at work and as a gift"]}
QUOTE = {"conclusion": "Ann says: I keep my sencha tea at the office!", "conditions": ["always"]}


def script(conclude: Any) -> dict[str, Any]:
    """Six episodes from one conversation, and one more from another, then whatever is concluded."""

    def made(call: ModelCall) -> Answer:
        told = (MORE,) if MORE in call.text else (*TEA, *RIVER)
        return proposal(*(create(text.replace("I ", "Ann does ", 1), n, text) for n, text in enumerate(told, start=1)))

    return {
        "DigestAnswer": digest("personal:Ann"),
        "ProposalAnswer": made,
        "VerdictAnswer": {"objections": []},
        "ConclusionAnswer": conclude,
    }


def opened(home: Path, conclude: Any) -> MemoryKit:
    kit = open_kit(home, script(conclude), reviser="rules")
    kit.add_messages([said(text, minutes=n) for n, text in enumerate((*TEA, *RIVER))], scope=ANN)
    kit.summarize(scope=ANN, close=True)
    return kit


def concluding(call: ModelCall) -> Answer:
    """Quote the river whatever one says; quote the tea once."""
    if "river" in call.text:
        return {"conclusion": "For Ann: by the river with Rex I jog.", "conditions": [RIVER[2]]}
    return GOOD if len(call.messages) > 2 else QUOTE


@pytest.fixture
def kit(tmp_path: Path) -> Iterator[MemoryKit]:
    with opened(tmp_path, concluding) as kit:
        yield kit


def test_a_quote_is_sent_back_and_what_cannot_be_written_is_only_proposed(kit: MemoryKit) -> None:
    """A conclusion that repeats what was said is dialogue, not knowledge; a stubborn model must not stop the run."""
    done = kit.retention.consolidate(scope=ANN)
    (tea,) = done.made
    (river,) = done.proposed
    assert (tea.content, tea.extractor) == (GOOD["conclusion"], "scripted")
    assert (len(river), done.offline) == (3, river[:1])
    sure = Abstraction.of(tea)
    assert sure is not None
    assert (sure.conditions, sure.corroborations, sure.confidence) == (("at work and as a gift",), 3, 4 / 5)
    calls = [call for call in model_of(kit).calls if call.schema == "ConclusionAnswer"]
    assert len(calls) == len(done.usage.calls) == 4
    repairs = [call.text for call in calls if len(call.messages) > 2]
    assert any("'i keep my sencha tea at'" in text for text in repairs)
    assert kit.recall("Where does my sencha come from?", scope=ANN).memories


@pytest.mark.requirement("B6", "X11")
def test_a_model_may_find_that_what_looks_alike_has_nothing_in_common(tmp_path: Path) -> None:
    """Likeness proposes; what was and what is now are no one lasting statement."""
    with opened(tmp_path, {"conclusion": "", "conditions": []}) as kit:
        done = kit.retention.consolidate(scope=ANN)
        assert (done.made, done.offline, len(done.proposed)) == ((), (), 2)
        assert {memory.layer for memory in kit.memories(scope=ANN)} == {"episodic"}


@pytest.mark.requirement("B6", "X11")
def test_what_a_model_found_to_have_nothing_in_common_is_not_asked_again_until_the_group_changes(
    tmp_path: Path,
) -> None:
    """A nightly run must not pay each night for the same no; a new episode, or new words, make it another question."""
    with opened(tmp_path, {"conclusion": "", "conditions": []}) as kit:
        first = kit.retention.consolidate(scope=ANN)
        again = kit.retention.consolidate(scope=ANN)
        assert (len(first.usage.calls), len(again.usage.calls)) == (2, 0)
        assert again.proposed == first.proposed
        kit.add_messages([said(MORE, thread="later")], scope=ANN)
        kit.summarize(scope=ANN, close=True)
        assert len(kit.retention.consolidate(scope=ANN).usage.calls) == 1
        assert len(kit.retention.consolidate(scope=ANN).usage.calls) == 0
        assert kit.admin.verify().healthy


def test_a_model_that_failed_to_answer_is_asked_again(kit: MemoryKit) -> None:
    """A no is a decision; a fault is none."""
    first, again = kit.retention.consolidate(scope=ANN), kit.retention.consolidate(scope=ANN)
    assert len(first.offline) == 1
    assert again.offline == first.offline
    assert again.usage.calls


@pytest.mark.requirement("B8")
def test_an_episode_joins_a_conclusion_only_where_the_model_says_it_anew(tmp_path: Path) -> None:
    """A count that grows by likeness would make a guess surer with every sentence that shares its words."""
    with opened(tmp_path, concluding) as kit:
        kit.retention.consolidate(scope=ANN)
        (tea,) = [memory for memory in kit.memories(scope=ANN) if memory.layer == "long_term"]
        assert tea.merges == 2


def test_a_budget_ends_the_run_and_the_next_one_goes_on(kit: MemoryKit) -> None:
    """Nobody pays more than they said, nor twice for the same; a dry run costs nothing."""
    assert len(kit.retention.consolidate(scope=ANN, dry_run=True).proposed) == 2
    with pytest.raises(BudgetExceededError):
        kit.retention.consolidate(scope=ANN, budget=Budget(max_calls=0))
    assert {memory.layer for memory in kit.memories(scope=ANN)} == {"episodic"}
    assert len(kit.retention.consolidate(scope=ANN).made) == 1


@pytest.mark.requirement("B8")
def test_a_model_is_never_shown_what_was_beside_what_is(tmp_path: Path) -> None:
    """It would conclude from both: what is over is not in its prompt."""
    with opened(tmp_path, GOOD) as kit:
        known = {memory.content: memory for memory in kit.memories(scope=ANN)}
        over = next(memory for content, memory in known.items() if "office" in content)
        ended = over.evolve(version=over.version + 1, valid_to=over.said_at)
        change = MemoryChange(memory=ended, expected_version=over.version, action="refine")
        kit.context.parts().archive.commit(
            ChangeSet(operation_id="over", actor="a", recorded_at=over.recorded_at, changes=(change,))
        )
        kit.retention.consolidate(scope=ANN)
        told = [call.text for call in model_of(kit).calls if call.schema == "ConclusionAnswer"]
        assert not any("office" in text for text in told)
