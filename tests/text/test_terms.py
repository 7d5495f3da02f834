"""The words of a sentence that compare."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remegraph.text.terms import wording


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("She bought a house", "she purchased houses"),
        ("He can't stand eggs", "He hates eggs"),
        ("twelve guests, the 40th", "40 guests, 12"),
        ("爸爸不喜欢香菜", "父亲讨厌香菜"),
        ("一万八千元", "18000元"),
        ("工资一万八", "薪水18000"),
        ("融资一亿二千万元", "融资120000000元"),
        ("市值一万亿元", "市值1000000000000元"),
    ],
)
def test_the_same_in_other_words_compares_equal(a: str, b: str) -> None:
    """Models put things in their own words."""
    assert (wording(a).words, wording(a).numbers) == (wording(b).words, wording(b).numbers)


def test_negation_is_noticed() -> None:
    """A "not" turns a fact round."""
    assert wording("Ann has no dog").negative
    assert wording("小林没有狗").negative
    assert not wording("Ann hates dogs").negative


@given(st.text())
def test_any_text_has_a_wording(text: str) -> None:
    """People type anything."""
    said = wording(text)
    assert all(said.words)
    assert all(said.numbers)
