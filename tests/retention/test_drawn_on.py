"""Which memories an answer drew on, as far as its words tell."""

from __future__ import annotations

import pytest

from remegraph.retention.working_memory import drawn_on

pytestmark = pytest.mark.requirement("G10")

SHOWN = {
    "nuts": "Ann: Tom is allergic to walnuts.",
    "birthday": "Ann: Tom's birthday is on May 3.",
    "cat": "Ann: I have a grey cat called Felix.",
}
SHOWN_ZH = {"nuts": "小明对核桃过敏。", "cat": "我养了一只灰色的猫。"}


@pytest.mark.parametrize(
    ("answer", "question", "drawn"),
    [
        ("Walnuts.", "What is Tom allergic to?", ["nuts"]),
        ("He cannot eat walnuts, so leave them out of the cake.", "Can Tom have the cake?", []),
        ("Tom is allergic to walnuts, and his birthday is May 3.", "Plan his cake.", ["nuts", "birthday"]),
        ("Your grey cat is called Felix.", "Who is Felix?", ["cat"]),
        ("I do not know what Tom is allergic to.", "What is Tom allergic to?", []),
        ("Tom is a common name.", "Is Tom a common name?", []),
        ("Boil the rice for twelve minutes, then let it rest with the lid on.", "How long does rice boil?", []),
        ("", "What is Tom allergic to?", []),
    ],
)
def test_an_answer_draws_on_what_only_a_memory_could_tell_it(answer: str, question: str, drawn: list[str]) -> None:
    """What the question held already, or what all memories hold, is no sign; and doubt means no."""
    assert drawn_on(answer, question, SHOWN) == drawn


@pytest.mark.parametrize(
    ("answer", "question", "drawn"),
    [
        ("他对核桃过敏。", "小明不能吃什么？", ["nuts"]),
        ("我不知道。", "小明不能吃什么？", []),
        ("灰色的猫。", "我养了什么？", ["cat"]),
    ],
)
def test_chinese_answers_are_read_as_well(answer: str, question: str, drawn: list[str]) -> None:
    """Words without spaces between them are words all the same."""
    assert drawn_on(answer, question, SHOWN_ZH) == drawn


def test_nothing_shown_is_nothing_used() -> None:
    """An agent without memories uses none."""
    assert drawn_on("Walnuts.", "What?", {}) == []


def test_a_word_tells_of_the_memory_that_was_asked_for() -> None:
    """What two memories could have told, the one told that the question is about: the others must not live on by it."""
    shown = {name: f"Ann: {name} is allergic to celery." for name in ("Tom", "Mia", "Otto")}
    assert drawn_on("Mia is allergic to celery.", "What is Mia allergic to?", shown) == ["Mia"]
