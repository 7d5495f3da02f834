"""Sentiment: how good or bad the words of a memory are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remegraph.rules.feelings import sentiment

pytestmark = pytest.mark.requirement("F8")


@pytest.mark.parametrize(
    ("text", "sign"),
    [
        ("Ann loves hiking.", 1),
        ("Ann hates mushrooms.", -1),
        ("Ann doesn't like mushrooms.", -1),
        ("The service was not very good.", -1),
        ("web_search is unreliable and fails.", -1),
        ("Ann lives in Lisbon.", 0),
        ("Ann loves tea and hates coffee.", 0),
        ("小林很喜欢吃西瓜。", 1),
        ("小林不喜欢香菜。", -1),
        ("用户表达自己很孤独。", -1),
        ("小林住在上海。", 0),
        ("", 0),
    ],
)
def test_words_that_say_how_somebody_feels_are_weighed(text: str, sign: int) -> None:
    """An agent that knows what hurts can keep from bringing it up."""
    assert sentiment(text) == sign


@given(st.text())
def test_sentiment_is_never_beyond_its_scale(text: str) -> None:
    """Whatever the text, callers get a number that they can rely on."""
    assert -1 <= sentiment(text) <= 1
