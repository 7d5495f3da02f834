"""The Meta Agent's read path, as a graph (design document, "Retriever"):

    START -> route -> (Send) sub_agent, one per topic, in parallel -> fuse -> trace_back -> assemble -> END
    route -> borrow -> fuse                  beside them, for an agent that others may let read
    route -> fuse                            where no topic is touched, and nobody may
    trace_back -> rerank -> assemble         where there is a reranker

No model is called and nothing is written. What was learned a moment ago is found: dirty rows are searched too.
"""  # noqa: D415 - the first line introduces the picture

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Annotated, Literal, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Send

from remegraph.engine import linking
from remegraph.engine.granted import Borrower
from remegraph.engine.hits import block_hit, memory_hit, message_hit, reasons
from remegraph.engine.looking_back import look_back
from remegraph.engine.nodes import Update
from remegraph.engine.passing import holds, in_order, passes, picks, timed, unsearched, vouched, within
from remegraph.engine.reranking import Rerankable, Reranker
from remegraph.engine.retrieval import OVERFETCH, Found, RecallInput, RetrievalAgent, Search
from remegraph.engine.search import Candidates, Searcher
from remegraph.engine.tagging import with_tagged
from remegraph.language.tokens import query_tokens
from remegraph.models import (
    LIVE,
    Hit,
    HitKind,
    LeftOut,
    Partition,
    Reviews,
    Shelf,
    StoredMessage,
)
from remegraph.ports import Archive, GrantBook, TokenCounter
from remegraph.rules.assembling import assemble
from remegraph.rules.blending import Placed, Ranked, default_weights, freshen, judge, rank
from remegraph.rules.favouring import favoured
from remegraph.rules.freshness import asks_past
from remegraph.rules.ranking import message_signs
from remegraph.rules.sharing import fair
from remegraph.rules.standing import dated
from remegraph.rules.veil import MARK
from remegraph.settings import RecallPolicy, SharingPolicy

__all__ = ["Retriever", "build_retriever"]

_UNSEARCHED: Update = {"index": "none", "degraded": ()}


class _AgentInput(TypedDict):
    search: Search


class _State(RecallInput, Found):
    partitions: tuple[Partition, ...]
    searches: tuple[Search, ...]
    hits: Annotated[tuple[Hit, ...], operator.add]


Retriever = CompiledStateGraph[_State, None, RecallInput, Found]


def build_retriever(
    archive: Archive,
    searcher: Searcher,
    policy: RecallPolicy,
    agents: Mapping[str, RetrievalAgent],
    *,
    grants: GrantBook,
    sharing: SharingPolicy,
    count: TokenCounter,
    reranker: Reranker | None = None,
) -> Retriever:
    """Return the retriever's graph.

    Args:
        archive: The ledger.
        searcher: Searches memories and index entries.
        policy: How wide the search is.
        agents: Custom Sub Agents by topic key or topic type; the mapping may grow later.
        grants: What other agents let each other read.
        sharing: How far they are believed, and how much of an answer each may make.
        count: Counts the tokens of the context.
        reranker: Has the last word on what comes first.
    """
    borrower = Borrower(grants, searcher, sharing)
    share = sharing.source_share
    steps = _Steps(archive, searcher, policy, agents, borrower=borrower, share=share, count=count, reranker=reranker)
    graph = StateGraph(_State, input_schema=RecallInput, output_schema=Found)
    graph.add_node("route", steps.route)
    graph.add_node("sub_agent", steps.sub_agent, input_schema=_AgentInput)
    graph.add_node("borrow", steps.borrow)
    graph.add_node("fuse", steps.fuse)
    graph.add_node("trace_back", steps.trace_back)
    graph.add_node("assemble", steps.assemble)
    graph.add_edge(START, "route")
    graph.add_conditional_edges("route", steps.after_route, ["sub_agent", "borrow", "fuse"])
    graph.add_edge("sub_agent", "fuse")
    graph.add_edge("borrow", "fuse")
    graph.add_edge("fuse", "trace_back")
    if reranker is None:
        graph.add_edge("trace_back", "assemble")
    else:
        graph.add_node("rerank", reranker.rerank, input_schema=Rerankable)
        graph.add_edge("trace_back", "rerank")
        graph.add_edge("rerank", "assemble")
    graph.add_edge("assemble", END)
    return graph.compile(checkpointer=False, name="retriever")


class _Steps:
    """The nodes and the router of the retriever."""

    def __init__(
        self,
        archive: Archive,
        searcher: Searcher,
        policy: RecallPolicy,
        agents: Mapping[str, RetrievalAgent],
        *,
        borrower: Borrower,
        share: float,
        count: TokenCounter,
        reranker: Reranker | None,
    ) -> None:
        self._archive = archive
        self._searcher = searcher
        self._policy = policy
        self._agents = agents
        self._borrower = borrower
        self._share = share
        self._count = count
        self._reranker = reranker
        self._weights = default_weights(semantic=searcher.semantic)

    def route(self, state: _State) -> Update:
        """Load self memory and the topic index, and choose topics: those asked for, named, or found by the search."""
        partitions = self._archive.visible(state["scope"])
        if state["depth"] == "summaries":  # what memories say is not asked for
            return {"partitions": partitions, "self_memories": (), "routed": (), "searches": (), **_UNSEARCHED}
        shelves = self._archive.topics(partitions)
        own = [shelf.topic for shelf in shelves if shelf.topic.type == "self"]
        self_memories = self._archive.memories(partitions, topics=own, statuses=sorted(LIVE)) if own else ()
        found = self._search(state, partitions, "memory")
        if state["mode"] == "associative":
            found = with_tagged(self._archive, partitions, state["question"], found)
        enough = 20 * max(self._policy.k, self._wanted(state))  # some are of topics that are not chosen
        looked_at = None if picks(state) else enough  # what passes may come late
        by_shelf = self._by_shelf(partitions, found, looked_at)
        open_to = [shelf for shelf in shelves if not state["only"].types or shelf.topic.type in state["only"].types]
        chosen = _choose(state, open_to, by_shelf, self._policy.max_topics)
        searches = tuple(
            Search(
                query=state["query"],
                shelf=shelf,
                candidates=tuple(by_shelf.get(shelf, ())),
                k=self._wanted(state),
                time_start=state["time_start"],
                time_end=state["time_end"],
                only=state["only"],
                mode=state["mode"],
            )
            for shelf in chosen
        )
        return {
            "partitions": partitions,
            "self_memories": self_memories,
            "routed": tuple(shelf.topic.key for shelf in chosen),
            "searches": searches,
            "index": found.index,
            "degraded": (*found.degraded, *unsearched(state)),
        }

    def after_route(self, state: _State) -> list[Send | Literal["borrow"]] | Literal["fuse"]:
        """Send the query to each chosen topic, and to what others let the agent read."""
        sends: list[Send | Literal["borrow"]] = [Send("sub_agent", {"search": search}) for search in state["searches"]]
        return (sends if state["scope"].agent is None else [*sends, "borrow"]) or "fuse"

    def sub_agent(self, state: _AgentInput) -> Update:
        """Retrieve from one topic: by the agent registered for it, else by the candidates' own scores."""
        search = state["search"]
        topic = search.shelf.topic
        agent = self._agents.get(topic.key) or self._agents.get(topic.type)
        return {"hits": tuple(agent(search, self._archive) if agent else self._retrieve(search))}

    def borrow(self, state: _State) -> Update:
        """Retrieve from what other agents let this one read."""
        return {"hits": self._borrower.find(state, self._wanted(state))}

    def fuse(self, state: _State) -> Update:
        """Merge what the topics found: best first, over the threshold."""
        hits = [hit for hit in state.get("hits", ()) if hit.score >= self._policy.threshold]
        if state["ranking"].favours:
            hits = self._favoured(hits, state)
        hits.sort(key=lambda hit: (-hit.score, hit.record_id))
        return {"memories": tuple(hits)}

    def _favoured(self, hits: Sequence[Hit], state: _State) -> list[Hit]:
        counted = self._archive.reviews(state["partitions"], [hit.record_id for hit in hits])
        found: list[Hit] = []
        for hit in hits:
            parts = favoured(
                hit.contributions,
                state["ranking"],
                age=state["asked_at"] - hit.time,
                reviews=counted.get((hit.partition, hit.record_id), Reviews()),
                importance=hit.importance,
            )
            found.append(hit.evolve(contributions=parts, score=sum(parts.values()), why=reasons(parts)))
        return found

    def trace_back(self, state: _State) -> Update:
        """Expand as far as asked: index entries, then raw messages (R10)."""
        update: Update = {"blocks": (), "messages": ()}
        if state["depth"] != "memories":
            update |= self._blocks(state)
        if state["depth"] == "messages":
            update["messages"] = self._messages(state)
        return update

    def assemble(self, state: _State) -> Update:
        """Settle which k come first and what comes along with them; write the context, within the token budget."""
        k, now, reader = state["k"], state["asked_at"], state["scope"].agent
        best, over = fair(linking.freshen(state["query"], state["memories"], k), k, self._share, reader)
        linked = self._with_linked(state, best)
        memories, beyond = fair(linked, len(linked), self._share, reader)
        shown = {
            "memories": dated(memories, now),
            "blocks": dated(state["blocks"], now),
            "messages": dated(in_order(state["messages"][:k], state), now),
        }
        own = [memory_hit(memory, {}) for memory in (*state["self_memories"], *state["active"])]
        hits = (*dated(own, now), *shown["memories"], *shown["blocks"], *shown["messages"])
        budget, working = self._policy.context_tokens, state["working"]
        done = self._archive.carried_out(state["scope"].partition())
        notice = "" if done is None else _notice(*done)
        context = assemble(hits, budget, self._count, working, share=self._share, reader=reader, notice=notice)
        capped: dict[str, LeftOut] = {hit.record_id: "cap" for hit in (*over, *beyond)}
        return {**shown, "context": context.text, "left_out": {**capped, **context.left_out}}

    def _wanted(self, state: _State) -> int:
        """Return how many hits of a kind are to be found: a reranker looks at more than are asked for."""
        return state["k"] if self._reranker is None else max(state["k"], self._policy.rerank)

    def _search(self, state: _State, partitions: Sequence[Partition], kind: HitKind) -> Candidates:
        words = state["mode"] != "semantic"
        return self._searcher.search(
            partitions,
            kind,
            state["question"],
            state["k"] * OVERFETCH,
            words=words,
            patience=state["patience"],
        )

    def _with_linked(self, state: _State, hits: list[Hit]) -> list[Hit]:
        """Add what the hits bring along. Where only some may pass, or by another way, that was not asked for."""
        partitions, k, only = state["partitions"], state["k"], state["only"]
        plain = not picks(state) and state["mode"] != "associative"
        if state["mode"] == "temporal":
            hits = linking.with_causes(self._archive, partitions, hits, only, k)
        elif state["mode"] == "associative":
            hits = linking.with_linked(self._archive, partitions, hits, only)[:k]
        elif plain and asks_past(state["query"]):
            hits = linking.with_replaced(self._archive, partitions, hits)[:k]
        return linking.with_counterparts(self._archive, partitions, hits, all_of_them=plain)

    def _by_shelf(
        self, partitions: Sequence[Partition], found: Candidates, looked_at: int | None
    ) -> dict[Shelf, list[Ranked]]:
        best = found.found[:looked_at]
        shelved = self._archive.shelved(partitions, [scored.record_id for scored in best]) if best else {}
        return {shelf: [scored for scored in best if scored.record_id in ids] for shelf, ids in shelved.items()}

    def _retrieve(self, search: Search) -> list[Hit]:
        """Read the best candidates; where a time or a filter is asked for, read on."""
        any_words = timed(search.mode, search.time_start, search.time_end)
        if search.only.looks_back or any_words:
            back = look_back(self._archive, search.shelf, search.query, search.only, worded=not any_words)
            return [hit for hit in back if within(hit.time, search.time_start, search.time_end)]
        hits: list[Hit] = []
        statuses = sorted(search.only.wanted)
        for start in range(0, len(search.candidates), search.k):
            scores = {scored.record_id: scored for scored in search.candidates[start : start + search.k]}
            memories = self._archive.memories([search.shelf.partition], ids=list(scores), statuses=statuses)
            hits.extend(
                memory_hit(memory, scores[memory.memory_id].contributions)
                for memory in memories
                if search.only.admits(memory)
                and within(memory.said_at, search.time_start, search.time_end)
                and holds(memory.content, search)
            )
            if len(hits) >= search.k:
                break
        return hits

    def _blocks(self, state: _State) -> Update:
        found = self._search(state, state["partitions"], "block")
        ids = list(dict.fromkeys(scored.record_id for scored in found.found[: state["k"] * OVERFETCH]))
        entries = self._archive.summaries(state["partitions"], ids=ids) if ids else ()
        by_place = {(entry.partition, entry.block_id): entry for entry in entries}
        hits = [
            block_hit(entry, scored.contributions)
            for scored in found.found
            if (entry := by_place.get((scored.partition, scored.record_id))) is not None
            and entry.summary != MARK
            and vouched(entry.trust, state)
            and within(entry.end_time, state["time_start"], None)
            and within(entry.start_time, None, state["time_end"])
            and holds(entry.summary, state)
        ]
        blocks: Update = {"blocks": tuple(in_order(hits[: state["k"]], state))}
        if state["depth"] == "summaries":  # nothing else was searched
            blocks["index"] = found.index
        return blocks | {"degraded": tuple(dict.fromkeys((*state["degraded"], *found.degraded)))}

    def _messages(self, state: _State) -> tuple[Hit, ...]:
        """Rank by words, read the best, rank them by what they say and mean as well; where only some may pass, read on."""
        tokens = state["question"].tokens if state["mode"] != "semantic" else {}
        found = [
            (matches.partition, message_signs(matches, self._archive.layout(matches.partition), tokens))
            for matches in (self._archive.match(state["partitions"], "message", list(tokens)) if tokens else ())
        ]
        ranked = rank(found, self._weights)
        hits: list[Hit] = []
        while page := list(islice(ranked, max(self._weights.read, self._wanted(state)) + len(state["without"]))):
            passing = self._passing(page, state)
            hits.extend(self._judged(passing, state))
            if len(hits) >= self._wanted(state) or len(passing) == len(page):
                break
        if timed(state["mode"], state["time_start"], state["time_end"]):
            hits += self._rest(hits, state)
        return tuple(hits)

    def _rest(self, hits: Sequence[Hit], state: _State) -> list[Hit]:
        """Return the first messages of the time asked for, whatever they say."""
        known = {hit.record_id for hit in hits} | state["without"]
        rows = self._archive.messages(
            state["partitions"],
            time_start=state["time_start"],
            time_end=state["time_end"],
            limit=state["k"] + len(known),
        )
        rest = [row for row in rows if row.message_id not in known and not row.hidden and passes(row, state)]
        return [message_hit(row, Ranked(row.partition, row.message_id, {})) for row in rest]

    def _passing(self, page: Sequence[Placed], state: _State) -> list[tuple[Ranked, StoredMessage]]:
        """Read what is ranked; return what may pass, in this order."""
        wanted: dict[Partition, list[int]] = {}
        for item in page:
            wanted.setdefault(item.partition, []).append(item.seq)
        read = {
            (partition, row.seq): row
            for partition, seqs in wanted.items()
            for row in self._archive.messages([partition], seqs=seqs)
            if row.message_id not in state["without"] and not row.hidden and passes(row, state)
        }
        return [
            (Ranked(row.partition, row.message_id, item.contributions), row)
            for item in page
            if (row := read.get((item.partition, item.seq))) is not None
        ]

    def _judged(self, read: Sequence[tuple[Ranked, StoredMessage]], state: _State) -> list[Hit]:
        rows = {(item.partition, item.record_id): row for item, row in read}
        meant = self._searcher.meant(state["query"], list(rows.values()))
        judged = judge(state["question"], read, self._weights, meant)
        fresh = freshen(state["query"], [(item, rows[item.partition, item.record_id]) for item in judged])
        return [message_hit(rows[item.partition, item.record_id], item) for item in fresh[: self._wanted(state)]]


def _choose(
    state: RecallInput, shelves: Sequence[Shelf], found: Mapping[Shelf, Sequence[Ranked]], limit: int
) -> list[Shelf]:
    """Choose topics without a model: those asked for; else those named in the query, then those where the search hit.

    Where a filter looks back, or a time alone is asked for, the search need not hit, and the others come last.
    """
    if state["topics"] is not None:
        keys = {key.casefold() for key in state["topics"]}
        return [shelf for shelf in shelves if shelf.topic.key.casefold() in keys][:limit]
    words = set(query_tokens(state["query"]))
    all_of_them = state["only"].looks_back or timed(state["mode"], state["time_start"], state["time_end"])

    def claim(shelf: Shelf) -> tuple[bool, float]:
        named = bool(words.intersection(query_tokens(shelf.topic.target_name)))
        return named, max((scored.score for scored in found.get(shelf, ())), default=0.0)

    ranked = sorted(
        ((claim(shelf), shelf) for shelf in shelves), key=lambda pair: (pair[0], pair[1].topic.key), reverse=True
    )
    return [shelf for (named, score), shelf in ranked if named or score > 0 or all_of_them][:limit]


def _notice(count: int, time: datetime) -> str:
    """Return what the next context says of a request that was carried out; what was forgotten, it does not say."""
    return f"Forgotten on {time:%Y-%m-%d} at the person's request: {count} {'memory' if count == 1 else 'memories'}."
