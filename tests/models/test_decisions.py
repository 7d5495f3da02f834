"""When a statement is new, merged, or replaces what was known."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remegraph.models import Memory, Partition, Topic
from remegraph.models.supersession import Alike, Decision, Statement, decide, joined
from tests.talk import NOON

HOME = "ann:lives_in"
LATER = NOON + timedelta(days=30)


def alike(content: str, similarity: float | None = 0.5, **fields: Any) -> Alike:
    made = Memory(
        memory_id=content,
        partition=Partition(tenant="default", user="ann"),
        topic=Topic(type="personal", target_name="ann"),
        content=content,
        said_at=NOON,
        recorded_at=NOON,
    )
    return Alike(made.evolve(**fields), similarity)


def home(content: str, value: str = "", **fields: Any) -> Alike:
    return alike(content, 0.99, canonical_topic=HOME, slot_value=value, **fields)


def decided(
    content: str, *known: Alike, slot: str = "", value: str = "", many: bool = False, own: bool = True, **options: Any
) -> Decision:
    given = {"threshold": 0.85, "by_person": True} | options
    return decide(Statement(content, LATER, slot, value, many), known, one_source=lambda _memory: own, **given)


@pytest.mark.requirement("F4", "X11")
@given(similarity=st.floats(0, 1), threshold=st.floats(0, 1))
def test_what_is_strictly_above_the_threshold_is_linked_and_never_merged(similarity: float, threshold: float) -> None:
    """The limit itself does not count, as the document says; and no score makes one memory of two."""
    known = alike("Ann keeps bees on the roof.", similarity)
    decision = decided("Ann keeps bees on her roof.", known, threshold=threshold)
    assert decision == Decision(similar=(known,) if similarity > threshold else ())


@pytest.mark.requirement("F4")
def test_the_same_words_are_merged_whatever_the_similarity() -> None:
    """Also where the embedder is down and nothing can be measured."""
    known = alike("Ann keeps bees.", None)
    assert decided("ann keeps  bees", known, threshold=1).target == known


@pytest.mark.requirement("F4")
@pytest.mark.parametrize("words", ["I moved to Porto.", "Now in Porto!", "我搬到波尔图了。", "15 → 16"])
def test_a_later_value_of_a_slot_replaces_the_earlier_in_whatever_words(words: str) -> None:
    """Two homes at once would make every later answer a guess; and nobody says a change in one grammar only."""
    known = home("I live in Lisbon.", "Lisbon")
    assert decided(words, known, slot=HOME, value="Porto").replaced == (known.memory,)


@pytest.mark.requirement("F4")
def test_the_same_value_of_a_slot_is_merged() -> None:
    """However it is said, it is the same fact."""
    known = home("I live in Lisbon.", "Lisbon")
    assert decided("My flat is in Lisbon.", known, slot=HOME, value=" lisbon ").target == known


@pytest.mark.requirement("F4")
def test_values_of_another_source_or_of_a_slot_of_many_replace_nothing() -> None:
    """One may like two things; and whom to believe is not for the writer to say."""
    known = home("I live in Lisbon.", "Lisbon")
    assert decided("Ann lives in Porto.", known, slot=HOME, value="Porto", own=False).replaced == ()
    tea = alike("Ann likes tea.", 0.2, canonical_topic="ann:likes", slot_value="tea", slot_many=True)
    assert decided("Ann likes figs.", tea, slot="ann:likes", value="figs", many=True) == Decision()
    late = home("I live in Lisbon.", "Lisbon", said_at=LATER + timedelta(days=1))
    assert decided("I live in Porto.", late, slot=HOME, value="Porto").replaced == ()


@pytest.mark.requirement("F4", "X6")
def test_a_model_neither_replaces_nor_rewrites_a_core_rule() -> None:
    """A web page that talks the agent into it must not change what a person laid down."""
    rule = home("I live in Lisbon.", "Lisbon", importance=0.95)
    assert "core rule" in decided("I live in Porto.", rule, slot=HOME, value="Porto", by_person=False).refusal
    assert decided("I live in Porto.", rule, slot=HOME, value="Porto").replaced == (rule.memory,)
    assert decided("My flat is in Lisbon.", rule, slot=HOME, value="Lisbon", by_person=False).target is None


@pytest.mark.requirement("G3")
def test_a_policy_is_replaced_only_by_who_names_it() -> None:
    """A later value of its slot, even a person's, does not undo a rule in passing."""
    policy = alike("Deploys need two reviews.", 0.9, canonical_topic="deploy:reviews", memory_class="policy")
    assert "a policy" in decided("One review will do.", policy, slot="deploy:reviews").refusal
    named = decided("One review will do.", policy, slot="deploy:reviews", named=[policy.memory])
    assert named.replaced == (policy.memory,)


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("Ann likes tea.", "ann likes tea", "Ann likes tea."),
        (
            "Ann likes green tea.",
            "Ann likes green tea from Japan.",
            "Ann likes green tea.\nAnn likes green tea from Japan.",
        ),
        ("Ann has a dog.\nAnn has a cat.", "Ann has a cat.", "Ann has a dog.\nAnn has a cat."),
        ("Ann has a cat.", "Ann has a dog. Ann has a cat.", "Ann has a dog. Ann has a cat."),
    ],
)
def test_a_merged_text_holds_what_both_said(old: str, new: str, text: str) -> None:
    """Merging must not lose words."""
    assert joined(old, new) == text
