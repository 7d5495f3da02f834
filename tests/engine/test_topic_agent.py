"""Sub Agents as readers: one topic, by query and by time."""

from __future__ import annotations

from pathlib import Path

import pytest

from remegraph import InputError, NotFoundError
from tests.talk import ANN, NOON, open_kit, said


@pytest.mark.requirement("R9")
def test_a_sub_agent_finds_memories_and_index_entries_of_its_topic_only(tmp_path: Path) -> None:
    """A custom agent builds on these two calls, and must not see another person's shelf."""
    with open_kit(tmp_path) as kit:
        kit.add_messages([said("I hate mushrooms."), said("I love mushrooms.", name="Bob", minutes=1)], scope=ANN)
        kit.summarize(scope=ANN, close=True)

        agent = kit.topic_agent("personal:Ann", scope=ANN)
        hits = agent.retrieve_by_query("mushrooms", limit_size=5, threshold=0.1)

        assert [hit.text for hit in hits if hit.kind == "memory"] == ["Ann: I hate mushrooms."]
        assert [hit.record_id for hit in hits if hit.kind == "block"] == ["20250304_01"]
        assert agent.retrieve_by_query("xylophone", threshold=0.9)[:1] == agent.retrieve_by_query("xylophone")[:1]
        with pytest.raises(NotFoundError):
            kit.topic_agent("personal:Zoe", scope=ANN)


@pytest.mark.requirement("R9", "R14")
def test_a_sub_agent_reads_a_time_in_words_or_as_a_range(tmp_path: Path) -> None:
    """'What did she say yesterday' is a question about time, not about words."""
    with open_kit(tmp_path) as kit:
        kit.add_messages([said("I hate mushrooms.", minutes=-24 * 60), said("I love hiking.", minutes=0)], scope=ANN)
        kit.summarize(scope=ANN, close=True)
        agent = kit.topic_agent("personal:Ann", scope=ANN)

        yesterday = agent.time_aware_retrieve("yesterday")
        assert [hit.text for hit in yesterday if hit.kind == "memory"] == ["Ann: I hate mushrooms."]
        today = agent.time_aware_retrieve((NOON, NOON))
        assert [hit.text for hit in today if hit.kind == "memory"] == ["Ann: I love hiking."]
        with pytest.raises(InputError, match="names no time"):
            agent.time_aware_retrieve("purple")
