"""The tiers: what goes up by use, what goes down by time, and where a person has the last word."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remegraph.models import Access, Memory, Partition, Topic
from remegraph.models.standing import always_active
from remegraph.retention.working_memory import MEMORY_OF_USE, standing, tier_of
from tests.talk import NOON

pytestmark = pytest.mark.requirement("K2")

DAY, SECOND = timedelta(days=1), timedelta(seconds=1)


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


def hits(*days: float, used: bool = False) -> list[Access]:
    return [Access(NOON + day * DAY, used) for day in days]


def test_frequent_use_promotes_and_use_counts_double() -> None:
    """Six questions in a week make a memory one of those at hand; three that it answered do, too; one does not."""
    asked = memory()
    assert not standing(asked, hits(0, 1, 2, 3, 4), NOON + 4 * DAY).active
    assert standing(asked, hits(0, 0.5, 1, 1.5, 2, 2.2, 2.4), NOON + 3 * DAY).active
    assert standing(asked, hits(0, 0.1, 0.2, 0.3, used=True), NOON + DAY).active
    assert not standing(asked, hits(0, used=True), NOON).active
    assert not standing(asked, hits(0, 30, 60, 90, 120, 150, 180), NOON + 180 * DAY).active, "often, but not of late"


def test_important_memories_are_promoted_by_less() -> None:
    """Use weighs more where the matter does."""
    log = hits(0, 0.1, 0.2, 0.3, 0.4)
    assert standing(memory(importance=0.8), log, NOON + DAY).active
    assert not standing(memory(importance=0.2), log, NOON + DAY).active


def test_what_is_no_longer_used_is_demoted_when_it_was_said_to_be() -> None:
    """The desk does not fill up with what mattered last month; and nobody needs to tidy it."""
    log = hits(*(number / 10 for number in range(8)))
    now = standing(memory(), log, NOON + DAY)
    assert now.until is not None
    assert NOON + 7 * DAY < now.until < NOON + 30 * DAY
    assert standing(memory(), log, now.until - SECOND).active
    assert not standing(memory(), log, now.until + SECOND).active


def test_between_up_and_down_a_memory_stays_where_it_was() -> None:
    """A memory at the border must not come and go with every question."""
    middling = hits(0, 0, 0, 0)  # 4 points: less than it takes to go up, more than it takes to go down
    assert not standing(memory(), middling, NOON + SECOND).active
    high = hits(-9, -9, -9, -9, -9, -9, -9, -9)
    before, after = standing(memory(), high, NOON), standing(memory(), hits(0), NOON)
    assert before.active
    assert 2 < before.points < 6
    assert not after.active
    found = [standing(memory(), [*high, *hits(day)], NOON + day * DAY + SECOND).active for day in range(4)]
    assert found == [True] * 4


def test_no_burst_of_use_keeps_a_memory_longer_than_the_cap() -> None:
    """A loop that asks a thousand times is no reason to have it at hand for a year; so older logs need not be read."""
    burst = hits(*([0] * 1000), used=True)
    assert standing(memory(importance=0.89), burst, NOON + DAY).active
    assert not standing(memory(importance=0.89), burst, NOON + MEMORY_OF_USE + SECOND).active


@given(st.lists(st.tuples(st.floats(0, 100), st.booleans()), max_size=30).map(sorted), st.floats(0, 0.89))
def test_points_stay_within_bounds_and_later_reviews_do_not_count_yet(
    log: list[tuple[float, bool]], importance: float
) -> None:
    """The state of any past day can be computed again from the same log."""
    reviews = [Access(NOON + day * DAY, used) for day, used in log]
    at = NOON + 50 * DAY
    now = standing(memory(importance=importance), reviews, at)
    assert 0 <= now.points <= 12
    assert now == standing(memory(importance=importance), [each for each in reviews if each.at <= at], at)
    assert now.until is None or now.until >= at


def test_core_rules_are_active_and_a_person_has_the_last_word() -> None:
    """What must always hold is always at hand; what somebody put away stays away, however often it is used."""
    log = hits(*(number / 10 for number in range(20)), used=True)
    assert standing(memory(importance=0.9), (), NOON).active
    assert standing(memory(resident=True, importance=0.1), (), NOON + 999 * DAY).active
    assert not standing(memory(resident=False), log, NOON + 2 * DAY).active
    assert not always_active(memory(resident=False, importance=1.0))
    for status in ("archived", "superseded", "deleted"):
        assert not standing(memory(resident=True, status=status), log, NOON + 2 * DAY).active


@pytest.mark.parametrize(
    ("fields", "active", "derived", "tier"),
    [
        ({}, False, False, "long_term"),
        ({"layer": "long_term"}, False, False, "long_term"),
        ({"layer": "long_term"}, False, True, "compressed"),
        ({"layer": "procedural"}, False, False, "compressed"),
        ({"layer": "procedural"}, True, False, "active"),
    ],
)
def test_every_memory_is_in_one_of_the_three_tiers(
    fields: dict[str, object], active: bool, derived: bool, tier: str
) -> None:
    """What is abstracted from others is compressed; all else is kept as it is, and a few stand ready."""
    assert tier_of(memory(**fields), active=active, derived=derived) == tier
