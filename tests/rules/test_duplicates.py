"""The same in other words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remegraph.rules.duplicates import content_digest, near_duplicate


@pytest.mark.requirement("R11")
@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("Ann is allergic to peanuts.", "Ann has a peanut allergy."),
        ("Ann can't stand mushrooms.", "Ann hates mushrooms."),
        ("Ann moved to Oslo in 2021.", "In 2021 Ann relocated to Oslo."),
        ("Tom climbs at a wall in Peckham on Mondays.", "On Monday Tom is at the Peckham climbing wall."),
        ("小林对花生过敏。", "小林有花生过敏的问题。"),
        ("老钱的妻子手上有湿疹，接触洗洁精会发作。", "老钱妻子的手一沾洗洁精就会起湿疹。"),
    ],
)
def test_the_same_in_other_words_is_a_duplicate(a: str, b: str) -> None:
    """Nobody wants to be told one thing twice."""
    assert near_duplicate(a, b, ["Ann", "Tom", "小林", "老钱"])
    assert near_duplicate(b, a, ["Ann", "Tom", "小林", "老钱"])


@pytest.mark.requirement("R11", "F4")
@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("Ann likes red wine.", "Ann hates red wine."),
        ("Ann moved to Oslo in 2021.", "Ann moved to Oslo in 2023."),
        ("Ann owes Tom 50 euros for the tickets.", "Ann owes Tom 70 euros for the tickets."),
        ("Ann has a garden with roses.", "Ann has no garden with roses."),
        ("Ann plays the cello.", "Ann teaches maths in Leeds."),
        ("小林喜欢吃香菜。", "小林讨厌吃香菜。"),
        ("小林2021年搬到苏州。", "小林2023年搬到苏州。"),
        ("小林养了一只橘猫。", "小林在银行上班。"),
    ],
)
def test_contradictions_and_other_facts_are_no_duplicates(a: str, b: str) -> None:
    """Merging them would lose one of two truths."""
    assert not near_duplicate(a, b, ["Ann", "小林"])


@pytest.mark.requirement("F4")
def test_a_digest_ignores_case_space_and_outer_punctuation() -> None:
    """A memory said again letter by letter is known at once."""
    assert content_digest("  Ann likes\ttea. ") == content_digest("ann likes tea")
    assert content_digest("Ann likes tea") != content_digest("Ann likes te a")


@given(st.text(), st.text())
def test_being_a_duplicate_is_mutual(a: str, b: str) -> None:
    """The order in which things were learned does not matter, nor does any text break the check."""
    assert near_duplicate(a, b) == near_duplicate(b, a)
    assert near_duplicate(a, a)
