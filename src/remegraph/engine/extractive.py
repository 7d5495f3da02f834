"""The thinker without a model: it keeps what persons said, whole, and decides nothing.

A memory is a person's own turn, their messages in a row, never cut from its correction; where it is short, with the
question that it answers. What says the same in the same words is one memory; of all else both stay, dated by when they were
said. Nothing is superseded or deleted. It keeps the words of the speaker, and so cannot write in an agent's voice, whatever
the settings ask for. Every memory says so: `source="factual"`, `extractor="extractive"`, third person.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from remegraph.engine.frame import marks
from remegraph.engine.origin import trust_of_summary
from remegraph.engine.proposals import COUNTED_TRUST, Writer
from remegraph.engine.routes import called_tools, person
from remegraph.engine.salience import content_words
from remegraph.engine.summary_tasks import (
    DescribeTask,
    Digest,
    DigestTask,
    DistilTask,
    Meter,
    Objection,
    Operation,
    Proposal,
    ProposeTask,
    ReviewTask,
    Screened,
    ScreenTask,
    Verb,
    Voice,
)
from remegraph.engine.trajectories import name_of, skill_of, steps_of
from remegraph.models import BlockSummary, Evidence, Reading, Scope, Shelf, Skill, StoredMessage
from remegraph.models.remnants import MARK
from remegraph.models.standing import QUARANTINE_BELOW
from remegraph.models.supersession import content_digest
from remegraph.models.tools import called, outcome
from remegraph.prompts import Language
from remegraph.text import table
from remegraph.text.entities import entities
from remegraph.text.scripts import has_cjk, plain
from remegraph.text.sentences import asks, sentences
from remegraph.text.tokens import query_tokens

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["ExtractiveThinker", "pagerank"]


_DAMPING = 0.85
_TOLERANCE = 1e-6
_MOST_STEPS = 100


def pagerank(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the PageRank of each node, by power iteration; it sums to 1 (Page et al., 1998; damping .85).

    The weights are symmetric and not negative, of shape (n, n). A node without edges passes its rank on to all.
    """
    size = len(weights)
    degrees = weights.sum(axis=1, keepdims=True)
    steps = np.divide(weights, degrees, out=np.full_like(weights, 1 / max(size, 1)), where=degrees > 0)
    into = np.ascontiguousarray(steps.T)
    rank = np.full(size, 1 / max(size, 1))
    for _ in range(_MOST_STEPS):
        following = (1 - _DAMPING) / max(size, 1) + _DAMPING * np.vecdot(into, rank)
        if np.abs(following - rank).sum() < _TOLERANCE:
            break
        rank = following
    return rank


_SUMMARY_SENTENCES = 2
_SUMMARY_CHARACTERS = 240
_MOST_MARKS = 4  # attachments that a summary names
_MOST_SENTENCES = 60
"""Sentences ranked at most: the graph of their likeness grows with the square."""

_FEWEST_CALLS = 2
_FAILING = 0.3
"""A tool is remembered as unreliable from this share of failures, over at least so many calls."""


_SHORT = 8
"""A turn of fewer words, or twice as many Chinese characters, is kept with the question that it answers."""

_LONGEST_QUESTION = 200

_BETWEEN = ",;，；、 "
"""What joins words to those before them; not used if those are left out."""

_LONG, _LINES, _FORMAL = 600, 6, 0.5
"""A text counts as pasted from this length and number of lines, if half of them look like a document."""


@dataclass(slots=True)
class _Turn:
    """Messages of one person in a row."""

    speaker: str
    task: str
    asked: str = ""
    """The question before it."""
    said: list[tuple[StoredMessage, str]] = field(default_factory=list)
    """Runs of the person's own words, to the letter, each with its message."""

    @property
    def words(self) -> str:
        """All of it."""
        return "\n".join(words for _, words in self.said)


class ExtractiveThinker:
    """Thinks by rules alone: free and offline. Its memories say so."""

    name = "extractive"
    learns = False
    looks_back = False
    similar_tokens = 20_000

    def digest(self, task: DigestTask, meter: Meter) -> Digest:
        """Summarise by the sentences most like the rest; route by speaker, tool, task and words."""
        text = "\n".join(message.text for message in task.messages if message.trust >= QUARANTINE_BELOW)
        turns = _turns(task.messages, task.scope)
        told = _with_marks(_summary(task.messages), task) or task.block.thread
        named = _entities(text)
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
        keys = [shelf.topic.key for shelf in task.shelves if _belongs(shelf, turns, task.messages)]
        return Digest(summary=summary, topics=tuple(keys))

    def describe(self, task: DescribeTask, meter: Meter) -> Mapping[tuple[str, str], Reading]:
        """Read nothing: without a model, attachments stay unread."""
        return {}

    def propose(self, task: ProposeTask, meter: Meter) -> Proposal:
        """Keep every turn for this shelf, or join it with the memory that has the same words."""
        writer = Writer(task, self.name, Voice())
        if task.shelf.topic.type == "tool":
            _judge_tool(task, writer)
        written: set[str] = set()
        for turn in _turns(task.messages, task.scope):
            if _on_shelf(turn, task.shelf):
                _keep(turn, task, writer, written)
        return Proposal(
            shelf=task.shelf,
            attempt=task.attempt,
            similar=task.similar,
            changes=tuple(writer.changes),
            links=tuple(writer.links),
        )

    def review(self, task: ReviewTask, meter: Meter) -> tuple[Objection, ...]:
        """Return what the rules flag: without a model, nothing is weighed."""
        return task.flags

    def screen(self, task: ScreenTask, meter: Meter) -> Screened:
        """Let nothing pass that only a model could judge; callers have already judged what code can."""
        return Screened(tuple(1 if task.rules.need_a_model else 0 for _ in task.texts))

    def distil(self, task: DistilTask, meter: Meter) -> Skill:
        """Take the successful calls as they were, in their order."""
        return skill_of(task.run, steps_of(task.run), task=task.task, name=name_of(task.task, task.run), when_to_use="")

    async def athink(self, verb: Verb, task: Any, meter: Meter) -> Any:
        """Call the method of this name; it does not block."""
        return getattr(self, verb)(task, meter)


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


def _turns(messages: Sequence[StoredMessage], scope: Scope) -> list[_Turn]:
    """Return what persons said, turn by turn, without quoted text and small talk."""
    turns: list[_Turn] = []
    asked, going = "", False
    for message in messages:
        speaker = person(message, scope)
        if speaker is None:
            if message.role == "assistant" and message.text.strip():
                asked, going = _question(message.text), False
            continue
        if not (going and turns[-1].speaker == speaker and turns[-1].task == message.task):
            turns.append(_Turn(speaker, message.task, asked))
            going = True
        own = _own(message.text)
        turns[-1].said += [(message, words) for words in own if _is_statement(words, turns[-1].asked)]
        asked = _question("\n".join(own))
    return [turn for turn in turns if turn.said]


def _question(text: str) -> str:
    """Return the last question of a text; empty if it asks nothing, or is withheld."""
    found = [span.text.strip() for span in sentences(text) if asks(span.text)]
    return found[-1] if found and MARK not in found[-1] and len(found[-1]) <= _LONGEST_QUESTION else ""


def _own(text: str) -> list[str]:
    """Return the runs of a message that are the person's own: no captions, no code, no mail of others, no documents."""
    for quoted in _forms("quoted"):
        text = quoted.split(text, maxsplit=1)[0]
    parts = _forms("caption")[0].sub(MARK, re.sub(r"```.*?(?:```|\Z)", MARK, text, flags=re.DOTALL))
    lines = [MARK if line.lstrip().startswith(">") else line for line in parts.split("\n")]
    runs = (run.strip().lstrip(_BETWEEN) for run in "\n".join(lines).split(MARK))
    return [run for run in runs if run and not _pasted(run)]


def _pasted(text: str) -> bool:
    """Return whether a text has the form of code, or is long and has that of a document."""
    lines = [line for line in text.split("\n") if line.strip()]
    coded = sum(bool(_forms("code")[0].match(line)) for line in lines)
    if len(lines) > 2 and coded > _FORMAL * len(lines):
        return True
    formal = sum(bool(_forms("document")[0].match(line)) for line in lines)
    return len(text) > _LONG and len(lines) >= _LINES and formal + coded >= _FORMAL * len(lines)


def _is_statement(words: str, asked: str) -> bool:
    """Return whether words are more than a greeting or questions; a plain yes states what was asked."""
    if asked and content_words(asked) and _forms("answers")[0].fullmatch(words.strip(" .!。！,，")):
        return True
    return any(_states(span.text) for span in sentences(words))


def _states(sentence: str) -> bool:
    """Return whether a sentence states something and does not only ask, as "I fly on Friday, what shall I pack?" does."""
    if not asks(sentence):
        return bool(content_words(sentence))
    before = _forms("before")[0].match(sentence)
    return before is not None and len(content_words(before[1])) > 1


def _entities(text: str) -> tuple[str, ...]:
    """Return the names in a block, recognised by their form."""
    return tuple(dict.fromkeys(entity.text for entity in entities(text) if entity.kind == "name"))


def _belongs(shelf: Shelf, turns: Iterable[_Turn], messages: Sequence[StoredMessage]) -> bool:
    if shelf.topic.type == "tool":
        return shelf.topic.target in {name.strip().casefold() for name in called_tools(messages)}
    return any(_on_shelf(turn, shelf) for turn in turns)


def _on_shelf(turn: _Turn, shelf: Shelf) -> bool:
    """A turn goes to the task that the host or its words name; else to the person who took it."""
    topic = shelf.topic
    if topic.type == "task":
        named = turn.task.strip().casefold()
        return (
            named == topic.target
            if named
            else bool(set(query_tokens(topic.target_name)) & set(query_tokens(turn.words)))
        )
    return topic.type == "personal" and not turn.task and topic.target == turn.speaker.strip().casefold()


def _keep(turn: _Turn, task: ProposeTask, writer: Writer, written: set[str]) -> None:
    """Create a memory of a turn, or corroborate the one with the same words."""
    evidence = [
        Evidence(message_id=message.message_id, quote=words, block_id=task.block.block_id)
        for message, words in turn.said
    ]
    content = _content(turn, task.language)
    digest = content_digest(content)
    if digest in written or writer.is_known(content):
        return
    written.add(digest)
    twin = next((old for old in task.similar if content_digest(old.content) == digest), None)
    if twin is not None:
        writer.corroborate(twin, evidence)
        return
    when_to_use = task.shelf.topic.target_name if task.shelf.topic.type == "task" else ""
    writer.new_memory(Operation("CREATE", tuple(evidence), content=content, when_to_use=when_to_use))


def _content(turn: _Turn, language: Language) -> str:
    """Return the words, with who said them, and where they are few, to what question. Dates stay as they were said."""
    colon, form = ("：", "（被问：“{}”）") if language == "zh" else (": ", ' (asked: "{}")')
    asked = form.format(turn.asked) if turn.asked and _is_short(turn.words) else ""
    return f"{turn.speaker}{colon}{turn.words}{asked}"


def _is_short(text: str) -> bool:
    return (len(text) / 2 if has_cjk(text) else len(text.split())) < _SHORT


@cache
def _forms(name: str) -> tuple[re.Pattern[str], ...]:
    """Return the patterns of the table `turns` of one name."""
    told = table("turns")[name]
    patterns = told if isinstance(told, list) else [told]
    return tuple(re.compile(pattern, re.IGNORECASE | re.MULTILINE) for pattern in patterns)


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
    counted = Operation("CREATE", tuple(evidence), content=content, when_to_use=tool, canonical_topic=slot_name)
    writer.new_memory(counted, trust=COUNTED_TRUST, replaces=old)
