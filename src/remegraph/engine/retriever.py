"""The Meta Agent's read path, as a graph (design document, "Retriever"):

    START -> route -> (Send) sub_agent, one per topic, in parallel -> fuse -> trace_back -> assemble -> END
    route -> fuse      where no topic is touched

No model is called and nothing is written. What was learned a moment ago is found: dirty rows are searched too.
"""  # noqa: D415 - the first line introduces the picture

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal, Protocol, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Send

from remegraph.engine import linking
from remegraph.engine.hits import block_hit, memory_hit, message_hit
from remegraph.engine.looking_back import look_back
from remegraph.engine.nodes import Update
from remegraph.engine.search import Candidates, Scored, Searcher
from remegraph.language.tokens import query_tokens
from remegraph.models import (
    LIVE,
    Depth,
    Hit,
    IndexState,
    Memory,
    Partition,
    RecallFilter,
    Scope,
    Shelf,
)
from remegraph.ports import Archive
from remegraph.rules.blending import READ, Ranked, default_weights, freshen, judge, rank
from remegraph.rules.context import assemble
from remegraph.rules.freshness import asks_past
from remegraph.rules.ranking import message_signs
from remegraph.settings import RecallPolicy

__all__ = ["Found", "RecallInput", "RetrievalAgent", "Search", "build_retriever"]

_OVERFETCH = 5
"""Vectors looked at for each hit wanted."""


@dataclass(frozen=True, slots=True)
class Search:
    """What a Sub Agent is asked to retrieve."""

    query: str
    shelf: Shelf
    candidates: tuple[Scored, ...]
    """What the Meta Agent's own search found on this shelf, best first."""
    k: int
    time_start: datetime | None
    time_end: datetime | None
    only: RecallFilter
    """Which memories may be returned."""


class RetrievalAgent(Protocol):
    """A custom Sub Agent (R9): retrieves from one topic in its own way, over the archive's reads."""

    def __call__(self, search: Search, archive: Archive) -> Sequence[Hit]:
        """Return hits, best first; scores 0 to 1."""
        ...


class RecallInput(TypedDict):
    """A query and how far to expand."""

    scope: Scope
    query: str
    k: int
    depth: Depth
    topics: tuple[str, ...] | None
    time_start: datetime | None
    time_end: datetime | None
    only: RecallFilter
    without: frozenset[str]
    """Ids of messages that the caller has at hand."""


class Found(TypedDict):
    """Everything that a recall returns, before it becomes a record."""

    self_memories: tuple[Memory, ...]
    routed: tuple[str, ...]
    memories: tuple[Hit, ...]
    blocks: tuple[Hit, ...]
    messages: tuple[Hit, ...]
    index: IndexState
    degraded: tuple[str, ...]
    context: str
    left_out: tuple[str, ...]


class _AgentInput(TypedDict):
    search: Search


class _State(RecallInput, Found):
    partitions: tuple[Partition, ...]
    searches: tuple[Search, ...]
    hits: Annotated[tuple[Hit, ...], operator.add]


Retriever = CompiledStateGraph[_State, None, RecallInput, Found]


def build_retriever(
    archive: Archive, searcher: Searcher, policy: RecallPolicy, agents: Mapping[str, RetrievalAgent]
) -> Retriever:
    """Return the retriever's graph.

    Args:
        archive: The ledger.
        searcher: Searches memories and index entries.
        policy: How wide the search is.
        agents: Custom Sub Agents by topic key or topic type; the mapping may grow later.
    """
    steps = _Steps(archive, searcher, policy, agents)
    graph = StateGraph(_State, input_schema=RecallInput, output_schema=Found)
    graph.add_node("route", steps.route)
    graph.add_node("sub_agent", steps.sub_agent, input_schema=_AgentInput)
    graph.add_node("fuse", steps.fuse)
    graph.add_node("trace_back", steps.trace_back)
    graph.add_node("assemble", steps.assemble)
    graph.add_edge(START, "route")
    graph.add_conditional_edges("route", steps.after_route, ["sub_agent", "fuse"])
    graph.add_edge("sub_agent", "fuse")
    graph.add_edge("fuse", "trace_back")
    graph.add_edge("trace_back", "assemble")
    graph.add_edge("assemble", END)
    return graph.compile(checkpointer=False, name="retriever")


class _Steps:
    """The nodes and the router of the retriever."""

    def __init__(
        self, archive: Archive, searcher: Searcher, policy: RecallPolicy, agents: Mapping[str, RetrievalAgent]
    ) -> None:
        self._archive = archive
        self._searcher = searcher
        self._policy = policy
        self._agents = agents
        self._weights = default_weights()

    def route(self, state: _State) -> Update:
        """Load self memory and the topic index, and choose topics: those asked for, named, or found by the search."""
        partitions = self._archive.visible(state["scope"])
        shelves = self._archive.topics(partitions)
        own = [shelf.topic for shelf in shelves if shelf.topic.type == "self"]
        self_memories = self._archive.memories(partitions, topics=own, statuses=sorted(LIVE)) if own else ()
        found = self._searcher.search(partitions, "memory", state["query"], state["k"] * _OVERFETCH)
        looked_at = self._policy.k * 20 if state["only"] == RecallFilter() else None  # what passes may come late
        by_shelf = self._by_shelf(partitions, found, shelves, looked_at)
        open_to = [shelf for shelf in shelves if not state["only"].types or shelf.topic.type in state["only"].types]
        chosen = _choose(state, open_to, by_shelf, self._policy.max_topics)
        searches = tuple(
            Search(
                query=state["query"],
                shelf=shelf,
                candidates=tuple(by_shelf.get(shelf, ())),
                k=state["k"],
                time_start=state["time_start"],
                time_end=state["time_end"],
                only=state["only"],
            )
            for shelf in chosen
        )
        return {
            "partitions": partitions,
            "self_memories": self_memories,
            "routed": tuple(shelf.topic.key for shelf in chosen),
            "searches": searches,
            "index": found.index,
            "degraded": found.degraded,
        }

    def after_route(self, state: _State) -> list[Send] | Literal["fuse"]:
        """Send the query to each chosen topic."""
        sends = [Send("sub_agent", {"search": search}) for search in state["searches"]]
        return sends or "fuse"

    def sub_agent(self, state: _AgentInput) -> Update:
        """Retrieve from one topic: by the agent registered for it, else by the candidates' own scores."""
        search = state["search"]
        topic = search.shelf.topic
        agent = self._agents.get(topic.key) or self._agents.get(topic.type)
        return {"hits": tuple(agent(search, self._archive) if agent else self._retrieve(search))}

    def fuse(self, state: _State) -> Update:
        """Merge what the topics found: best first, over the threshold, k of them, with what they are linked to."""
        hits = [hit for hit in state.get("hits", ()) if hit.score >= self._policy.threshold]
        hits.sort(key=lambda hit: (-hit.score, hit.record_id))
        partitions, k, only = state["partitions"], state["k"], state["only"]
        hits = linking.freshen(state["query"], hits, k)[:k]
        if only != RecallFilter():  # what is linked was not asked for
            return {"memories": tuple(hits)}
        if asks_past(state["query"]):
            hits = linking.with_replaced(self._archive, partitions, hits)[:k]
        return {"memories": tuple(linking.with_counterparts(self._archive, partitions, hits))}

    def trace_back(self, state: _State) -> Update:
        """Expand as far as asked: index entries, then raw messages (R10)."""
        update: Update = {"blocks": (), "messages": ()}
        if state["depth"] in {"blocks", "messages"}:
            update["blocks"] = self._blocks(state)
        if state["depth"] == "messages":
            update["messages"] = self._messages(state)
        return update

    def assemble(self, state: _State) -> Update:
        """Write the context, within the token budget."""
        hits = (*state["memories"], *state["blocks"], *state["messages"])
        context = assemble(state["self_memories"], hits, self._policy.context_tokens)
        return {"context": context.text, "left_out": context.left_out}

    def _by_shelf(
        self, partitions: Sequence[Partition], found: Candidates, shelves: Sequence[Shelf], looked_at: int | None
    ) -> dict[Shelf, list[Scored]]:
        ids = [scored.record_id for scored in found.found[:looked_at]]
        memories = {memory.memory_id: memory for memory in self._archive.memories(partitions, ids=ids)} if ids else {}
        places = {(shelf.partition, shelf.topic.type, shelf.topic.target): shelf for shelf in shelves}
        grouped: dict[Shelf, list[Scored]] = {}
        for scored in found.found:
            memory = memories.get(scored.record_id)
            if memory is not None:
                shelf = places[memory.partition, memory.topic.type, memory.topic.target]
                grouped.setdefault(shelf, []).append(scored)
        return grouped

    def _retrieve(self, search: Search) -> list[Hit]:
        if search.only.looks_back:
            hits = look_back(self._archive, search.shelf, search.query, search.only)
            return [hit for hit in hits if _within(hit.time, search.time_start, search.time_end)]
        scores = {scored.record_id: scored for scored in search.candidates}
        if not scores:
            return []
        memories = self._archive.memories(
            [search.shelf.partition], ids=list(scores), topics=[search.shelf.topic], statuses=sorted(search.only.wanted)
        )
        return [
            memory_hit(memory, scores[memory.memory_id].contributions)
            for memory in memories
            if search.only.admits(memory) and _within(memory.said_at, search.time_start, search.time_end)
        ]

    def _blocks(self, state: _State) -> tuple[Hit, ...]:
        found = self._searcher.search(state["partitions"], "block", state["query"], state["k"] * _OVERFETCH)
        ids = list(dict.fromkeys(scored.record_id for scored in found.found[: state["k"] * _OVERFETCH]))
        entries = self._archive.summaries(state["partitions"], ids=ids) if ids else ()
        by_place = {(entry.partition, entry.block_id): entry for entry in entries}
        hits = [
            block_hit(entry, scored.contributions)
            for scored in found.found
            if (entry := by_place.get((scored.partition, scored.record_id))) is not None
            and _within(entry.end_time, state["time_start"], None)
            and _within(entry.start_time, None, state["time_end"])
        ]
        return tuple(hits[: state["k"]])

    def _messages(self, state: _State) -> tuple[Hit, ...]:
        """Rank by words, read the best, and rank them by what they say as well; where a time is asked for, read on."""
        tokens = query_tokens(state["query"])
        found = [
            (matches.partition, message_signs(matches, self._archive.layout(matches.partition), tokens))
            for matches in (self._archive.match(state["partitions"], "message", tokens) if tokens else ())
        ]
        ranked = [item for item in rank(found, self._weights) if item.record_id not in state["without"]]
        timed = (state["time_start"], state["time_end"]) != (None, None) or state["only"] != RecallFilter()
        page = max(READ, state["k"])
        hits: list[Hit] = []
        for start in range(0, len(ranked), page):
            hits.extend(self._read(ranked[start : start + page], state))
            if len(hits) >= state["k"] or not timed:
                break
        return tuple(hits[: state["k"]])

    def _read(self, ranked: Sequence[Ranked], state: _State) -> list[Hit]:
        only = state["only"]
        partitions = list(dict.fromkeys(item.partition for item in ranked))
        rows = self._archive.messages(partitions, ids=[item.record_id for item in ranked])
        read = {
            (row.partition, row.message_id): row
            for row in rows
            if _within(row.time, state["time_start"], state["time_end"])
            and row.trust >= only.min_trust
            and _within(row.recorded_at, None, only.known_at)
        }
        known = [(item, row) for item in ranked if (row := read.get((item.partition, item.record_id))) is not None]
        judged = judge(state["query"], known, self._weights)
        fresh = freshen(state["query"], [(item, read[item.partition, item.record_id]) for item in judged])
        return [message_hit(read[item.partition, item.record_id], item) for item in fresh]


def _choose(
    state: RecallInput, shelves: Sequence[Shelf], found: Mapping[Shelf, Sequence[Scored]], limit: int
) -> list[Shelf]:
    """Choose topics without a model: those asked for; else those named in the query, then those where the search hit.

    Where a filter looks back, the search cannot hit, and the others come last.
    """
    if state["topics"] is not None:
        keys = {key.casefold() for key in state["topics"]}
        return [shelf for shelf in shelves if shelf.topic.key.casefold() in keys][:limit]
    words = set(query_tokens(state["query"]))

    def rank(shelf: Shelf) -> tuple[bool, float]:
        named = bool(words.intersection(query_tokens(shelf.topic.target_name)))
        return named, max((scored.score for scored in found.get(shelf, ())), default=0.0)

    ranked = sorted(
        ((rank(shelf), shelf) for shelf in shelves), key=lambda pair: (pair[0], pair[1].topic.key), reverse=True
    )
    return [shelf for (named, score), shelf in ranked if named or score > 0 or state["only"].looks_back][:limit]


def _within(time: datetime, start: datetime | None, end: datetime | None) -> bool:
    return (start is None or time >= start) and (end is None or time <= end)
