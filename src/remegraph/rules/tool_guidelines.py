"""What is said of a tool: when it works, what fails and what to pass, in 200 words at most that cite real calls."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from remegraph.models import Memory, ToolWindow
from remegraph.rules.summarising import length

__all__ = [
    "MOST_WORDS",
    "CitedError",
    "ToolFacts",
    "changed",
    "citable",
    "facts_of",
    "guideline",
    "is_guideline",
    "objection",
    "situation",
]

MOST_WORDS = 200
"""As `length` counts them."""

_CITATION = re.compile(r"\[([^\[\]]*)\]")
_CITABLE = re.compile(r"[^\s\[\]](?:[^\[\]\n\r]{0,62}[^\s\[\]])?")
_NAME_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+|[^\W\d_A-Za-z]+")
_NAMES = 8
_NAME = 60
"""Names of arguments that are told, and characters of a name."""

_TYPICAL = 3
"""Kinds of errors that a guideline tells, and whose change makes it out of date."""


@dataclass(frozen=True, slots=True)
class CitedError:
    """A kind of error, how often it came, and a call that it came from."""

    kind: str
    count: int
    call: str


@dataclass(frozen=True, slots=True)
class ToolFacts:
    """What a guideline is made from: figures, and the ids of calls. No argument's value and no result."""

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

    @property
    def citable(self) -> frozenset[str]:
        """The calls that may be cited."""
        return frozenset((*self.worked, *(each.call for each in self.errors)))


def facts_of(
    tool: str,
    window: ToolWindow,
    worked: Sequence[str],
    *,
    passed: Sequence[Collection[str]],
    lacked: Sequence[Collection[str]],
) -> ToolFacts:
    """Return what a guideline is made from. Calls that cannot be cited are left out; brackets are left to citations.

    Args:
        tool: Its name.
        window: Its newest calls.
        worked: Ids of calls that succeeded, the newest first.
        passed: The names of the arguments of calls that succeeded, as far as they are known.
        lacked: Those of calls that failed, likewise.
    """
    common = set.intersection(*map(set, passed)) if passed else set[str]()
    names = sorted(common, key=lambda name: (sum(name in each for each in lacked), name))[:_NAMES]
    return ToolFacts(
        tool=_bare(tool)[:_NAME],
        window=window,
        errors=tuple(
            CitedError(_bare(each.kind), each.count, each.call_id) for each in window.errors if citable(each.call_id)
        ),
        worked=tuple(call for call in worked if citable(call)),
        passed=tuple(_bare(name)[:_NAME] for name in names),
        lacking=tuple(_bare(name)[:_NAME] for name in names if lacked and not any(name in each for each in lacked)),
    )


def _bare(text: str) -> str:
    return text.replace("[", "(").replace("]", ")")


def citable(call_id: str) -> bool:
    """Return whether a call can be cited by its id: it is short, and no bracket or line break stands in it.

    Args:
        call_id: The id.
    """
    return _CITABLE.fullmatch(call_id) is not None


def objection(text: str, calls: Collection[str]) -> str:
    """Return what is wrong with a guideline, or nothing.

    Args:
        text: The guideline; it cites calls in brackets.
        calls: The ids that there are.
    """
    if (count := length(text)) > MOST_WORDS:
        return f"the guideline has {count} words; at most {MOST_WORDS} are allowed."
    cited = _CITATION.findall(text)
    if unknown := sorted(set(cited) - set(calls)):
        return f"there are no calls {unknown}; the calls are {sorted(calls)}."
    if calls and not cited:
        return f"the guideline cites no call; cite at least one of {sorted(calls)} in brackets, as in [{min(calls)}]."
    return ""


def guideline(facts: ToolFacts, language: Literal["en", "zh"]) -> str:
    """Return the guideline that code writes: figures, and what calls have in common.

    Args:
        facts: What is known of the tool.
        language: The language to write in.
    """
    said = list(_sentences(facts, _texts()[language]))
    while length(" ".join(said)) > MOST_WORDS and len(said) > 1:
        said.pop()  # what counts least stands last
    return " ".join(said) if language == "en" else "".join(said)


def changed(before: Mapping[str, Any], window: ToolWindow, calls: int) -> bool:
    """Return whether what a guideline told is out of date.

    It is where the rate now lies outside of what was likely then, a typical error is new, or calls have doubled.

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
        or bool({each.kind for each in window.errors[:_TYPICAL]} - set(before.get("errors", ())))
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


def _sentences(facts: ToolFacts, texts: Mapping[str, str]) -> list[str]:
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
        said.append(text.format(kind=each.kind, count=each.count, call=f"[{each.call}]"))
    if seen.median_seconds and seen.p95_seconds:
        said.append(texts["time"].format(median=seen.median_seconds, p95=seen.p95_seconds))
    return said


@cache
def _texts() -> Mapping[str, Mapping[str, str]]:
    text = (files("remegraph.rules") / "data" / "tool_guidelines.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)
