"""What holds now stands before what held before, in English and Chinese, and nothing else changes places."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pytest

from remegraph.engine.retrieval.blend import Utterance, asks_past, freshened
from tests.talk import NOON


def shown(question: str, *words: str, speaker: Sequence[str] = ("Ann",), score: float = 0.5) -> list[str]:
    """Return the words in the order shown; each was said a day after the one before it, and fits a little less."""
    said = [
        Utterance(speaker[at % len(speaker)], text, NOON + timedelta(days=at), score - at / 100)
        for at, text in enumerate(words)
    ]
    return [words[place] for place, _ in freshened(question, said, 1)]


@pytest.mark.parametrize(
    ("question", "old", "new"),
    [
        ("How much rent does Ann pay?", "The rent is 800 euros a month.", "They raised the rent to 870 euros."),
        ("How many cats does Ann have?", "I have three cats.", "I have five cats."),
        ("Does Ann have to call the plumber?", "Remind me to call the plumber.", "I called the plumber."),
        ("When is Ann's exam?", "My exam is on May 2.", "My exam is on May 9 instead."),
        ("Ann喜欢喝什么？", "我喜欢喝绿茶。", "我现在喜欢喝咖啡了。"),
        ("Ann的考试在哪天？", "我的考试在5月2日。", "我的考试改到5月9日。"),
        ("Ann还要买邮票吗？", "我要买邮票。", "邮票买好了。"),
    ],
)
def test_the_later_word_on_a_matter_comes_first(question: str, old: str, new: str) -> None:
    """An agent that acts on the old date, price or place does harm."""
    assert shown(question, old, new) == [new, old]


@pytest.mark.parametrize(
    ("question", "old", "new"),
    [
        ("Where did Ann use to live?", "I live in Oslo.", "I live in Rome now."),
        ("What was Ann's previous address?", "My address is Mill Lane 1.", "My address is Elm Road 2 now."),
        ("Ann以前住在哪里？", "我住在北京。", "我现在住在广州。"),
    ],
)
def test_a_question_about_the_past_brings_the_earlier_word_first(question: str, old: str, new: str) -> None:
    """What somebody used to like is not answered by what she likes."""
    newest_fits_best = [Utterance("Ann", new, NOON + timedelta(days=1), 0.5), Utterance("Ann", old, NOON, 0.4)]
    assert [place for place, _ in freshened(question, newest_fits_best, 1)] == [1, 0]


@pytest.mark.parametrize(
    ("question", "one", "other", "speakers"),
    [
        ("Where does Ann live?", "I live in Oslo.", "I live in Rome now.", ("Ann", "Bob")),
        ("What did Ann buy?", "I bought a red bicycle.", "I bought a blue bicycle, the new one.", ("Ann",)),
        ("What does Ann drink?", "I drink tea in the morning.", "My sister lives in Rome now.", ("Ann",)),
        (
            "Where is the Elm Road Jazz Fair held?",
            "The Elm Road Jazz Fair is held in Bern.",
            "The Elm Road Jazz Fair lasts five days.",
            ("Ann",),
        ),
        ("书法艺术展的规模有多大？", "书法艺术展的规模是八百人。", "书法艺术展的主题是山水。", ("Ann",)),
        ("书法艺术展的规模有多大？", "书法艺术展的规模是八百人。", "书法艺术展的内容是提升技艺。", ("Ann",)),
    ],
)
def test_what_no_rival_concerns_stays_in_its_place(
    question: str, one: str, other: str, speakers: Sequence[str]
) -> None:
    """Other people's facts, events that happened once, and other matters are not replaced by what came later."""
    assert shown(question, one, other, speaker=speakers) == [one, other]


def test_within_a_talk_a_sentence_adds_to_the_one_before_it() -> None:
    """Whoever describes a matter at length does not take back each sentence with the next; the next day they may."""
    one, other = "My order of the espresso machine is with the courier.", "My espresso machine order now has a number."
    first = Utterance("Ann", one, NOON, 0.5)
    places = [
        [place for place, _ in freshened("Where is the espresso machine order?", [first, later], 1)]
        for later in (Utterance("Ann", other, NOON + apart, 0.4) for apart in (timedelta(minutes=2), timedelta(days=1)))
    ]
    assert places == [[0, 1], [1, 0]]


def test_of_a_long_question_a_rival_concerns_more_than_a_word() -> None:
    """Where a whole conversation is the question, any two notes share some word of it."""
    one, other = "I was happy at the zoo with the red pandas.", "I was happy to learn that the new pool is open now."
    question = (
        "We talked of pandas and bears, lions, parrots, snakes, tickets and trains; what made Ann happy at the zoo?"
    )
    assert shown(question, one, other) == [one, other]


def test_what_changed_twice_shows_its_last_state() -> None:
    """A date is moved, and moved again."""
    first, second, third = "My exam is on May 2.", "My exam moved to May 9.", "My exam moved to May 16."
    assert shown("When is Ann's exam?", first, second, third)[0] == third


def test_a_statement_gains_just_what_its_place_needs() -> None:
    """Scores fall from hit to hit, and the gain is told as a sign of its own."""
    old, new = (
        Utterance("Ann", "I live in Oslo.", NOON, 0.5),
        Utterance("Ann", "I live in Rome now.", NOON + timedelta(1), 0.4),
    )
    order = freshened("Where does Ann live?", [old, new], 1)
    assert [place for place, _ in order] == [1, 0]
    assert [gain for _, gain in order] == pytest.approx([0.1, 0.0])


@pytest.mark.parametrize("question", ["How old is Ann?", "What does Ann do before breakfast?", "Where does Ann live?"])
def test_questions_about_the_present_are_not_taken_for_the_past(question: str) -> None:
    """Words such as old and before have more than one meaning."""
    assert not asks_past(question)
