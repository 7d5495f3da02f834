"""Whether what was said calls for memory, and why."""

from __future__ import annotations

import pytest

from remegraph.models import Trigger
from remegraph.rules.triggers import triggers


@pytest.mark.requirement("G2")
@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("What did we decide about the login page?", "past", "did we"),
        ("上次的格式再来一遍。", "past", "上次"),
        ("Should I take the train?", "decision", "Should I"),
        ("周末去爬山还是看电影？", "decision", "还是看电影？"),
        ("What is my dog called?", "own", "What is my dog called?"),
        ("我的狗叫什么？", "own", "我的狗叫什么？"),
        ("Deploy ATLAS.", "entity", "ATLAS"),
        ("部署星河项目。", "entity", "星河项目"),
    ],
)
def test_each_sign_fires_by_itself_and_says_by_which_words(text: str, kind: str, words: str) -> None:
    """Who wonders why memory was searched, or was not, reads it off."""
    (found,) = triggers(text, turn=1, known=["Atlas", "星河项目"])
    assert (found.kind, found.words) == (kind, words)
    assert words in found.reason


@pytest.mark.requirement("G2")
@pytest.mark.parametrize(
    "text",
    [
        "Thanks!",
        'How do you spell "previously"?',
        "Wash the rice before cooking it.",
        "Clear the browser history.",
        "「上次」这个词怎么翻译？",
        "睡觉之前要刷牙。",
        "Atlases are heavy.",
        "",
    ],
)
def test_what_only_sounds_like_it_does_not_fire(text: str) -> None:
    """Memory that is brought up at every turn costs tokens and distracts."""
    assert triggers(text, turn=1, known=["Atlas"]) == ()


@pytest.mark.requirement("G2")
def test_every_fifth_turn_memory_is_asked_whatever_is_said() -> None:
    """What no rule foresaw comes up in the end."""
    fired = [turn for turn in range(21) if triggers("Thanks!", turn=turn)]
    assert fired == [5, 10, 15, 20]
    assert triggers("Thanks!", turn=5) == (Trigger(kind="turn", words="5"),)
    assert triggers("Thanks!", turn=5)[0].reason == "Turn 5: it is time to look again."


@pytest.mark.requirement("G2")
def test_a_name_that_is_in_view_needs_no_looking_up() -> None:
    """The rules of the project name it already."""
    assert triggers("Deploy Atlas.", turn=1, known=["Atlas"], shown="atlas uses PostgreSQL.") == ()
