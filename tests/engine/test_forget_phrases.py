"""What gives a statement away: values by themselves, names and words together."""

from __future__ import annotations

import pytest

from remegraph.engine.forget_phrases import revealing_sentences
from remegraph.text.telltales import Telltales

PAY = Telltales("Ann: My salary is 91,000 euros.", frozenset({"Ann"}))
WORD = Telltales("My safe word is Marigold.")


@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        ("My salary is 91,000 euros.", "I make 91k a year"),
        ("My salary is 91,000 euros.", "With 91.000 a year I can't complain."),
        ("Mein Gehalt beträgt 91.000 Euro.", "Bei 91 000 Euro bleibt was übrig."),
        ("我的年薪是12万元。", "每年120000，够用了。"),
        ("My PIN is 4711.", "Try 4711 then."),
        ("Write to me at ann@example.org.", "I sent it to ANN@example.org yesterday."),
        ("My safe word is Marigold.", "Remember: Marigold is my safe word!"),
        ("Please remember that my safe word is Marigold.", "Marigold is the safe word"),
        ("我的暗号是金盏花。", "别忘了，暗号：金盏花"),
        ("Mein Codewort lautet Ringelblume.", "Mein Codewort ist Ringelblume"),
        ("My mother has a biopsy on 12 March.", "a biopsy, that's what my mother has"),
    ],
)
def test_the_same_in_other_words_is_known_again(statement: str, sentence: str) -> None:
    """Who wants something forgotten has rarely said it once."""
    assert Telltales(statement).found_in(sentence)


@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        ("My salary is 91,000 euros.", "My salary is not what it was."),
        ("My salary is 91,000 euros.", "The castle had 9,100 visitors."),
        ("My brother Tobias is in prison.", "My brother Tobias likes tea."),
        ("My brother Tobias is in prison.", "Prison Break is on tonight."),
        ("We invited 58 guests.", "The bus 58 is late."),
        ("I live in Porto.", "I flew to Porto in May."),
        ("My safe word is Marigold.", "I planted marigold by the wall."),
        ("我的暗号是金盏花。", "我喜欢金盏花。"),
        ("My mother has a biopsy on 12 March.", "The concert is on 12 March."),
        ("Ann likes tea.", "Ann has a dog."),
    ],
)
def test_what_is_only_like_it_stays(statement: str, sentence: str) -> None:
    """What is hidden without need is lost to its user."""
    assert not Telltales(statement, frozenset({"Ann"})).found_in(sentence)


def test_an_answer_repeats_a_statement_by_a_name_alone() -> None:
    """Right beside it, less gives it away."""
    assert WORD.echoed_in("Got it, Marigold it is.")
    assert not WORD.found_in("Got it, Marigold it is.")
    assert not WORD.echoed_in("Got it, I will keep it to myself.")


def test_of_a_long_sentence_only_the_clause_is_taken() -> None:
    """The rest of what a person said stays."""
    text = "As I told you, I earn 91k a year, and I have a dog. My cat is old."
    assert revealing_sentences(text, [PAY]) == ["I earn 91k a year"]
    assert revealing_sentences("I am well, and my safe word is Marigold, by the way.", [WORD]) == [
        "and my safe word is Marigold"
    ]
    assert revealing_sentences("I like tea.", [PAY, WORD]) == []
