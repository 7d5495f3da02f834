"""The product's ranking of messages in memory, where its parts can be left out and its weights fitted; and BM25 alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import islice
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from evals._records import Message
from remegraph.exchange.chat import to_messages
from remegraph.language.tokens import query_tokens, token_counts
from remegraph.models import Partition
from remegraph.ports import Embedder, Layout, TextMatch, TextMatches
from remegraph.rules.blending import Meant, Weights, default_weights, freshen, judge, rank
from remegraph.rules.ranking import MessageSigns, bm25, meaning_signs, message_signs

__all__ = ["MemoryIndex", "Ranker", "blend_ranker", "bm25_ranker"]

_PLACE = Partition(tenant="evals")

Ranker = Callable[[str, int], Sequence[str]]
"""Answers a question with the ids of so many messages at most, best first."""


class MemoryIndex:
    """One store as one partition: what the ledger would answer, from memory.

    Args:
        messages: The store's messages.
        embedder: The embedder, asked only if it knows meaning.
    """

    def __init__(self, messages: Sequence[Message], embedder: Embedder | None = None) -> None:
        threads: dict[str, int] = {}
        # What is said needs no zone, whatever form the times have.
        read = to_messages(messages, thread="main", default_time=datetime.now(UTC), timezone=UTC)
        self.counts = [token_counts(message.indexed_text) for message in read]
        lengths = [sum(counts.values()) for counts in self.counts]
        self.layout = Layout(
            seqs=np.arange(1, len(messages) + 1),
            threads=np.array([threads.setdefault(message["thread"], len(threads)) for message in messages]),
            lengths=np.array(lengths),
            message_ids=[message["id"] for message in messages],
        )

        self._embedder = embedder if embedder and embedder.semantic else None
        self._rows = {message["id"]: row for row, message in enumerate(messages)}
        if self._embedder:
            self._vectors = self._embedder.embed([f"{each.speaker}: {each.text}" for each in read])

    def match(self, tokens: Sequence[str]) -> TextMatches:
        """Return the messages that hold one of the tokens."""
        wanted = set(tokens)
        matches = tuple(
            TextMatch(
                self.layout.message_ids[row], row + 1, int(self.layout.lengths[row]), {t: counts[t] for t in held}
            )
            for row, counts in enumerate(self.counts)
            if (held := wanted & counts.keys())
        )
        total = len(self.counts)
        return TextMatches(_PLACE, matches, total, int(self.layout.lengths.sum()))

    def signs(self, tokens: Sequence[str]) -> tuple[Partition, MessageSigns]:
        """Return the signs of the messages near these tokens."""
        return _PLACE, message_signs(self.match(tokens), self.layout, tokens)

    def meant(self, question: str, record_ids: Sequence[str]) -> Meant:
        """Return what these messages mean, beside a question."""
        if self._embedder is None or not record_ids:
            return {}
        cosines = self._vectors @ self._embedder.embed([question])[0]

        def of(ids: Sequence[str]) -> NDArray[np.float64]:
            return np.asarray(cosines[[self._rows[each] for each in ids]], np.float64)

        signs = meaning_signs(self.layout, [self._rows[each] + 1 for each in record_ids], of)
        return {(_PLACE, record_id): values for record_id, values in signs.of_each().items()}


def blend_ranker(
    messages: Sequence[Message],
    timezone: str | None = None,
    weights: Weights | None = None,
    embedder: Embedder | None = None,
) -> Ranker:
    """Rank as the kit does, in memory; with its own weights unless others are given."""
    weights = weights or default_weights(semantic=embedder is not None and embedder.semantic)
    index = MemoryIndex(messages, embedder)
    zone = ZoneInfo(timezone) if timezone else None
    now = datetime.now(UTC)
    read = {each.message_id: each for each in to_messages(messages, thread="main", default_time=now, timezone=zone)}

    def ranked(question: str, k: int) -> Sequence[str]:
        tokens = query_tokens(question)
        found = islice(rank([index.signs(tokens)], weights), max(weights.read, k))
        best = [(item, read[item.record_id]) for item in found]
        judged = judge(question, best, weights, index.meant(question, [item.record_id for item, _ in best]))
        fresh = freshen(question, [(item, read[item.record_id]) for item in judged])
        return [each.record_id for each in fresh[:k]]

    return ranked


def bm25_ranker(messages: Sequence[Message]) -> Ranker:
    """Rank single messages by BM25: the floor."""
    index = MemoryIndex(messages)

    def ranked(question: str, k: int) -> Sequence[str]:
        tokens = query_tokens(question)
        scores = bm25(index.match(tokens), tokens)
        return sorted(scores, key=lambda record_id: -scores[record_id])[:k]

    return ranked
