"""Tool calls (R12): how each went, which result answers which and whether it is an error, and how reliable that makes a tool."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from math import ceil, sqrt
from statistics import fmean, median
from typing import Any, NamedTuple, TypeVar

from pydantic import Field

from remegraph.models.base import AwareTime, Record, Text, Token
from remegraph.models.memories import Memory
from remegraph.models.messages import Message, StoredMessage, ToolCall
from remegraph.models.scope import Partition
from remegraph.text import table

__all__ = [
    "Called",
    "Prior",
    "ToolAdvice",
    "ToolRecord",
    "ToolStats",
    "ToolWindow",
    "TypicalError",
    "call_digest",
    "called",
    "error_class",
    "error_kind",
    "error_line",
    "expected",
    "failed",
    "fitted_prior",
    "interval",
    "is_guideline",
    "joined",
    "of_own_systems",
    "outcome",
    "twin",
    "window",
    "without_values",
]


class ToolRecord(Record):
    """One tool call and how it went: reported as it happened, read from the messages by code, or both.

    Arguments and results are only in the raw messages; this has a digest of the arguments, and the first line of
    an error.
    """

    partition: Partition = Field(description="Where it lives.")
    block_id: str = Field(default="", description="The block it was read from; none where it was only heard.")
    message_id: Token = Field(default="", description="The message that asked for the call; none likewise.")
    call_id: Text = Field(description="Joins the call with its result, and what was heard with what was read.")
    tool: Text = Field(min_length=1, description="The tool.")
    digest: str = Field(default="", description="SHA-256 of tool and arguments; none of calls recorded before it was.")
    ok: bool | None = Field(description="Whether it succeeded; none where the result does not say.")
    error: Text = Field(default="", description="First line of the error, at most 200 characters.")
    seconds: float | None = Field(default=None, ge=0, description="From call to result, in seconds, if timed.")
    input_tokens: int | None = Field(default=None, ge=0, description="Tokens that the tool was sent, if it says.")
    output_tokens: int | None = Field(default=None, ge=0, description="Tokens that it gave, likewise.")
    time: AwareTime = Field(description="When it was called.")


class TypicalError(Record):
    """An error that happened once, or several times in the same way."""

    kind: Text = Field(description="The error, with a mark for each number, id, path and quoted value.")
    count: int = Field(ge=1, description="How often.")
    error: Text = Field(description="The newest of them, as it was.")
    call_id: Text = Field(description="The call that it came from.")
    message_id: str = Field(default="", description="The message that asked for that call, if it is recorded.")


class ToolWindow(Record):
    """The newest calls of a tool, in detail."""

    calls: int = Field(default=0, ge=0, description="How many they are.")
    succeeded: int = Field(default=0, ge=0, description="Calls known to have succeeded.")
    failed: int = Field(default=0, ge=0, description="Calls known to have failed.")
    low: float = Field(default=0.0, ge=0, le=1, description="The success rate is at least this (Wilson, 95 %).")
    high: float = Field(default=1.0, ge=0, le=1, description="And at most this.")
    median_seconds: float | None = Field(default=None, description="Half of the timed calls took no longer.")
    p95_seconds: float | None = Field(default=None, description="19 of 20 took no longer.")
    mean_input_tokens: float | None = Field(default=None, description="Of the calls that say.")
    mean_output_tokens: float | None = Field(default=None, description="Likewise.")
    errors: tuple[TypicalError, ...] = Field(default=(), description="What went wrong, the most frequent first.")


class ToolStats(Record):
    """Statistics of one tool, counted in SQL over its records."""

    tool: Text = Field(description="The tool.")
    calls: int = Field(ge=0, description="Recorded calls.")
    distinct: int = Field(default=0, ge=0, description="Calls that differ in their arguments.")
    succeeded: int = Field(ge=0, description="Calls known to have succeeded.")
    failed: int = Field(ge=0, description="Calls known to have failed.")
    mean_seconds: float | None = Field(default=None, description="Mean time of the timed calls, in seconds.")
    mean_input_tokens: float | None = Field(default=None, description="Mean of the calls that say.")
    mean_output_tokens: float | None = Field(default=None, description="Likewise.")
    last_error: Text = Field(default="", description="The newest error.")
    last_called: AwareTime | None = Field(default=None, description="When it was last called.")
    recent: ToolWindow = Field(default_factory=ToolWindow, description="Its newest calls.")

    @property
    def success_rate(self) -> float | None:
        """The share of successes among calls with a known outcome, 0 to 1; None without any."""
        known = self.succeeded + self.failed
        return self.succeeded / known if known else None


class ToolAdvice(Record):
    """A tool for a task: why this one, and what to watch for."""

    tool: Text = Field(description="The tool.")
    score: float = Field(
        ge=0, description="Relevance times the success to be expected, a little more for tools called often."
    )
    relevance: float = Field(ge=0, description="How well the situations that it was used in fit the task, 0 to 1.")
    failure: float = Field(ge=0, le=1, description="The error rate that is to be expected of it.")
    guideline: str = Field(description="When it works, what fails and what to pass, citing calls; 200 words at most.")
    memory_id: str = Field(description="The memory that holds the guideline, for `trace` and `explain`.")
    stats: ToolStats = Field(description="What was counted; `stats.recent.errors` is what to watch for.")

    @property
    def why(self) -> str:
        """The score in figures."""
        return f"relevance {self.relevance:.2f} x expected success {1 - self.failure:.2f}, {self.stats.calls} calls"


T = TypeVar("T")


class Called(NamedTuple):
    """A tool call in a conversation."""

    at: int
    """The place of the message that asks for it."""
    call: ToolCall
    answer: int | None
    """The place of its result; None if nothing answers it."""


def called(messages: Sequence[Message]) -> list[Called]:
    """Return the tool calls of a conversation in their order, each with its result.

    A result answers the newest message that waits for one of its id, and there the first such call: hosts use ids
    again, and some give none.
    """
    found: list[Called] = []
    waiting: defaultdict[str, list[int]] = defaultdict(list)
    for at, message in enumerate(messages):
        if message.role == "tool" and (asked := waiting[message.tool_call_id]):
            place = asked.pop()
            found[place] = found[place]._replace(answer=at)
        places = range(len(found), len(found) + len(message.tool_calls))
        found += [Called(at, call, None) for call in message.tool_calls]
        for place in reversed(places):
            waiting[found[place].call.call_id].append(place)
    return found


def of_own_systems(messages: Sequence[StoredMessage], trusted: Collection[str]) -> tuple[StoredMessage, ...]:
    """Return messages with what tools returned marked as the owner's own, where these are their systems.

    The tool is named by the call that a result answers; if that is not among the messages, by the result.
    """
    if not trusted or all(message.role != "tool" for message in messages):
        return tuple(messages)
    names = {at: message.name for at, message in enumerate(messages) if message.role == "tool"}
    names |= {answer: call.name for _, call, answer in called(messages) if answer is not None}
    return tuple(
        message.model_copy(update={"own_system": True}) if names.get(at, "") in trusted else message
        for at, message in enumerate(messages)
    )


def twin(known: Iterable[ToolRecord], new: ToolRecord) -> ToolRecord | None:
    """Return the record of the same call, if there is one.

    The same id for the same tool and arguments is the same call, unless two messages asked for it: some models start
    numbering their calls again with each answer. `known` are records of its partition with its call id.
    """
    alike = sorted(
        (each for each in known if each.digest == new.digest or (not each.digest and each.message_id)),
        key=lambda each: each.time,
    )
    unread = [each for each in alike if not each.message_id]
    if new.message_id:
        return next((each for each in alike if each.message_id == new.message_id), next(iter(unread), None))
    return next(iter(unread), alike[-1] if alike else None)


def joined(known: ToolRecord, new: ToolRecord) -> ToolRecord:
    """Return one record of two of the same call: each fills what the other lacks.

    Of a call reported twice, the newer report counts: it was tried again. Between a report and the messages, a failure
    wins, with what the messages say of it; times are those reported, as messages are often recorded all together, when
    a run is over.
    """
    first, second = (known, new) if new.message_id else (new, known)
    read = next((each for each in (new, known) if each.message_id), new)
    saw = first
    if read.message_id:
        saw = next((each for each in (first, second) if each.ok is False), first)
    if saw.ok is None:
        saw = second
    return known.evolve(
        block_id=read.block_id,
        message_id=read.message_id,
        digest=new.digest or known.digest,
        ok=saw.ok,
        error=(read.error or saw.error) if saw.ok is False else "",
        seconds=_first(first.seconds, second.seconds),
        input_tokens=_first(first.input_tokens, second.input_tokens),
        output_tokens=_first(first.output_tokens, second.output_tokens),
        time=first.time,
    )


def _first(one: T | None, other: T | None) -> T | None:
    return other if one is None else one


_LINE = 200
_SEARCHED = 2_000
_KIND = 120
"""Characters of an error, and of its kind, that are kept."""

_TRACEBACK = "Traceback (most recent call last)"

_MARKS = [
    (re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s\"'<>，。]+", re.IGNORECASE), "<url>"),
    (re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"), "<address>"),
    (re.compile(r"(?:\b[A-Za-z]:\\|(?<![\w<])~?/)[^\s\"':,，。；)）]+"), "<path>"),
    (re.compile(r"\"[^\"]*\"|'[^']*'|`[^`]*`|“[^”]*”|「[^」]*」"), "<value>"),
    (re.compile(r"(?<![A-Za-z0-9_<-])(?=[A-Za-z0-9_-]*[A-Za-z_-])(?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]+"), "<id>"),
    (re.compile(r"[-+]?[0-9]+(?:[.,:][0-9]+)*"), "<n>"),
]
"""Parts that differ between occurrences of one error, the more specific pattern first, as its match may contain others."""


def outcome(text: str, *, told: bool | None) -> bool | None:
    """Return whether a call succeeded; None if nothing came back to judge it by.

    A failure that the host reports counts. That nothing was raised is not a success if the text is that of an error:
    frameworks call every result that a tool returns a success.
    """
    if told is False or failed(text):
        return False
    return True if text.strip() else told


def failed(text: str) -> bool:
    """Return whether a result is that of an error: by how it begins, or by the fields of a JSON object."""
    start = text.strip()
    if start.startswith("{"):
        try:
            value = json.loads(start)
        except (ValueError, RecursionError):
            return False
        return isinstance(value, dict) and _reports_error(value)
    return _begins().match(start) is not None


def error_line(text: str, redact: Callable[[str], str] = str) -> str:
    """Return the line of an error that says what it is: the first, of a JSON object its error, of a traceback the last.

    `redact` takes what is private out of the line before it is cut.
    """
    start = text.strip()
    if start.startswith("{"):
        try:
            value = json.loads(start)
        except (ValueError, RecursionError):
            value = None
        said = _error_message(value) if isinstance(value, dict) else ""
        start = said or start
    line = start.rpartition("\n")[2] if start.startswith(_TRACEBACK) else start.partition("\n")[0]
    return redact(line.strip()[:_SEARCHED])[:_LINE]


def error_kind(line: str) -> str:
    """Return an error without what differs from call to call, so that equal errors count together."""
    for pattern, mark in _MARKS:
        line = pattern.sub(mark, line)
    return " ".join(line.split())[:_KIND]


def error_class(line: str) -> str:
    """Return the class of an error, one of a few, in whatever words a tool reports it; `other` if none fits."""
    return next((name for name, signs in _classes().items() if signs.search(line)), "other")


def without_values(text: str) -> str:
    """Return a text without what differs between occurrences: numbers, ids, paths and quoted text."""
    for pattern, _ in _MARKS:
        text = pattern.sub(" ", text)
    return " ".join(text.split())


def call_digest(tool: str, args: object) -> str:
    """Return the digest of a tool and its arguments, in whatever order they were given.

    What is not JSON among the arguments counts by its type.
    """
    text = json.dumps([tool, args], sort_keys=True, default=lambda value: type(value).__name__)
    return sha256(text.encode()).hexdigest()


def _reports_error(value: Mapping[str, Any]) -> bool:
    fields = _fields()
    filled = {name for name, held in value.items() if held not in (None, "", False, [], {})}
    return (
        any(name in filled for name in fields["filled"])
        or (bool(filled) and filled <= set(fields["alone"]))
        or any(value.get(name) is False for name in fields["false"])
        or any(value.get(name) is True for name in fields["true"])
        or any(str(value.get(name)).casefold() in words for name, words in fields["said"].items())
    )


def _error_message(value: Mapping[str, Any]) -> str:
    """Return the message of an object that reports an error."""
    for name in (*_fields()["filled"], *_fields()["alone"], "message", "detail"):
        held = value.get(name)
        if isinstance(held, Mapping):
            held = held.get("message") or json.dumps(held, ensure_ascii=False)
        elif isinstance(held, Sequence) and not isinstance(held, str) and held:
            held = json.dumps(held[0], ensure_ascii=False)
        if isinstance(held, str) and held.strip():
            return held.strip()
    return ""


@cache
def _begins() -> re.Pattern[str]:
    patterns = [pattern for each in table("tool_outcomes")["begins"].values() for pattern in each]
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE)


@cache
def _classes() -> Mapping[str, re.Pattern[str]]:
    return {name: re.compile(signs, re.IGNORECASE) for name, signs in table("tool_outcomes")["classes"].items()}


def _fields() -> Mapping[str, Any]:
    fields: Mapping[str, Any] = table("tool_outcomes")["fields"]
    return fields


_Z = 1.959964
"""Half of the width of an interval that holds 95 %, in standard deviations."""

_LEAST, _MOST = 0.02, 0.9
"""Bounds of the overdispersion: otherwise, few tools with few calls would look all alike, or all different."""

_UNKNOWN = 1 / 3
"""Overdispersion of a single tool, without others to compare: a prior of two calls."""


@dataclass(frozen=True, slots=True)
class Prior:
    """A beta distribution of error rates: the failures and successes assumed before the first call."""

    failures: float
    successes: float

    @property
    def weight(self) -> float:
        """The number of calls that it counts as."""
        return self.failures + self.successes

    @property
    def mean(self) -> float:
        """The error rate of a tool that was never called."""
        return self.failures / self.weight


def interval(hits: int, known: int, z: float = _Z) -> tuple[float, float]:
    """Return between which rates the true one lies with 95 %, by the score interval; 0 to 1 where nothing is known.

    E. B. Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22, 1927. `z` is half of
    its width in standard deviations, for another share than 95 %.
    """
    if not known:
        return 0.0, 1.0
    rate, spread = hits / known, z * z / known
    middle = rate + spread / 2
    reach = z * sqrt(rate * (1 - rate) / known + spread / (4 * known))
    low, high = (middle - reach) / (1 + spread), (middle + reach) / (1 + spread)
    return max(0.0, low) if hits else 0.0, min(1.0, high) if hits < known else 1.0


def fitted_prior(counts: Sequence[tuple[int, int]]) -> Prior:
    """Return the prior that fits some tools best by moments (Kleinman, 1973): the more they differ, the lower its weight.

    The counts are failures and known outcomes of each tool.
    """
    seen = [(failures, known) for failures, known in counts if known]
    total = sum(known for _, known in seen)
    mean = (sum(failures for failures, _ in seen) + 0.5) / (total + 1)  # Jeffreys: never none, never all
    spread = _UNKNOWN
    if len(seen) > 1:
        between = sum(known * (failures / known - mean) ** 2 for failures, known in seen)
        chance = mean * (1 - mean) * (len(seen) - 1)
        room = mean * (1 - mean) * (total - sum(known * known for _, known in seen) / total - (len(seen) - 1))
        spread = min(max((between - chance) / room, _LEAST), _MOST) if room > 0 else _UNKNOWN
    weight = 1 / spread - 1
    return Prior(failures=mean * weight, successes=(1 - mean) * weight)


def expected(failures: int, known: int, prior: Prior) -> float:
    """Return the expected error rate of the next call: the observed one, shrunk towards the prior."""
    return (failures + prior.failures) / (known + prior.weight)


def window(calls: Sequence[ToolRecord]) -> ToolWindow:
    """Return the summary of some calls of one tool.

    The calls come newest first.
    """
    succeeded = sum(call.ok is True for call in calls)
    failed = sum(call.ok is False for call in calls)
    low, high = interval(succeeded, succeeded + failed)
    seconds = [call.seconds for call in calls if call.seconds is not None]
    return ToolWindow(
        calls=len(calls),
        succeeded=succeeded,
        failed=failed,
        low=low,
        high=high,
        median_seconds=median(seconds) if seconds else None,
        p95_seconds=sorted(seconds)[ceil(0.95 * len(seconds)) - 1] if seconds else None,
        mean_input_tokens=_mean(call.input_tokens for call in calls),
        mean_output_tokens=_mean(call.output_tokens for call in calls),
        errors=_errors(calls),
    )


def _mean(values: Iterable[int | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _errors(calls: Sequence[ToolRecord]) -> tuple[TypicalError, ...]:
    """Return the errors by kind, the most frequent first, of these the newest; each with its newest call that can be read."""
    kinds: defaultdict[str, list[ToolRecord]] = defaultdict(list)
    for call in calls:
        if call.ok is False and call.error:
            kinds[error_kind(call.error)].append(call)
    return tuple(
        TypicalError(
            kind=kind,
            count=len(found),
            error=(cited := next((call for call in found if call.message_id), found[0])).error,
            call_id=cited.call_id,
            message_id=cited.message_id,
        )
        for kind, found in sorted(kinds.items(), key=lambda item: -len(item[1]))
    )


def is_guideline(memory: Memory) -> bool:
    """Return whether a memory is the guideline of a tool, made of counts, which no conversation changes."""
    return memory.topic.type == "tool" and "tool" in memory.payload
