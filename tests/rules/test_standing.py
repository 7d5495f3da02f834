"""How sure, how old, and whether it holds: what a reader needs before acting on a memory."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from remegraph.models import Hit, Memory, Partition, Topic
from remegraph.rules.chains import in_order
from remegraph.rules.standing import confidence, dated
from tests.talk import NOON

pytestmark = pytest.mark.requirement("K5")


def memory(**fields: Any) -> Memory:
    topic = Topic(type="personal", target_name="Ann")
    return Memory(
        memory_id="m", partition=Partition(tenant="t"), topic=topic, content="x", said_at=NOON, recorded_at=NOON
    ).evolve(**fields)


def test_what_is_said_again_is_surer_and_what_is_contradicted_less() -> None:
    """A fact heard five times and a fact in dispute must not look alike."""
    falls = [memory(merges=4), memory(merges=1), memory(), memory(status="disputed"), memory(trust=0.3)]
    assert all(confidence(one) > confidence(other) for one, other in pairwise(falls))
    assert confidence(memory()) == pytest.approx(2 / 3)
    assert confidence(memory(), against=1) == confidence(memory(status="disputed")) == 0.5
    assert confidence(memory(merges=10**6, trust=0.3)) <= 0.3


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
