"""The eval of what answers drew on can tell a rule that works from one that says yes to everything."""

from __future__ import annotations

import pytest

from evals import used
from evals._records import Message, Question, Store


def store(name: str, *said: str) -> Store:
    messages = [
        Message(id=f"{name}{at}", thread="main", name=name, role="user", content=text, time="2025-03-04T12:00:00Z")
        for at, text in enumerate(said)
    ]
    question = Question(text=f"What does {name} love?", gold=[f"{name}0"], answer=said[0].split()[-1].strip("."))
    return Store(store=name, messages=messages, questions=[question])


DATA = [
    store("Ann", "I love hiking.", "I love what Tom cooks for dinner.", "Good morning!"),
    store("Bob", "I love chess.", "My sister lives in Porto.", "It rains."),
]


def test_what_was_used_is_told_and_nothing_else_blamed() -> None:
    """On plain sentences the rule makes no mistake."""
    found = {figure.name: figure.value for figure in used.figures(DATA, 10)}
    assert found == {
        "repeats: used and told": 1,
        "repeats: not used, but blamed": 0,
        "short: used and told": 1,
        "short: not used, but blamed": 0,
        "unrelated: not used, but blamed": 0,
    }


def test_a_rule_that_blames_all_misses_the_bars(monkeypatch: pytest.MonkeyPatch) -> None:
    """An eval that cannot fail measures nothing."""
    monkeypatch.setattr(used, "drawn_on", lambda _answer, _question, shown: list(shown))
    verdicts = [figure.verdict for figure in used.figures(DATA, 10)]
    assert verdicts.count("FAIL") == 3
