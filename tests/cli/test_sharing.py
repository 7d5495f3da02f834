"""Grants and proposals on the command line."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from remegraph import MemoryKit, Scope
from remegraph.testing import FrozenClock
from tests.cli.conftest import Run
from tests.talk import NOON


@pytest.mark.slow
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
        done = run("share", "propose", own["scout", content], "--agent", "scout", "--reason", "all need it", "--json")
        names.append(json.loads(done.stdout)["proposal_id"])
    hall, chess, gate = names
    shown = run("share", "proposals").stdout
    assert all(words in shown for words in (hall[:8], "The hall seats 250.", "scout", "open", "all need it"))

    same = own["writer", "The hall seats 250."]
    assert "agreed" in run("share", "corroborate", hall[:8], "--agent", "writer", "--memory", same[:8]).stdout
    assert "approve by Olga" in run("share", "approve", chess[:8], "--by", "Olga").stdout
    assert "is no person" in run("share", "reject", gate, "--by", "scout").stderr
    assert "rejected" in run("share", "reject", gate, "--reason", "it is green").stdout
    assert "The proposal is rejected" in run("share", "withdraw", gate, "--agent", "scout").stderr
    states = {each["proposal_id"]: each["state"] for each in json.loads(run("share", "proposals", "--json").stdout)}
    assert states == {hall: "agreed", chess: "agreed", gate: "rejected"}
    assert "No proposals." in run("share", "proposals", "--state", "open").stdout


@pytest.mark.requirement("B11")
def test_what_an_agent_lets_another_read_is_granted_shown_and_revoked(run: Run, tmp_path: Path) -> None:
    """Who may read what is a person's business: they see it, and end it, where they work."""
    scout, writer = Scope(user="me", agent="scout"), Scope(user="me", agent="writer")
    with MemoryKit.open(tmp_path / "home", model=None, embedder=None, clock=FrozenClock(NOON)) as kit:
        kit.add_messages(["The hall seats 250."], scope=scout)
        kit.summarize(scope=scout, close=True)
    told = ("--agent", "scout", "--reason", "one evening", "--until", "2100-01-01T00:00Z", "--json")
    grant_id = json.loads(run("share", "grant", "writer", *told).stdout)["grant_id"]
    asked = ("recall", "How many seats has the hall?", "--agent", "writer", "--json")

    assert [hit["text"] for hit in json.loads(run(*asked).stdout)["memories"]] == ["me: The hall seats 250."]
    assert all(
        words in run("share", "grants", "--agent", "writer").stdout for words in ("scout", "episodic", "2100-01-01")
    )
    assert (
        "one evening"
        in run("share", "revoke", grant_id, "--agent", "scout", "--reason", "one evening, and it is over").stdout
    )
    assert json.loads(run(*asked).stdout)["memories"] == []
    assert (
        "never shared"
        in run("share", "grant", "writer", "--agent", "scout", "--reason", "x", "--layer", "sensory").stderr
    )
    assert "No grants." in run("share", "grants", "--agent", "third").stdout
    with MemoryKit.open(tmp_path / "home", model=None, embedder=None) as kit:
        assert kit.memories(scope=writer) == ()
