"""The thinker without a model: extracts what was said, and decides only where slots parse on both sides.

It may create, corroborate (same slot, same value) and supersede (same person, single-valued or reversed slot);
what merely looks like a contradiction is kept and linked. It never deletes. It keeps the words of who said them, and so
cannot write in an agent's voice, whatever the settings ask for. Every memory says so: `source="factual"`,
`extractor="extractive"`, third person.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import combinations

import numpy as np

from remegraph.engine.distilling import skill_of
from remegraph.engine.metering import Meter
from remegraph.engine.proposals import COUNTED_TRUST, Writer
from remegraph.engine.routing import called_tools, person
from remegraph.engine.tasks import (
    DescribeTask,
    Digest,
    DigestTask,
    DistilTask,
    Proposal,
    ProposeTask,
    ReviewTask,
    Voice,
)
from remegraph.engine.worth import tells, without_question
from remegraph.language.entities import entities
from remegraph.language.plain import plain
from remegraph.language.scripts import language_of
from remegraph.language.sentences import sentences
from remegraph.language.times import resolve
from remegraph.language.tokens import query_tokens
from remegraph.models import BlockSummary, Evidence, Reading, Scope, Shelf, Skill, StoredMessage
from remegraph.prompts import Language
from remegraph.rules.centrality import pagerank
from remegraph.rules.claims import conflicting, named, read_claims, same, slot
from remegraph.rules.coverage import uncovered
from remegraph.rules.duplicates import content_digest
from remegraph.rules.freshness import tells_change
from remegraph.rules.objections import Objection
from remegraph.rules.perceiving import marks
from remegraph.rules.standing import QUARANTINE_BELOW
from remegraph.rules.tainting import trust_of_summary
from remegraph.rules.tool_outcomes import outcome
from remegraph.rules.tool_records import called
from remegraph.rules.trajectories import name_of, steps_of

__all__ = ["ExtractiveThinker"]

_SUMMARY_SENTENCES = 2
_SUMMARY_CHARACTERS = 240
_MOST_MARKS = 4  # attachments that a summary names
_MOST_SENTENCES = 60
"""Sentences ranked at most: the graph of their likeness grows with the square."""

_FEWEST_CALLS = 2
_FAILING = 0.3
"""A tool is remembered as flaky from this share of failures on, over at least so many calls."""


@dataclass(frozen=True, slots=True)
class _Statement:
    """Something worth remembering, as it was said."""

    message: StoredMessage
    speaker: str
    words: str
    task: str


class ExtractiveThinker:
    """Thinks by rules alone: free, offline, and honest about itself."""

    name = "extractive"
    learns = False
    looks_back = False
    similar_limit = 200

    def digest(self, task: DigestTask, meter: Meter) -> Digest:
        """Summarise by the sentences most like the rest; route by speaker, tool, task and words."""
        text = "\n".join(message.text for message in task.messages if message.trust >= QUARANTINE_BELOW)
        statements = tuple(_statements(task.messages, task.scope))
        told = _with_marks(_summary(task.messages), task) or task.block.thread
        named = _entities(text, statements, task.language)
        summary = BlockSummary(
            block_id=task.block.block_id,
            partition=task.block.partition,
            start_time=task.block.start_time,
            end_time=task.block.end_time,
            summary=told,
            entities=named,
            trust=trust_of_summary(told, task.messages),
            language=task.language,
            extractor=self.name,
        )
        keys = [shelf.topic.key for shelf in task.shelves if _belongs(shelf, statements, task.messages)]
        return Digest(summary=summary, topics=tuple(keys))

    def describe(self, task: DescribeTask, meter: Meter) -> Mapping[tuple[str, str], Reading]:
        """Read nothing: there is nobody to look."""
        return {}

    async def adescribe(self, task: DescribeTask, meter: Meter) -> Mapping[tuple[str, str], Reading]:
        """Read nothing; see `describe`."""
        return {}

    async def adigest(self, task: DigestTask, meter: Meter) -> Digest:
        """Summarise and route; see `digest`."""
        return self.digest(task, meter)

    def propose(self, task: ProposeTask, meter: Meter) -> Proposal:
        """Compare every statement for this shelf with the memories at hand."""
        writer = Writer(task, self.name, Voice())
        if task.shelf.topic.type == "tool":
            _judge_tool(task, writer)
        written: set[str] = set()
        for statement in _statements(task.messages, task.scope):
            if _on_shelf(statement, task.shelf):
                _decide(statement, task, writer, written)
        return Proposal(
            shelf=task.shelf,
            attempt=task.attempt,
            similar=task.similar,
            changes=tuple(writer.changes),
            links=tuple(writer.links),
        )

    async def apropose(self, task: ProposeTask, meter: Meter) -> Proposal:
        """Compare a block with one topic's memories; see `propose`."""
        return self.propose(task, meter)

    def review(self, task: ReviewTask, meter: Meter) -> tuple[Objection, ...]:
        """Return what the rules flag: there is nobody to weigh it."""
        return task.flags

    async def areview(self, task: ReviewTask, meter: Meter) -> tuple[Objection, ...]:
        """Return what the rules flag; see `review`."""
        return task.flags

    def distil(self, task: DistilTask, meter: Meter) -> Skill:
        """Take the successful calls as they were, in their order."""
        return skill_of(task, name_of(task.task, task.run), "", steps_of(task.run))

    async def adistil(self, task: DistilTask, meter: Meter) -> Skill:
        """Make a skill of a run; see `distil`."""
        return self.distil(task, meter)


def _summary(messages: Sequence[StoredMessage]) -> str:
    """Return the sentences with the highest PageRank in the graph of shared words (Mihalcea & Tarau, TextRank, 2004)."""
    said = [
        (message, span.text.strip())
        for message in messages
        if message.role in {"user", "assistant"} and not message.is_document
        for span in sentences(message.text)
        if span.text.strip()
    ][:_MOST_SENTENCES]
    if not said:
        return ""
    words = [set(query_tokens(text)) for _, text in said]
    likeness = np.zeros((len(said), len(said)))
    for one, other in combinations(range(len(said)), 2):
        shared = len(words[one] & words[other]) / (1 + min(len(words[one]), len(words[other])))
        likeness[one, other] = likeness[other, one] = shared
    rank = pagerank(likeness)
    telling = sorted(
        range(len(said)), key=lambda at: (said[at][1].endswith(("?", "？")), -rank[at] * len(words[at]) ** 0.5, at)
    )
    chosen = sorted(telling[:_SUMMARY_SENTENCES])
    return " ".join(f"{said[at][0].speaker}: {said[at][1]}" for at in chosen)[:_SUMMARY_CHARACTERS]


def _with_marks(summary: str, task: DigestTask) -> str:
    """Return a summary with what came beside the words, and whether it was read."""
    beside = [mark for message in task.messages for mark in marks(message, task.language)][:_MOST_MARKS]
    return " ".join(part for part in (summary, *beside) if part)


def _statements(messages: Sequence[StoredMessage], scope: Scope) -> Iterator[_Statement]:
    """Yield what persons said that is worth remembering: what fills a slot, and what the reviser would miss."""
    for message in messages:
        speaker = person(message, scope)
        if speaker is None:
            continue
        said = [words for span in sentences(message.text) if (words := without_question(span.text.strip()))]
        spoken = message.evolve(role="user", content="\n".join(said))
        missed = [omission.statement.strip() for omission in uncovered([spoken], ())]
        for words in said:
            part = (
                words
                if read_claims(words, speaker, language_of(words)) or tells_change(words)
                else next(filter(words.__contains__, missed), "")
            )
            if part and tells(part, message.time):
                yield _Statement(message, speaker, part, message.task)


def _entities(text: str, statements: Sequence[_Statement], language: Language) -> tuple[str, ...]:
    """Return what a block names: by its form, and by what its statements say of somebody."""
    shown = [entity.text for entity in entities(text) if entity.kind == "name"]
    told = (name for each in statements for name in named(read_claims(each.words, each.speaker, language)))
    return tuple(dict.fromkeys([*shown, *told]))


def _belongs(shelf: Shelf, statements: Sequence[_Statement], messages: Sequence[StoredMessage]) -> bool:
    if shelf.topic.type == "tool":
        return shelf.topic.target in {name.strip().casefold() for name in called_tools(messages)}
    return any(_on_shelf(statement, shelf) for statement in statements)


def _on_shelf(statement: _Statement, shelf: Shelf) -> bool:
    """A statement goes to the task that the host named or that its words name; else to the person who made it."""
    topic = shelf.topic
    if topic.type == "task":
        named = statement.task.strip().casefold()
        return (
            named == topic.target
            if named
            else bool(set(query_tokens(topic.target_name)) & set(query_tokens(statement.words)))
        )
    return topic.type == "personal" and not statement.task and topic.target == statement.speaker.strip().casefold()


def _decide(statement: _Statement, task: ProposeTask, writer: Writer, written: set[str]) -> None:
    """Create, corroborate or supersede, by slots."""
    evidence = Evidence(message_id=statement.message.message_id, quote=statement.words, block_id=task.block.block_id)
    content = _content(statement, task.language)
    claims = read_claims(statement.words, statement.speaker, task.language)
    digest = content_digest(content)
    if digest in written or writer.is_known(content, claims):
        return
    twin = next(
        (old for old in task.similar if content_digest(old.content) == digest or same(claims, old.claims)), None
    )
    touched = {change.memory.memory_id for change in writer.changes}
    if twin is not None:
        if twin.memory_id not in touched:
            writer.corroborate(twin, [evidence])
        return
    replaced = [old for old in task.similar if old.memory_id not in touched and conflicting(claims, old.claims)]
    writer.new_memory(
        content,
        [evidence],
        when_to_use=task.shelf.topic.target_name if task.shelf.topic.type == "task" else "",
        category="preference" if any(claim.relation in {"likes", "dislikes"} for claim in claims) else "fact",
        canonical_topic=slot(claims[0]) if claims else "",
        claims=claims,
        valid_from=_since(statement),
        replaces=replaced,
    )
    written.add(digest)


def _content(statement: _Statement, language: Language) -> str:
    """The words, with who said them, and the days that relative dates meant."""
    days = [
        mention.begins.strftime("%Y-%m-%d")
        for mention in resolve(statement.words, statement.message.time)
        if mention.begins.strftime("%Y-%m-%d") not in statement.words
    ]
    dated = f" ({', '.join(dict.fromkeys(days))})" if days else ""
    return f"{statement.speaker}{'：' if language == 'zh' else ': '}{statement.words}{dated}"


def _since(statement: _Statement) -> datetime | None:
    mentions = resolve(statement.words, statement.message.time)
    return mentions[0].begins if mentions else None


def _judge_tool(task: ProposeTask, writer: Writer) -> None:
    """Remember how reliable a tool was in this block, counted from its results; a later block's count replaces it."""
    tool = task.shelf.topic.target_name
    results = [
        task.messages[answer]
        for _, call, answer in called(task.messages)
        if answer is not None and plain(call.name) == tool
    ]
    went = [(message, outcome(message.text, told=message.ok)) for message in results]
    known = [message for message, ok in went if ok is not None]
    failed = [message for message, ok in went if ok is False]
    if len(known) < _FEWEST_CALLS:
        return
    flaky = len(failed) / len(known) >= _FAILING
    shown = failed if flaky else known
    evidence = [
        Evidence(message_id=message.message_id, quote=words, block_id=task.block.block_id)
        for message in shown
        if (words := message.text.strip().partition("\n")[0].strip())
    ]
    if not evidence:
        return
    content = f"{tool}: {len(failed)}/{len(known)} calls failed."
    slot_name = f"{task.shelf.topic.target}:reliability"
    old = [memory for memory in task.similar if memory.canonical_topic == slot_name]
    writer.new_memory(content, evidence, when_to_use=tool, canonical_topic=slot_name, trust=COUNTED_TRUST, replaces=old)
