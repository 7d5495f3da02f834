"""Grants, proposals and packs on the command line."""

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


# ------------------------------------------------------------------------------------------- packs


@pytest.mark.requirement("K9")
@pytest.mark.slow
def test_memories_move_to_another_home_on_the_command_line(run: Run, chat: Path, tmp_path: Path) -> None:
    """A new machine, or a colleague's: one file, and what was remembered is there, traces and all."""
    file, other = str(tmp_path / "ann.pack"), str(tmp_path / "other")
    assert run("ingest", str(chat)).exit_code == 0
    assert "Written to" in run("pack", "build", file).stdout
    assert "(export)" in run("pack", "inspect", file).stdout
    assert "Every record is valid." in run("pack", "verify", file).stdout
    refused = run("pack", "install", file, "--home", other)
    assert (refused.exit_code, "pass trust=1" in " ".join(refused.stderr.split())) == (1, True)
    assert "installed" in run("pack", "install", file, "--home", other, "--trust", "1").stdout
    assert "nothing changed" in run("pack", "install", file, "--home", other, "--trust", "1").stdout
    here, there = (
        sorted(
            json.loads(run("memory", "list", "--home", home, "--json").stdout), key=lambda memory: memory["memory_id"]
        )
        for home in (str(tmp_path / "home"), other)
    )
    assert here == there
    found = json.loads(run("--home", other, "pack", "diff", file, "--trust", "1", "--json").stdout)
    assert (found["new"], len(found["known"])) == ([], len(here))


@pytest.mark.slow
@pytest.mark.requirement("K9")
def test_a_signed_pack_is_known_as_its_makers_on_the_command_line(run: Run, chat: Path, tmp_path: Path) -> None:
    """Whoever installs what others made wants to know whose it is, and that nobody changed it."""
    file, key, other = str(tmp_path / "tips.pack"), str(tmp_path / "ann.key"), str(tmp_path / "other")
    made = json.loads(run("pack", "keygen", key, "--json").stdout)
    run("ingest", str(chat))
    built = run("pack", "build", file, "--preset", "--id", "tips", "--domain", "homes", "--key", key)
    assert "items" in built.stdout
    unknown = run("pack", "install", file, "--home", other)
    assert (unknown.exit_code, "is unknown here" in " ".join(unknown.stderr.split())) == (1, True)
    assert made["key_id"] in run("pack", "trust", "ann", made["public"], "--home", other).stdout
    assert "signed by ann" in run("pack", "verify", file, "--require-signature", "--home", other).stdout
    done = json.loads(run("pack", "install", file, "--home", other, "--json").stdout)
    assert {item["outcome"] for item in done["items"]} == {"quarantined"}
    assert "revoked" in run("pack", "revoke", made["key_id"], "--home", other).stdout
    assert run("pack", "verify", file, "--home", other).exit_code == 1


@pytest.mark.requirement("K9")
def test_a_pack_of_one_memory_takes_the_beginning_of_its_id(run: Run, chat: Path, tmp_path: Path) -> None:
    """Lists show eight characters of an id: what is seen there can be typed."""
    run("ingest", str(chat))
    named = json.loads(run("memory", "list", "--json").stdout)[0]["memory_id"]
    built = run("pack", "build", str(tmp_path / "one.pack"), "--memory", named[:8])
    assert built.exit_code == 0, built.output
    assert "1 memories" in built.stdout
