"""Search by text and vectors together, for the Sub Agents and the retriever."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Literal

from remegraph.deadlines import Patience
from remegraph.engine.retrieval.blend import Ranked
from remegraph.engine.retrieval.scores import bm25, coverage, nearest_of
from remegraph.engine.routes import self_topic
from remegraph.errors import WITHOUT_VECTORS
from remegraph.models import LIVE, HitKind, IndexState, Layer, Memory, Message, Partition, Scope, Shelf, StoredMessage
from remegraph.models.standing import Signs
from remegraph.models.supersession import Alike
from remegraph.ports import Embedder, Meant, TextMatches
from remegraph.telemetry import event
from remegraph.text.questions import Question, at_large
from remegraph.text.scripts import language_of
from remegraph.text.tokens import estimate_tokens, query_tokens

if TYPE_CHECKING:
    from remegraph.ledger.archive import Archive
    from remegraph.ledger.index.projection import VectorProjection
    from remegraph.ports import Vectors

__all__ = ["Candidates", "Searcher", "Similar"]

_log = logging.getLogger(__name__)

_LOOKED_AT = 1000
"""Memories of one topic to consider, the newest first."""

_CHUNK = 100
"""Text matches to load if they may belong elsewhere."""

_EACH = 5
"""Memories to search by the meaning of one message."""

_TURNS = (3, 2, 1, 1)
"""Memories proposed in each round by words, meaning, slots and age. Of 67 memories of four long talks that something
said later changes, 48 are among the first 1,000 tokens so, 61 among 2,000, and all among 4,000."""

_BESIDE = 6
"""Memories of other topics that a writer knows of."""

_MOST_OF_ITSELF = 8
"""Self memories shown where a block is routed, and to a thinker that looks back as the agent: the most important."""

_LINE = 15
"""Tokens of a line that shows a memory, its words and its slot left out."""

_STATED: tuple[Layer, ...] = ("episodic", "long_term")
"""The layers of what is compared with statements: they neither strengthen nor rewrite a skill."""

_HASTE = 0.1
"""Seconds that a write waits for the index when it searches for similar memories."""

_QUERIES = 16
"""Queries whose vectors are cached: one recall searches memories, index entries and messages."""

_TEXT_WEIGHT = {True: 0.6, False: 0.85}
"""Share of text in a score, where the embedder knows meaning and where it only knows shared words."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """Result of a search, best first."""

    found: tuple[Ranked, ...]
    index: IndexState
    degraded: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Similar:
    """Memories that a writer is shown, in the order in which they were learned."""

    memories: tuple[Memory, ...] = ()
    """Of its topic."""
    pairs: tuple[tuple[str, ...], ...] = ()
    """Those of them that hold one slot for one value together, by their ids."""
    beside: tuple[Memory, ...] = ()
    """Of other topics of the same person."""


class Searcher:
    """Searches memories and index entries."""

    def __init__(self, archive: Archive, projection: VectorProjection, embedder: Embedder) -> None:
        self._archive = archive
        self._projection = projection
        self._embedder = embedder
        self._vector = lru_cache(_QUERIES)(self._embedded)
        self._asked = lru_cache(self._embedded_at_large)
        self._at_large = lru_cache(_QUERIES)(self._nearest_at_large)

    def session(self) -> AbstractContextManager[None]:
        """Let all searches in this context see one snapshot; see `Archive.session`."""
        return self._archive.session()

    @property
    def semantic(self) -> bool:
        """Whether the embedder knows meaning."""
        return self._embedder.semantic

    def _embedded(self, query: str) -> Vectors:
        self._asked(language_of(query))  # once, while no ledger session is open
        vector: Vectors = self._embed([query])[0]
        return vector

    def _embed(self, texts: Sequence[str]) -> Vectors:
        if self._embedder.semantic:  # the embedder may call a server
            self._archive.away()
        return self._embedder.embed(texts)

    def _embedded_at_large(self, language: Literal["en", "zh"]) -> Vectors:
        return self._embed(at_large(language))

    def meant(self, query: str, partitions: Sequence[Partition]) -> Mapping[Partition, Meant]:
        """Return how near the messages of these partitions are in meaning to a query; empty without vectors."""
        if not self.semantic:
            return {}
        try:
            return self._projection.meant(partitions, self._vector(query))
        except WITHOUT_VECTORS as error:
            _log.warning("Messages are ranked by words alone: %s", error, extra=event("search.words", error))
            return {}

    def signs(
        self,
        question: Question,
        matched: Sequence[TextMatches],
        meant: Mapping[Partition, Meant],
        messages: Sequence[StoredMessage],
    ) -> dict[tuple[Partition, str], Signs]:
        """Return the signs that messages bear on a question."""
        seqs = [message.seq for message in messages]
        held = {matches.partition: coverage(matches, question.weighted_tokens, seqs) for matches in matched}
        at_large = self._at_large(question.text) if meant else 0.0
        found: dict[tuple[Partition, str], Signs] = {}
        for message in messages:
            covers, known = held.get(message.partition, ({}, 0.0))
            cosine = meant[message.partition].of(message.seq) if message.partition in meant else None
            nearer = None if cosine is None else cosine - at_large
            found[message.partition, message.message_id] = Signs(covers.get(message.message_id, 0.0), known, nearer)
        return found

    def _nearest_at_large(self, query: str) -> float:
        """Return how near a query is to questions unrelated to anything remembered."""
        return nearest_of(self._vector(query), self._asked(language_of(query)))

    def search(
        self,
        partitions: Sequence[Partition],
        kind: HitKind,
        question: Question,
        k: int,
        *,
        words: bool = True,
        allowed: Sequence[str] | None = None,
        beside: Sequence[HitKind] = (),
        patience: Patience | None = None,
    ) -> Candidates:
        """Return the best memories or index entries for a question, by words and vectors.

        The text part of a score is BM25 over its upper bound for this query, so that it is 0 to 1 and comparable
        between queries; the dense part is the cosine. They are weighed, not averaged by rank. Of vectors, `k` are
        looked at; all text matches count. Without `words`, it is vectors alone. With `allowed`, only these records are
        looked at, as if there were no others. `patience` is shared with what else is searched for the same question.
        """
        weight = _TEXT_WEIGHT[self._embedder.semantic] if words else 0.0
        found: dict[tuple[Partition, str], dict[str, float]] = {}
        tokens = question.tokens if words else {}
        held: dict[Partition, tuple[Mapping[str, float], float]] = {}
        for matches in self._archive.match(partitions, kind, list(tokens), allowed, beside=beside) if tokens else ():
            held[matches.partition] = coverage(matches, question.weighted_tokens)
            for record_id, score in bm25(matches, tokens).items():
                found.setdefault((matches.partition, record_id), {})["text"] = weight * score
        nearer: dict[tuple[Partition, str], float] = {}
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
            at_large = self._at_large(question.text) if nearest else 0.0
            for near in nearest:
                place = near.partition, near.record_id
                found.setdefault(place, {})["dense"] = (1 - weight) * max(0.0, near.similarity)
                nearer[place] = near.similarity - at_large
        least = min(nearer.values(), default=None)  # anything less similar was not named
        scored: list[Ranked] = []
        for place, parts in found.items():
            covers, known = held.get(place[0], ({}, 0.0))
            signs = Signs(covers.get(place[1], 0.0), known, nearer.get(place, least))
            scored.append(Ranked(*place, parts, signs))
        scored.sort(key=lambda item: (-item.score, item.record_id))
        return Candidates(tuple(scored), index, degraded)

    def alike(self, partition: Partition, text: str, limit: int) -> tuple[tuple[Alike, ...], tuple[str, ...]]:
        """Return the live memories of a partition most like a text, with their similarity; and what was unavailable.

        At most `limit` are looked at, by words and by vectors each.
        """
        similarities: dict[str, float] = {}
        degraded: tuple[str, ...] = ()
        try:
            vector = self._embed([text])[0]
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

        There are at most `limit` for each.
        """
        found = [[name for _, name in each[:limit]] for each in self._ranked(partition, texts)]
        ids = list(dict.fromkeys(record_id for record_ids in found for record_id in record_ids))
        memories = self._archive.memories([partition], ids=ids, statuses=sorted(LIVE)) if ids else ()
        by_id = {memory.memory_id: memory for memory in memories}
        return [tuple(by_id[record_id] for record_id in each if record_id in by_id) for each in found]

    def similar(self, shelf: Shelf, messages: Iterable[Message], tokens: int) -> Similar:
        """Return what a writer of one topic is shown for these messages (R8, recall_similar_memory).

        That is the whole topic, as far as the budget goes. Past it, these take turns until the budget is spent, in this
        order of claim: what shares most words with the messages, what is nearest by meaning, what holds a slot that
        they name, and what is newest. Memories in one slot that holds one value come before all of them, together.
        `tokens` is what the memories of the topic may cost.
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
        """Return the live memories that these messages may mean: by words, by meaning, and the newest."""
        worded = [self._worded(partition, messages)[:limit] for partition in partitions]
        newest = self._archive.memories(partitions, statuses=sorted(LIVE), layers=_STATED, limit=limit)
        live = [memory.memory_id for memory in newest]
        near = [self._nearest(partition, messages, None)[:limit] for partition in partitions]
        ways = [*worded, *near, live]
        ids = [name for each in zip_longest(*ways) for name in each if name is not None]
        found = self._archive.memories(partitions, ids=list(dict.fromkeys(ids)), statuses=sorted(LIVE), layers=_STATED)
        by_id = {memory.memory_id: memory for memory in found}
        return tuple(by_id[name] for name in dict.fromkeys(ids) if name in by_id)[:limit]

    def itself(self, scope: Scope) -> tuple[Memory, ...]:
        """Return what an agent knows of itself, most important first."""
        found = self._archive.memories(self._archive.visible(scope), topics=[self_topic()], statuses=sorted(LIVE))
        return tuple(sorted(found, key=lambda memory: -memory.importance)[:_MOST_OF_ITSELF])

    def _worded(self, partition: Partition, messages: Sequence[Message]) -> list[str]:
        """Return the live memories of a partition that share words with these messages: the most similar for each, in turn.

        The subject of one message would be lost among the many words of the others.
        """
        ranked = self._ranked(partition, [message.text for message in messages])
        turns = (sorted(each for each in turn if each is not None) for turn in zip_longest(*ranked))
        return list(dict.fromkeys(name for turn in turns for _, name in turn))

    def _ranked(self, partition: Partition, texts: Sequence[str]) -> list[list[tuple[float, str]]]:
        """Return, for each text, the memories of a partition that share words with it, by falling score, negated."""
        asked = [query_tokens(text) for text in texts]
        union = list(dict.fromkeys(token for tokens in asked for token in tokens))
        ranked: list[list[tuple[float, str]]] = [[] for _ in texts]
        for matches in self._archive.match([partition], "memory", union) if union else ():
            for place, tokens in enumerate(asked):
                scores = bm25(matches, tokens) if tokens else {}
                ranked[place] = sorted((-score, name) for name, score in scores.items() if score > 0)
        return ranked

    def _nearest(self, partition: Partition, messages: Sequence[Message], allowed: Sequence[str] | None) -> list[str]:
        """Return the memories that are nearest in meaning to any of these messages; none without vectors."""
        texts = [message.text for message in messages if message.text.strip() and message.role != "tool"]
        if not self.semantic or not texts:
            return []
        found: dict[str, float] = {}
        try:
            for vector in self._embed(texts):
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
            if not memory.slot_many and memory.valid_to is None:  # what has ended no longer holds a slot
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
    """Order by when a memory was first said, so that later ones come after it, and a cached prompt stays valid."""
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
