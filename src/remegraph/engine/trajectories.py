"""Trajectories: successful calls of a run become the steps of a skill, and failed runs of the same task show what matters.

No word of a tool's result gets into a skill: what was taken from a result is a slot.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeVar

from remegraph.models import Avoidance, Condition, Message, Skill, SkillStep, StepPattern
from remegraph.models.skills import fits, literal
from remegraph.models.tools import called
from remegraph.text.scripts import plain

__all__ = [
    "Call",
    "Run",
    "contrasted",
    "joined",
    "name_of",
    "read_run",
    "skill_of",
    "step_of",
    "steps_of",
    "succeeded",
    "template_of",
    "to_avoid",
]


R = TypeVar("R")

_SHORTEST = 2
"""Characters of the shortest text that counts as taken from somewhere."""


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call and its outcome."""

    tool: str
    args: Any
    ok: bool
    result: str


@dataclass(frozen=True, slots=True)
class Run:
    """One attempt at a task."""

    requests: tuple[str, ...]
    """Requests of people."""
    calls: tuple[Call, ...]
    """Those that were answered, in their order."""

    @property
    def done(self) -> tuple[Call, ...]:
        """Those that did not fail; the same call twice in a row counts once."""
        done = (call for call in self.calls if call.ok)
        return tuple(next(same) for _, same in groupby(done, key=lambda call: (call.tool, call.args)))

    @property
    def failed(self) -> tuple[Call, ...]:
        """Those that failed."""
        return tuple(call for call in self.calls if not call.ok)

    @property
    def named_by_results(self) -> str:
        """The first called tool that was named by an earlier result and not by a person: this is how injected instructions look."""
        for at, call in enumerate(self.calls):
            before = self.calls[:at]
            told = any(_stands_in(call.tool, each.result) for each in before)
            asked = any(_stands_in(call.tool, request) for request in self.requests)
            if told and not asked and call.tool not in {each.tool for each in before}:
                return call.tool
        return ""


def read_run(messages: Sequence[Message]) -> Run:
    """Read the calls of an attempt from its messages; unanswered calls are left out."""
    calls = [
        Call(plain(call.name), call.args, messages[answer].ok is not False, messages[answer].text)
        for _, call, answer in called(messages)
        if answer is not None
    ]
    requests = tuple(message.text for message in messages if message.from_user and message.text)
    return Run(requests, tuple(calls))


def steps_of(run: Run) -> tuple[SkillStep, ...]:
    """Return the steps of a successful run: each comes after the one before it and those whose results it uses."""
    names, taken = _names([call.tool for call in run.done]), dict[str, str]()
    steps = []
    for at, call in enumerate(run.done):
        earlier = dict(zip(names, run.done[:at], strict=False))
        sources = {*names[max(at - 1, 0) : at], *_sources(call, run.requests, earlier)}
        after = [name for name in names if name in sources]
        steps.append(step_of(names[at], call.tool, template_of(call.args, run.requests, earlier, taken), after))
    return tuple(steps)


def step_of(name: str, tool: str, args: Any, after: Sequence[str]) -> SkillStep:
    """Return a step that is known to have worked by the success of its call."""
    return SkillStep(
        name=name,
        step_pattern=StepPattern(tool=tool, args=args),
        postconditions=(succeeded(name),),
        after=tuple(after),
    )


def succeeded(name: str) -> Condition:
    """Return the condition that the call of a step went well."""
    return Condition(field=f"{name}.ok")


def template_of(args: Any, requests: Sequence[str], earlier: Mapping[str, Call], taken: dict[str, str]) -> Any:
    """Return arguments with slots for what was taken from the person's words, or from earlier results.

    `taken` are the slots of the steps before it, with what fills them; those of this one are added.
    """

    def change(value: Any, name: str) -> Any:
        if isinstance(value, dict):
            return {key: change(each, key) for key, each in value.items()}
        if isinstance(value, list):
            return [change(each, name) for each in value]
        if any(_stands_in(value, request) for request in requests):
            return f"{{{_unique(_word(name), _text(value), taken)}}}"
        source, path = _source(value, earlier)
        if path:
            return f"{{{'.'.join((source, *path))}}}"
        return f"{{{_unique(_word(name), _text(value), taken)}}}" if source else literal(value)

    return change(args, "value")


def to_avoid(run: Run, steps: Sequence[SkillStep]) -> tuple[Avoidance, ...]:
    """Return the failed calls of a run, except those that succeeded later with the same arguments."""
    names, found = _names([call.tool for call in run.calls]), list[Avoidance]()
    for at, call in enumerate(run.calls):
        if not call.ok and not any(_does(step, call) for step in steps):
            earlier = dict(zip(names, run.calls[:at], strict=False))
            args = template_of(call.args, run.requests, earlier, {})
            found.append(Avoidance(tool=call.tool, args=args, why="failed"))
    return _both((), found)


def contrasted(skill: Skill, failed: Run) -> Skill:
    """Return a skill with what a failed run of its task teaches.

    What the failed run had left out before its failed call becomes a precondition of that step; if no
    call failed, of the last step. What only the failed run did should be avoided.
    """
    tools = {step.step_pattern.tool: step.name for step in reversed(skill.steps) if step.step_pattern}
    done = {call.tool for call in failed.done}
    broke = next((tools[call.tool] for call in failed.failed if call.tool in tools), "")
    if not failed.failed:
        broke = skill.steps[-1].name
    steps, missing = list[SkillStep](), list[Condition]()
    for step in skill.steps:
        if step.name == broke:
            steps.append(step.evolve(preconditions=_both(step.preconditions, missing)))
        else:
            steps.append(step)
        if step.step_pattern and step.step_pattern.tool not in done:
            missing.append(succeeded(step.name))
    odd = tuple(
        Avoidance(tool=tool, why="only_in_failed_runs")
        for tool in dict.fromkeys(call.tool for call in failed.done)
        if tool not in tools
    )
    return skill.evolve(steps=tuple(steps), avoid=_both(skill.avoid, (*to_avoid(failed, skill.steps), *odd)))


def joined(skill: Skill, known: Skill) -> Skill:
    """Return a skill that was learned again, with what earlier runs have taught about the same steps."""
    before = {_bare(step): step.preconditions for step in known.steps}
    steps = [step.evolve(preconditions=_both(before.get(_bare(step), ()), step.preconditions)) for step in skill.steps]
    return skill.evolve(steps=tuple(steps), avoid=_both(known.avoid, skill.avoid), source=known.source)


def name_of(task: str, run: Run) -> str:
    """Return the name of the skill that a run teaches: different calls make another variant."""
    return f"{task}: {', '.join(call.tool for call in run.done)}"


def _bare(step: SkillStep) -> str:
    return step.evolve(preconditions=()).to_json()


def _both(known: Sequence[R], new: Sequence[R]) -> tuple[R, ...]:
    found = list(known)
    for each in new:
        if each not in found:
            found.append(each)
    return tuple(found)


def _does(step: SkillStep, call: Call) -> bool:
    pattern = step.step_pattern
    return pattern is not None and pattern.tool == call.tool and fits(pattern.args, call.args)


def _sources(call: Call, requests: Sequence[str], earlier: Mapping[str, Call]) -> Iterator[str]:
    """Yield the steps whose results hold a value that no person named."""
    for value in _leaves(call.args):
        if not any(_stands_in(value, request) for request in requests):
            source, _ = _source(value, earlier)
            if source:
                yield source


def _source(value: Any, earlier: Mapping[str, Call]) -> tuple[str, tuple[str, ...]]:
    """Return the newest step whose result gives a value, and by which names; else the newest that mentions it."""
    newest_first = [*earlier.items()][::-1]
    for name, call in newest_first:
        if (path := _path(value, _json(call.result))) is not None:
            return name, path
    return next((name for name, call in newest_first if _stands_in(value, call.result)), ""), ()


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _leaves(each)
    else:
        yield value


def _text(value: Any) -> str:
    """Return a value as a text would write it; empty if it is too short or too common to identify anything."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    said = str(value).strip().casefold()
    return said if len(said) >= _SHORTEST else ""


def _stands_in(value: Any, text: str) -> bool:
    """Return whether a text holds a value as whole words."""
    said = _text(value)
    if not said:
        return False
    return re.search(rf"(?<![a-z0-9_]){re.escape(said)}(?![a-z0-9_])", text.casefold()) is not None


def _path(value: Any, result: Any) -> tuple[str, ...] | None:
    """Return the names that lead to a value in a result, if it is a mapping that holds it."""
    if not _text(value) or not isinstance(result, dict):
        return None
    for name, each in result.items():
        if _text(each) == _text(value):
            return (name,)
        if (below := _path(value, each)) is not None:
            return (name, *below)
    return None


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _unique(name: str, said: str, taken: dict[str, str]) -> str:
    """Return a name for a value: its own, with a number where another value has it."""
    number, wanted = 1, name
    while taken.setdefault(wanted, said) != said:
        number += 1
        wanted = f"{name}_{number}"
    return wanted


def _names(tools: Sequence[str]) -> list[str]:
    """Return a name for each step: its tool as one word, numbered if repeated."""
    taken: dict[str, str] = {}
    return [_unique(_word(tool), str(at), taken) for at, tool in enumerate(tools)]


def _word(text: str) -> str:
    return re.sub(r"\W+", "_", text).strip("_") or "value"


def skill_of(run: Run, steps: Sequence[SkillStep], *, task: str, name: str, when_to_use: str) -> Skill:
    """Return the skill that a run teaches. It has worked if its last calls have."""
    followed = {name for step in steps for name in step.after}
    return Skill(
        name=name,
        task=task,
        when_to_use=when_to_use,
        steps=tuple(steps),
        postconditions=tuple(succeeded(step.name) for step in steps if step.name not in followed),
        avoid=to_avoid(run, steps),
        result_status="success",
    )
