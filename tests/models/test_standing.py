"""How sure, how old, and whether it holds: what a reader needs before acting on a memory."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise

import pytest

from remegraph.engine.retrieval.companions import in_order
from remegraph.models import Hit, Partition
from remegraph.models.standing import confidence, dated
from tests.talk import NOON

pytestmark = pytest.mark.requirement("K5")


def test_what_is_said_again_is_surer_and_what_is_contradicted_less() -> None:
    """A fact heard five times and a fact in dispute must not look alike."""
    falls = [confidence(1, 5, 0), confidence(1, 2, 0), confidence(1, 1, 0), confidence(1, 1, 1), confidence(0.3, 9, 0)]
    assert all(one > other for one, other in pairwise(falls))
    assert falls[2:4] == pytest.approx([2 / 3, 1 / 2])
    assert confidence(0.3, 10**6, 0) <= 0.3


def test_a_hit_says_how_old_it_is_and_whether_it_holds() -> None:
    """Each is as of the time that was asked at; what ends at that very time is over."""
    hit = Hit(kind="memory", record_id="m", partition=Partition(tenant="t"), text="x", score=1, time=NOON)
    now = NOON + timedelta(days=3)
    hits = [
        hit,
        hit.evolve(valid_to=now + timedelta(seconds=1)),
        hit.evolve(valid_to=now),
        hit.evolve(valid_to=NOON, status="superseded"),
    ]
    found = dated(hits, now)
    assert [each.standing for each in found] == ["current", "current", "expired", "superseded"]
    assert {each.age for each in found} == {timedelta(days=3)}
    assert '"age": "P3D"' in found[0].to_json()


def test_no_effect_stands_before_its_cause_whenever_it_was_said() -> None:
    """Who was late says so before the reason; the story begins with the train that broke down."""
    times = {"late": NOON, "train": NOON + timedelta(hours=1), "snow": NOON + timedelta(hours=2), "tea": NOON}
    causes = [("train", "late"), ("snow", "train"), ("snow", "elsewhere")]
    assert in_order(times, causes) == ["tea", "snow", "train", "late"]
    assert in_order(times, [*causes, ("late", "snow"), ("tea", "tea")]) == ["tea", "late", "snow", "train"]
