"""Guidelines of tools: from the newest calls to one memory for each tool, written anew where it is out of date.

Figures, and what calls have in common: no model is asked, as it would know no more than these figures, unless it read what
tools say. Those words are evidence, for whoever traces a guideline, and never stand in it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from remegraph.engine.explicit import Stated, closing, state
from remegraph.engine.proposals import COUNTED_TRUST
from remegraph.engine.routing import as_known, tool_topic
from remegraph.errors import ConflictError
from remegraph.language.plain import plain
from remegraph.language.scripts import language_of
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
)
from remegraph.ports import Archive, Clock
from remegraph.rules.context import shows_recalled
from remegraph.rules.naming import operation_id
from remegraph.rules.quotes import find_quote
from remegraph.rules.summarising import summary_of
from remegraph.rules.tool_guidelines import ToolFacts, changed, classes, facts_of, guideline, situation
from remegraph.rules.tool_records import called
from remegraph.settings import ToolPolicy

__all__ = ["ACTOR", "Guide", "guideline_id"]

ACTOR = "tools"
_EXTRACTOR = "extractive"

_OURS: frozenset[Status] = frozenset({"active", "low_priority", "archived"})
"""Where a guideline stands that is written anew; what a person took back stays away."""

_ASKED = 3
_ASKED_CHARACTERS = 100
_GIVES = 12
"""What of the situations that a tool was used in is embedded: words of persons, and names of what its results hold."""

_QUOTE = 200
"""Characters of a result that are quoted; a word is not cut."""

_FIELD = re.compile(r"[a-z][A-Za-z_]{1,30}")
"""A name, and no value that a mapping is keyed by: `payment_methods`, not `JFK` or `credit_card_4421486`."""

_ATTEMPTS = 3
"""How often others may come first, such as the background with a block that was just stated."""

_CUT_WORD = re.compile(r"[^\W_]+$")


@dataclass(frozen=True, slots=True)
class _Read:
    """A call with the messages that tell of it."""

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
        """What persons said before calls, the newest first."""
        said = (each.person.text.strip().partition("\n")[0] for each in self.read if each.person is not None)
        return tuple(dict.fromkeys(plain(text)[:_ASKED_CHARACTERS] for text in said if text))[:_ASKED]


def guideline_id(partition: Partition, tool: str) -> str:
    """Return the id of the memory that holds the guideline of a tool."""
    return operation_id("guideline", partition.to_json(), tool)


@dataclass(frozen=True, slots=True)
class Guide:
    """Keeps the guidelines of tools.

    Args:
        archive: The ledger.
        clock: Tells the time.
        policy: How many calls count, and how many are shown.
        recipe: Name of the way of summarising, for what is stated.
    """

    archive: Archive
    clock: Clock
    policy: ToolPolicy
    recipe: str

    def refresh(self, partitions: Sequence[Partition], tools: Sequence[str] | None = None) -> ToolRefresh:
        """Write the guidelines that are new or out of date.

        Args:
            partitions: Where.
            tools: Only of these.
        """
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
        """Return what is to be written of a tool; nothing where that stands already, or somebody took it back."""
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
        """Return calls with the messages that tell of them, as far as their blocks hold them."""
        blocks = self.archive.blocks([partition], ids=list(dict.fromkeys(call.block_id for call in calls)))
        messages = {
            block.block_id: self.archive.messages(
                [partition], thread=block.thread, first_seq=block.first_seq, last_seq=block.last_seq
            )
            for block in blocks
        }
        read = (_tell(call, messages.get(call.block_id, ())) for call in calls)
        return [each for each in read if each is not None]

    def _settled(self, draft: _Draft) -> Memory | None:
        """Write a guideline; nothing where somebody else was first: theirs is as new."""
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
        """Record what was counted as a message: the calls were only heard, so no words tell of them."""
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


def _tell(call: ToolRecord, messages: Sequence[StoredMessage]) -> _Read | None:
    place = call.message_id, call.call_id
    found = (each for each in called(messages) if (messages[each.at].message_id, each.call.call_id) == place)
    at, asked, answer = next(found, (0, None, None))
    if asked is None:
        return None
    said = (each for each in reversed(messages[:at]) if each.from_user and not shows_recalled(each))
    return _Read(call, asked, None if answer is None else messages[answer], next(said, None))


def _evidence(read: Sequence[_Read], text: str) -> tuple[Evidence, ...]:
    """Return what came back from the calls that a guideline cites; from those that it is made from where it cites none."""
    found = [(each, each.evidence) for each in read]
    cited = [evidence for each, evidence in found if evidence and f"[{each.record.call_id}]" in text]
    return tuple(dict.fromkeys(cited or [evidence for _, evidence in found if evidence]))
