"""What a person needs who only looks: the whole curve, and a way to ask that strengthens nothing."""

from __future__ import annotations

from datetime import datetime

import pytest

from remegraph.errors import InputError, NaiveTimeError, NotFoundError
from tests.retention.conftest import DAY, House


def test_the_curve_is_what_explain_says_at_each_time(house: House) -> None:
    """A drawing that differs from the text beside it makes both doubtful."""
    kit, clock, ann = house.kit, house.clock, house.ann
    (tea,) = house.told("I like sencha tea.")
    clock.move(10 * DAY)
    kit.recall("sencha", scope=ann)
    times = [clock() + days * DAY for days in (-10, -1, 0, 5, 100)]
    curve = kit.retention.curve(tea.memory_id, scope=ann, times=times)
    assert list(curve) == [kit.explain(tea.memory_id, scope=ann, at=time).weight for time in times]
    assert curve[1].value < curve[2].value  # the review
    assert kit.retention.curve(tea.memory_id, scope=ann, times=[]) == ()


def test_the_curve_of_what_is_not_seen_is_refused(house: House) -> None:
    """Times without a zone would draw another day."""
    (tea,) = house.told("I like sencha tea.")
    with pytest.raises(NotFoundError):
        house.kit.retention.curve("nothing", scope=house.ann, times=[])
    with pytest.raises(NaiveTimeError):
        house.kit.retention.curve(tea.memory_id, scope=house.ann, times=[datetime(2025, 1, 1)])  # noqa: DTZ001 - that is the test


def test_who_only_tries_a_question_out_strengthens_nothing(house: House) -> None:
    """A memory that somebody debugs must fade as if nobody had."""
    kit, ann = house.kit, house.ann
    (tea,) = house.told("I like sencha tea.")
    assert kit.recall("sencha", scope=ann, review=False).memories
    assert kit.inject("sencha", scope=ann, always=True, review=False).shown
    assert kit.explain(tea.memory_id, scope=ann).reviews == ()
    kit.recall("sencha", scope=ann)
    assert len(kit.explain(tea.memory_id, scope=ann).reviews) == 1


def test_memories_are_listed_up_to_a_limit_newest_first(house: House) -> None:
    """A page of a long list costs what a page costs."""
    kit, ann = house.kit, house.ann
    for day in ("Monday", "Tuesday", "Friday"):
        house.saved(f"The pool is closed on {day}.")
        house.clock.move(DAY)
    every = kit.memories(scope=ann)
    assert kit.memories(scope=ann, limit=2) == every[:2]
    with pytest.raises(InputError, match="limit is 0"):
        kit.memories(scope=ann, limit=0)
