"""Sentences that differ in a sign, as a letter or an address, are two things."""

from __future__ import annotations

from pathlib import Path

import pytest

from remegraph.rules.codes import codes, differently_coded
from remegraph.rules.duplicates import at_odds, near_duplicate
from remegraph.rules.merging import joined
from tests.talk import ANN, open_kit

pytestmark = pytest.mark.requirement("R8")

APART = [
    ("Ann sits in room B.", "Ann sits in room C."),
    ("Ann takes vitamin C.", "Ann takes vitamin D."),
    ("Ann lives on floor 1.", "Ann lives on floor 2."),
    ("Ann's e-mail is a.lee@example.org.", "Ann's e-mail is b.lee@example.org."),
    ("Ann's website is ann.io.", "Ann's website is ann.me."),
    ("The repo is at github.com/ann/app.", "The repo is at github.com/ann/api."),
    ("The build runs on db-a.", "The build runs on db-b."),
    ("Ann drives a Mazda MX5.", "Ann drives a Mazda CX5."),
    ("小林坐在B座。", "小林坐在C座。"),
    ("小林的邮箱是 lin@a.cn。", "小林的邮箱是 lin@b.cn。"),
]


@pytest.mark.parametrize(("one", "other"), APART, ids=[one for one, _ in APART])
def test_a_sign_that_differs_is_what_two_sentences_are_about(one: str, other: str) -> None:
    """Stems leave letters and points out: the new room was taken for the old one, and forgotten."""
    assert differently_coded(one, other)
    assert not near_duplicate(one, other, ["Ann"])
    assert at_odds(one, other)
    assert joined(one, other) == f"{one}\n{other}"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("A dog barked.", "The dog barked."),
        ("Ann's e-mail is ann@x.org.", "Ann's email is ann@x.org"),
        ("We run node.js.", "We run nodejs."),
        ("Bob pays 1,000 euros.", "Bob pays 1000 euros."),
        ("Bob has a 57-foot boat.", "Bob has a boat of 57 feet."),
        ("The meeting is on 2025-03-04.", "The meeting is on 4 March 2025."),
        ("I think, I am.", "I think; so I am."),
    ],
)
def test_the_same_in_another_spelling_is_not_kept_apart(one: str, other: str) -> None:
    """Else every memory would be there twice."""
    assert not differently_coded(one, other)


def test_numbers_and_words_are_no_signs() -> None:
    """They are compared by signs of their own."""
    assert codes("On 5 May 2025 at 15:30 I ran 10 km, 3.5 of it uphill, with a 2nd try.") == frozenset()
    assert codes("Plan B, at K-7 or https://a.io/x, is Ann_1's.") == {"b", "k-7", "https://a.io/x", "ann_1"}


def test_a_room_that_changed_is_not_lost(tmp_path: Path) -> None:
    """What was said last must be there; who asks sees that the two disagree."""
    with open_kit(tmp_path) as kit:
        kit.save("where Ann sits", "Ann sits in room B.", scope=ANN)
        kit.save("where Ann sits", "Ann sits in room C.", scope=ANN)
        assert {memory.content for memory in kit.memories(scope=ANN)} == {"Ann sits in room B.", "Ann sits in room C."}
        assert len(kit.conflicts.list(scope=ANN)) == 1
