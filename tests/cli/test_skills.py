from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from remegraph import Condition, MemoryKit, Scope, Skill, SkillStep, StepPattern
from remegraph.testing import InMemoryVectorIndex

Run = Callable[..., Result]


@pytest.mark.requirement("B10")
def test_skills_are_listed_with_what_they_are_chosen_by(run: Run, tmp_path: Path) -> None:
    """Whoever looks after an agent sees which of its procedures work, without Python."""
    steps = (SkillStep(name="build", step_pattern=StepPattern(tool="make")),)
    skill = Skill(name="fast", task="Deploy", steps=steps, postconditions=(Condition(field="build.ok"),))
    home, me = tmp_path / "home", Scope(user="me")
    with MemoryKit.open(home, model=None, embedder=None, index=InMemoryVectorIndex()) as kit:
        memory = kit.skills.add(skill, scope=me)
        kit.skills.record_outcome(memory.memory_id, True, scope=me)
    assert "100%" in run("skills").stdout
    assert json.loads(run("skills", "--json").stdout)[0]["successes"] == 1
    assert "0.50 to 1.00" in run("explain", memory.memory_id[:8]).stdout
