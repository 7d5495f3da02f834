"""The blender: what ranks messages, and what a hit says of its score."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from remegraph.engine.retrieval.blend import Placed, Ranked, Weights, default_weights, judge, rank
from remegraph.engine.retrieval.scores import MessageSigns
from remegraph.models import Message, Partition, Role
from remegraph.text.questions import read_question
from tests.talk import NOON

HERE, THERE = Partition(tenant="default", user="ann"), Partition(tenant="default")


def signs(seqs: Sequence[int], **columns: Sequence[float]) -> MessageSigns:
    return MessageSigns(np.array(seqs, np.int32), {name: np.array(values) for name, values in columns.items()})


def places(ranked: Iterable[Placed]) -> list[tuple[Partition, int]]:
    return [(each.partition, each.seq) for each in ranked]


def ids(ranked: Iterable[Ranked]) -> list[str]:
    return [each.record_id for each in ranked]


def judged(question: str, *said: tuple[str, str], words: Mapping[str, float] | None = None) -> list[str]:
    """Return texts, best first, where words speak for all alike."""
    read = [
        (
            Ranked(HERE, text, dict(words or {"words": 0.5})),
            Message(message_id=text, role="user", name=name, content=text, time=NOON + timedelta(minutes=number)),
        )
        for number, (name, text) in enumerate(said)
    ]
    return ids(judge(read_question(question, NOON + timedelta(days=30)), read, default_weights()))


@pytest.mark.requirement("F6")
def test_a_score_is_the_sum_of_what_its_signs_contribute() -> None:
    """Who tunes recall, or doubts a hit, sees which sign brought it up."""
    weights = Weights.of({"words": 1, "thread": 3}, {})
    best, other = rank([(HERE, signs([1, 2], words=[0.2, 0.4], thread=[0.5, 0.0]))], weights)
    assert (best.seq, other.seq) == (1, 2)
    assert best.contributions == pytest.approx({"words": 0.125, "thread": 0.75})
    assert other.contributions == pytest.approx({"words": 0.25})
    assert Ranked(HERE, "a", best.contributions).score == pytest.approx(0.875)


@pytest.mark.requirement("F6")
@pytest.mark.parametrize("semantic", [False, True])
def test_all_weights_together_are_one(semantic: bool) -> None:
    """Scores stay between 0 and 1, whatever the proportions in the file."""
    weights = default_weights(semantic=semantic)
    parts = weights.words, weights.message, weights.meaning
    assert sum(value for part in parts for value in part.values()) == pytest.approx(1)
    assert bool(weights.meaning) == semantic


@pytest.mark.requirement("F6")
def test_words_count_as_far_as_a_message_holds_them_and_meaning_as_far_as_none_does() -> None:
    """Where nobody said a word of the question, the best of the words is no good one, and meaning decides."""
    weights = Weights.of({"window of 3": 1, "coverage": 1}, {}, {"meaning": 2})

    def first(coverage: float, apart: float = 0.6) -> Placed:
        columns = {"window of 3": [0.3, 0.0], "coverage": [coverage, 0.0], "meaning": [0.0, 0.8]}
        return next(rank([(HERE, replace(signs([1, 2], **columns), apart=apart))], weights))

    held, meant = first(1.0), first(0.2)
    assert (held.seq, meant.seq) == (1, 2)
    assert held.contributions == pytest.approx({"window of 3": 0.25, "coverage": 0.25})
    assert meant.contributions == pytest.approx({"meaning": 0.5 * 0.8 * 0.8})


@pytest.mark.requirement("F6")
def test_meaning_that_tells_no_text_from_another_gives_way_to_words() -> None:
    """An embedder that cannot read a language finds all of it alike, however few words of the question were said."""
    weights = Weights.of({"window of 3": 1, "coverage": 1}, {}, {"meaning": 2})
    columns = {"window of 3": [0.3, 0.0], "coverage": [0.2, 0.0], "meaning": [0.0, 1.0]}

    def ranked(apart: float) -> list[Placed]:
        return list(rank([(HERE, replace(signs([1, 2], **columns), apart=apart))], weights))

    assert [each.seq for each in ranked(0.8)] == [2, 1]
    assert [each.seq for each in ranked(0.2)] == [1, 2]
    (alone,) = ranked(0.0)  # as where no message has a vector yet
    assert alone.contributions == pytest.approx({"window of 3": 0.25, "coverage": 0.25})


@pytest.mark.requirement("F6")
def test_windows_tell_in_talk_and_density_among_long_texts() -> None:
    """Four short turns are one saying; four long answers are four, and the shortest that holds the words is about them."""
    weights = Weights.of({"window of 3": 1, "density": 1}, {})
    columns = {"window of 3": [1.0, 0.0], "density": [0.0, 1.0]}
    talk, texts = (replace(signs([1, 2], **columns), long=long) for long in (0.2, 0.8))
    assert [each.seq for each in rank([(HERE, talk)], weights)] == [1, 2]
    assert [each.seq for each in rank([(HERE, texts)], weights)] == [2, 1]


def test_partitions_are_ranked_by_one_measure() -> None:
    """The best of a partition that hardly knows anything does not push out what another one knows well."""
    weights = Weights.of({"words": 1}, {})
    found = [(HERE, signs([1], words=[0.1])), (THERE, signs([1, 2], words=[0.9, 0.5]))]
    assert places(rank(found, weights)) == [(THERE, 1), (THERE, 2), (HERE, 1)]


def test_of_equals_the_earlier_comes_first() -> None:
    """The same question gets the same answer."""
    weights = Weights.of({"words": 1}, {})
    assert places(rank([(HERE, signs([1, 2, 3], words=[0.5, 0.0, 0.5]))], weights)) == [(HERE, 1), (HERE, 3)]
    assert list(rank([(HERE, signs([]))], weights)) == []


@pytest.mark.requirement("F6")
def test_what_the_named_person_said_comes_first() -> None:
    """Asked what Bob likes, people want Bob's words rather than talk about him."""
    assert judged("What does Bob like?", ("Ann", "He likes tea."), ("Bob", "I like coffee."))[0] == "I like coffee."


@pytest.mark.requirement("F6")
def test_asked_about_oneself_ones_own_words_come_first() -> None:
    """Whoever asks "What do I like?" wants what they said, not what the agent says."""
    roles: tuple[Role, ...] = ("assistant", "user")
    read = [
        (Ranked(HERE, role, {"words": 0.5}), Message(message_id=role, role=role, content="I like tea.", time=NOON))
        for role in roles
    ]
    assert ids(judge(read_question("What do I like?", NOON), read, default_weights())) == ["user", "assistant"]
    assert ids(judge(read_question("What does Bob like?", NOON), read, default_weights())) == ["assistant", "user"]


@pytest.mark.requirement("F6", "K5")
@pytest.mark.parametrize(
    ("question", "then"),
    [
        ("What did we cook last week?", "We cooked soup."),
        ("上周我们做了什么菜？", "我们做了汤。"),
        ("What did we cook in April 2025?", "In April 2025 we cooked soup."),
    ],
)
def test_a_question_that_names_a_time_prefers_what_was_said_then_or_tells_of_it(question: str, then: str) -> None:
    """Everything else being alike, last week's soup is last week's."""
    asked = NOON + timedelta(days=7)
    read = [
        (Ranked(HERE, text, {"words": 0.5}), Message(message_id=text, role="user", content=text, time=time))
        for text, time in (("We cooked rice.", NOON - timedelta(days=30)), (then, NOON))
    ]
    assert ids(judge(read_question(question, asked), read, default_weights())) == [then, "We cooked rice."]


def test_a_sign_that_all_messages_have_counts_nothing() -> None:
    """It tells none apart; it would only bring all scores nearer to each other."""
    read = [
        (Ranked(HERE, name, {"words": 0.5}), Message(message_id=name, role="user", content="I do.", time=NOON))
        for name in ("a", "b")
    ]
    assert {each.score for each in judge(read_question("Do I?", NOON), read, default_weights())} == {0.5}


@pytest.mark.requirement("F6")
@pytest.mark.parametrize(
    ("question", "answer", "beside"),
    [
        ("When did she move?", "We moved last Friday.", "We moved."),
        ("How many cats are there?", "There are 3 cats.", "There are cats."),
        ("她什么时候搬家的？", "我们上周五搬了家。", "我们搬了家。"),
        ("家里有多少只猫？", "家里有3只猫。", "家里有猫。"),
    ],
)
def test_a_question_for_a_time_or_a_number_prefers_messages_that_name_one(
    question: str, answer: str, beside: str
) -> None:
    """The words are in both; only one of them can be the answer."""
    assert judged(question, ("", beside), ("", answer))[0] == answer
    assert judged("What about it?", ("", beside), ("", answer))[0] == beside
