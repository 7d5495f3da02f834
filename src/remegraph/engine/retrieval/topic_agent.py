"""The Sub Agent that reads (R9): one topic, by query and by time, for the read graph, for a host's own agents, for callers.

What other agents let the reader read is searched among these memories alone, and shown as theirs (B11).
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from datetime import time as clock_time
from itertools import islice
from typing import TYPE_CHECKING

from remegraph.engine.nodes import error_text
from remegraph.engine.retrieval.blend import Ranked
from remegraph.engine.retrieval.context import believed
from remegraph.engine.retrieval.hits import (
    OVERFETCH,
    RecallInput,
    block_hit,
    holds,
    known_by,
    memory_hit,
    reasons,
    returnable,
    timed,
    within,
)
from remegraph.engine.retrieval.scores import TextMatch, bm25, columns
from remegraph.engine.retrieval.search import Searcher
from remegraph.errors import InputError, NaiveTimeError
from remegraph.models import Hit, HitKind, Memory, Origin, Partition, RecallFilter, Shelf, StoredMessage
from remegraph.models.standing import dated
from remegraph.ports import AskedTime, RetrievalAgent, Search
from remegraph.settings import SharingPolicy
from remegraph.text.questions import read_question
from remegraph.text.times import parse_range
from remegraph.text.tokens import query_tokens, token_counts

if TYPE_CHECKING:
    from remegraph.ledger.archive import Archive
    from remegraph.ledger.permissions import GrantBook

__all__ = ["Borrower", "TopicAgent", "agent_hits", "as_asked", "look_back"]


def look_back(archive: Archive, shelf: Shelf, query: str, only: RecallFilter, *, worded: bool = True) -> list[Hit]:
    """Return the memories of a topic that pass a filter and hold a word of the query, whatever their status now.

    They are read from the ledger and ranked by words: the indexes hold live memories only. `worded` says whether they
    must hold a word of it.
    """
    statuses = sorted(only.wanted) if only.known_at is None else None  # its status at that time decides
    heads = archive.memories([shelf.partition], topics=[shelf.topic], statuses=statuses)
    return as_asked(heads, lambda head: archive.versions([head.partition], head.memory_id), query, only, worded=worded)


def as_asked(
    heads: Sequence[Memory],
    versions: Callable[[Memory], Sequence[Memory]],
    query: str,
    only: RecallFilter,
    *,
    worded: bool = True,
) -> list[Hit]:
    """Return those of some memories that pass a filter and hold a word of the query, ranked by words.

    `versions` gives all versions of one of them; `worded` says whether they must hold a word of the query.
    """
    known = heads if only.known_at is None else tuple(_as_of(heads, versions, only.known_at))
    admitted = {memory.memory_id: memory for memory in known if only.admits(memory)}
    scores = _scores(list(admitted.values()), query_tokens(query))
    return [
        memory_hit(memory, {"text": scores[memory_id]} if memory_id in scores else {})
        for memory_id, memory in admitted.items()
        if memory_id in scores or not worded
    ]


def _as_of(heads: Sequence[Memory], versions: Callable[[Memory], Sequence[Memory]], time: datetime) -> Iterator[Memory]:
    """Yield the versions that were current then."""
    for head in heads:
        if head.recorded_at <= time:
            yield head
        elif head.version > 1:
            yield from known_by(versions(head), time)[-1:]


def _scores(memories: Sequence[Memory], tokens: Sequence[str]) -> dict[str, float]:
    counted = [(memory.memory_id, token_counts(memory.indexed_text)) for memory in memories]
    matches = tuple(
        TextMatch(memory_id, 0, sum(counts.values()), {token: counts[token] for token in held})
        for memory_id, counts in counted
        if (held := set(tokens) & counts.keys())
    )
    length = sum(sum(counts.values()) for _, counts in counted)
    return bm25(columns(memories[0].partition, matches, len(counted), length), tokens) if matches else {}


_INSTANT = timedelta(microseconds=1)
_MOMENT = timedelta(minutes=1)
"""A question about a time this short is about what was going on then."""


class TopicAgent:
    """Reads from one topic: its memories, and the index entries of the blocks that they came from.

    Args:
        archive: The ledger.
        searcher: Searches memories and index entries.
        search: What is asked, and its limits, which nothing exceeds.
        now: The time that "last week" refers to.
        candidates: What was found of the topic for the query already, best first.
        entries: Whether index entries are read, too.
    """

    __slots__ = ("_archive", "_candidates", "_entries", "_now", "_search", "_searcher")

    def __init__(
        self,
        archive: Archive,
        searcher: Searcher,
        search: Search,
        now: datetime,
        *,
        candidates: Sequence[Ranked] | None = None,
        entries: bool = True,
    ) -> None:
        self._archive = archive
        self._searcher = searcher
        self._search = search
        self._now = now
        self._candidates = candidates
        self._entries = entries

    @property
    def shelf(self) -> Shelf:
        """The topic, and where it lives."""
        return self._search.shelf

    def memories(self, limit: int | None = None) -> tuple[Hit, ...]:
        """Return the memories of the topic that may be returned, newest first, without a score; see `TopicReader`."""
        if limit is not None:
            _check_number("limit", limit, 1)
        hits = sorted(self._looked_back("", worded=False), key=lambda hit: (hit.time, hit.record_id), reverse=True)
        return dated(hits[:limit], self._now)

    def retrieve_by_query(self, query: str, limit_size: int = 50, threshold: float = 0.5) -> tuple[Hit, ...]:
        """Return what bears on a query, best first; see `TopicReader`."""
        _check_query(query)
        _check_number("limit_size", limit_size, 1)
        _check_number("threshold", threshold, 0, most=1, whole=False)
        hits = self._memories(query, limit_size, threshold)
        hits += self._entries_found(query, limit_size, threshold) if self._entries else ()
        hits.sort(key=lambda hit: (-hit.score, hit.record_id))
        return dated(hits[:limit_size], self._now)

    def time_aware_retrieve(self, time: AskedTime) -> tuple[Hit, ...]:
        """Return what was said in a time, oldest first; see `TopicReader`."""
        start, end = self._range(time)
        moment = start is not None and end is not None and end - start <= _MOMENT
        entries = self._entries_of(self._touched(start, end), {}) if self._entries or moment else []
        going_on = {entry.record_id for entry in entries} if moment else set()
        hits = [
            hit
            for hit in self._looked_back(self._search.query, worded=False)
            if within(hit.time, start, end) or not going_on.isdisjoint(hit.block_ids)
        ]
        hits += entries if self._entries else ()
        return dated(sorted(hits, key=lambda hit: (hit.time, hit.record_id)), self._now)

    def retrieve_block(self, block_id: str) -> tuple[StoredMessage, ...]:
        """Return the raw messages of a block that memories of the topic came from; see `TopicReader`."""
        here = [self.shelf.partition]
        if not self._standing_on([str(block_id)]):
            return ()
        found = (
            message
            for block in self._archive.blocks(here, ids=[block_id])
            for message in self._archive.messages(
                here, thread=block.thread, first_seq=block.first_seq, last_seq=block.last_seq
            )
        )
        return tuple(message for message in found if not message.hidden)

    async def amemories(self, limit: int | None = None) -> tuple[Hit, ...]:
        """Do the same as `memories`, without blocking the event loop."""
        return await asyncio.to_thread(self.memories, limit)

    async def aretrieve_by_query(self, query: str, limit_size: int = 50, threshold: float = 0.5) -> tuple[Hit, ...]:
        """Do the same as `retrieve_by_query`, without blocking the event loop."""
        return await asyncio.to_thread(self.retrieve_by_query, query, limit_size, threshold)

    async def atime_aware_retrieve(self, time: AskedTime) -> tuple[Hit, ...]:
        """Do the same as `time_aware_retrieve`, without blocking the event loop."""
        return await asyncio.to_thread(self.time_aware_retrieve, time)

    async def aretrieve_block(self, block_id: str) -> tuple[StoredMessage, ...]:
        """Do the same as `retrieve_block`, without blocking the event loop."""
        return await asyncio.to_thread(self.retrieve_block, block_id)

    def vouched(self, found: Iterable[object]) -> tuple[list[Hit], int]:
        """Return the hits of this topic that may be returned, as the ledger has them, and the number of the others.

        Of what a host's own agent returned, only as many are checked as a search would yield.
        """
        hits = list(islice(found, self._search.k * OVERFETCH))
        scored = [hit for hit in hits if isinstance(hit, Hit) and math.isfinite(hit.score)]
        scores = {(hit.kind, hit.record_id): _plain_score(hit) for hit in reversed(scored)}
        of_memories = {record_id: parts for (kind, record_id), parts in scores.items() if kind == "memory"}
        of_blocks = {record_id: parts for (kind, record_id), parts in scores.items() if kind == "block"}
        kept = self._entries_of(list(of_blocks), {name: _sure(parts) for name, parts in of_blocks.items()})
        if self._search.only.looks_back and of_memories:
            back = (hit for hit in self._looked_back("", worded=False) if hit.record_id in of_memories)
            kept += (_scored(hit, of_memories[hit.record_id]) for hit in back)
        elif of_memories:
            read = (memory for memory in self._read(list(of_memories)) if self._passes(memory))
            kept += (memory_hit(memory, *_sure(of_memories[memory.memory_id])) for memory in read)
        return kept, len(hits) - len(scored) + len(scores) - len(kept)

    # ------------------------------------------------------------------------------------------- by query

    def _memories(self, query: str, limit: int, threshold: float) -> list[Hit]:
        """Read the best candidates; with a time or a filter, read more."""
        if self._search.only.looks_back:
            return [hit for hit in self._looked_back(query) if _bears(hit, threshold)]
        candidates = [each for each in self._found(query, limit) if _bears(each, threshold)]
        hits: list[Hit] = []
        for start in range(0, len(candidates), limit):
            scores = {scored.record_id: scored.parts for scored in candidates[start : start + limit]}
            read = self._read(list(scores))
            hits.extend(memory_hit(each, *scores[each.memory_id]) for each in read if self._passes(each))
            if len(hits) >= limit:
                break
        return hits

    def _found(self, query: str, limit: int) -> Sequence[Ranked]:
        """Return the topic's memories that the search finds, best first: one search for the query that all topics get."""
        if self._candidates is not None and query == self._search.query:
            return self._candidates
        found = self._searched("memory", query, limit)
        ids = [scored.record_id for scored in found]
        shelved = self._archive.shelved([self.shelf.partition], ids) if ids else {}
        mine = shelved.get(self.shelf, frozenset())
        return [scored for scored in found if scored.record_id in mine]

    def _searched(self, kind: HitKind, query: str, limit: int) -> Sequence[Ranked]:
        question = read_question(query, self._now)
        words = self._search.mode != "semantic"
        return self._searcher.search([self.shelf.partition], kind, question, limit * OVERFETCH, words=words).found

    def _entries_found(self, query: str, limit: int, threshold: float) -> list[Hit]:
        found = [each for each in self._searched("block", query, limit) if _bears(each, threshold)]
        return self._entries_of(
            [scored.record_id for scored in found[: limit * OVERFETCH]],
            {scored.record_id: scored.parts for scored in found},
        )

    # -------------------------------------------------------------------------------------------- by time

    def _looked_back(self, query: str, *, worded: bool = True) -> list[Hit]:
        found = look_back(self._archive, self.shelf, query, self._search.only, worded=worded)
        return [hit for hit in found if within(hit.time, self._search.time_start, self._search.time_end)]

    def _range(self, time: AskedTime) -> tuple[datetime | None, datetime | None]:
        if isinstance(time, str):
            mention = parse_range(time, self._now)
            if mention is None:
                raise InputError(f"{time!r} names no time.", "Write it as 'last week', or give a date or a datetime.")
            return mention.begins, mention.ends - _INSTANT
        ends: tuple[object, ...] = time if isinstance(time, tuple) else (time, time)
        if len(ends) != 2 or not all(isinstance(each, date | None) for each in ends) or ends == (None, None):
            raise InputError(
                f"{time!r} is not a time.", "Give words, a date, an aware datetime, or a start and an end."
            )
        start, end = (
            self._moment(each, edge) for each, edge in zip(ends, (clock_time.min, clock_time.max), strict=True)
        )
        if start is not None and end is not None and end < start:
            raise InputError("The end of the time is before its start.", "Give the start first.")
        return start, end

    def _moment(self, time: object, edge: clock_time) -> datetime | None:
        """Return an end of a range: of a day its first or last moment, where the person is."""
        if isinstance(time, date) and not isinstance(time, datetime):
            return datetime.combine(time, edge, self._now.tzinfo)
        if isinstance(time, datetime) and time.utcoffset() is None:
            raise NaiveTimeError("The time does not say its time zone.", "Give an aware datetime, or a date.")
        return time if isinstance(time, datetime) else None

    def _touched(self, start: datetime | None, end: datetime | None) -> list[str]:
        blocks = self._archive.blocks([self.shelf.partition], time_start=start, time_end=end)
        return [block.block_id for block in blocks]

    # ---------------------------------------------------------------------------------------- the ledger

    def _read(self, ids: Sequence[str]) -> Sequence[Memory]:
        statuses = sorted(self._search.only.wanted)
        return self._archive.memories([self.shelf.partition], ids=ids, topics=[self.shelf.topic], statuses=statuses)

    def _passes(self, memory: Memory) -> bool:
        search = self._search
        return (
            search.only.admits(memory)
            and within(memory.said_at, search.time_start, search.time_end)
            and holds(memory.content, search)
        )

    def _standing_on(self, block_ids: Sequence[str]) -> frozenset[str]:
        """Return those of some blocks that memories of the topic came from."""
        if not block_ids:
            return frozenset()
        statuses = sorted(self._search.only.wanted)
        shelf = self.shelf
        found = self._archive.memories(
            [shelf.partition], topics=[shelf.topic], statuses=statuses, block_ids=list(block_ids)
        )
        return frozenset(each for memory in found for each in memory.block_ids).intersection(block_ids)

    def _entries_of(
        self, block_ids: Sequence[str], scores: Mapping[str, tuple[Mapping[str, float], float | None]]
    ) -> list[Hit]:
        """Return the index entries of those of some blocks that memories of the topic came from, as far as they may pass."""
        ids = sorted(self._standing_on(block_ids))
        entries = self._archive.summaries([self.shelf.partition], ids=ids) if ids else ()
        return [
            block_hit(entry, *scores.get(entry.block_id, ({}, None)))
            for entry in entries
            if returnable(entry, self._search)
        ]


def _sure(contributions: Mapping[str, float]) -> tuple[Mapping[str, float], float]:
    """Return the contributions of a hit of a host's own agent, and their sum as its relevance."""
    return contributions, min(1.0, sum(contributions.values()))


def _bears(found: Hit | Ranked, threshold: float) -> bool:
    """Return whether a hit is relevant enough; if it was not searched for, its score counts."""
    relevance = min(1.0, found.score) if found.relevance is None else found.relevance
    return threshold <= 0 or relevance >= threshold


def agent_hits(agent: RetrievalAgent, search: Search, topic: TopicAgent) -> tuple[list[Hit] | None, tuple[str, ...]]:
    """Return what a host's own agent finds and may return, and what to report about it.

    If it fails, it finds nothing: the topic is then searched without it.
    """
    name = f"sub agent of {search.shelf.topic.key}"
    try:
        found, dropped = topic.vouched(agent(search, topic))
    except Exception as error:  # noqa: BLE001 - the boundary to foreign code, which may also answer anything
        return None, (f"{name}: {error_text(error)}; the topic was searched without it",)
    return found, (
        (f"{name}: {dropped} of its hits are none of this topic's, or may not be returned",) if dropped else ()
    )


def _check_query(query: object) -> None:
    if not isinstance(query, str) or not query.strip():
        raise InputError("The query is empty or no text.", "Ask something.")


def _check_number(name: str, value: object, least: float, most: float = 2**31, *, whole: bool = True) -> None:
    a_number = isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most
    if not a_number or (whole and not isinstance(value, int)):
        raise InputError(f"{name} is {value!r}.", f"Give a number from {least} on." if most > 1 else "Give 0 to 1.")


def _scored(hit: Hit, parts: dict[str, float]) -> Hit:
    return hit.model_copy(update={"contributions": parts, "score": sum(parts.values()), "why": reasons(parts)})


def _plain_score(hit: Hit) -> dict[str, float]:
    """Return an agent's parts of a score; the score alone if they do not add up to it, or are not within 0 to 1."""
    parts = hit.contributions
    if 0 <= hit.score <= 1 and math.isclose(sum(parts.values()), hit.score, abs_tol=1e-6):
        return dict(parts)
    return {"agent": min(1.0, max(0.0, hit.score))}


class Borrower:
    """Finds what grants allow. The ledger decides at each read which memories those are."""

    def __init__(self, book: GrantBook, searcher: Searcher, policy: SharingPolicy) -> None:
        self._book = book
        self._searcher = searcher
        self._policy = policy

    def may(self, asked: RecallInput) -> bool:
        """Return whether a grant lets the scope read memories, and the query asks for some."""
        scope = asked["scope"]
        return scope.agent is not None and asked["depth"] != "summaries" and bool(self._book.opened(scope))

    def find(self, asked: RecallInput, wanted: int) -> tuple[Hit, ...]:
        """Return what bears on a query of what others let the scope read."""
        opened = self._book.opened(asked["scope"])
        looks_back = asked["only"].looks_back or timed(asked["mode"], asked["time_start"], asked["time_end"])
        hits = self._looked_back(asked) if looks_back else self._searched(asked, opened, wanted)
        return tuple(_as_theirs(hit) for hit in hits)

    def _looked_back(self, asked: RecallInput) -> list[Hit]:
        scope, only = asked["scope"], asked["only"]
        hits = as_asked(
            self._weighed(self._book.memories(scope)),
            lambda head: self._weighed(self._book.versions(scope, head.memory_id)),
            asked["query"],
            only,
            worded=not timed(asked["mode"], asked["time_start"], asked["time_end"]),
        )
        return [hit for hit in hits if _in_reach(hit, asked)]

    def _searched(self, asked: RecallInput, opened: Mapping[Partition, Sequence[str]], wanted: int) -> list[Hit]:
        """Read the best candidates; if few of them pass, read more."""
        scope, words = asked["scope"], asked["mode"] != "semantic"
        ids = [memory_id for some in opened.values() for memory_id in some]
        looked_at = wanted * OVERFETCH
        candidates = self._searcher.search(
            list(opened), "memory", asked["question"], looked_at, words=words, allowed=ids, patience=asked["patience"]
        ).found
        hits: list[Hit] = []
        for start in range(0, len(candidates), wanted):
            scores = {each.record_id: each for each in candidates[start : start + wanted]}
            memories = self._weighed(self._book.memories(scope, list(scores)))
            read = (memory_hit(each, *scores[each.memory_id].parts) for each in memories if asked["only"].admits(each))
            hits.extend(hit for hit in read if _in_reach(hit, asked))
            if len(hits) >= wanted:
                break
        return hits

    def _weighed(self, memories: Iterable[Memory]) -> list[Memory]:
        """Return memories, believed no further than those who gave them."""
        return [
            each.model_copy(update={"trust": believed(each.trust, each.partition.agent or "", self._policy)})
            for each in memories
        ]


def _in_reach(hit: Hit, asked: RecallInput) -> bool:
    """Return whether a hit matches the topics, the time and the exact words asked for."""
    keys = None if asked["topics"] is None else {key.casefold() for key in asked["topics"]}
    return (
        (keys is None or hit.topic.casefold() in keys)
        and within(hit.time, asked["time_start"], asked["time_end"])
        and holds(hit.text, asked)
    )


def _as_theirs(hit: Hit) -> Hit:
    """Return a hit as another agent's: it does not bind the reader, or speak in the reader's voice."""
    origin = Origin(via="granted", agents=(hit.partition.agent or "",), at=hit.time)
    return hit.model_copy(update={"origin": origin, "enforcement": None, "perspective": "third-person"})
