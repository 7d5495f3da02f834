"""Memories of one topic as a filter asks for them: those that are live no more, and those of another time (X4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from remegraph.engine.hits import memory_hit
from remegraph.language.tokens import query_tokens, token_counts
from remegraph.models import Hit, Memory, RecallFilter, Shelf
from remegraph.ports import Archive, TextMatch, TextMatches
from remegraph.rules.chains import known_by
from remegraph.rules.ranking import bm25

__all__ = ["as_asked", "look_back"]


def look_back(archive: Archive, shelf: Shelf, query: str, only: RecallFilter, *, worded: bool = True) -> list[Hit]:
    """Return the memories of a topic that pass a filter and hold a word of the query, whatever became of them since.

    They are read from the ledger and ranked by words: the indexes hold live memories only.

    Args:
        archive: The ledger.
        shelf: The topic.
        query: The query.
        only: What may pass.
        worded: Whether they must hold a word of it.
    """
    statuses = sorted(only.wanted) if only.known_at is None else None  # its status of then decides
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

    Args:
        heads: The memories, as they are now.
        versions: Gives all versions of one of them.
        query: The query.
        only: What may pass.
        worded: Whether they must hold a word of it.
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
    """Yield the versions that were the newest ones then."""
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
    return bm25(TextMatches.of(memories[0].partition, matches, len(counted), length), tokens) if matches else {}
