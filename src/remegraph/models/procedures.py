"""Skills as graphs: what makes one executable and checkable, in which order its steps go, and how it is kept."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any

from remegraph.errors import SkillError
from remegraph.models import Condition, Memory, Skill, SkillStep, StepPattern, ToolCall
from remegraph.text.scripts import plain

__all__ = [
    "check_skill",
    "filled",
    "fits",
    "is_skill",
    "literal",
    "ordered",
    "planned",
    "read_payload",
    "read_workflow",
    "same_procedure",
    "slots",
    "told",
    "workflow",
]


_MARK = re.compile(r"(\{\{|\}\}|\{[^{}]+\})")
_BRACES = {"{{": "{", "}}": "}"}


def slots(template: Any) -> tuple[str, ...]:
    """Return the names of the slots of a template, in their order."""
    found: dict[str, None] = {}

    def note(text: str) -> str:
        found.update(dict.fromkeys(name for part in _MARK.split(text) if (name := _slot(part))))
        return text

    _mapped(template, note)
    return tuple(found)


def filled(template: Any, values: Mapping[str, Any]) -> Any:
    """Return a template with its slots filled in; a text that is one slot becomes the value itself.

    A slot without a value stays as it is.
    """

    def fill(text: str) -> Any:
        parts = [part for part in _MARK.split(text) if part]
        if len(parts) == 1 and _slot(parts[0]) in values:
            return values[_slot(parts[0])]
        return "".join(str(values.get(_slot(part), _BRACES.get(part, part))) for part in parts)

    return _mapped(template, fill)


def literal(value: Any) -> Any:
    """Return the template that stands for a value to the letter."""
    return _mapped(value, lambda text: text.replace("{", "{{").replace("}", "}}"))


def fits(template: Any, value: Any) -> bool:
    """Return whether a value is what a template becomes with some texts in its slots."""
    if isinstance(template, str):
        parts = [part for part in _MARK.split(template) if part]
        if len(parts) == 1 and _slot(parts[0]):
            return True
        return isinstance(value, str) and _fits(parts, value)
    if isinstance(template, dict) and isinstance(value, dict):
        return template.keys() == value.keys() and all(fits(template[name], value[name]) for name in template)
    if isinstance(template, list) and isinstance(value, list):
        return len(template) == len(value) and all(map(fits, template, value))
    return type(template) is type(value) and bool(template == value)


def _fits(parts: Sequence[str], value: str) -> bool:
    """Look for the fixed texts one after the other: what lies between them fills the slots, and is never empty."""
    fixed = [""]
    for part in parts:
        if _slot(part):
            fixed.append("")
        else:
            fixed[-1] += _BRACES.get(part, part)
    if len(fixed) == 1:
        return value == fixed[0]
    if not value.startswith(fixed[0]):
        return False
    at = len(fixed[0])
    for text in fixed[1:-1]:
        at = value.find(text, at + 1) + len(text)
        if at < len(text):
            return False
    return len(value) - len(fixed[-1]) > at and value.endswith(fixed[-1])


def _slot(part: str) -> str:
    """Return the name of the slot that a part of a text is, or nothing."""
    return part[1:-1] if part.startswith("{") and part not in _BRACES and len(part) > 1 else ""


def _mapped(value: Any, change: Callable[[str], Any]) -> Any:
    """Return JSON with each text in it changed; names stay as they are."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {name: _mapped(each, change) for name, each in value.items()}
    if isinstance(value, list):
        return [_mapped(each, change) for each in value]
    return value


_ONE_WORD = re.compile(r"[\w-]+")
_TOOL = re.compile(r"[^\s,;!?，；。！？、]+")
"""The name of a tool: a sentence is none."""

_NAME_A_CALL = "Give each step a step_pattern with the tool or the skill that it calls."
_EXECUTABLE = StepPattern()


def check_skill(skill: Skill, known: Mapping[str, Skill]) -> None:
    """Refuse a skill that nobody could execute or check.

    Raises:
        SkillError: It is one; says why.
    """
    for name, value in (("name", skill.name), ("task", skill.task), ("domain", skill.domain)):
        if not value.strip():
            raise SkillError(f"The {name} of the skill is empty.", "Say it in words.")
    if not skill.steps:
        raise SkillError(f"The skill {skill.name!r} has no steps.", _NAME_A_CALL)
    for step in skill.steps:
        _check_step(step)
    if not skill.postconditions:
        raise SkillError(
            f"Nothing tells whether the skill {skill.name!r} has worked.",
            'Give a postcondition that code can check, as Condition(field="build.ok").',
        )
    for condition in _conditions(skill):
        if bool(condition.field) == bool(condition.predicate):
            raise SkillError("A condition has neither field nor predicate, or both.", "Give one of the two.")
    _check_graph(skill)
    _check_results(skill)
    _check_calls(skill, known)


def ordered(skill: Skill) -> list[SkillStep]:
    """Return the steps so that each comes after those that it names."""
    steps = {step.name: step for step in skill.steps}
    return [steps[name] for name in TopologicalSorter({step.name: step.after for step in skill.steps}).static_order()]


def planned(
    skill: Skill, known: Mapping[str, Skill], values: Mapping[str, Any], within: str = ""
) -> Iterator[ToolCall]:
    """Yield the calls of a skill, those of the skills that it calls included; `call_id` names the step.

    `known` are the skills that it may call, by name. A slot without a value, as one that a result fills, stays as it
    is. `within` are the steps that call it, each with a dot behind it.

    Raises:
        SkillError: A skill that it calls is no longer there, or calls it in turn.
    """
    _check_calls(skill, known)
    for step in ordered(skill):
        pattern = step.step_pattern or _EXECUTABLE
        results = {slot: f"{{{within}{slot}}}" for slot in slots(pattern.args) if "." in slot}
        args = filled(pattern.args, {**results, **values})
        if pattern.tool:
            yield ToolCall(name=pattern.tool, args=args, call_id=f"{within}{step.name}")
        else:
            yield from planned(known[pattern.skill], known, args, f"{within}{step.name}.")


def same_procedure(one: Skill, other: Skill) -> bool:
    """Return whether two skills do the same: then what is known of the one holds for the other."""
    return (one.steps, one.preconditions, one.postconditions) == (
        other.steps,
        other.preconditions,
        other.postconditions,
    )


def told(skill: Skill) -> str:
    """Return a skill as recall shows it."""
    calls = (
        f"{number}. {step.name}: {_call(step.step_pattern or _EXECUTABLE)}"
        for number, step in enumerate(ordered(skill), start=1)
    )
    head = skill.name if skill.task in skill.name else f"{skill.task} [{skill.name}]"
    return plain(f"{head}: {' '.join(calls)}")


def workflow(skill: Skill) -> dict[str, Any]:
    """Return a skill as the content of a workflow memory (MEK, 2.4.1), with what MEK has no place for beside it."""
    steps = [
        {
            "name": step.name,
            "description": step.description,
            "details": step.model_dump(mode="json", exclude={"name", "description"}),
        }
        for step in skill.steps
    ]
    rest = skill.model_dump(mode="json", include={"preconditions", "postconditions", "avoid", "when_to_use", "version"})
    return {
        "task_description": skill.task,
        "workflow_name": skill.name,
        "steps": steps,
        "result_status": skill.result_status,
        "domain": skill.domain,
        "source_info": skill.source.model_dump(mode="json"),
        **rest,
    }


def is_skill(memory: Memory) -> bool:
    """Return whether a memory holds a skill."""
    return memory.layer == "procedural" and isinstance(memory.payload, dict) and "workflow_name" in memory.payload


def read_workflow(memory: Memory) -> Skill:
    """Return the skill that a memory holds: what `workflow` was given."""
    return read_payload(memory.payload)


def read_payload(payload: Mapping[str, Any]) -> Skill:
    """Return the skill of which `workflow` made a payload.

    Raises:
        pydantic.ValidationError: It is no skill.
    """
    kept = dict(payload)
    steps = [
        {"name": step["name"], "description": step["description"], **step["details"]} for step in kept.pop("steps")
    ]
    return Skill.model_validate(
        {
            "name": kept.pop("workflow_name"),
            "task": kept.pop("task_description"),
            "source": kept.pop("source_info"),
            "steps": steps,
            **kept,
        }
    )


def _check_step(step: SkillStep) -> None:
    pattern = step.step_pattern
    if _ONE_WORD.fullmatch(step.name) is None:
        raise SkillError(f"The step {step.name!r} has no name of one word.", "Name it as build or find_order.")
    if pattern is None or bool(pattern.tool) == bool(pattern.skill):
        raise SkillError(f"Nothing can execute the step {step.name!r}: it is mere words.", _NAME_A_CALL)
    if pattern.tool and _TOOL.fullmatch(pattern.tool) is None:
        raise SkillError(f"The step {step.name!r} calls {pattern.tool!r}, which is a sentence, no tool.", _NAME_A_CALL)
    if not isinstance(pattern.args, dict):
        raise SkillError(f"The arguments of the step {step.name!r} have no names.", "Give them as a mapping.")


def _conditions(skill: Skill) -> Iterator[Condition]:
    yield from (*skill.preconditions, *skill.postconditions)
    for step in skill.steps:
        yield from (*step.preconditions, *step.postconditions)


def _check_graph(skill: Skill) -> None:
    """Check that the steps are one graph without a circle."""
    names = [step.name for step in skill.steps]
    if len(set(names)) < len(names):
        raise SkillError(f"Two steps of {skill.name!r} have one name.", "Give each a name of its own.")
    for step in skill.steps:
        if unknown := sorted(set(step.after) - set(names)):
            raise SkillError(f"The step {step.name!r} comes after {unknown[0]!r}, which is no step.", "Name its steps.")
    _check_no_circle({step.name: step.after for step in skill.steps}, "step")
    reached = {names[0]}
    edges = [{step.name, before} for step in skill.steps for before in step.after]
    for _ in names:
        reached.update(*(edge for edge in edges if edge & reached))
    if apart := [name for name in names if name not in reached]:
        raise SkillError(
            f"The step {apart[0]!r} has nothing to do with {names[0]!r}.",
            "Say with `after` which steps follow which; what never meets is two skills.",
        )


def _check_results(skill: Skill) -> None:
    """Check that what a step takes from a result, an earlier step gives."""
    before: dict[str, set[str]] = {}
    for step in ordered(skill):
        before[step.name] = {each for name in step.after for each in (name, *before[name])}
        for slot in slots((step.step_pattern or _EXECUTABLE).args):
            source, dot, _ = slot.partition(".")
            if dot and source not in before[step.name]:
                raise SkillError(
                    f"The step {step.name!r} needs {{{slot}}}, but does not come after a step {source!r}.",
                    "Name the steps whose results it needs in `after`.",
                )


def _check_calls(skill: Skill, known: Mapping[str, Skill]) -> None:
    """Check that the skills that it calls are there, get what they need, and do not call it in turn."""
    known = {**known, skill.name: skill}
    for step in skill.steps:
        pattern = step.step_pattern or _EXECUTABLE
        if not pattern.skill:
            continue
        if pattern.skill not in known:
            raise SkillError(
                f"The step {step.name!r} calls the skill {pattern.skill!r}, which is not here.", "Add it first."
            )
        if missing := sorted(_needed(known[pattern.skill]) - pattern.args.keys()):
            raise SkillError(
                f"The step {step.name!r} calls {pattern.skill!r} without {missing[0]!r}.", "Give it in its args."
            )
    _check_no_circle({name: _called(each) for name, each in known.items()}, "skill")


def _called(skill: Skill) -> tuple[str, ...]:
    return tuple(step.step_pattern.skill for step in skill.steps if step.step_pattern and step.step_pattern.skill)


def _needed(skill: Skill) -> set[str]:
    """Return the slots that a caller fills in."""
    found = {slot for step in skill.steps for slot in slots((step.step_pattern or _EXECUTABLE).args)}
    return {slot for slot in found if "." not in slot}


def _check_no_circle(graph: Mapping[str, tuple[str, ...]], what: str) -> None:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        circle = " → ".join(error.args[1])
        raise SkillError(f"A {what} waits for itself: {circle}.", "Take one of them out of the circle.") from error


def _call(pattern: StepPattern) -> str:
    args = ", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in pattern.args.items())
    return f"{pattern.tool or pattern.skill}({args})"
