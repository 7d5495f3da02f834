"""Proposals on the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from typer.testing import Result

from remegraph import MemoryKit, Scope
from remegraph.testing import FrozenClock
from tests.talk import NOON

Run = Callable[..., Result]


@pytest.mark.requirement("B12")
def test_agents_and_persons_agree_on_the_command_line(run: Run, tmp_path: Path) -> None:
    """Whoever decides what all agents know reads the proposals, and says yes or no, without Python."""
    clock = FrozenClock(NOON)
    with MemoryKit.open(tmp_path / "home", model=None, embedder=None, clock=clock) as kit:
        for agent in ("scout", "writer"):
            for content in ("The hall seats 250.", "Ann plays chess.", "The gate is red."):
                clock.move(timedelta(hours=1))
                kit.save("note", content, scope=Scope(user="me", agent=agent))
        own = {
            (agent, memory.content): memory.memory_id
            for agent in ("scout", "writer")
            for memory in kit.memories(scope=Scope(user="me", agent=agent))
        }
    names = []
    for content in ("The hall seats 250.", "Ann plays chess.", "The gate is red."):
        done = run("propose", own["scout", content], "--agent", "scout", "--reason", "all need it", "--json")
        names.append(json.loads(done.stdout)["proposal_id"])
    hall, chess, gate = names
    shown = run("proposals").stdout
    assert all(words in shown for words in (hall[:8], "The hall seats 250.", "scout", "open", "all need it"))

    same = own["writer", "The hall seats 250."]
    assert "agreed" in run("corroborate", hall[:8], "--agent", "writer", "--memory", same[:8]).stdout
    assert "approve by Olga" in run("approve", chess[:8], "--by", "Olga").stdout
    assert "is no person" in run("reject", gate, "--by", "scout").stderr
    assert "rejected" in run("reject", gate, "--reason", "it is green").stdout
    assert "The proposal is rejected" in run("withdraw", gate, "--agent", "scout").stderr
    states = {each["proposal_id"]: each["state"] for each in json.loads(run("proposals", "--json").stdout)}
    assert states == {hall: "agreed", chess: "agreed", gate: "rejected"}
    assert "No proposals." in run("proposals", "--state", "open").stdout
