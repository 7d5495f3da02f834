"""What somebody states while the background runner works in the same place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from remegraph import MemoryKit
from remegraph.models import Condition, Skill, SkillStep, StepPattern
from tests.talk import ANN, open_kit

REFUND = Skill(
    name="by transfer",
    task="Refund an order",
    steps=(SkillStep(name="pay", step_pattern=StepPattern(tool="pay_back", args={"order": "{order}"})),),
    postconditions=(Condition(field="pay.ok"),),
)


def add_skill(kit: MemoryKit) -> str:
    return kit.skills.add(REFUND, scope=ANN).memory_id


def update(kit: MemoryKit) -> str:
    saved = kit.save("tea", "Ann drinks oolong.", scope=ANN).memory
    assert saved is not None
    (item,) = kit.forms.view([saved.memory_id], scope=ANN)
    return kit.forms.update(item.evolve(importance="high"), scope=ANN).memory_id


@pytest.mark.parametrize("state", [add_skill, update])
def test_who_states_something_is_not_refused_because_the_background_was_faster(
    state: Callable[[MemoryKit], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The runner may summarise the statement's own block before the memory is committed."""
    with open_kit(tmp_path) as kit:
        archive = kit.context.parts().archive
        commit, seen = archive.commit, set[str]()

        def summarized_first(changes: Any) -> Any:
            if changes.operation_id not in seen:
                seen.add(changes.operation_id)
                kit.summarize(scope=ANN, close=True)
            return commit(changes)

        monkeypatch.setattr(archive, "commit", summarized_first)
        memory_id = state(kit)
        monkeypatch.undo()

        assert memory_id in {memory.memory_id for memory in kit.memories(scope=ANN)}
        assert kit.work.list(scope=ANN) == ()
        assert kit.admin.verify().healthy
