"""The context for a prompt: what was found, each thing once, by subject and time, within a budget (G9, B13)."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from remegraph.engine.frame import framed_lines, headline, record_line, short_id, vouched
from remegraph.models import (
    Chunk,
    Hit,
    LeftOut,
    Origin,
)
from remegraph.ports import TokenCounter
from remegraph.settings import SharingPolicy
from remegraph.text.scripts import folded
from remegraph.text.sentences import asks, sentences
from remegraph.text.tokens import query_tokens

__all__ = ["Context", "Sheet", "assemble", "believed", "called", "excess", "fair", "in_turn", "source_of"]

_SPEAKER = re.compile(r"\A[^\s:]{1,40}:\s+")
"""The speaker, before the words."""

_OF_ITSELF = 0.25
"""Most of the budget for what the agent knows of itself: it once took all of 500 tokens."""

_UNASKED = 0.1
"""Most of it before what was found, as what the agent knows of itself often has no bearing on the question."""

_AT_STAKE = 0.4
"""Most of the budget for what comes first: what the agent knows of itself, and what is at stake."""


@dataclass(frozen=True, slots=True)
class Context:
    """The text for the prompt, and the reasons for what it leaves out, by id."""

    text: str
    left_out: Mapping[str, LeftOut]
    shown: Sequence[Hit] = ()


def assemble(
    hits: Iterable[Hit],
    budget: int,
    count: TokenCounter,
    working: Sequence[Chunk] = (),
    *,
    first: Iterable[Hit] = (),
    share: float = 1.0,
    reader: str | None = None,
    notice: str = "",
    question: str = "",
) -> Context:
    """Return the text for a prompt: a line for each hit, grouped by subject, oldest first.

    A hit that repeats an earlier one of the same day is skipped, and so is a message whose words are shown by a memory
    made of it. With a `question`, so are a message whose sentences are in an index entry of its day, an index entry
    whose sentences are all in memories made of it, and a message that only asks what is asked now. A line that does not
    fit the budget is left out whole; shorter ones after it may still fit. Messages that follow each other in a thread
    on one day are shown as one passage, where the first of them was found.

    Args:
        hits: What was found, best first; one that was shown is not shown again.
        budget: Tokens that the text may have; each line counts by itself.
        count: Counts the tokens of a text.
        working: Working memory for the current task: it comes before everything.
        first: What comes before the rest, within a part of the budget.
        share: Most of the budget that what one other agent or pack gave may take.
        reader: The agent that reads.
        notice: What the agent should know about memory itself; it comes before everything.
        question: What is asked now, for a context in brief.
    """
    sheet = Sheet(budget, count, share=share, reader=reader, question=question)
    left_out: dict[str, LeftOut] = {}
    if notice:
        sheet.add_notice(notice)
    for chunk in working:
        if not sheet.add_chunk(chunk):
            left_out[chunk.chunk_id] = "budget"
    for hit in first:
        most = _UNASKED if _of_itself(hit) else _AT_STAKE
        if not sheet.shows(hit) and (reason := sheet.add(hit, most=most)):
            left_out[hit.record_id] = reason
    for hit in hits:
        if sheet.shows(hit):
            continue
        if reason := sheet.add(hit):
            left_out[hit.record_id] = reason
        else:
            left_out.pop(hit.record_id, None)
    return Context(sheet.text(), left_out, sheet.hits)


def in_turn(one: Iterable[Hit], other: Iterable[Hit], share: float, count: TokenCounter) -> Iterator[Hit]:
    """Yield the hits of two sources, each in its order, so that the second takes a share of the tokens.

    Where the first ends, only the other is left; `share` is the part of the tokens for the second.
    """
    ways = [(1 - share, iter(one)), (share, iter(other))]
    taken = [0.0, 0.0]
    while rest := [way for way in range(2) if taken[way] < math.inf]:
        way = min(rest, key=taken.__getitem__)
        part, hits = ways[way]
        if (hit := next(hits, None)) is None:
            taken[way] = math.inf
        else:
            taken[way] += count(hit.text) / part
            yield hit


class Sheet:
    """The lines of a context, as far as a budget goes.

    Args:
        budget: Tokens that the text may have; each line counts by itself.
        count: Counts the tokens of a text.
        share: Most of the budget that what one other agent or pack gave may take; the first line may take more. What the
            agent knows of itself takes at most a quarter.
        reader: The agent that reads.
        question: What is asked now, for a context in brief.
    """

    def __init__(
        self, budget: int, count: TokenCounter, *, share: float = 1.0, reader: str | None = None, question: str = ""
    ) -> None:
        self._budget = budget
        self._left = budget - count(framed_lines([""]))
        self._each, self._of_itself = share * budget, _OF_ITSELF * budget
        self._reader = reader
        self._given: Counter[str] = Counter()
        self._count = count
        self._shown = _Shown(frozenset(query_tokens(question)))
        self._part = 0
        self._groups: dict[tuple[int, str, str], list[_Line]] = {}

    def shows(self, hit: Hit) -> bool:
        """Return whether the context shows this already."""
        return (hit.kind, hit.partition, hit.record_id) in self._shown.records

    def add_notice(self, notice: str) -> None:
        """Add a notice about memory itself, if there is room."""
        text = record_line("", notice)
        self._take(_Line(text, self._count(text) + 1))

    def add_chunk(self, chunk: Chunk) -> bool:
        """Add working memory; return whether there was room."""
        text = record_line(chunk.chunk_id, chunk.content)
        return self._take(_Line(text, self._count(text) + 1, group=("working memory", "")))

    def begin(self) -> None:
        """Begin a new part: what is added from here on comes after everything before."""
        self._part += 1

    def add(self, hit: Hit, *, short: bool = False, most: float = 1.0) -> LeftOut | None:
        """Add a line; return the reason if it was not added.

        With `short` its summary takes its place; `most` is the share of the budget beyond which nothing is added.
        """
        if self._shown.includes(hit):
            return "duplicate"
        line = _Line.of(hit, self._count, short=short)
        itself = _of_itself(hit)
        source, allowed = ("self", self._of_itself) if itself else (source_of(hit.origin, self._reader), self._each)
        if source and self._groups and self._given[source] + line.cost > allowed:
            return "cap"
        taken = self._given[source] if itself else self._budget - self._left
        if ((self._groups or not itself) and taken + line.cost > most * self._budget) or not self._take(line):
            return "budget"
        self._given[source] += line.cost
        self._shown.add(hit)
        return None

    @property
    def hits(self) -> list[Hit]:
        """What is shown."""
        return [line.hit for lines in self._groups.values() for line in lines if line.hit is not None]

    def text(self) -> str:
        """Return what was written, grouped by subject in order of first hit, oldest first; empty if nothing was."""
        lines: list[str] = []
        for (_, about, day), held in sorted(self._groups.items(), key=_order):
            lines += [headline(about, day)] if about else []
            lines += (line.text for line in sorted(held, key=lambda line: line.place))
        return framed_lines(lines)

    def _take(self, line: _Line) -> bool:
        key = (self._part, *line.group)
        over = 0 if key in self._groups or not line.group[0] else self._count(headline(*line.group)) + 1
        if fits := line.cost + over <= self._left:
            self._left -= line.cost + over
            self._groups.setdefault(key, []).append(line)
        return fits


def _of_itself(hit: Hit) -> bool:
    return (hit.topic or "").startswith("self:")


def _order(group: tuple[tuple[int, str, str], object]) -> tuple[object, ...]:
    """Return the position of a group: raw words come last in their part, in the order of days."""
    part, about, day = group[0]
    return part, about == "message", day


@dataclass(slots=True)
class _Shown:
    """What the context shows so far."""

    asked: frozenset[str]
    """The content words of what is asked now; none unless the context is brief."""
    records: set[tuple[object, ...]] = field(default_factory=set)
    words: set[tuple[object, ...]] = field(default_factory=set)
    said: dict[str, str] = field(default_factory=dict)
    """What messages say, by their ids."""
    told: dict[str, list[str]] = field(default_factory=dict)
    """What memories make of a message, by its id."""
    of_blocks: dict[tuple[object, ...], set[str]] = field(default_factory=dict)
    """What memories and the index entry say of a block, sentence by sentence."""
    of_days: dict[tuple[object, ...], set[str]] = field(default_factory=dict)
    """What index entries say of a day in one partition, sentence by sentence."""

    def add(self, hit: Hit) -> None:
        self.records.add((hit.kind, hit.partition, hit.record_id))
        self.words.add(_words(hit))
        said = set(_sentences(hit.text))
        for block_id in hit.block_ids:
            self.of_blocks.setdefault((hit.partition, block_id), set()).update(said)
        if hit.kind == "message":
            self.said[hit.record_id] = folded(hit.text)
        if hit.kind == "block":
            self.of_days.setdefault(_day_of(hit), set()).update(said)
        for message_id in {item.message_id for item in hit.evidence}:
            self.told.setdefault(message_id, []).append(folded(hit.text))

    def includes(self, hit: Hit) -> bool:
        if _words(hit) in self.words:
            return True
        said = folded(hit.text.partition(": ")[2]) if hit.kind == "message" else ""
        if said and any(said in told for told in self.told.get(hit.record_id, ())):
            return True
        return self._repeats(hit) or (bool(self.asked) and self._adds_nothing(hit))

    def _repeats(self, hit: Hit) -> bool:
        """Return whether a current memory only repeats the messages that it was made of, and the context shows them."""
        if hit.standing != "current" or hit.status == "disputed" or hit.enforcement:
            return False
        said = [self.said[item.message_id] for item in hit.evidence if item.message_id in self.said]
        lines = [folded(_SPEAKER.sub("", line)) for line in hit.text.splitlines()]
        return bool(said) and all(any(line in each for each in said) for line in lines)

    def _adds_nothing(self, hit: Hit) -> bool:
        """Return whether every sentence of a hit is already in the context or the question."""
        if self._is_asked(hit.text):
            return True
        of_block, of_day = self.of_blocks.get((hit.partition, hit.record_id)), self.of_days.get(_day_of(hit))
        said = of_block if hit.kind == "block" else of_day if hit.kind == "message" else None
        return bool(said) and all(each in (said or ()) or self._is_asked(each) for each in _sentences(hit.text))

    def _is_asked(self, text: str) -> bool:
        """Return whether a text only asks what is asked now."""
        if not asks(text):
            return False
        words = set(query_tokens(_SPEAKER.sub("", text)))
        return bool(words) and words <= self.asked and len(sentences(text)) == 1


def _sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text without their speaker."""
    return (folded(_SPEAKER.sub("", each.text)) for each in sentences(text))


def _day_of(hit: Hit) -> tuple[object, ...]:
    return hit.partition, hit.time.date()


def _words(hit: Hit) -> tuple[object, ...]:
    """Return a key that is equal for hits that say the same: the day counts, as things are said and done again."""
    return folded(hit.text), hit.time.date(), hit.perspective, hit.standing, hit.enforcement


@dataclass(frozen=True, slots=True)
class _Line:
    text: str
    cost: int
    hit: Hit | None = None
    """The hit that it shows; None for working memory and for a notice."""
    group: tuple[str, str] = ("", "")
    """What it is about, and the day if that is in the headline; None if it stands alone."""

    @classmethod
    def of(cls, hit: Hit, count: TokenCounter, *, short: bool = False) -> Self:
        said = hit.kind == "message"
        group = ("message" if said else hit.topic or hit.kind, _day(hit) if said else "")
        words = vouched(hit.summary if short else hit.text, hit.trust)
        text = record_line(called(hit), words, "" if said else _day(hit), _marks(hit, short=short))
        return cls(text, count(text) + 1, hit, group)

    @property
    def place(self) -> tuple[object, ...]:
        """Its position in its group."""
        hit = self.hit
        return () if hit is None else (hit.time, hit.thread, hit.seq)


def called(hit: Hit) -> str:
    """Return the name of a hit in a context: the place of a message, the id of others, shortened if long."""
    return {"message": f"#{hit.seq}", "block": hit.record_id}.get(hit.kind) or short_id(hit.record_id)


def _marks(hit: Hit, *, short: bool) -> dict[str, str]:
    """Return the marks of a hit: none if it is the agent's own, believed, and current.

    What no memory covers yet is marked as recent. What the agent noted in the first person is marked as its own; what
    another agent or a pack gave, as theirs; a policy, with its level.
    """
    told: dict[str, str] = {}
    if hit.standing != "current":
        ended = hit.standing == "expired" and hit.valid_to is not None
        told[hit.standing] = f"{hit.valid_to:%Y-%m-%d}" if ended else ""
    if hit.status == "disputed":
        told["disputed"] = ""
    if hit.recent:
        told["recent"] = ""
    if hit.counterpart_of:
        told["may_contradict"] = short_id(hit.counterpart_of)
    if hit.enforcement:
        told["rule"] = hit.enforcement
    if source := source_of(hit.origin, None):
        told["from"] = source
    if hit.perspective == "first-person":
        told["by"] = "you"
    if round(hit.trust, 2) < 1:
        told["trust"] = f"{hit.trust:.2g}"
    if short:
        told["short"] = ""
    return told


def _day(hit: Hit) -> str:
    return hit.time.date().isoformat()


def believed(trust: float, source: str, policy: SharingPolicy) -> float:
    """Return how far something from another agent is believed: no further than itself or its source.

    `source` is the name of an agent, or the key of a pack.
    """
    return min(trust, policy.trust.get(source, policy.default_trust))


def source_of(origin: Origin | None, reader: str | None) -> str:
    """Return the other agent, or the pack, that a memory comes from; empty: it is the reader's own, or agreed on.

    If nothing proves its origin, the agent that it claims to be from counts.
    """
    if origin is None or reader in origin.agents:
        return ""
    if origin.via == "pack":
        return f"pack {origin.pack_id}"
    agreed = origin.via == "consensus" and len(origin.agents) > 1
    first = next((name for name in (*origin.agents, origin.claimed) if name), "anybody")
    return "" if agreed else f"agent {first}"


def fair(hits: Sequence[Hit], k: int, share: float, reader: str | None) -> tuple[list[Hit], list[Hit]]:
    """Return the best k hits with no other source over its share, and the hits left out for that.

    The next best take their place. The reader's own hits are never left out, nor is a source's only hit.
    """
    left = [(source_of(hit.origin, reader), hit) for hit in hits]
    gone: list[Hit] = []
    while (place := excess([source for source, _ in left[:k]], share)) is not None:
        gone.append(left.pop(place)[1])
    return [hit for _, hit in left[:k]], gone


def excess(sources: Sequence[str], share: float) -> int | None:
    """Return the place of the last hit of the source that exceeds its share most; None if none does.

    Sources come best first; an empty one is not another source.
    """
    places: defaultdict[str, list[int]] = defaultdict(list)
    for place, source in enumerate(sources):
        if source:
            places[source].append(place)
    most = max(places.values(), key=len, default=[])
    over = len(most) > share * len(sources) and len(sources) > 1
    return most[-1] if over else None
