"""The three profiles of `examples/profiles.py`, filled by conversations with a scripted model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from examples import profiles
from remegraph import MemoryKit, Scope
from remegraph.testing import FrozenClock, InMemoryVectorIndex, ScriptedChatModel
from tests.talk import by_topic, change, create, digest, proposal

pytestmark = pytest.mark.requirement("X19")

HANNAH = Scope(user="Hannah", agent="Pip")
TOMEK = Scope(user="Tomek", agent="Forge")


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., MemoryKit]]:
    """Opens a kit with the settings of the example, and a model that proposes what is given for one topic."""
    monkeypatch.setenv("REMEGRAPH_HOME", str(tmp_path))
    kits: list[MemoryKit] = []

    def kit(topic: str, *answers: list[dict[str, Any]]) -> MemoryKit:
        script = {
            "DigestAnswer": lambda _: digest(topic),
            "ProposalAnswer": by_topic({topic: [proposal(*each) for each in answers]}),
        }
        model, index = ScriptedChatModel(script=script), InMemoryVectorIndex()
        kits.append(MemoryKit.open(settings=profiles.settings(), model=model, index=index, clock=FrozenClock()))
        return kits[-1]

    yield kit
    for each in kits:
        each.close()


def test_a_person_who_moves(opened: Callable[..., MemoryKit]) -> None:
    """What they were is told beside what they are; what nobody said is unknown."""
    kit = opened(
        "personal:Hannah",
        [
            create("Hannah lives in Leeds.", 1, "in Leeds", slot="lives_in", value="Leeds"),
            create("Hannah is vegetarian.", 1, "I'm vegetarian", slot="diet", value="vegetarian"),
            create("Hannah must not eat peanuts.", 1, "No peanuts, ever!", slot="allergies", value="peanuts"),
        ],
        [
            change(
                "SUPERSEDE",
                "lives_in",
                1,
                "We moved to Sheffield",
                content="Hannah lives in Sheffield.",
                value="Sheffield",
            ),
            change(
                "SUPERSEDE", "diet", 1, "I eat fish now", content="Hannah eats fish, but no meat.", value="pescatarian"
            ),
        ],
    )
    profile = profiles.person(kit, HANNAH)

    assert profile.known == {"lives_in": "Sheffield", "diet": "pescatarian", "allergies": ["peanuts"]}
    assert profile.unknown == ("called", "works_as", "born_on", "partner", "pets")
    shown = list(profiles.lines(profile))
    assert "  lives_in: Sheffield ('We moved to Sheffield'; before: Leeds)" in shown
    assert "  pets: unknown (nobody said it)" in shown


def test_a_project_the_date_of_which_moves(opened: Callable[..., MemoryKit]) -> None:
    """A date is a date, and the former one is kept."""
    kit = opened(
        "task:kassa",
        [
            create("kassa is written in Go.", 1, "in Go", slot="language", value="Go"),
            create("kassa takes over from oldpay.", 1, "takes over from oldpay", slot="replaces", value="oldpay"),
            create("kassa goes live on 14 March 2027.", 1, "on 14 March 2027", slot="goes_live", value="2027-03-14"),
        ],
        [
            change(
                "SUPERSEDE",
                "goes_live",
                1,
                "moved to 15 May 2027",
                content="kassa goes live on 15 May 2027.",
                value="2027-05-15",
            ),
        ],
    )
    profile = profiles.project(kit, TOMEK)

    assert profile.known == {"language": "Go", "replaces": "oldpay", "goes_live": date(2027, 5, 15)}
    assert [each.value for each in profile["goes_live"].history] == [date(2027, 3, 14)]


def test_a_tool_that_says_of_itself_what_it_takes(opened: Callable[..., MemoryKit]) -> None:
    """What a tool of the owner's own says is a fact, and a number is a number."""
    limit = "shell_run cuts a call off after 60 s unless a timeout is given."
    words = "killed: still running after 60 s (timeout_s not given, default 60)"
    kit = opened("tool:shell_run", [create(limit, 3, words, slot="default_timeout", value="60")])
    profile = profiles.tool(kit, TOMEK)

    assert profile.known == {"default_timeout": 60}
    assert [quote.words for quote in profile["default_timeout"].words] == [words]
    assert profile.filled == profiles.Tool(default_timeout=60)
