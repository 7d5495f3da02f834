"""Guidelines of tools: from the newest calls to one memory for each tool, rewritten where it is out of date.

Figures, and what calls have in common. No model is asked: it would know no more than these figures, unless it read what
tools say. Those words are only evidence: in a guideline they would be an order to every agent that reads it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from remegraph.engine.frame import shows_recalled
from remegraph.engine.proposals import COUNTED_TRUST
from remegraph.engine.routes import as_known, tool_topic
from remegraph.engine.statements import Stated, closing, state
from remegraph.errors import ConflictError
from remegraph.models import (
    ChangeSet,
    Evidence,
    Memory,
    MemoryChange,
    Partition,
    Shelf,
    Status,
    StoredMessage,
    ToolCall,
    ToolRecord,
    ToolRefresh,
    ToolStats,
    ToolWindow,
)
from remegraph.models.base import operation_id
from remegraph.models.quotes import find_quote
from remegraph.models.tools import called, error_class
from remegraph.ports import Clock
from remegraph.settings import ToolPolicy
from remegraph.text import table
from remegraph.text.scripts import language_of, plain
from remegraph.text.sentences import length, summary_of

if TYPE_CHECKING:
    from remegraph.ledger.archive import Archive

__all__ = [
    "ACTOR",
    "MOST_WORDS",
    "CitedError",
    "Guide",
    "ToolFacts",
    "changed",
    "classes",
    "facts_of",
    "guideline",
    "guideline_id",
    "situation",
]


ACTOR = "tools"
_EXTRACTOR = "extractive"

_OURS: frozenset[Status] = frozenset({"active", "low_priority", "archived"})
"""Statuses of guidelines that are rewritten; one that a person took back stays away."""

_ASKED = 3
_ASKED_CHARACTERS = 100
_GIVES = 12
"""The embedded part of the situations that a tool was used in: words of persons, and names of what its results hold."""

_QUOTE = 200
"""Characters of a result that are quoted; a word is not cut."""

_FIELD = re.compile(r"[a-z][A-Za-z_]{1,30}")
"""A name, not a value used as a key: `payment_methods`, not `JFK` or `credit_card_4421486`."""

_ATTEMPTS = 3
"""How often others may come first, such as the background with a block that was just stated."""

_CUT_WORD = re.compile(r"[^\W_]+$")


@dataclass(frozen=True, slots=True)
class _Read:
    """A call with its messages."""

    record: ToolRecord
    asked: ToolCall
    answer: StoredMessage | None
    person: StoredMessage | None
    """Who spoke last before it."""

    @property
    def names(self) -> Sequence[str]:
        """The names of its arguments."""
        return tuple(self.asked.args) if isinstance(self.asked.args, dict) else ()

    @property
    def gives(self) -> Sequence[str]:
        """The names of what its result holds."""
        try:
            value = json.loads(self.answer.text) if self.answer and self.record.ok else None
        except (ValueError, RecursionError):
            return ()
        while isinstance(value, list) and value:
            value = value[0]
        return tuple(filter(_FIELD.fullmatch, value)) if isinstance(value, dict) else ()

    @property
    def evidence(self) -> Evidence | None:
        """The first words of its result."""
        if self.answer is None:
            return None
        line = self.answer.text.strip().partition("\n")[0].strip()
        words = line if len(line) <= _QUOTE else _CUT_WORD.sub("", line[:_QUOTE])
        if find_quote(words, self.answer.text) is None:
            return None
        return Evidence(message_id=self.answer.message_id, quote=words, block_id=self.record.block_id)


@dataclass(frozen=True, slots=True)
class _Draft:
    """A guideline to be written."""

    stats: ToolStats
    facts: ToolFacts
    read: Sequence[_Read]
    newest: ToolRecord
    head: Memory | None

    @property
    def asked(self) -> Sequence[str]:
        """Words of persons before calls, the newest first."""
        said = (each.person.text.strip().partition("\n")[0] for each in self.read if each.person is not None)
        return tuple(dict.fromkeys(plain(text)[:_ASKED_CHARACTERS] for text in said if text))[:_ASKED]


def guideline_id(partition: Partition, tool: str) -> str:
    """Return the id of the memory that holds the guideline of a tool."""
    return operation_id("guideline", partition.to_json(), tool)


@dataclass(frozen=True, slots=True)
class Guide:
    """Keeps the guidelines of tools."""

    archive: Archive
    clock: Clock
    policy: ToolPolicy
    recipe: str

    def refresh(self, partitions: Sequence[Partition], tools: Sequence[str] | None = None) -> ToolRefresh:
        """Write the guidelines that are new or out of date."""
        written: list[Memory] = []
        unchanged: list[str] = []
        for partition in partitions:
            for stats in self.archive.tool_stats([partition], tools, last=self.policy.last):
                draft = self._draft(partition, stats)
                memory = None if draft is None else self._settled(draft)
                if memory is None:
                    unchanged.append(stats.tool)
                else:
                    written.append(memory)
        return ToolRefresh(written=tuple(written), unchanged=tuple(unchanged))

    def _draft(self, partition: Partition, stats: ToolStats) -> _Draft | None:
        """Return what to write about a tool; None if that exists already, or a person took it back."""
        recent = stats.recent
        found = self.archive.memories([partition], ids=[guideline_id(partition, stats.tool)])
        head = found[0] if found else None
        if head is not None and (head.status not in _OURS or head.usage == "knowledge"):
            return None
        if not recent.succeeded + recent.failed or (head and not changed(head.payload, recent, stats.calls)):
            return None
        calls = self.archive.tool_calls([partition], [stats.tool], last=self.policy.last)
        cited = {(each.call_id, each.message_id) for each in recent.errors}
        first = [call for call in calls if (call.call_id, call.message_id) in cited]
        chosen = [*first, *(call for call in calls if call not in first)][: self.policy.cited]
        read = self._read(partition, [call for call in chosen if call.message_id])
        facts = facts_of(
            plain(stats.tool),
            recent,
            [call.call_id for call in sorted(chosen, key=_readable_first) if call.ok],
            passed=[each.names for each in read if each.record.ok],
            lacked=[each.names for each in read if each.record.ok is False],
        )
        return _Draft(stats, facts, read, calls[0], head)

    def _read(self, partition: Partition, calls: Sequence[ToolRecord]) -> list[_Read]:
        """Return calls with their messages, as far as their blocks hold them."""
        blocks = self.archive.blocks([partition], ids=list(dict.fromkeys(call.block_id for call in calls)))
        messages = {
            block.block_id: self.archive.messages(
                [partition], thread=block.thread, first_seq=block.first_seq, last_seq=block.last_seq
            )
            for block in blocks
        }
        read = (_read_call(call, messages.get(call.block_id, ())) for call in calls)
        return [each for each in read if each is not None]

    def _settled(self, draft: _Draft) -> Memory | None:
        """Write a guideline; None if another call was first: its guideline is just as new."""
        latest: _Draft | None = draft
        for _ in range(_ATTEMPTS):
            if latest is None:
                break
            try:
                return self._write(latest)
            except ConflictError:
                latest = self._draft(draft.newest.partition, draft.stats)
        return None

    def _write(self, draft: _Draft) -> Memory:
        memory = self._memory(draft)
        version = memory.version
        evidence = _evidence(draft.read, memory.content)
        stated = None if evidence else self._state(memory)
        if stated is not None:
            evidence = (stated.evidence,)
        summaries, work = closing(self.archive, stated, self.recipe) if stated else ((), ())
        memory = memory.evolve(evidence=evidence, block_ids=tuple(dict.fromkeys(each.block_id for each in evidence)))
        self.archive.commit(
            ChangeSet(
                operation_id=operation_id("guide", memory.memory_id, version),
                actor=ACTOR,
                recorded_at=memory.recorded_at,
                at_home=True,
                shelves=(Shelf(partition=memory.partition, topic=memory.topic),),
                changes=(
                    MemoryChange(
                        memory=memory,
                        expected_version=version - 1,
                        action="refine" if draft.head else "create",
                        reason=f"{draft.stats.recent.succeeded} of {draft.stats.recent.calls} calls succeeded",
                    ),
                ),
                summaries=summaries,
                work=work,
            )
        )
        return memory

    def _memory(self, draft: _Draft) -> Memory:
        stats, partition = draft.stats, draft.newest.partition
        language = language_of(" ".join(draft.asked))
        text = plain(guideline(draft.facts, language))
        new = tool_topic(plain(stats.tool))
        topic = draft.head.topic if draft.head else as_known(new, self.archive.topics([partition]))
        names = tuple(dict.fromkeys(name for each in draft.read for name in each.names))
        gives = tuple(dict.fromkeys(name for each in draft.read for name in each.gives))[:_GIVES]
        return Memory(
            memory_id=guideline_id(partition, stats.tool),
            version=draft.head.version + 1 if draft.head else 1,
            partition=partition,
            topic=topic,
            content=text,
            summary=summary_of(text),
            when_to_use=plain(situation(stats.tool, names, gives, draft.asked)),
            kind="workflow",
            payload={
                "tool": stats.tool,
                "calls": stats.calls,
                "low": stats.recent.low,
                "high": stats.recent.high,
                "errors": classes(stats.recent),
            },
            canonical_topic=f"{topic.target}:guideline",
            layer="long_term",
            importance=draft.head.importance if draft.head else 0.5,
            resident=draft.head.resident if draft.head else None,
            tags=draft.head.tags if draft.head else (),
            language=language,
            trust=COUNTED_TRUST,
            extractor=_EXTRACTOR,
            said_at=draft.newest.time,
            recorded_at=self.clock(),
        )

    def _state(self, memory: Memory) -> Stated:
        """Record the counts as a message: the calls were only reported, so no message holds them."""
        return state(
            self.archive,
            self.clock,
            memory.partition,
            memory.content,
            statement_id=operation_id("counted", memory.memory_id, memory.version),
            role="system",
            actor=ACTOR,
            recipe=self.recipe,
        )


def _readable_first(call: ToolRecord) -> bool:
    return not call.message_id


def _read_call(call: ToolRecord, messages: Sequence[StoredMessage]) -> _Read | None:
    place = call.message_id, call.call_id
    found = (each for each in called(messages) if (messages[each.at].message_id, each.call.call_id) == place)
    at, asked, answer = next(found, (0, None, None))
    if asked is None:
        return None
    said = (each for each in reversed(messages[:at]) if each.from_user and not shows_recalled(each))
    return _Read(call, asked, None if answer is None else messages[answer], next(said, None))


def _evidence(read: Sequence[_Read], text: str) -> tuple[Evidence, ...]:
    """Return the results of the calls that a guideline cites, or if it cites none, of those that it is made from."""
    found = [(each, each.evidence) for each in read]
    cited = [evidence for each, evidence in found if evidence and f"[{each.record.call_id}]" in text]
    return tuple(dict.fromkeys(cited or [evidence for _, evidence in found if evidence]))


MOST_WORDS = 200
"""As `length` counts them."""

_CITABLE = re.compile(r"[^\s\[\]](?:[^\[\]\n\r]{0,62}[^\s\[\]])?")
_ARGUMENT = re.compile(r"[\w.-]{1,60}")
_NAME_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+|[^\W\d_A-Za-z]+")
_NAMES = 8
"""Names of arguments that are listed."""

_NAME = 60
"""Characters of a tool's name."""

_TYPICAL = 3
"""Classes of errors that a guideline lists, and whose change makes it out of date."""


@dataclass(frozen=True, slots=True)
class CitedError:
    """A class of errors, how often it occurred, and a call in which it did."""

    name: str
    count: int
    call: str


@dataclass(frozen=True, slots=True)
class ToolFacts:
    """Material of a guideline: figures, names of arguments, and the ids of calls."""

    tool: str
    window: ToolWindow
    errors: tuple[CitedError, ...]
    """The most frequent first."""
    worked: tuple[str, ...]
    """Calls that succeeded, the newest first."""
    passed: tuple[str, ...]
    """Names of arguments that every successful call had."""
    lacking: tuple[str, ...]
    """Those of them that every failed call lacked."""


def facts_of(
    tool: str,
    window: ToolWindow,
    worked: Sequence[str],
    *,
    passed: Sequence[Collection[str]],
    lacked: Sequence[Collection[str]],
) -> ToolFacts:
    """Return what a guideline is made from. Calls that cannot be cited are left out, and arguments without a proper name.

    `passed` are the names of the arguments of calls that succeeded, as far as they are known, `lacked` of calls that
    failed.
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
    """Return the classes of the errors that a guideline lists."""
    return tuple(each.name for each in _errors(window)[:_TYPICAL])


def guideline(facts: ToolFacts, language: Literal["en", "zh"]) -> str:
    """Return the guideline: figures, and what calls have in common."""
    said = list(_sentences(facts, table("tool_guidelines")[language]))
    while length(" ".join(said)) > MOST_WORDS and len(said) > 1:
        said.pop()  # the least important comes last
    return " ".join(said) if language == "en" else "".join(said)


def changed(before: Mapping[str, Any], window: ToolWindow, calls: int) -> bool:
    """Return whether a guideline is out of date.

    It is if the rate is now outside of what was likely then, a class of errors is new, or calls have doubled.
    `before` holds what it was made from: `calls`, `low`, `high` and `errors`.
    """
    known = window.succeeded + window.failed
    rate = window.succeeded / known if known else None
    return (
        calls >= 2 * before.get("calls", 0)
        or (rate is not None and not before.get("low", 0) <= rate <= before.get("high", 1))
        or not set(classes(window)) <= set(before.get("errors", ()))
    )


def situation(tool: str, names: Sequence[str], gives: Sequence[str], asked: Sequence[str]) -> str:
    """Return the situation that a tool is for, as it is embedded: its name in words, its inputs and outputs, and what was asked.

    `names` are those of its arguments, `gives` of what its results hold, `asked` what persons said before it was
    called.
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
