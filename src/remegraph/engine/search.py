"""Text and vectors together: what the Sub Agents and the retriever search with."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain, zip_longest
from typing import TYPE_CHECKING

from remegraph.deadlines import Patience
from remegraph.errors import WITHOUT_VECTORS
from remegraph.language.tokens import estimate_tokens, query_tokens
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

__all__ = ["Candidates", "Searcher", "Similar"]

_log = logging.getLogger(__name__)

_LOOKED_AT = 1000
"""Memories of one topic that are looked at, the newest first."""

_CHUNK = 100
"""Text matches that are loaded where they may lie elsewhere."""

_EACH = 5
"""Memories that are looked for by the meaning of one message."""

_TURNS = (3, 2, 1, 1)
"""Memories in a turn that words, meaning, slots and age put forward. Of 67 memories of four long talks that something
said later changes, 48 are among the first 1,000 tokens so, 61 among 2,000, and all among 4,000."""

_BESIDE = 6
"""Memories of other topics that a writer knows of."""

_LINE = 15
"""Tokens of a line that shows a memory, its words and its slot left out."""

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


@dataclass(frozen=True, slots=True)
class Similar:
    """What a writer is shown, all of it in the order in which it was learned."""

    memories: tuple[Memory, ...] = ()
    """Of its topic."""
    pairs: tuple[tuple[str, ...], ...] = ()
    """Those of them that hold one slot for one value together, by their ids."""
    beside: tuple[Memory, ...] = ()
    """Of other topics of the same person."""


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

    def similar(self, shelf: Shelf, messages: Iterable[Message], tokens: int) -> Similar:
        """Return what a writer of one topic is shown for these messages (R8, recall_similar_memory).

        That is the whole topic, as far as the budget goes. Past it, these take turns until the budget is spent, in
        this order of claim: what shares most words with the messages, what is nearest by meaning, what holds a slot that
        they name, and what is newest. Memories in one slot that holds one value come before all of them, together.

        Args:
            shelf: The topic.
            messages: A block.
            tokens: What the memories of the topic may cost.
        """
        told = list(messages)
        worded = self._worded(shelf.partition, told)
        topic = self._topic(shelf, worded[:_CHUNK])
        crowds = self._crowds(shelf, topic)
        known = {memory.memory_id: memory for memory in (*topic, *chain.from_iterable(crowds))}
        if sum(map(_cost, known.values())) > tokens:
            ways = (
                [name for name in worded if name in known],
                self._nearest(shelf.partition, told, list(known)),
                [name for name, memory in known.items() if _named(memory, told)],
                list(known),
            )
            first = dict.fromkeys(memory.memory_id for crowd in crowds for memory in crowd)
            known = _within(tokens, known, first, ways)
        pairs = [tuple(memory.memory_id for memory in crowd) for crowd in crowds]
        return Similar(
            memories=tuple(sorted(known.values(), key=_age)),
            pairs=tuple(pair for pair in pairs if known.keys() >= set(pair)),
            beside=self._beside(shelf, worded, known),
        )

    def meant_by(self, partitions: Sequence[Partition], messages: Sequence[Message], limit: int) -> tuple[Memory, ...]:
        """Return the live memories that somebody may mean by these messages: by words, by meaning, and the newest.

        Args:
            partitions: Where to look.
            messages: What was said.
            limit: How many at most.
        """
        worded = [self._worded(partition, messages)[:limit] for partition in partitions]
        newest = self._archive.memories(partitions, statuses=sorted(LIVE), layers=_STATED, limit=limit)
        live = [memory.memory_id for memory in newest]
        near = [self._nearest(partition, messages, None)[:limit] for partition in partitions]
        ways = [*worded, *near, live]
        ids = [name for each in zip_longest(*ways) for name in each if name is not None]
        found = self._archive.memories(partitions, ids=list(dict.fromkeys(ids)), statuses=sorted(LIVE), layers=_STATED)
        by_id = {memory.memory_id: memory for memory in found}
        return tuple(by_id[name] for name in dict.fromkeys(ids) if name in by_id)[:limit]

    def _worded(self, partition: Partition, messages: Sequence[Message]) -> list[str]:
        """Return the live memories of a partition that share words with these messages: the likest of each, in turn.

        What one message is about would be lost among the many words of the others.
        """
        asked = [tokens for message in messages if (tokens := query_tokens(message.text))]
        union = list(dict.fromkeys(token for tokens in asked for token in tokens))
        ranked: list[list[tuple[float, str]]] = [[] for _ in asked]
        for matches in self._archive.match([partition], "memory", union) if union else ():
            for place, tokens in enumerate(asked):
                scores = bm25(matches, tokens)
                ranked[place] = sorted((-score, name) for name, score in scores.items() if score > 0)
        turns = (sorted(each for each in turn if each is not None) for turn in zip_longest(*ranked))
        return list(dict.fromkeys(name for turn in turns for _, name in turn))

    def _nearest(self, partition: Partition, messages: Sequence[Message], allowed: Sequence[str] | None) -> list[str]:
        """Return the memories that are nearest in meaning to any of these messages; none without vectors."""
        texts = [message.text for message in messages if message.text.strip() and message.role != "tool"]
        if not self.semantic or not texts:
            return []
        found: dict[str, float] = {}
        try:
            for vector in self._embedder.embed(texts):
                for near in self._projection.nearest([partition], "memory", vector, _EACH, allowed)[0]:
                    found[near.record_id] = max(near.similarity, found.get(near.record_id, -1.0))
        except WITHOUT_VECTORS as error:
            _log.warning("A writer is shown memories by words alone: %s", error, extra=event("search.words", error))
        return sorted(found, key=lambda name: (-found[name], name))

    def _topic(self, shelf: Shelf, worded: Sequence[str]) -> list[Memory]:
        """Return the live statements of a topic, the newest first; of a large one those, and what shares words."""
        here = partial(
            self._archive.memories,
            [shelf.partition],
            topics=[shelf.topic],
            statuses=sorted(LIVE),
            layers=_STATED,
        )
        found = list(here(limit=_LOOKED_AT))
        if len(found) == _LOOKED_AT:
            held = {memory.memory_id for memory in found}
            found += here(ids=[name for name in worded if name not in held])
        return found

    def _crowds(self, shelf: Shelf, topic: Sequence[Memory]) -> list[tuple[Memory, ...]]:
        """Return the memories of each slot of one value that several hold, oldest first."""
        slots = sorted({each.canonical_topic for each in topic if each.canonical_topic and not each.slot_many})
        by_slot: dict[str, dict[str, Memory]] = {}
        for memory in (
            self._archive.memories(
                [shelf.partition], topics=[shelf.topic], canonical_topics=slots, statuses=sorted(LIVE), layers=_STATED
            )
            if slots
            else ()
        ):
            if not memory.slot_many and memory.valid_to is None:  # what is over holds no slot any more
                by_slot.setdefault(memory.canonical_topic, {})[memory.memory_id] = memory
        crowds = [tuple(sorted(crowd.values(), key=_age)) for crowd in by_slot.values()]
        return [crowd for crowd in crowds if len(crowd) > 1 and not all(memory.firm for memory in crowd)]

    def _beside(self, shelf: Shelf, worded: Sequence[str], known: Mapping[str, Memory]) -> tuple[Memory, ...]:
        """Return the few memories of other topics that share most words with what was said."""
        ids = [name for name in worded if name not in known][:_CHUNK]
        found = self._archive.memories([shelf.partition], ids=ids, statuses=sorted(LIVE), layers=_STATED) if ids else ()
        others = {memory.memory_id: memory for memory in found if memory.topic.key != shelf.topic.key}
        return tuple(sorted([others[name] for name in ids if name in others][:_BESIDE], key=_age))


def _cost(memory: Memory) -> int:
    return estimate_tokens(memory.content) + estimate_tokens(memory.canonical_topic) + _LINE


def _age(memory: Memory) -> tuple[str, str]:
    """Order by when a memory was first said: whatever is learned later stands behind it, and a cached prompt holds."""
    return (memory.block_ids[0] if memory.block_ids else f"{memory.said_at:%Y%m%d}", memory.memory_id)


def _named(memory: Memory, messages: Sequence[Message]) -> bool:
    """Return whether messages name the attribute of a memory's slot, or the value that it holds."""
    attribute = memory.canonical_topic.partition(":")[2].replace("_", " ")
    asked = [set(query_tokens(text)) for text in (attribute, memory.slot_value)]
    said = [set(query_tokens(message.text)) for message in messages] if any(asked) else []
    return any(tokens and tokens <= words for tokens in asked for words in said)


def _within(
    tokens: int, known: Mapping[str, Memory], first: Iterable[str], ways: Sequence[Sequence[str]]
) -> dict[str, Memory]:
    """Return as many memories as a budget holds: the first, then some from each way in turn."""
    parts = ([way[at : at + many] for at in range(0, len(way), many)] for way, many in zip(ways, _TURNS, strict=True))
    turns = chain.from_iterable(zip_longest(*parts, fillvalue=()))
    chosen: dict[str, Memory] = {}
    for name in dict.fromkeys((*first, *chain.from_iterable(turns))):
        cost = _cost(known[name])
        if cost <= tokens:
            chosen[name] = known[name]
            tokens -= cost
    return chosen
