"""What is worth a model's call."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from remegraph import SummaryPolicy
from remegraph.engine.perception import attended, attention
from remegraph.models import StoredMessage
from tests.pictures import image
from tests.talk import ANN, NOON, called, replied, returned, said

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


def test_messages_under_the_threshold_are_left_out_and_tools_never() -> None:
    """What a tool was asked and answered is kept together; a threshold of 0 asks nobody."""
    spoken = [said("Hi!"), said("I fly on Friday."), called("search", "1"), returned("1", "ok"), replied("Enjoy!")]
    block = [
        StoredMessage(**dict(message), partition=ANN.partition(), seq=seq, recorded_at=NOON)
        for seq, message in enumerate(spoken, start=1)
    ]
    heard: list[tuple[str, int]] = []

    def score(text: str, before: Sequence[str], /) -> float:
        heard.append((text, len(before)))
        return 0.5 if "fly" in text else 0.0

    assert [message.seq for message in attended(block, score, 0.5)] == [2, 3, 4]
    assert heard == [("Hi!", 0), ("I fly on Friday.", 1), ("Enjoy!", 4)]
    assert attended(block, score, 0.0) == tuple(block)
    assert len(heard) == 3


def test_a_picture_without_words_gets_attention() -> None:
    """Whoever sends a picture alone says something by it."""
    message = said("").model_copy(update={"content": [image()]})
    sent = StoredMessage(**dict(message), partition=ANN.partition(), seq=1, recorded_at=NOON)
    assert attended([sent], lambda _text, _before: 0.0, 0.5) == (sent,)
