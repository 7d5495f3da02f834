from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from remegraph import MemoryKit, Scope

Run = Callable[..., Result]


@pytest.mark.requirement("G1", "G2", "G8")
def test_rules_layers_and_promotion_are_seen_on_the_command_line(run: Run, tmp_path: Path) -> None:
    """Whoever wonders what an agent was told looks it up, with the reasons, before asking a programmer."""
    atlas = Scope(user="me", project="atlas")
    (tmp_path / "zeus").mkdir()
    (tmp_path / "zeus" / "go.mod").touch()
    with MemoryKit.open(tmp_path / "home", model=None, embedder=None) as kit:
        kit.save(
            "deploys",
            "Never deploy on Fridays.",
            scope=atlas,
            importance=1,
            memory_class="policy",
            enforcement_level="hard",
        )
        note = kit.save("db", "Atlas uses PostgreSQL.", scope=atlas).memory
        kit.save("errors", "Handle each error.", scope=Scope(user="me"), applies_to="lang:go")
    assert note is not None

    listed = run("rules", "--project", "atlas").stdout
    assert "core" in listed
    assert "hard" in listed
    assert listed.index("Never deploy on Fridays.") < listed.index("Atlas uses PostgreSQL.")
    assert "Handle each error." in run("rules", "-w", str(tmp_path / "zeus")).stdout

    given = run("inject", "Should we use PostgreSQL?", "--project", "atlas").stdout
    assert "Something is to be decided: 'Should we'." in given
    assert "of 2,000 tokens" in given
    told = json.loads(run("inject", "Hello.", "--project", "atlas", "--turn", "5", "--json").stdout)
    assert [trigger["kind"] for trigger in told["triggers"]] == ["turn"]
    refused = run("inject", "Hello.", "--project", "atlas", "--budget", "40")
    assert refused.exit_code == 1
    assert "Raise the budget" in refused.stderr

    assert (
        "Atlas uses PostgreSQL."
        in run("promote", note.memory_id[:8], "--project", "atlas", "--reason", "It is the standard.").stdout
    )
    everywhere = run("inject", "Hello.").stdout
    assert "Nothing is given." in everywhere
    assert "Nothing calls for a search." in everywhere
    assert "Atlas uses PostgreSQL." in run("memories").stdout
