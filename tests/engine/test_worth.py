"""What is remembered without a model: what tells something by itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from remegraph.engine.worth import tells, without_question
from tests.talk import ANN, NOON, open_kit, said


@pytest.mark.parametrize(
    "sentence",
    [
        "Big news, Remy!",
        "Good morning!",
        "Wonderfully.",
        "Thanks, Caroline, for letting me join your journey.",
        "I totally agree, Mel.",
        "Wow, Caroline, that sounds awesome!",
        "I'm so happy for you!",
        "It was so much fun.",
        "Can't wait to hear about it!",
        "But my doctor was strict.",
        "Recommend a good book",
        "太好了。",
        "谢谢您！",
        "那太棒了！",
        "那真是不错",
        "但是医生很严。",
        "帮我看下这个报错",
    ],
)
def test_what_only_greets_reacts_asks_or_refers_back_tells_nothing(sentence: str) -> None:
    """A list of memories is read one by one: "It was so much fun" says nothing there, and hides what does."""
    assert not tells(sentence, NOON)


@pytest.mark.parametrize(
    "sentence",
    [
        "I'm vegan.",
        "I smoke.",
        "But I'm diabetic.",
        "And I still hate mushrooms, of course.",
        "Thanks, I moved to Porto!",
        "Big news: I'm engaged!",
        "It's for work, I run the box office at the theatre.",
        "It was a gift from Grandpa Joe.",
        "That was in 2019.",
        "It's my dream to see a hoopoe.",
        "You should always answer in French.",
        "And keep it brief as always, I've no patience for preambles",
        "Give me a recipe, I can't eat gluten",
        "She's pregnant so she wants to be near her mom",
        "What I like most is silence.",
        "There is a spare key under the mat.",
        "These pills give me migraines.",
        "I can't see well without glasses.",
        "我对虾过敏。",
        "对虾过敏",
        "但我不吃辣。",
        "嗯，我在备孕",
        "太好了：我订婚了",
        "你以后都用普通话回我",
        "那是我妈做的。",
        "她清明回来吃饭",
    ],
)
def test_what_stands_alone_tells_something_however_it_begins(sentence: str) -> None:
    """A fact, a wish or a standing order that is lost cannot be found again among the memories."""
    assert tells(sentence, NOON)


@pytest.mark.parametrize(
    ("sentence", "statement"),
    [
        ("I fly to Rome on Friday, what shall I pack?", "I fly to Rome on Friday"),
        ("Can you find me a lunch place near the river?", ""),
        ("我下周去成都，天气怎么样？", "我下周去成都"),
        ("I live in Porto.", "I live in Porto."),
    ],
)
def test_a_question_is_left_out_and_what_was_stated_before_it_is_kept(sentence: str, statement: str) -> None:
    """People tell most of themselves on the way to a question."""
    assert without_question(sentence) == statement


def test_a_newcomer_reads_statements_only(tmp_path: Path) -> None:
    """The first list of memories that anybody sees is made without a model; nothing in it makes them wonder."""
    talk = (
        "Good morning! My name is Ann.",
        "Can you find me a lunch place near the river? I am allergic to peanuts.",
        "Big news, Remy! I live in Porto now.",
        "Wonderfully. But my doctor was strict. I don't like coffee anymore.",
        "太好了。我打算去成都旅行，帮我查一下天气好吗？",
    )
    with open_kit(tmp_path) as kit:
        kit.add_messages([said(words, minutes=minute) for minute, words in enumerate(talk)], scope=ANN)
        kit.summarize(scope=ANN, close=True)
        assert {memory.content for memory in kit.memories(scope=ANN)} == {
            "Ann: My name is Ann.",
            "Ann: I am allergic to peanuts.",
            "Ann: I live in Porto now.",
            "Ann: I don't like coffee anymore.",
            "Ann: 我打算去成都旅行",
        }
        found = kit.recall("How was the doctor?", scope=ANN, depth="messages")
        assert "But my doctor was strict." in found.messages[0].text
