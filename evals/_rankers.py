"""The product's ranking of messages in memory, where its parts can be left out and its weights fitted; and BM25 alone."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Protocol
from zoneinfo import ZoneInfo

import numpy as np

from evals._records import Message
from remegraph.engine.retrieval.blend import Ranked, Weights, freshen, judge, rank
from remegraph.engine.retrieval.scores import TextMatch, bm25, columns, signs_of_all
from remegraph.importers.messages import parse_time, to_messages
from remegraph.ledger.index.meanings import cosines
from remegraph.models import Partition
from remegraph.ports import Embedder, Layout, Meant, TextMatches
from remegraph.text.questions import Question, read_question
from remegraph.text.sentences import asks
from remegraph.text.tokens import query_tokens, token_counts

__all__ = ["MemoryIndex", "Ranker", "asked_at", "blend_ranker", "bm25_ranker", "bm25_scores"]

_PLACE = Partition(tenant="evals")


class Ranker(Protocol):
    """Answers a question with the ids of so many messages at most, best first."""

    def __call__(self, question: str, k: int, at: datetime | None = None) -> Sequence[str]: ...


class MemoryIndex:
    """One store as one partition: what the ledger would answer, from memory.

    Args:
        messages: The store's messages.
        timezone: Zone of times that name none.
        embedder: The embedder, asked only if it knows meaning.
    """

    def __init__(
        self, messages: Sequence[Message], timezone: str | None = None, embedder: Embedder | None = None
    ) -> None:
        threads: dict[str, int] = {}
        zone = ZoneInfo(timezone) if timezone else UTC
        read = to_messages(messages, thread="main", default_time=datetime.now(UTC), timezone=zone)
        self.read = {each.message_id: each for each in read}
        self.counts = [token_counts(message.indexed_text) for message in read]
        lengths = [sum(counts.values()) for counts in self.counts]
        self.layout = Layout(
            seqs=np.arange(1, len(messages) + 1, dtype=np.int32),
            threads=np.array([threads.setdefault(message["thread"], len(threads)) for message in messages]),
            lengths=np.array(lengths),
            asks=np.array([asks(each.text) for each in read]),
            users=np.array([each.role == "user" for each in read]),
        )

        self.last = asked_at(messages, timezone)
        self._embedder = embedder if embedder and embedder.semantic else None
        self._ids = [message["id"] for message in messages]
        if self._embedder:
            vectors = self._embedder.embed([f"{each.speaker}: {each.text}" for each in read])
            self._vectors = vectors.astype(np.float16)

    def match(self, tokens: Collection[str]) -> TextMatches:
        """Return the messages that hold one of the tokens."""
        wanted = set(tokens)
        matches = tuple(
            TextMatch(self._ids[row], row + 1, int(self.layout.lengths[row]), {t: counts[t] for t in held})
            for row, counts in enumerate(self.counts)
            if (held := wanted & counts.keys())
        )
        total = len(self.counts)
        return columns(_PLACE, matches, total, int(self.layout.lengths.sum()))

    def best(self, question: Question, weights: Weights, k: int) -> list[Ranked]:
        """Return the best messages of all, with all that the product knows of them."""
        matches = self.match(question.tokens)
        signs = signs_of_all([matches], self._meant(question.text), lambda _: self.layout, question.tokens)
        found = [
            Ranked(_PLACE, self._ids[each.seq - 1], each.contributions) for each in islice(rank(signs, weights), k)
        ]
        return judge(question, [(item, self.read[item.record_id]) for item in found], weights)

    def _meant(self, question: str) -> Mapping[Partition, Meant]:
        if self._embedder is None:
            return {}
        return {_PLACE: Meant(self.layout.seqs, cosines(self._vectors, self._embedder.embed([question])[0]))}


def asked_at(messages: Sequence[Message], timezone: str | None, time: str | None = None) -> datetime:
    """Return when a question is asked: at its time, or else as soon as all messages were said.

    Args:
        messages: All of them.
        timezone: Zone of times that name none.
        time: That of the question; a day without an hour is over.
    """
    zone = ZoneInfo(timezone) if timezone else UTC
    if time is None:
        return max(parse_time(message["time"], timezone=zone) for message in messages)
    read = parse_time(time, timezone=zone)
    return read if ":" in time else read.replace(hour=23, minute=59)


def blend_ranker(index: MemoryIndex, weights: Weights) -> Ranker:
    """Rank as the kit does, in memory, with these weights."""

    def ranked(question: str, k: int, at: datetime | None = None) -> Sequence[str]:
        best = index.best(read_question(question, at or index.last), weights, max(weights.read, k))
        fresh = freshen(question, [(item, index.read[item.record_id]) for item in best])
        return [each.record_id for each in fresh[:k]]

    return ranked


def bm25_scores(messages: Sequence[Message]) -> Callable[[str], Mapping[str, float]]:
    """Return what scores single messages by BM25, by id; those without a word of the question have no score."""
    index = MemoryIndex(messages)

    def scores(question: str) -> Mapping[str, float]:
        tokens = query_tokens(question)
        return bm25(index.match(tokens), tokens)

    return scores


def bm25_ranker(messages: Sequence[Message]) -> Ranker:
    """Rank single messages by BM25: the floor."""
    scores = bm25_scores(messages)

    def ranked(question: str, k: int, at: datetime | None = None) -> Sequence[str]:  # noqa: ARG001 - words only
        found = scores(question)
        return sorted(found, key=lambda record_id: -found[record_id])[:k]

    return ranked
