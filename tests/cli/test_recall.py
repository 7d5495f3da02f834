from __future__ import annotations

import json
from pathlib import Path

import pytest

from remegraph import MemoryKit, Scope
from remegraph.kit import SaveOptions
from remegraph.models import Condition, Skill, SkillStep, StepPattern
from remegraph.testing import InMemoryVectorIndex
from tests.cli.conftest import Run


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
            options=SaveOptions(enforcement_level="hard"),
        )
        note = kit.save("db", "Atlas uses PostgreSQL.", scope=atlas).memory
        kit.save("errors", "Handle each error.", scope=Scope(user="me"), options=SaveOptions(applies_to="lang:go"))
    assert note is not None

    listed = run("rule", "list", "--project", "atlas").stdout
    assert "core" in listed
    assert "hard" in listed
    assert listed.index("Never deploy on Fridays.") < listed.index("Atlas uses PostgreSQL.")
    assert "Handle each error." in run("rule", "list", "-w", str(tmp_path / "zeus")).stdout

    given = run("rule", "inject", "Should we use PostgreSQL?", "--project", "atlas").stdout
    assert "Something is to be decided: 'Should we'." in given
    assert "of 2,000 tokens" in given
    told = json.loads(run("rule", "inject", "Hello.", "--project", "atlas", "--turn", "5", "--json").stdout)
    assert [trigger["kind"] for trigger in told["triggers"]] == ["turn"]
    refused = run("rule", "inject", "Hello.", "--project", "atlas", "--budget", "40")
    assert refused.exit_code == 1
    assert "Raise the budget" in refused.stderr

    assert (
        "Atlas uses PostgreSQL."
        in run("rule", "promote", note.memory_id[:8], "--project", "atlas", "--reason", "It is the standard.").stdout
    )
    everywhere = run("rule", "inject", "Hello.").stdout
    assert "Nothing is given." in everywhere
    assert "Nothing calls for a search." in everywhere
    assert "Atlas uses PostgreSQL." in run("memory", "list").stdout


@pytest.mark.requirement("B10")
def test_skills_are_listed_with_what_they_are_chosen_by(run: Run, tmp_path: Path) -> None:
    """Whoever looks after an agent sees which of its procedures work, without Python."""
    steps = (SkillStep(name="build", step_pattern=StepPattern(tool="make")),)
    skill = Skill(name="fast", task="Deploy", steps=steps, postconditions=(Condition(field="build.ok"),))
    home, me = tmp_path / "home", Scope(user="me")
    with MemoryKit.open(home, model=None, embedder=None, index=InMemoryVectorIndex()) as kit:
        memory = kit.skills.add(skill, scope=me)
        kit.skills.record_outcome(memory.memory_id, True, scope=me)
    assert "100%" in run("memory", "skills").stdout
    assert json.loads(run("memory", "skills", "--json").stdout)[0]["successes"] == 1
    assert "0.50 to 1.00" in run("memory", "explain", memory.memory_id[:8]).stdout
