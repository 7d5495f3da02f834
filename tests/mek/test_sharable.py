"""What may be shared, told by what a memory is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from remegraph.mek.extraction import unsharable
from remegraph.models import Memory, Origin, Partition, SkillFigures, Topic

NOON = datetime(2025, 3, 4, 12, tzinfo=UTC)
TESTS = Memory(
    memory_id="m",
    partition=Partition(tenant="t", user="ann", agent="remy"),
    topic=Topic(type="task", target_name="testing"),
    content="Slow tests hide in fixtures.",
    layer="long_term",
    said_at=NOON,
    recorded_at=NOON,
)
TRIED = SkillFigures(memory_id="m", name="n", version=1, runs=3, successes=2)


def test_what_was_learned_for_good_may_be_shared() -> None:
    """Long-term knowledge, and skills that have worked, are what others can use."""
    assert unsharable(TESTS, NOON) == ""
    assert unsharable(TESTS.evolve(layer="procedural"), NOON, figures=TRIED) == ""


@pytest.mark.requirement("B11", "K7")
@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"layer": "sensory"}, "sensory"),
        ({"layer": "working"}, "working"),
        ({"layer": "episodic"}, "asked for"),
        ({"topic": Topic(type="self", target_name="self")}, "the agent itself"),
        ({"memory_class": "policy"}, "a rule"),
        ({"importance": 0.9}, "a rule"),
        ({"trust": 0.4}, "not trusted"),
        ({"category": "emotion"}, "felt"),
        ({"valid_to": NOON - timedelta(days=1)}, "no longer holds"),
        ({"partition": Partition(tenant="t", agent="remy")}, "not this user's"),
        ({"origin": Origin(via="absorbed", agents=("zoe",), at=NOON)}, "another agent"),
        *(({"status": status}, status) for status in ("quarantined", "disputed", "proposed", "superseded", "archived")),
    ],
)
def test_what_is_private_by_its_nature_stays(fields: dict[str, Any], why: str) -> None:
    """Each rule holds by itself, and says why: nobody must guess what an agent keeps back."""
    assert why in unsharable(TESTS.evolve(**fields), NOON)


def test_an_untried_or_failing_skill_is_never_shared() -> None:
    """Others would run what nobody has seen work."""
    skill = TESTS.evolve(layer="procedural")
    assert "candidate" in unsharable(skill, NOON, figures=TRIED.evolve(runs=0, successes=0))
    assert "never worked" in unsharable(skill, NOON, figures=TRIED.evolve(successes=0))


def test_episodes_may_go_on_where_they_are_asked_for() -> None:
    """Whoever asks for the pattern of episodes gets it, and no other rule is lifted by that."""
    episode = TESTS.evolve(layer="episodic")
    assert unsharable(episode, NOON, episodes=True) == ""
    assert "rule" in unsharable(episode.evolve(memory_class="policy"), NOON, episodes=True)
