"""What is said of a tool: when it works, what fails and what to pass, in 200 words at most that cite real calls.

All of it is counted. What a tool itself says, in results and errors, gets in as a figure or as one of a few classes: its
words would be an order to every agent that reads the guideline.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from remegraph.models import Memory, ToolWindow
from remegraph.rules.summarising import length
from remegraph.rules.tables import table
from remegraph.rules.tool_outcomes import error_class

__all__ = [
    "MOST_WORDS",
    "CitedError",
    "ToolFacts",
    "changed",
    "classes",
    "facts_of",
    "guideline",
    "is_guideline",
    "situation",
]

MOST_WORDS = 200
"""As `length` counts them."""

_CITABLE = re.compile(r"[^\s\[\]](?:[^\[\]\n\r]{0,62}[^\s\[\]])?")
_ARGUMENT = re.compile(r"[\w.-]{1,60}")
_NAME_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+|[^\W\d_A-Za-z]+")
_NAMES = 8
"""Names of arguments that are told."""

_NAME = 60
"""Characters of a tool's name."""

_TYPICAL = 3
"""Classes of errors that a guideline tells, and whose change makes it out of date."""


@dataclass(frozen=True, slots=True)
class CitedError:
    """A class of errors, how often one came, and a call that one came from."""

    name: str
    count: int
    call: str


@dataclass(frozen=True, slots=True)
class ToolFacts:
    """What a guideline is made from: figures, names of arguments, and the ids of calls."""

    tool: str
    window: ToolWindow
    errors: tuple[CitedError, ...]
    """The most frequent first."""
    worked: tuple[str, ...]
    """Calls that succeeded, the newest first."""
    passed: tuple[str, ...]
    """Names of arguments that every call had that succeeded."""
    lacking: tuple[str, ...]
    """Those of them that every call lacked that failed."""


def facts_of(
    tool: str,
    window: ToolWindow,
    worked: Sequence[str],
    *,
    passed: Sequence[Collection[str]],
    lacked: Sequence[Collection[str]],
) -> ToolFacts:
    """Return what a guideline is made from. Calls that cannot be cited are left out, and arguments without a proper name.

    Args:
        tool: Its name.
        window: Its newest calls.
        worked: Ids of calls that succeeded, the newest first.
        passed: The names of the arguments of calls that succeeded, as far as they are known.
        lacked: Those of calls that failed, likewise.
    """
    common = set(filter(_ARGUMENT.fullmatch, set.intersection(*map(set, passed)) if passed else ()))
    names = sorted(common, key=lambda name: (sum(name in each for each in lacked), name))[:_NAMES]
    return ToolFacts(
        tool=tool.replace("[", "(").replace("]", ")")[:_NAME],
        window=window,
        errors=_errors(window),
        worked=tuple(filter(_CITABLE.fullmatch, worked)),
        passed=tuple(names),
        lacking=tuple(name for name in names if lacked and not any(name in each for each in lacked)),
    )


def _errors(window: ToolWindow) -> tuple[CitedError, ...]:
    """Return the errors by class, the most frequent first."""
    found: dict[str, CitedError] = {}
    for each in window.errors:
        if _CITABLE.fullmatch(each.call_id):
            name = error_class(each.error)
            first = found.get(name, CitedError(name, 0, each.call_id))
            found[name] = replace(first, count=first.count + each.count)
    return tuple(sorted(found.values(), key=lambda each: -each.count))


def classes(window: ToolWindow) -> tuple[str, ...]:
    """Return the classes of the errors that a guideline tells.

    Args:
        window: The newest calls of its tool.
    """
    return tuple(each.name for each in _errors(window)[:_TYPICAL])


def guideline(facts: ToolFacts, language: Literal["en", "zh"]) -> str:
    """Return the guideline: figures, and what calls have in common.

    Args:
        facts: What is known of the tool.
        language: The language to write in.
    """
    said = list(_sentences(facts, table("tool_guidelines")[language]))
    while length(" ".join(said)) > MOST_WORDS and len(said) > 1:
        said.pop()  # what counts least stands last
    return " ".join(said) if language == "en" else "".join(said)


def changed(before: Mapping[str, Any], window: ToolWindow, calls: int) -> bool:
    """Return whether what a guideline told is out of date.

    It is where the rate now lies outside of what was likely then, a class of errors is new, or calls have doubled.

    Args:
        before: What it was made from: `calls`, `low`, `high` and `errors`.
        window: The newest calls now.
        calls: All calls now.
    """
    known = window.succeeded + window.failed
    rate = window.succeeded / known if known else None
    return (
        calls >= 2 * before.get("calls", 0)
        or (rate is not None and not before.get("low", 0) <= rate <= before.get("high", 1))
        or not set(classes(window)) <= set(before.get("errors", ()))
    )


def is_guideline(memory: Memory) -> bool:
    """Return whether a memory is the guideline of a tool: what was counted, which no conversation changes.

    Args:
        memory: Any memory.
    """
    return memory.topic.type == "tool" and "tool" in memory.payload


def situation(tool: str, names: Sequence[str], gives: Sequence[str], asked: Sequence[str]) -> str:
    """Return the situation that a tool is for, as it is embedded: its name in words, what goes in and out, and what was asked.

    Args:
        tool: Its name.
        names: Of its arguments.
        gives: Names of what its results hold.
        asked: What persons said before it was called.
    """
    parts = [" ".join(_NAME_PART.findall(tool)).casefold() or tool, tool]
    parts += [", ".join(name.replace("_", " ") for name in some) for some in (names, gives) if some]
    return "; ".join((*parts, *asked))


def _sentences(facts: ToolFacts, texts: Mapping[str, Any]) -> list[str]:
    seen = facts.window
    known = seen.succeeded + seen.failed
    figures = {"tool": facts.tool, "calls": seen.calls, "known": known, "succeeded": seen.succeeded}
    said = [texts["rate" if known else "unknown"].format(**figures, low=seen.low, high=seen.high)]
    if facts.worked:
        said.append(texts["works"].format(calls=" ".join(f"[{call}]" for call in facts.worked[:2])))
    if facts.passed:
        said.append(texts["passed"].format(names=texts["comma"].join(facts.passed)))
    if facts.lacking:
        said.append(texts["lacking"].format(names=texts["comma"].join(facts.lacking)))
    for each in facts.errors[:_TYPICAL]:
        text = texts["fails" if each.count > 1 else "once"]
        said.append(text.format(error=texts["errors"][each.name], count=each.count, call=f"[{each.call}]"))
    if seen.median_seconds and seen.p95_seconds:
        said.append(texts["time"].format(median=seen.median_seconds, p95=seen.p95_seconds))
    return said
