"""What is left of a memory at any time, and when it will be forgotten."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remegraph.kit.write_buffers import review_kinds
from remegraph.models import Access, Memory, Partition, Topic
from remegraph.retention.forgetting import (
    ForgettingCurve,
    HealthScore,
    Kept,
    Life,
    PriorityDecay,
    RetentionPolicy,
    life_of,
    retention,
)
from remegraph.settings import LifecyclePolicy
from tests.talk import NOON

DAY, SECOND = timedelta(days=1), timedelta(seconds=1)

POLICIES = st.one_of(
    st.builds(ForgettingCurve, st.floats(0.5, 400), st.floats(0.01, 0.9)),
    st.builds(PriorityDecay, st.floats(0.5, 0.999), st.floats(0.01, 0.9)),
    st.builds(HealthScore, st.floats(0.5, 400), st.floats(0.01, 0.9)),
)
REVIEWS = st.lists(st.tuples(st.floats(0, 5000), st.booleans()), max_size=12).map(sorted)


@st.composite
def lives(draw: st.DrawFn) -> Life:
    """Any life that a memory may have."""
    importance = draw(st.floats(0, 0.89))
    return Life(
        learned=NOON,
        said_again=draw(st.none() | st.floats(1, 5000).map(lambda hours: NOON + timedelta(hours=hours))),
        reviews=tuple(Access(NOON + timedelta(hours=hours), used) for hours, used in draw(REVIEWS)),
        importance=importance,
        priority=min(round(importance * 100) + 10 * draw(st.integers(0, 15)), 200),
    )


@pytest.mark.requirement("B4", "F5", "G4")
@settings(max_examples=50)
@given(POLICIES, lives(), st.lists(st.floats(0, 9000), min_size=2, max_size=8).map(sorted))
def test_a_weight_is_a_share_that_falls_while_nothing_happens(
    policy: RetentionPolicy, life: Life, hours: list[float]
) -> None:
    """Whoever reads a weight may compare it with any other, and time alone never makes a memory stronger."""
    end = life.accesses[-1].at
    weights = [policy.weight(life, end + timedelta(hours=each)) for each in hours]
    assert all(0 <= weight <= 1 for weight in weights)
    assert all(one >= other for one, other in pairwise(weights))
    assert 0 <= policy.weight(life, NOON - DAY) <= 1


@pytest.mark.requirement("B4", "F5")
@settings(max_examples=50)
@given(POLICIES, lives(), st.floats(0, 6000), st.booleans(), st.floats(0, 6000))
def test_a_review_never_lowers_a_weight(
    policy: RetentionPolicy, life: Life, hour: float, used: bool, later: float
) -> None:
    """ConversationMemory or using something must not make it forgotten sooner, at no later time."""
    review = Access(NOON + timedelta(hours=hour), used)
    reviewed = replace(life, reviews=tuple(sorted((*life.reviews, review))))
    at = review.at + timedelta(hours=later)
    assert policy.weight(reviewed, at) >= policy.weight(life, at) - 1e-9
    one, other = policy.forget_at(life), policy.forget_at(reviewed)
    assert other is None or (one is not None and other >= one - SECOND)


@pytest.mark.requirement("B14")
@settings(max_examples=50)
@given(POLICIES, lives())
def test_the_time_of_forgetting_is_where_the_weight_crosses_the_threshold(policy: RetentionPolicy, life: Life) -> None:
    """The question when it will be forgotten has one answer, to the second, and the formula bears it out."""
    assert not isinstance(policy, Kept)
    at = policy.forget_at(life)
    threshold = policy.explain(life, NOON).numbers["threshold"]
    if at is None:
        assert policy.weight(life, NOON + 36_500 * DAY) >= threshold - 1e-9
        return
    assert policy.weight(life, at + SECOND) <= threshold
    if at > life.accesses[-1].at:
        assert policy.weight(life, at - SECOND) >= threshold - 1e-12


@pytest.mark.requirement("B4")
def test_spaced_reviews_build_more_than_massed_ones() -> None:
    """Ten questions in one hour are one occasion; ten in ten weeks are a habit."""
    curve = ForgettingCurve(half_life=14, threshold=0.15)

    def forgotten(*days: float) -> float:
        life = Life(NOON, None, tuple(Access(NOON + day * DAY) for day in days), 0.5, 50)
        at = curve.forget_at(life)
        assert at is not None
        return (at - NOON) / DAY

    once, massed, spaced = forgotten(14), forgotten(14, 14.01, 14.02, 14.03), forgotten(3.5, 7, 10.5, 14)
    assert forgotten() == pytest.approx(14 * 2.7369656)
    assert once == pytest.approx(14 + 14 * 1.75 * 2.7369656)
    assert massed == pytest.approx(once, rel=0.01)
    assert spaced > 1.1 * once


@pytest.mark.requirement("G10", "F5")
@pytest.mark.parametrize(
    "policy",
    [ForgettingCurve(14, 0.15), PriorityDecay(0.95, 0.15), HealthScore(14, 0.15)],
    ids=lambda p: type(p).__name__,
)
def test_what_was_used_lasts_longer_than_what_was_only_found(policy: RetentionPolicy) -> None:
    """A hit is a guess that the memory was wanted; an answer that draws on it bears that out, however soon after it."""
    hit, used = Access(NOON + 10 * DAY), Access(NOON + 10 * DAY, used=True)
    lives = [Life(NOON, None, reviews, 0.5, 50) for reviews in ((), (hit,), (used,), (hit, used))]
    never, found, drawn, both = (policy.weight(life, NOON + 30 * DAY) for life in lives)
    assert never < found < drawn - 0.005
    assert drawn <= both + 1e-9


def test_a_use_takes_nothing_from_the_next_one() -> None:
    """Two answers on two days are worth no less than the second alone."""
    curve, late = ForgettingCurve(5, 0.15), (Access(NOON + 41 * DAY), Access(NOON + 41 * DAY, used=True))
    once = Life(NOON, None, late, 0.5, 50)
    twice = replace(once, reviews=(Access(NOON + 40 * DAY, used=True), *late))
    assert curve.weight(twice, NOON + 60 * DAY) > curve.weight(once, NOON + 60 * DAY)


@pytest.mark.requirement("B4")
def test_what_is_no_mere_episode_lasts_longer() -> None:
    """What was saved on purpose, or heard twice, is not noise of the day."""
    curve, episode = ForgettingCurve(half_life=14, threshold=0.15), Life(NOON, None, (), 0.5, 50)
    lasting = Life(NOON, None, (), 0.5, 50, "long_term")
    one, other = curve.forget_at(episode), curve.forget_at(lasting)
    assert one is not None
    assert other is not None
    assert (other - NOON) / (one - NOON) == pytest.approx(4)


@pytest.mark.requirement("F5")
def test_the_decay_of_priorities_is_that_of_the_document() -> None:
    """Written priority × decayFactor ^ daysSinceLastAccess: who knows the document can check it by hand."""
    life = Life(NOON, None, (Access(NOON + 10 * DAY),), 0.5, 58)
    policy = PriorityDecay(factor=0.9, threshold=0.15)
    explained = policy.explain(life, NOON + 13 * DAY)
    assert explained.value == pytest.approx(0.6 * 0.9**3)
    assert explained.numbers["priority"] == 60
    assert explained.reason.startswith(
        "weight 0.4374 = priority × decay_factor ^ days / 100, at most 1 with priority 60,"
    )
    assert PriorityDecay(1.0, 0.15).forget_at(life) is None
    assert PriorityDecay(0.9, 0.7).forget_at(life) == NOON + 10 * DAY


@pytest.mark.requirement("G4")
@pytest.mark.parametrize(
    ("days", "accesses", "importance", "expected"),
    [(0, 0, 0.0, 0.4), (14, 0, 0.4, 0.3), (28, 10, 0.0, 0.275), (14, 40, 0.8, 0.75)],
)
def test_the_health_score_is_that_of_the_document(days: int, accesses: int, importance: float, expected: float) -> None:
    """.4 recency + .35 access frequency + .25 weight, as published, with the half-life as a setting."""
    life = Life(NOON, None, (Access(NOON),) * accesses, importance, round(importance * 100))
    assert HealthScore(14, 0.15).weight(life, NOON + days * DAY) == pytest.approx(expected)
    assert HealthScore(28, 0.15).weight(life, NOON + 2 * days * DAY) == pytest.approx(expected)


def memory(**fields: object) -> Memory:
    said = Memory(
        memory_id="m",
        partition=Partition(tenant="t", user="ann"),
        topic=Topic(type="personal", target_name="Ann"),
        content="Ann likes tea.",
        said_at=NOON,
        recorded_at=NOON,
    )
    return said.evolve(**fields)


@pytest.mark.requirement("F9", "G4")
@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"importance": 0.9}, "core rule"),
        ({"usage": "knowledge"}, "knowledge"),
        ({"memory_class": "policy"}, "a policy"),
        ({"topic": Topic(type="self", target_name="self")}, "of itself"),
        ({"status": "disputed"}, "in dispute"),
    ],
)
@pytest.mark.parametrize("policy", ["curve", "priority", "health"])
def test_what_must_not_fade_is_kept_and_says_why(fields: dict[str, object], why: str, policy: str) -> None:
    """A rule that a person set, or knowledge, never slips away because nobody asked for it lately."""
    kept = memory(**fields)
    found = retention(kept, LifecyclePolicy.model_validate({"policy": policy}))
    explained = found.explain(life_of(kept, [Access(NOON)]), NOON + 9999 * DAY)
    assert found.forget_at(life_of(kept, [Access(NOON)])) is None
    assert (explained.value, explained.policy) == (1, "kept")
    assert why in explained.formula


@pytest.mark.requirement("F5")
def test_settings_choose_the_policy_and_its_numbers() -> None:
    """What the settings say is what explains itself later."""
    life = life_of(memory(), [Access(NOON)])
    for each, name, number, value in (
        (LifecyclePolicy(), "curve", "half_life", 28),
        (LifecyclePolicy(half_life=14), "curve", "half_life", 14),
        (LifecyclePolicy(policy="health"), "health", "half_life", 14),
        (LifecyclePolicy(policy="priority", decay_factor=0.8), "priority", "decay_factor", 0.8),
        (LifecyclePolicy(policy="health", half_life=30, forget_threshold=0.2), "health", "threshold", 0.2),
    ):
        explained = retention(memory(), each).explain(life, NOON)
        assert (explained.policy, explained.numbers[number]) == (name, value)


def test_what_is_said_again_is_an_access_and_no_review() -> None:
    """Hearing a fact again refreshes it; only recall counts as being used."""
    again = memory(said_at=NOON + 5 * DAY, merges=1)
    life = life_of(again, [Access(NOON), Access(NOON - DAY), Access(NOON + 3 * DAY, used=True)])
    assert [at for at, _ in life.accesses] == [NOON, NOON, NOON + 3 * DAY, NOON + 5 * DAY]
    assert (len(life.reviews), life.priority) == (2, 60)
    assert [at for at, _ in life.until(NOON + 4 * DAY).accesses] == [NOON, NOON, NOON + 3 * DAY]
    imported = memory(said_at=NOON - 500 * DAY)
    assert life_of(imported, [Access(NOON)]).accesses == (Access(NOON),), "old words learned today are fresh"


def test_no_calendar_reaches_that_far() -> None:
    """Settings of a patient archivist end in never, not in an error."""
    life = Life(NOON, None, (), 0.8, 200)
    assert ForgettingCurve(36_500, 1e-300).forget_at(life) is None
    assert ForgettingCurve(14, 0.0).forget_at(life) is None
    assert PriorityDecay(1 - 1e-12, 0.001).forget_at(life) is None


@given(st.lists(st.floats(-1, 1), max_size=10))
def test_the_best_hit_is_always_what_was_asked_for(scores: list[float]) -> None:
    """Whatever the scores are made of, a recall that found something reviewed something."""
    kinds = review_kinds(scores)
    assert len(kinds) == len(scores)
    assert not scores or kinds[scores.index(max(scores))] == "hit"
    assert review_kinds([0.9, 0.73, 0.71]) == ["hit", "hit", "seen"]
