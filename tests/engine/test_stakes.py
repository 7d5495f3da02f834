"""What a wrong answer would cost is known by its words, in any language that the index knows."""

from __future__ import annotations

import pytest

from remegraph.engine.retrieval.at_stake import ANYTHING, ENOUGH, asked_of_index, at_stake, bears_on, subjects


@pytest.mark.parametrize(
    "text",
    [
        "Ann is allergic to peanuts.",
        "my throat closed up, they called an ambulance",
        "the doctor says never again with those tablets",
        "安对花生过敏",
        "醫生說懷孕的人不能碰這個",
        "Sie hat eine Allergie gegen Nüsse.",
        "Es alérgica al látex.",
        "母はそばアレルギーです",
        "Yusuf eats halal only",
        "她回民,只吃清真",
        "Er hat Höhenangst.",
        "she's on methotrexate now",
    ],
)
def test_what_is_dangerous_or_forbidden_is_at_stake(text: str) -> None:
    """Who is not told of it serves the wrong dish."""
    assert at_stake(text) >= ENOUGH


@pytest.mark.parametrize(
    "text",
    ["Ann lives in Porto.", "I never liked mornings.", "she works at the hospital", "我住在北京", "", "Das ist schön."],
)
def test_what_is_said_every_day_is_not(text: str) -> None:
    """Else a note would hold nothing else."""
    assert at_stake(text) < ENOUGH


def test_words_of_different_messages_are_no_danger_together() -> None:
    """A memory that repeats several would matter for its length."""
    assert at_stake("I never run, said the doctor") >= ENOUGH
    assert at_stake("I never run\nthe doctor has a boat") < ENOUGH


def test_what_bears_on_a_question_is_the_line_that_is_at_stake() -> None:
    """That dinner is mentioned beside an allergy to dust makes it no matter of dinner."""
    touched = subjects("What shall I cook for dinner?")
    assert bears_on("we had fish\nmust never lift that, says the doctor", touched) == 0
    assert bears_on("we had fish\nand crab closes my throat, allergic", touched) > 0


def test_the_index_is_asked_for_words_that_it_can_have() -> None:
    """A pair of characters, or a stem; a mark of one character would bring everything."""
    words = asked_of_index()
    assert all(len(word) > 1 for word in words)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Which dessert shall we serve?", "Tom is allergic to walnuts, a nut once closed his throat."),
        ("What helps against a migraine?", "Her doctor says no ibuprofen with those kidneys."),
        ("Plan us a weekend by the sea with a dive.", "He has a pacemaker and fainted last year."),
        ("What gets rid of ants in the kitchen?", "The dog ate rat poison once, the vet saved him."),
        ("Post the photos of the party.", "Nobody may see her face, it is a witness programme, the police say."),
        ("Terminate the idle instances.", "Never stop that server, the alarms of the ward hang on it."),
        ("晚饭做什么菜?", "他对海鲜过敏"),
        ("頭痛吃什麼藥?", "她對阿司匹林過敏"),
        ("Welchen Kuchen backe ich?", "Paul hat Zöliakie."),
        ("¿Qué cena preparo?", "Luis es alérgico al marisco."),
        ("夕食は何がいい?", "父は卵アレルギーです"),
        ("Order the starters for forty guests.", "Our host keeps kosher."),
        ("周末去哪玩?", "我爸恐高"),
        ("Wire the deposit to the new vendor.", "Since the fraud two must countersign."),
    ],
)
def test_a_question_touches_what_bears_on_its_subject(question: str, text: str) -> None:
    """They share no word; they share what they are about."""
    assert at_stake(text) >= ENOUGH
    assert bears_on(text, subjects(question)) > 0


@pytest.mark.parametrize(
    "question",
    [
        "When did Ann move to Porto?",
        "Who told her?",
        "Which evening is the choir?",
        "她哪天搬的?",
        "Wer war gestern da?",
    ],
)
def test_who_asks_what_was_said_touches_no_subject(question: str) -> None:
    """Else an allergy would take the room of the answer, whatever is asked."""
    assert not subjects(question)


def test_who_wants_something_done_touches_anything() -> None:
    """A plan goes wrong in ways that its words do not say."""
    assert ANYTHING in subjects("Can you organise something for Friday?")


def test_a_word_of_one_subject_bears_more_on_it_than_a_word_of_many() -> None:
    """Fumes bear on paint; an allergy may be to anything."""
    touched = subjects("Which paint for the nursery?")
    assert bears_on("fumes", touched) > bears_on("allergic", touched) > 0
