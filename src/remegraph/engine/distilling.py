"""From a run that succeeded to a skill: by rules, or as a model words it, checked against the calls that were made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from remegraph.engine.answers import SkillAnswer
from remegraph.engine.tasks import DistilTask
from remegraph.errors import InvalidAnswerError, SkillError
from remegraph.models import Skill, SkillStep
from remegraph.rules.procedures import check_skill
from remegraph.rules.templates import fits, slots
from remegraph.rules.trajectories import Call, step_of, succeeded, template_of, to_avoid

__all__ = ["read_skill", "skill_of"]


def skill_of(task: DistilTask, name: str, when_to_use: str, steps: Sequence[SkillStep]) -> Skill:
    """Return the skill that a run teaches. It has worked where the calls after which nothing comes have.

    Args:
        task: The run.
        name: Name of the skill.
        when_to_use: The situation to find it in.
        steps: From its successful calls.
    """
    followed = {name for step in steps for name in step.after}
    return Skill(
        name=name,
        task=task.task,
        when_to_use=when_to_use,
        steps=tuple(steps),
        postconditions=tuple(succeeded(step.name) for step in steps if step.name not in followed),
        avoid=to_avoid(task.run, steps),
        result_status="success",
    )


def read_skill(answer: SkillAnswer, task: DistilTask) -> Skill:
    """Read a model's answer: each step must repeat a call that was made, with its arguments or slots for them.

    Args:
        answer: The answer.
        task: The run.

    Raises:
        InvalidAnswerError: A step repeats no call, or the steps make no skill.
    """
    calls, taken, earlier = task.run.done, dict[str, str](), dict[str, Call]()
    steps: list[SkillStep] = []
    for step in answer.steps:
        if not 1 <= step.n <= len(calls):
            raise InvalidAnswerError(f"there is no call {step.n}; they are 1 to {len(calls)}.")
        call = calls[step.n - 1]
        if not fits(step.args, call.args):
            raise InvalidAnswerError(f"the args of {step.name} are not those of call {step.n}: {step.args}.")
        args = _merged(step.args, template_of(call.args, task.run.requests, earlier, taken))
        steps.append(step_of(step.name, call.tool, args, step.after))
        earlier[step.name] = call
    skill = skill_of(task, answer.name, answer.when_to_use, steps)
    try:
        check_skill(skill, {})
    except SkillError as error:
        raise InvalidAnswerError(str(error)) from error
    return skill


def _merged(theirs: Any, ours: Any) -> Any:
    """Return arguments by the model where it has slots, else by the rules: no word of a result stays."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        return {name: _merged(each, ours[name]) for name, each in theirs.items()}
    if isinstance(theirs, list) and isinstance(ours, list):
        return [_merged(each, other) for each, other in zip(theirs, ours, strict=True)]
    return theirs if slots(theirs) else ours
