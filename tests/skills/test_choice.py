"""The bound and the choice, for all figures that there can be."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remegraph.models import SkillFigures
from remegraph.skills.choice import choose, wilson

pytestmark = pytest.mark.requirement("B10")

TALLIES = st.integers(0, 2000).flatmap(lambda runs: st.tuples(st.integers(0, runs), st.just(runs)))


def figures(name: str, successes: int, runs: int) -> SkillFigures:
    """A variant as it has gone so far."""
    lower, upper = wilson(successes, runs)
    return SkillFigures(memory_id=name, name=name, version=1, runs=runs, successes=successes, lower=lower, upper=upper)


@given(TALLIES)
def test_the_rate_lies_between_its_bounds_and_one_more_run_moves_them_the_right_way(tally: tuple[int, int]) -> None:
    """A bound that a failure could raise would reward it."""
    successes, runs = tally
    lower, upper = wilson(successes, runs)
    assert 0 <= lower <= (successes / runs if runs else 0.5) <= upper <= 1
    assert wilson(successes, runs + 1)[0] <= lower <= wilson(successes + 1, runs + 1)[0]
    assert wilson(successes, runs + 1)[1] <= upper <= wilson(successes + 1, runs + 1)[1]


@given(st.integers(1, 50), st.integers(2, 20))
def test_more_runs_of_the_same_rate_narrow_the_bounds(successes: int, times: int) -> None:
    """Twenty successes in thirty runs say more than two in three."""
    few, many = wilson(successes, 2 * successes), wilson(successes * times, 2 * successes * times)
    assert few[0] < many[0] < 0.5 < many[1] < few[1]


def test_the_bounds_are_those_of_the_score_interval() -> None:
    """Against the solution of Wilson's quadratic (p - q)² = q (1 - q) / n for 7 of 10, worked out by hand."""
    lower, upper = wilson(7, 10)
    assert (round(lower, 4), round(upper, 4)) == (0.5425, 0.8212)
    for bound in (lower, upper):
        assert (0.7 - bound) ** 2 == pytest.approx(bound * (1 - bound) / 10)


@given(st.lists(TALLIES, min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_the_same_history_gives_the_same_choice_in_any_order(
    tallies: list[tuple[int, int]], rng: random.Random
) -> None:
    """Ties go to the smaller id; nothing hangs on the order in which rows come back."""
    variants = [figures(f"skill {at}", *tally) for at, tally in enumerate(tallies)]
    shuffled = rng.sample(variants, len(variants))
    assert choose(variants) == choose(shuffled)
    chosen, how, _ = choose(variants)
    best = max(each.lower for each in variants)
    assert how == "trial" or chosen.lower == best
    assert chosen.upper >= best


def test_what_began_badly_is_looked_at_again_and_what_is_shown_to_be_worse_is_not() -> None:
    """One unlucky run must not bury the best way, nor a hundred failures keep the worst alive."""
    unlucky = choose([figures("lucky", 5, 8), figures("unlucky", 0, 1)])
    assert (unlucky[0].name, unlucky[1]) == ("unlucky", "trial")
    settled = choose([figures("good", 90, 100), figures("worse", 2, 12)])
    assert (settled[0].name, settled[1]) == ("good", "bound")
    assert choose([figures("alone", 0, 0)])[1] == "only"
