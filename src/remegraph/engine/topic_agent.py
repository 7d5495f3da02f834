"""A Sub Agent as a reader: what one topic knows, by query and by time (R9)."""

from __future__ import annotations

from datetime import datetime

from remegraph.engine.hits import block_hit, memory_hit
from remegraph.engine.search import Searcher
from remegraph.errors import InputError
from remegraph.language.times import parse_range
from remegraph.models import LIVE, Hit, Shelf
from remegraph.ports import Archive, Clock
from remegraph.rules.questions import read_question
from remegraph.rules.standing import dated

__all__ = ["TopicAgent"]

_LEAST = 1e-9


class TopicAgent:
    """Reads from one topic: its memories, and the index entries of the blocks that they came from.

    Args:
        archive: The ledger.
        searcher: Searches memories and index entries.
        clock: Tells what "last week" means now.
        shelf: The topic, and where it lives.
    """

    def __init__(self, archive: Archive, searcher: Searcher, clock: Clock, shelf: Shelf) -> None:
        self._archive = archive
        self._searcher = searcher
        self._clock = clock
        self.shelf = shelf

    def retrieve_by_query(self, query: str, limit_size: int = 50, threshold: float = 0.5) -> tuple[Hit, ...]:
        """Return what bears on a query, best first.

        Args:
            query: Any text.
            limit_size: How many hits at most.
            threshold: Least score, as a share of the best hit's, 0 to 1.
        """
        here = [self.shelf.partition]
        question = read_question(query, self._clock())
        found = self._searcher.search(here, "memory", question, limit_size).found
        scores = {hit.record_id: hit.contributions for hit in found}
        found = self._searcher.search(here, "block", question, limit_size).found
        entries = {hit.record_id: hit.contributions for hit in found}
        memories = self._archive.memories(here, topics=[self.shelf.topic], statuses=sorted(LIVE))
        blocks = self._archive.summaries(here, ids=sorted({each for memory in memories for each in memory.block_ids}))
        hits = [memory_hit(memory, scores[memory.memory_id]) for memory in memories if memory.memory_id in scores]
        hits += [block_hit(block, entries[block.block_id]) for block in blocks if block.block_id in entries]
        hits.sort(key=lambda hit: (-hit.score, hit.record_id))
        least = max(hits[0].score * threshold, _LEAST) if hits else 0.0
        return dated([hit for hit in hits if hit.score >= least][:limit_size], self._clock())

    def time_aware_retrieve(self, time: str | tuple[datetime, datetime]) -> tuple[Hit, ...]:
        """Return what was said in a time, oldest first: memories, and the index entries of blocks that it touches.

        Args:
            time: Words such as "last week" or 「上周三」, taken from now, or an aware start and end.

        Raises:
            InputError: The words name no time.
        """
        start, end = self._range(time) if isinstance(time, str) else time
        here = [self.shelf.partition]
        memories = self._archive.memories(here, topics=[self.shelf.topic], statuses=sorted(LIVE))
        blocks = self._archive.summaries(here, ids=sorted({each for memory in memories for each in memory.block_ids}))
        hits = [memory_hit(memory, {}) for memory in memories if start <= memory.said_at <= end]
        hits += [block_hit(block, {}) for block in blocks if block.start_time <= end and block.end_time >= start]
        return dated(sorted(hits, key=lambda hit: (hit.time, hit.record_id)), self._clock())

    def _range(self, words: str) -> tuple[datetime, datetime]:
        mention = parse_range(words, self._clock())
        if mention is None:
            raise InputError(f"{words!r} names no time.", "Write it as 'last week' or as two datetimes.")
        return mention.begins, mention.ends
