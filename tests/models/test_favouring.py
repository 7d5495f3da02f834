"""What counts beside relevance: how new memories are, how often they were asked for, how important they are."""

from __future__ import annotations

from datetime import timedelta

import pytest

from remegraph.models import Reviews
from remegraph.models.standing import favoured, recency_decay
from remegraph.settings import RetrievalPolicy

ALL = RetrievalPolicy(apply_time_decay=True, apply_frequency_boost=True, importance_boost=True)


@pytest.mark.requirement("G4", "G10")
def test_all_together_are_the_retrieval_score_as_it_is_published() -> None:
    """.4 relevance + .25 recency + .2 frequency + .15 weight: who knows the protocol can check it by hand."""
    parts = favoured({"text": 0.3, "dense": 0.2}, ALL, age=timedelta(days=14), reviews=Reviews(count=5), importance=0.8)
    expected = {"text": 0.12, "dense": 0.08, "recency": 0.125, "frequency": 0.05, "importance": 0.12}
    assert parts == pytest.approx(expected)


@pytest.mark.requirement("G4")
@pytest.mark.parametrize(("days", "left"), [(0, 1.0), (14, 0.5), (28, 0.25), (60, 0.05)])
def test_recency_decays_as_the_table_of_the_protocol_says(days: float, left: float) -> None:
    """Half is gone after fourteen days; with a half-life twice as long, after twenty-eight."""
    assert recency_decay(days, 14) == pytest.approx(left, abs=0.0015)
    assert recency_decay(2 * days, 28) == recency_decay(days, 14)


@pytest.mark.requirement("F6", "B5")
@pytest.mark.parametrize(
    ("switch", "sign"),
    [
        ("apply_time_decay", "recency"),
        ("apply_frequency_boost", "frequency"),
        ("importance_boost", "importance"),
        ("utility_boost", "utility"),
    ],
)
def test_each_part_is_a_switch_and_the_best_score_stays_one(switch: str, sign: str) -> None:
    """A threshold means the same, whatever is switched on."""
    policy = RetrievalPolicy.model_validate({switch: True})
    parts = favoured({"text": 1.0}, policy, age=timedelta(0), reviews=Reviews(count=100, used=100), importance=1.0)
    assert parts.keys() == {"text", sign}
    assert sum(parts.values()) == pytest.approx(1, abs=0.01)
    assert favoured({"text": 0.5}, RetrievalPolicy(), age=timedelta(9), reviews=Reviews(count=9), importance=0.9) == {
        "text": 0.5
    }


def test_what_was_said_a_moment_ahead_of_the_clock_is_new_not_newer_than_new() -> None:
    """Clocks differ between machines; scores stay within 0 and 1."""
    parts = favoured({"text": 1.0}, ALL, age=timedelta(seconds=-30), reviews=Reviews(), importance=0.0)
    assert parts["recency"] == pytest.approx(0.25)


@pytest.mark.requirement("G10")
def test_utility_is_the_share_of_returns_that_were_used_and_half_where_nothing_is_known() -> None:
    """One lucky answer must not beat what was of use forty times in fifty, and what is new is no worse than what failed."""
    unknown, once, often, never = (Reviews(count=c, used=u) for c, u in ((0, 0), (1, 1), (50, 40), (50, 0)))
    assert unknown.utility == 0.5
    assert never.utility < unknown.utility < once.utility < often.utility < 1
    assert Reviews(count=0, used=3).utility == 0.8, "used without a recall"
    parts = favoured({"text": 1.0}, RetrievalPolicy(utility_boost=True), age=timedelta(0), reviews=often, importance=0)
    assert parts["utility"] == pytest.approx(0.2 / 0.6 * 41 / 52)
