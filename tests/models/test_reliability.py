"""How reliable a tool is, and how sure that is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remegraph.models.tools import Prior, expected, fitted_prior, interval

pytestmark = pytest.mark.requirement("R12")

_COUNTS = st.tuples(st.integers(0, 60), st.integers(0, 60)).map(lambda pair: (min(pair), max(pair)))


@pytest.mark.parametrize(
    ("hits", "known", "low", "high"),
    [(0, 0, 0, 1), (5, 10, 0.2366, 0.7634), (10, 10, 0.7225, 1), (0, 10, 0, 0.2775), (1, 29, 0.0061, 0.1718)],
)
def test_the_interval_is_wilsons(hits: int, known: int, low: float, high: float) -> None:
    """Figures that others have printed (Newcombe, 1998, for 1 of 29)."""
    assert list(interval(hits, known)) == pytest.approx([low, high], abs=1e-4)


@given(_COUNTS)
def test_the_rate_lies_within_its_interval(count: tuple[int, int]) -> None:
    """An interval without its own rate would be nonsense on the page."""
    hits, known = count
    low, high = interval(hits, known)
    assert 0 <= low <= high <= 1
    assert not known or low <= hits / known <= high


@given(st.lists(_COUNTS, max_size=8), _COUNTS)
def test_what_is_expected_lies_between_what_was_seen_and_what_is_usual(
    tools: list[tuple[int, int]], count: tuple[int, int]
) -> None:
    """One failure out of one call is no reason to expect failures only."""
    prior = fitted_prior(tools)
    failures, known = count
    rate = expected(failures, known, prior)
    assert 0 < rate < 1
    ends = sorted((prior.mean, failures / known if known else prior.mean))
    assert ends[0] - 1e-9 <= rate <= ends[1] + 1e-9


def test_tools_that_are_alike_say_more_of_each_other_than_tools_that_differ() -> None:
    """Where one tool always fails and the others never do, a new one's first failure tells much."""
    alike, unlike = fitted_prior([(5, 50)] * 6), fitted_prior([(0, 50)] * 5 + [(30, 50)])
    assert alike.mean == pytest.approx(unlike.mean, abs=0.01)
    assert alike.weight > 10 * unlike.weight
    assert expected(2, 2, alike) < 0.2
    assert expected(2, 2, unlike) > 0.6


def test_the_prior_fits_by_moments() -> None:
    """By hand: rates 0, .5 and .5 of ten calls each (Kleinman, 1973)."""
    mean = 10.5 / 31
    between = 10 * mean**2 + 20 * (0.5 - mean) ** 2
    spread = (between - 2 * mean * (1 - mean)) / (mean * (1 - mean) * (30 - 10 - 2))
    assert fitted_prior([(0, 10), (5, 10), (5, 10)]).weight == pytest.approx(1 / spread - 1)


def test_nothing_known_is_no_error() -> None:
    """The first call of a new deployment."""
    assert fitted_prior([]) == fitted_prior([(0, 0)]) == Prior(failures=1.0, successes=1.0)
