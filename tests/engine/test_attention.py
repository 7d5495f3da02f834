"""What is worth a model's call."""

from __future__ import annotations

import pytest

from remegraph import SummaryPolicy
from remegraph.engine.attention import attention
from tests.talk import called, replied, said

THRESHOLD = SummaryPolicy().attention


@pytest.mark.requirement("R6", "R8")
@pytest.mark.parametrize(
    "text",
    ["I'm vegan.", "I have a cat.", "I love tea.", "I love hiking.", "I hate mushrooms.", "我喜欢茶。", "我讨厌香菜。"],
)
def test_a_short_statement_about_oneself_is_no_small_talk(text: str) -> None:
    """Three words can matter for years; they must not be lost because they are few."""
    assert attention([said("Hi!"), said(text), replied("Noted.")]) >= THRESHOLD


@pytest.mark.requirement("X8")
@pytest.mark.parametrize("text", ["Hi, how are you?", "I'm good, thanks.", "Thanks!", "好的，谢谢！"])
def test_small_talk_is_worth_no_call(text: str) -> None:
    """Most of what is said to an agent is greetings and thanks; nobody wants to pay for these."""
    assert attention([said(text), replied("You are welcome.")]) < THRESHOLD


def test_tool_calls_have_full_attention() -> None:
    """What a tool did is worth knowing, whatever was said about it."""
    assert attention([called("search", "1")]) == 1
