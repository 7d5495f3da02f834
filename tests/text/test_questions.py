"""Reading questions: which words count, which times are named, whose matter it is."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from remegraph.engine.retrieval.blend import asks_past
from remegraph.text.questions import read_question
from tests.talk import NOON

NOW = datetime(2025, 6, 7, 12, tzinfo=UTC)


def counting(text: str) -> dict[str, float]:
    return dict(read_question(text, NOW).tokens)


@pytest.mark.requirement("F6")
def test_what_leads_up_to_a_question_counts_less_than_the_question() -> None:
    """Agents pass on whole messages; small talk before the question must not choose what comes back."""
    words = counting("The weather is so lovely. Which restaurant did Ann recommend in Lisbon?")
    assert {words[word] for word in ("restaur", "ann", "recommend", "lisbon")} == {1.0}
    assert words["weather"] == words["love"] < 1
    chinese = counting("最近天气真好，听说有个展览。我真正想问的是，活动的规模是什么？")
    assert chinese["天气"] < chinese["规模"] == 1.0


@pytest.mark.requirement("F6")
@pytest.mark.parametrize("text", ["I look for a good book. Any ideas?", "Ann likes tea. Bob likes cake.", "red car"])
def test_where_nothing_asks_by_itself_all_words_count_alike(text: str) -> None:
    """By itself "Any ideas?" finds nothing: the sentence before it says what about."""
    assert set(counting(text).values()) == {1.0}


@pytest.mark.requirement("F6")
def test_the_words_of_a_relative_time_count_less_and_those_of_a_date_do_not() -> None:
    """What was said last week does not say "last week"; a letter about May 2023 says so."""
    assert counting("What did I spend on coffee this week?") == {"spend": 1.0, "coffe": 1.0, "week": 0.7}
    assert set(counting("What did I spend in May 2023?").values()) == {1.0}


@pytest.mark.requirement("F6")
def test_a_question_tells_its_times_from_when_it_is_asked() -> None:
    """Asked in June, "last month" is May, whenever the kit looks at it."""
    (time,) = read_question("Where did I go last month?", NOW).times
    assert (time.begins, time.ends) == (datetime(2025, 5, 1, tzinfo=UTC), datetime(2025, 6, 1, tzinfo=UTC))
    assert read_question("Where did I go?", NOW).times == ()


@pytest.mark.requirement("F6")
@pytest.mark.parametrize(
    ("text", "own", "measured"),
    [
        ("What do I like?", True, False),
        ("我的狗几岁了，叫什么？", True, False),
        ("How many cats does Ann have?", False, True),
        ("她什么时候搬家的？", False, True),
        ("Which image is it?", False, False),
    ],
)
def test_a_question_tells_whether_it_is_about_who_asks_and_wants_a_time_or_a_number(
    text: str, own: bool, measured: bool
) -> None:
    """One's own words answer what one asks about oneself; a number answers how many."""
    question = read_question(text, NOW)
    assert (question.own, question.wants_time_or_number) == (own, measured)


@pytest.mark.requirement("F6")
@pytest.mark.parametrize("text", ["And where was that?", "Who else came there with them?", "那是在哪里？", "Why?"])
def test_a_question_that_refers_back_takes_on_the_words_of_the_one_before(text: str) -> None:
    """People do not say the name again; without it the question finds anything but what they mean."""
    alone, after = read_question(text, NOW), read_question(text, NOW, "When did Ann go to the Lisbon jazz fair?")
    taken = {token: counts for token, counts in after.tokens.items() if token not in alone.tokens}
    assert {"lisbon", "jazz", "fair"} <= taken.keys()
    assert set(taken.values()) == {0.2}
    assert {token: after.tokens[token] for token in alone.tokens} == alone.tokens


@pytest.mark.requirement("F6")
def test_a_question_that_names_what_it_is_about_is_read_by_itself() -> None:
    """A new matter is not looked for among the old one."""
    text = "Which restaurant did Bob recommend in Porto?"
    assert read_question(text, NOW, "When did Ann go to the Lisbon jazz fair?") == read_question(text, NOW)


@pytest.mark.requirement("R14", "G2")
@pytest.mark.parametrize(
    ("text", "own", "number", "past"),
    [
        ("我什麼時候搬家？", True, True, False),
        ("以前我住哪裡？", True, False, True),
        ("原來的會議是幾點？", False, True, True),
        ("Wann ziehe ich um?", True, True, False),
        ("Wo habe ich früher gewohnt?", True, False, True),
        ("Wie viele Kinder hat Jakob?", False, True, False),
        ("¿Cuándo es mi cita?", True, True, False),
        ("¿Dónde trabajaba antes Marta?", False, False, True),
        ("¿Cuántos hijos tiene Marta?", False, True, False),
    ],
)
def test_traditional_chinese_german_and_spanish_questions_are_read_like_others(
    text: str, own: bool, number: bool, past: bool
) -> None:
    """Whose matter it is, whether it asks for a time or number, and whether for what held before."""
    read = read_question(text, NOON)
    assert (read.own, read.wants_time_or_number, asks_past(text)) == (own, number, past)


@pytest.mark.parametrize(
    ("text", "tells", "frames"),
    [
        ("What is the name of that podcast?", "podcast", "name"),
        ("我的牙医叫什么名字？", "牙医", "名字"),
        ("Wie heißt der Zahnarzt?", "zahnarzt", "heisst"),
        ("¿Cómo se llama el dentista?", "dentista", "llama"),
    ],
)
def test_what_any_question_may_say_hardly_tells_what_this_one_asks_for(text: str, tells: str, frames: str) -> None:
    """A memory that holds "name" alone would else seem to bear on whatever has one."""
    telling = read_question(text, NOON).weighted_tokens
    assert telling[tells] > 3 * telling[frames] > 0
