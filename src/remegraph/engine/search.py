"""Text and vectors together: what the Sub Agents and the retriever search with."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from remegraph.deadlines import Patience
from remegraph.errors import WITHOUT_VECTORS
from remegraph.language.tokens import query_tokens
from remegraph.models import LIVE, HitKind, IndexState, Layer, Memory, Message, Partition, Shelf, StoredMessage
from remegraph.ports import Archive, Embedder, Projection
from remegraph.rules.blending import Meant, Ranked
from remegraph.rules.merging import Alike
from remegraph.rules.questions import Question
from remegraph.rules.ranking import bm25, meaning_signs
from remegraph.telemetry import event

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from remegraph.ports import Vectors

__all__ = ["Candidates", "Searcher"]

_log = logging.getLogger(__name__)

_LOOKED_AT = 1000
"""Text matches loaded at most in search of the memories of one topic."""

_CHUNK = 100

_STATED: tuple[Layer, ...] = ("episodic", "long_term")
"""The layers of what is compared with statements: they neither strengthen nor rewrite a skill."""

_HASTE = 0.1
"""Seconds that a write waits for the index, where it looks for what is like it."""

_QUERIES = 16
"""Queries whose vectors are kept: one recall searches memories, index entries and messages."""

_TEXT_WEIGHT = {True: 0.6, False: 0.85}
"""Share of text in a score, where the embedder knows meaning and where it only knows shared words."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """What a search found, best first."""

    found: tuple[Ranked, ...]
    index: IndexState
    degraded: tuple[str, ...]


class Searcher:
    """Searches memories and index entries.

    Args:
        archive: Finds words.
        projection: Finds vectors.
        embedder: Embeds queries.
    """

    def __init__(self, archive: Archive, projection: Projection, embedder: Embedder) -> None:
        self._archive = archive
        self._projection = projection
        self._embedder = embedder
        self._vector = lru_cache(_QUERIES)(lambda query: embedder.embed([query])[0])

    @property
    def semantic(self) -> bool:
        """Whether the embedder knows meaning."""
        return self._embedder.semantic

    def meant(self, query: str, messages: Sequence[StoredMessage]) -> Meant:
        """Return how near the meaning of these messages is to a query's; nothing where no vectors can tell.

        Args:
            query: The query.
            messages: As read from the archive.
        """
        found: dict[tuple[Partition, str], Mapping[str, float]] = {}
        if not self.semantic:
            return found
        here: dict[Partition, dict[int, str]] = {}
        for message in messages:
            here.setdefault(message.partition, {})[message.seq] = message.message_id
        try:
            vector = self._vector(query)
            for partition, some in here.items():
                cosines = partial(self._cosines, partition, vector)
                signs = meaning_signs(self._archive.layout(partition), list(some), cosines).of_each()
                found |= {(partition, record_id): signs[seq] for seq, record_id in some.items() if seq in signs}
        except WITHOUT_VECTORS as error:
            _log.warning("Messages are ranked by words alone: %s", error, extra=event("search.words", error))
            return {}
        return found

    def _cosines(self, partition: Partition, vector: Vectors, seqs: Sequence[int]) -> NDArray[np.float64]:
        ids = self._archive.message_ids(partition, seqs)
        return self._projection.cosines(partition, vector, [ids.get(seq, "") for seq in seqs])

    def search(
        self,
        partitions: Sequence[Partition],
        kind: HitKind,
        question: Question,
        k: int,
        *,
        words: bool = True,
        allowed: Sequence[str] | None = None,
        patience: Patience | None = None,
    ) -> Candidates:
        """Return the best memories or index entries for a question, by words and vectors.

        The text part of a score is BM25 over its upper bound for this query, so that it is 0 to 1 and
        comparable between queries; the dense part is the cosine. They are weighed, not averaged by rank.

        Args:
            partitions: Where to look.
            kind: memory or block.
            question: The question.
            k: How many vectors to look at; all text matches count.
            words: Whether words count, too; else it is vectors alone.
            allowed: Only these records, as if there were no others.
            patience: How long to wait for the index, with what else is searched for the same question.
        """
        weight = _TEXT_WEIGHT[self._embedder.semantic] if words else 0.0
        found: dict[tuple[Partition, str], dict[str, float]] = {}
        tokens = question.tokens if words else {}
        for matches in self._archive.match(partitions, kind, list(tokens), allowed) if tokens else ():
            for record_id, score in bm25(matches, tokens).items():
                found.setdefault((matches.partition, record_id), {})["text"] = weight * score
        index: IndexState = "none"
        degraded: tuple[str, ...] = ()
        try:
            vector = self._vector(question.text)
            nearest, index = self._projection.nearest(partitions, kind, vector, k, allowed, patience=patience)
        except WITHOUT_VECTORS as error:
            degraded = (f"vectors: {error.what}",)
        else:
            failure = self._projection.failure if index == "sql" else None
            degraded = () if failure is None else (f"index: {failure.what}",)
            for near in nearest:
                contributions = found.setdefault((near.partition, near.record_id), {})
                contributions["dense"] = (1 - weight) * max(0.0, near.similarity)
        scored = [Ranked(partition, record_id, parts) for (partition, record_id), parts in found.items()]
        scored.sort(key=lambda item: (-item.score, item.record_id))
        return Candidates(tuple(scored), index, degraded)

    def alike(self, partition: Partition, text: str, limit: int) -> tuple[tuple[Alike, ...], tuple[str, ...]]:
        """Return the live memories of a partition most like a text, with their similarity; and what could not be used.

        Args:
            partition: Where.
            text: As it would be indexed.
            limit: How many to look at, by words and by vectors each.
        """
        similarities: dict[str, float] = {}
        degraded: tuple[str, ...] = ()
        try:
            vector = self._embedder.embed([text])[0]
            nearest, _ = self._projection.nearest([partition], "memory", vector, limit, patience=Patience(_HASTE))
            similarities = {near.record_id: max(0.0, near.similarity) for near in nearest}
        except WITHOUT_VECTORS as error:
            degraded = (f"vectors: {error.what}",)
        scores: dict[str, float] = {}
        tokens = query_tokens(text)
        for matches in self._archive.match([partition], "memory", tokens) if tokens else ():
            scores.update(bm25(matches, tokens))
        worded = sorted(scores, key=lambda record_id: (-scores[record_id], record_id))[:limit]
        ids = list(dict.fromkeys((*similarities, *worded)))
        memories = self._archive.memories([partition], ids=ids, statuses=sorted(LIVE), layers=_STATED) if ids else ()
        return tuple(Alike(memory, similarities.get(memory.memory_id)) for memory in memories), degraded

    def worded(self, partition: Partition, texts: Sequence[str], limit: int) -> list[tuple[Memory, ...]]:
        """Return, for each text, the live memories of a partition that share most words with it.

        Args:
            partition: Where.
            texts: As they would be indexed.
            limit: How many for each at most.
        """
        asked = [query_tokens(text) for text in texts]
        union = list(dict.fromkeys(token for tokens in asked for token in tokens))
        found: list[list[str]] = [[] for _ in texts]
        for matches in self._archive.match([partition], "memory", union) if union else ():
            for place, tokens in enumerate(asked):
                scores = {key: score for key, score in bm25(matches, tokens).items() if score > 0} if tokens else {}
                found[place] = sorted(scores, key=lambda key: (-scores[key], key))[:limit]
        ids = list(dict.fromkeys(record_id for record_ids in found for record_id in record_ids))
        memories = self._archive.memories([partition], ids=ids, statuses=sorted(LIVE)) if ids else ()
        by_id = {memory.memory_id: memory for memory in memories}
        return [tuple(by_id[record_id] for record_id in each if record_id in by_id) for each in found]

    def similar(self, shelf: Shelf, messages: Iterable[Message], limit: int) -> tuple[Memory, ...]:
        """Return the live memories of one topic that are most like these messages (R8, recall_similar_memory).

        Args:
            shelf: The topic.
            messages: A block.
            limit: How many at most.
        """
        tokens = list(dict.fromkeys(token for message in messages for token in query_tokens(message.text)))
        if not tokens:
            return ()
        scores: dict[str, float] = {}
        for matches in self._archive.match([shelf.partition], "memory", tokens):
            scores.update(bm25(matches, tokens))
        ranked = sorted(scores, key=lambda record_id: (-scores[record_id], record_id))[:_LOOKED_AT]
        found: list[Memory] = []
        for start in range(0, len(ranked), _CHUNK):
            part = ranked[start : start + _CHUNK]
            memories = self._archive.memories(
                [shelf.partition], ids=part, topics=[shelf.topic], statuses=sorted(LIVE), layers=_STATED
            )
            by_id = {memory.memory_id: memory for memory in memories}
            found.extend(by_id[record_id] for record_id in part if record_id in by_id)
            if len(found) >= limit:
                break
        return tuple(found[:limit])
