"""Procedural memory (B9, B10): skills as graphs of steps, what makes one executable and checkable, how each went, and how it is kept."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any, Literal

from pydantic import Field

from remegraph.errors import SkillError
from remegraph.models.base import AwareTime, Json, Record, Text, Token
from remegraph.models.memories import Memory
from remegraph.models.messages import ToolCall
from remegraph.models.reports import Usage
from remegraph.text.scripts import plain

__all__ = [
    "Avoidance",
    "Condition",
    "Learned",
    "Skill",
    "SkillChoice",
    "SkillFigures",
    "SkillOutcome",
    "SkillSource",
    "SkillStep",
    "StepPattern",
    "check_skill",
    "filled",
    "fits",
    "is_skill",
    "literal",
    "ordered",
    "planned",
    "read_payload",
    "read_workflow",
    "recall_text",
    "same_procedure",
    "slots",
    "workflow",
]

Operator = Literal["exists", "equals", "differs", "contains", "at_least", "at_most"]


class Condition(Record):
    """A condition that code can check: a field of the facts compared with a value, or a predicate that the host registered."""

    field: Token = Field(default="", description="Dotted path into the facts, as in build.ok.")
    operator: Operator = Field(default="equals", description="How it is compared; what is not among the facts: not.")
    value: Json = Field(default=True, description="With what.")
    predicate: Token = Field(default="", description="Name of a predicate, instead of a field.")


class StepPattern(Record):
    """The action of a step: a tool, or another skill, with a template of its arguments."""

    tool: Token = Field(default="", description="The tool.")
    skill: Token = Field(default="", description="The skill, by its name, instead of a tool.")
    args: Json = Field(
        default_factory=dict,
        description="Arguments. {city} in a text is filled in by the caller, {search.id} from the result of the step "
        "search; a brace that means itself is doubled.",
    )


class SkillStep(Record):
    """A node of a skill."""

    name: Token = Field(min_length=1, description="Its name in the skill, one word.")
    step_pattern: StepPattern | None = Field(
        default=None, description="What it executes; without it a skill is refused."
    )
    description: Text = Field(default="", description="What it is for, in words.")
    preconditions: tuple[Condition, ...] = Field(default=(), description="What must hold before it.")
    postconditions: tuple[Condition, ...] = Field(default=(), description="What must hold after it.")
    after: tuple[str, ...] = Field(default=(), description="The steps that come before it.")


class Avoidance(Record):
    """A call that a failed attempt made, and a successful one did not."""

    tool: Token = Field(description="The tool.")
    args: Json = Field(default_factory=dict, description="Its arguments, as a template.")
    why: Literal["failed", "only_in_failed_runs"] = Field(description="What speaks against it.")


class SkillSource(Record):
    """Where a skill comes from, in the terms of MEK, section 2.4.1."""

    source_type: Literal["stated", "trajectory", "absorbed_knowledge"] = Field(
        default="stated", description="Stated outright, learned from a run, or given by another agent."
    )
    session_id: Token = Field(default="", description="The thread that it was learned from.")
    source_agent: Token = Field(default="", description="The agent that learned it.")


class Skill(Record):
    """How something is done: steps that can be executed, and conditions that can be checked."""

    name: Token = Field(min_length=1, description="Its name; stating it again makes a new version.")
    task: Token = Field(
        min_length=1, description="What it does. Skills of one task are variants, one of which is chosen."
    )
    when_to_use: Token = Field(default="", description="The situation to find it in; the task unless given.")
    domain: Token = Field(default="general", min_length=1, description="Its topic: task:<domain>.")
    steps: tuple[SkillStep, ...] = Field(default=(), description="Its steps; `after` makes a graph of them.")
    preconditions: tuple[Condition, ...] = Field(default=(), description="What must hold before it.")
    postconditions: tuple[Condition, ...] = Field(default=(), description="By what its success is known.")
    avoid: tuple[Avoidance, ...] = Field(default=(), description="What failed attempts did.")
    result_status: Literal["success", "failed", "unknown"] = Field(
        default="unknown", description="How the run ended that it comes from."
    )
    source: SkillSource = Field(default_factory=SkillSource, description="Where it comes from.")
    version: int = Field(default=1, ge=1, description="Set by the kit; grows where steps or conditions change.")


class SkillOutcome(Record):
    """How one run of a skill went. Outcomes are appended, and never change."""

    memory_id: Token = Field(description="The skill.")
    version: int = Field(ge=1, description="Its version.")
    run_id: Token = Field(min_length=1, description="The run: it counts once.")
    ok: bool = Field(strict=True, description="Whether it reached what it is for.")
    at: AwareTime = Field(description="When.")
    seconds: float | None = Field(default=None, ge=0, allow_inf_nan=False, description="How long it took, if known.")
    tokens: int | None = Field(default=None, ge=0, le=2**53, description="What it cost, if known.")


class SkillFigures(Record):
    """How one version of a skill has gone so far: counted from its outcomes."""

    memory_id: str = Field(description="The skill.")
    name: str = Field(description="Its name.")
    version: int = Field(ge=1, description="Its version.")
    runs: int = Field(default=0, ge=0, description="Outcomes of this version.")
    successes: int = Field(default=0, ge=0, description="How many of them were successes.")
    lower: float = Field(default=0.0, ge=0, le=1, description="Lower bound of its success rate (Wilson).")
    upper: float = Field(default=1.0, ge=0, le=1, description="Upper bound of its success rate (Wilson).")
    seconds: float | None = Field(default=None, description="Mean duration of the timed runs.")
    tokens: float | None = Field(default=None, description="Mean cost of the runs whose cost is known.")

    @property
    def success_rate(self) -> float | None:
        """Successes among its runs; none without runs."""
        return self.successes / self.runs if self.runs else None

    @property
    def candidate(self) -> bool:
        """Whether no outcome is known; such a skill is never shared."""
        return self.runs == 0


class SkillChoice(Record):
    """The skill for a task, and why this one."""

    skill: Skill = Field(description="The skill.")
    figures: SkillFigures = Field(description="How it has gone so far.")
    how: Literal["only", "trial", "bound"] = Field(
        description="only: there is no other; trial: too few runs to tell; bound: by the lower bound."
    )
    why: str = Field(description="The rule, with its figures.")
    others: tuple[SkillFigures, ...] = Field(default=(), description="The other variants, by their ids.")
    left_out: dict[str, str] = Field(default_factory=dict, description="Variants that cannot be used now, and why.")


class Learned(Record):
    """Outcome of learning from a trajectory."""

    outcome: Literal["new", "changed", "unchanged", "refused", "nothing"] = Field(description="What became of it.")
    skill: Skill | None = Field(default=None, description="The skill as it is now, if there is one.")
    memory: Memory | None = Field(
        default=None, description="The memory that holds it; quarantined: it waits for approval."
    )
    reason: str = Field(default="", description="Why it was refused, or there is nothing to learn.")
    usage: Usage = Field(default_factory=Usage, description="Model calls and tokens.")


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
    """Return the template that stands for a value literally."""
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
    """Find the fixed texts one after the other: what is between them fills the slots, and is never empty."""
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
"""The name of a tool, which is not a sentence."""

_NAME_A_CALL = "Give each step a step_pattern with the tool or the skill that it calls."
_EXECUTABLE = StepPattern()


def check_skill(skill: Skill, known: Mapping[str, Skill]) -> None:
    """Refuse a skill that cannot be executed or checked.

    Raises:
        SkillError: The skill is refused; the message says why.
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
            f"Nothing shows whether the skill {skill.name!r} has worked.",
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

    `known` are the skills that it may call, by name. A slot without a value, such as one that a result fills, stays as
    it is. `within` are the steps that call it, each with a dot behind it.

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
    """Return whether two skills do the same, so that outcomes of one count for the other."""
    return (one.steps, one.preconditions, one.postconditions) == (
        other.steps,
        other.preconditions,
        other.postconditions,
    )


def recall_text(skill: Skill) -> str:
    """Return a skill as recall shows it."""
    calls = (
        f"{number}. {step.name}: {_call(step.step_pattern or _EXECUTABLE)}"
        for number, step in enumerate(ordered(skill), start=1)
    )
    head = skill.name if skill.task in skill.name else f"{skill.task} [{skill.name}]"
    return plain(f"{head}: {' '.join(calls)}")


def workflow(skill: Skill) -> dict[str, Any]:
    """Return a skill as the content of a workflow memory (MEK, 2.4.1), and beside it what MEK has no place for."""
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
        pydantic.ValidationError: It is not a skill.
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
            raise SkillError(
                f"The step {step.name!r} comes after {unknown[0]!r}, which is not a step.", "Name its steps."
            )
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
    """Check that an earlier step produces what a step takes from a result."""
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
