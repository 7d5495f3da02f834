"""Procedural memory (B9, B10): skills as graphs of steps, how they went, and which one was chosen, by what figures."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from remegraph.models.base import AwareTime, Json, Record, Text, Token
from remegraph.models.memories import Memory
from remegraph.models.reports import Usage

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
]

Operator = Literal["exists", "equals", "differs", "contains", "at_least", "at_most"]


class Condition(Record):
    """What code can check: a field of the facts compared with a value, or a predicate that the host registered."""

    field: Token = Field(default="", description="Dotted path into the facts, as in build.ok.")
    operator: Operator = Field(default="equals", description="How it is compared; what is not among the facts: not.")
    value: Json = Field(default=True, description="With what.")
    predicate: Token = Field(default="", description="Name of a predicate, instead of a field.")


class StepPattern(Record):
    """What a step executes: a tool, or another skill, with a template of its arguments."""

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
    domain: Token = Field(default="general", min_length=1, description="The shelf that it stands on: task:<domain>.")
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
        """Whether nobody has told how it goes: such a skill is never shared."""
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
    """What became of a trajectory."""

    outcome: Literal["new", "changed", "unchanged", "refused", "nothing"] = Field(description="What became of it.")
    skill: Skill | None = Field(default=None, description="The skill as it is now, if there is one.")
    memory: Memory | None = Field(
        default=None, description="The memory that holds it; quarantined: somebody must add it."
    )
    reason: str = Field(default="", description="Why it was refused, or there is nothing to learn.")
    usage: Usage = Field(default_factory=Usage, description="Model calls and tokens.")
