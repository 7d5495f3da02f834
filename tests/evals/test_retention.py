"""The simulated year is the same for everybody, and its figures tell forgetting from not forgetting."""

from __future__ import annotations

from dataclasses import replace

from evals import retention
from evals.retention import Ran


def test_a_year_is_lived_by_the_clock_that_the_eval_moves() -> None:
    """A figure that nobody can measure again is no figure."""
    told = retention.year(120, 60, seed=3)
    assert told == retention.year(120, 60, seed=3)
    said = {message.message_id: message.content for day in told.days for message in day.messages}
    assert len(said) == 2 * (60 + 40)
    assert len(told.facts) == 20
    assert set(told.facts.values()) <= said.keys()
    ran = retention.lived(replace(told, days=told.days[:7]), forgets=True)
    assert (len(ran.live), ran.archived) == (1, 0)
    assert any(ran.found)


def test_the_bars_of_the_year_are_missed_where_nothing_is_forgotten() -> None:
    """An eval that cannot fail measures nothing."""
    whole = Ran(live=[10, 20, 30, 40], found=[True] * 4, stale=[6, 8])
    fading = Ran(live=[10, 20, 19, 21], found=[True] * 4, stale=[1, 3], archived=19, explained=19)
    assert {figure.verdict for figure in retention._figures([(fading, whole)])} == {"", "PASS"}
    wrong = Ran(live=whole.live, found=[True, False] * 2, stale=whole.stale, archived=2, explained=1)
    verdicts = [figure.verdict for figure in retention._figures([(fading, whole), (wrong, whole)])]
    assert (verdicts.count("FAIL"), verdicts.count("PASS")) == (4, 0)
