"""When a statement is new, merged, or replaces what was known."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remegraph.models import Memory, Partition, Topic
from remegraph.rules.claims import read_claims
from remegraph.rules.duplicates import at_odds
from remegraph.rules.merging import Alike, Decision, decide, joined
from tests.talk import NOON


def alike(content: str, similarity: float | None = 0.5, importance: float = 0.5) -> Alike:
    claims = read_claims(content, "ann", "en")
    made = Memory(
        memory_id=content,
        partition=Partition(tenant="default", user="ann"),
        topic=Topic(type="personal", target_name="ann"),
        content=content,
        claims=claims,
        said_at=NOON,
        recorded_at=NOON,
        importance=importance,
    )
    return Alike(made, similarity)


def decided(content: str, *known: Alike, threshold: float = 0.85, by_person: bool = True) -> Decision:
    claims = read_claims(content, "ann", "en")
    return decide(content, claims, known, threshold=threshold, by_person=by_person)


@pytest.mark.requirement("F4")
@given(similarity=st.floats(0, 1), threshold=st.floats(0, 1))
def test_only_what_is_strictly_above_the_threshold_is_merged(similarity: float, threshold: float) -> None:
    """The limit itself still makes a new memory, as the design says."""
    known = alike("Ann keeps bees on the roof.", similarity)
    decision = decided("Ann keeps bees on her roof.", known, threshold=threshold)
    assert decision.target == (known if similarity > threshold else None)


@pytest.mark.requirement("F4")
def test_the_same_words_are_merged_whatever_the_similarity() -> None:
    """Also where the embedder is down and nothing can be measured."""
    known = alike("Ann keeps bees.", None)
    assert decided("ann keeps  bees", known, threshold=1).target == known


@pytest.mark.requirement("F4")
def test_what_contradicts_in_slots_replaces_what_was_known() -> None:
    """Two homes at once would make every later answer a guess."""
    known = alike("I live in Lisbon.", 0.99)
    assert decided("I live in Porto.", known) == Decision(replaced=(known.memory,))


@pytest.mark.requirement("F4")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("The door code is 4711.", "The door code is 4712."),
        ("The API of the shop is stable.", "The API of the shop is not stable."),
    ],
)
def test_what_is_alike_but_at_odds_is_kept_beside_and_linked(old: str, new: str) -> None:
    """An embedder finds them near; merged, one of the two would be lost."""
    known = alike(old, 0.98)
    assert at_odds(old, new)
    assert decided(new, known) == Decision(may_contradict=(known.memory,))


@pytest.mark.requirement("F4", "X6")
def test_a_model_neither_replaces_nor_rewrites_a_core_rule() -> None:
    """A web page that talks the agent into it must not change what a person laid down."""
    rule = alike("I live in Lisbon.", 0.99, importance=0.95)
    assert "core rule" in decided("I live in Porto.", rule, by_person=False).refusal
    assert decided("I live in Porto.", rule).replaced == (rule.memory,)
    other = alike("Never deploy on a Friday.", 0.99, importance=0.95)
    assert decided("Never deploy late on a Friday.", other, by_person=False) == Decision()


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("Ann likes tea.", "ann likes tea", "Ann likes tea."),
        ("Ann likes green tea from Japan.", "Ann likes green tea.", "Ann likes green tea from Japan."),
        ("Ann likes green tea.", "Ann likes green tea from Japan.", "Ann likes green tea from Japan."),
        ("Ann has a dog.", "Ann has a cat.", "Ann has a dog.\nAnn has a cat."),
    ],
)
def test_a_merged_text_holds_what_both_said(old: str, new: str, text: str) -> None:
    """Merging must not lose words."""
    assert joined(old, new) == text


def test_the_nearest_of_several_is_merged_into() -> None:
    """Whatever their order."""
    near, nearer = alike("Ann keeps bees.", 0.9), alike("Ann keeps bees outside.", 0.95)
    for known in ([near, nearer], [nearer, near]):
        assert decided("Ann keeps many bees.", *known).target == replace(nearer)
