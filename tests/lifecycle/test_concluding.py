"""Conclusions that a model writes: one call each, never a quote, and never the model's own figures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from remegraph import Budget, BudgetExceededError, MemoryKit
from remegraph.models import Abstraction
from remegraph.testing import Answer, ModelCall
from tests.talk import ANN, create, digest, model_of, open_kit, proposal, said

pytestmark = pytest.mark.requirement("B6")

TEA = ("I drink sencha tea from Uji.", "I keep my sencha tea at the office.", "Bob gave me sencha tea from Uji.")
RIVER = ("I jog along the river on Sundays.", "I jog by the river with Rex.", "My knee hurts when I jog by the river.")
GOOD = {"conclusion": "Sencha from Uji is Ann's tea.", "conditions": ["at work and as a gift"]}
QUOTE = {"conclusion": "Ann says: I keep my sencha tea at the office!", "conditions": ["always"]}


def script(conclude: Any) -> dict[str, Any]:
    """Six episodes from one conversation, then whatever is concluded."""
    made = (create(text.replace("I ", "Ann does ", 1), n, text) for n, text in enumerate((*TEA, *RIVER), start=1))
    return {
        "DigestAnswer": digest("personal:Ann"),
        "ProposalAnswer": proposal(*made),
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


def test_a_quote_is_sent_back_and_what_cannot_be_written_is_counted(kit: MemoryKit) -> None:
    """A conclusion that repeats what was said is dialogue, not knowledge; a stubborn model must not stop the run."""
    done = kit.consolidate(scope=ANN)
    tea, river = sorted(done.made, key=lambda memory: "river" in memory.content)
    assert (tea.content, tea.extractor) == (GOOD["conclusion"], "scripted")
    assert (river.content, river.extractor) == ("Ann comes back to this, 3 times: river, jog.", "extractive")
    assert done.offline == (river.memory_id,)
    sure = Abstraction.of(tea)
    assert sure is not None
    assert (sure.conditions, sure.corroborations, sure.confidence) == (("at work and as a gift",), 3, 4 / 5)
    calls = [call for call in model_of(kit).calls if call.schema == "ConclusionAnswer"]
    assert len(calls) == len(done.usage.calls) == 4
    repairs = [call.text for call in calls if len(call.messages) > 2]
    assert any("'i keep my sencha tea at'" in text for text in repairs)
    assert kit.recall("Where does my sencha come from?", scope=ANN).memories
    assert kit.consolidate(scope=ANN).usage.calls == ()


def test_a_budget_ends_the_run_and_the_next_one_goes_on(kit: MemoryKit) -> None:
    """Nobody pays more than they said, nor twice for the same; a dry run costs nothing."""
    assert len(kit.consolidate(scope=ANN, dry_run=True).made) == 2
    with pytest.raises(BudgetExceededError):
        kit.consolidate(scope=ANN, budget=Budget(max_calls=0))
    assert {memory.layer for memory in kit.memories(scope=ANN)} == {"episodic"}
    assert len(kit.consolidate(scope=ANN).made) == 2
