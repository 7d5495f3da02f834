"""What is remembered where there is no model: a person's own turn, whole, and nothing is decided."""

from __future__ import annotations

from pathlib import Path

import pytest

from remegraph import MemoryKit, Message
from remegraph.models.remnants import MARK
from tests.talk import ANN, open_kit, replied, said

pytestmark = pytest.mark.requirement("X11")


def learned(home: Path, *messages: Message) -> list[str]:
    """What a kit without a model remembers of a conversation."""
    with open_kit(home) as kit:
        kit.add_messages(messages, scope=ANN)
        kit.summarize(scope=ANN, close=True)
        return contents(kit)


def contents(kit: MemoryKit) -> list[str]:
    return sorted(memory.content for memory in kit.memories(scope=ANN) if memory.live)


@pytest.mark.parametrize(
    "text",
    [
        "Hi there!",
        "Thanks a lot, goodbye!",
        "你好！",
        "What is the capital of Peru?",
        "Where do bees sleep? And what do they eat?",
        "蜜蜂在哪里睡觉？",
        "[Shared a photo of a dog on a beach]",
        "[图片]",
        "```\nfor bee in hive:\n    print(bee)\n```",
        "import os\nfrom hive import Bee\nbee = Bee(name='Maya')\nreturn bee.fly(42)",
        "2025-03-04 12:00:01 INFO hive opened\n2025-03-04 12:00:02 WARN bee lost\n2025-03-04 12:00:03 INFO closed",
    ],
)
def test_what_is_wholly_a_greeting_a_question_a_caption_or_pasted_is_left_out(tmp_path: Path, text: str) -> None:
    """It is none of a person's statements; the message itself stays in the ledger."""
    assert learned(tmp_path, said(text)) == []


@pytest.mark.parametrize(
    "text",
    [
        "Hi there! I keep bees on the roof.",
        "Where do bees sleep? Mine are on the roof.",
        "I fly to Lima on Friday, what shall I pack?",
        "Not sure any more, maybe it was the blue one.",
        "ok whatever, the dentist is a nightmare",
        "你好！我在屋顶养蜂。",
        "Ich hatte gestern die Zahnärztin angerufen.",
    ],
)
def test_what_tells_anything_is_kept_whole_and_to_the_letter(tmp_path: Path, text: str) -> None:
    """Nobody weighs what is worth remembering: a rule that did threw every third fact away."""
    (content,) = learned(tmp_path, said(text))
    assert content in {f"Ann: {text}", f"Ann：{text}"}


@pytest.mark.parametrize(
    ("text", "own"),
    [
        (
            "See below, I said no.\n\n-----Original Message-----\nFrom: Bob\nI am allergic to nuts.",
            "See below, I said no.",
        ),
        ("My answer is no.\n\nOn Mon, 3 Mar 2025, Bob Smith wrote:\n> I moved to Oslo.", "My answer is no."),
        ("> I moved to Oslo.\nHe did, and I stay in Porto.", "He did, and I stay in Porto."),
        ("我不同意。\n\n在 2025年3月3日，小明 写道：\n我搬到了北京。", "我不同意。"),
        ("[Shared a photo of a boat] This is my new boat.", "This is my new boat."),
    ],
)
def test_a_mail_of_somebody_else_and_a_caption_are_no_statement_of_the_person(
    tmp_path: Path, text: str, own: str
) -> None:
    """Who forwards a mail does not live where its writer lives."""
    (content,) = learned(tmp_path, said(text))
    assert content.partition(":" if ":" in content[:4] else "：")[2].strip() == own


@pytest.mark.parametrize(
    ("question", "answer", "content"),
    [
        ("How many guests?", "58.", 'Ann: 58. (asked: "How many guests?")'),
        ("Great. Are you allergic to nuts?", "yes", 'Ann: yes (asked: "Are you allergic to nuts?")'),
        ("您对坚果过敏吗？", "是的。", "Ann：是的。（被问：“您对坚果过敏吗？”）"),
    ],
)
def test_a_short_answer_carries_the_question_that_it_answers(
    tmp_path: Path, question: str, answer: str, content: str
) -> None:
    """Alone, "58." means nothing, and "yes" could be said to anything."""
    assert learned(tmp_path, replied(question), said(answer, minutes=1)) == [content]


def test_a_yes_to_nothing_is_left_out_and_a_long_answer_needs_no_question(tmp_path: Path) -> None:
    """What says it all says it alone."""
    whole = "I keep two hives on the roof and one more down in the garden."
    assert learned(tmp_path / "yes", said("Yes!")) == []
    assert learned(tmp_path / "long", replied("Where are your hives?"), said(whole, minutes=1)) == [f"Ann: {whole}"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("The party is on the 15th.", "No wait, it's the 16th."),
        ("I live in Lisbon.", "Sorry, I meant Porto."),
        ("我星期二上课。", "不对，是星期四。"),
    ],
)
def test_a_correction_in_the_same_turn_is_never_cut_from_its_statement(tmp_path: Path, first: str, second: str) -> None:
    """Cut in two, the wrong half would be recalled as a fact of its own."""
    (content,) = learned(tmp_path, said(first), said(second, minutes=1))
    assert content in {f"Ann: {first}\n{second}", f"Ann：{first}\n{second}"}


def test_two_persons_and_two_turns_stay_apart(tmp_path: Path) -> None:
    """Who said it is half of what was said."""
    ours = [said("I keep bees."), said("I keep goats.", name="Bob", minutes=1), said("Six hives now.", minutes=2)]
    assert learned(tmp_path, *ours) == ["Ann: I keep bees.", "Ann: Six hives now.", "Bob: I keep goats."]


def test_withheld_words_are_neither_remembered_nor_asked(tmp_path: Path) -> None:
    """What was forgotten comes back neither as a statement nor as the question of an answer."""
    messages = [
        said(f"I keep bees. {MARK} I live in Porto."),
        replied(f"Does {MARK} live with you?", minutes=1),
        said("yes", minutes=2),
        said(f"{MARK}, and note that I row.", minutes=600),
        said(MARK, minutes=700),
    ]
    told = learned(tmp_path, *messages)
    assert not [content for content in told if MARK in content]
    assert told == ["Ann: I keep bees.\nI live in Porto.", "Ann: and note that I row."]


def test_without_a_model_the_same_words_join_and_all_else_stands_side_by_side(tmp_path: Path) -> None:
    """Of two homes, no rule of ours knows which one is right: both are shown, dated."""
    with open_kit(tmp_path) as kit:
        for number, text in enumerate(("I live in Lisbon.", "i live in lisbon!", "I live in Porto.")):
            kit.add_messages([said(text, minutes=600 * number)], scope=ANN)
            kit.summarize(scope=ANN, close=True)
        assert contents(kit) == ["Ann: I live in Lisbon.", "Ann: I live in Porto."]
        assert {memory.status for memory in kit.memories(scope=ANN)} == {"active"}
        assert kit.conflicts.list(scope=ANN) == ()
