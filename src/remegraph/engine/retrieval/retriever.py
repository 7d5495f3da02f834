"""The Meta Agent's read path, as a graph (design document, "Retriever"):

    START -> route -> (Send) sub_agent, one per topic, in parallel -> fuse -> trace_back -> assemble -> END
    route -> borrow -> fuse                  beside them, for an agent that others let read
    route -> fuse                            where no topic is touched, and no one lets it read
    trace_back -> rerank -> assemble         where there is a reranker

No model is called and nothing is written. What was learned a moment ago is found: dirty rows are searched too.
"""  # noqa: D415 - the first line introduces the picture

from __future__ import annotations

import operator
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from itertools import chain, filterfalse, islice
from typing import TYPE_CHECKING, Annotated, Literal, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Send

from remegraph.engine.nodes import Update
from remegraph.engine.retrieval import companions
from remegraph.engine.retrieval.at_stake import Beside, verbatim
from remegraph.engine.retrieval.blend import Placed, Ranked, Weights, asks_past, default_weights, freshen, judge, rank
from remegraph.engine.retrieval.companions import with_tagged
from remegraph.engine.retrieval.context import assemble, fair, in_turn
from remegraph.engine.retrieval.hits import (
    OVERFETCH,
    TRACED,
    Found,
    RecallInput,
    Routed,
    block_hit,
    in_order,
    memory_hit,
    message_hit,
    most_relevant,
    notices,
    passes,
    picks,
    reasons,
    returnable,
    timed,
    unsearched,
)
from remegraph.engine.retrieval.reranker import Rerankable, Reranker
from remegraph.engine.retrieval.scores import signs_of_all
from remegraph.engine.retrieval.search import Candidates, Searcher
from remegraph.engine.retrieval.topic_agent import Borrower, TopicAgent, agent_hits
from remegraph.engine.routes import choose, claims_of
from remegraph.models import (
    LIVE,
    Depth,
    Hit,
    HitKind,
    LeftOut,
    Partition,
    Reviews,
    Shelf,
    StoredMessage,
)
from remegraph.models.standing import dated, favoured, proven
from remegraph.ports import Meant, RetrievalAgent, Search, TextMatches, TokenCounter
from remegraph.settings import RecallPolicy, SharingPolicy

if TYPE_CHECKING:
    from remegraph.ledger.archive import Archive
    from remegraph.ledger.permissions import GrantBook

__all__ = ["Retriever", "build_retriever"]

_LATELY = timedelta(days=1)
"""How recently something was said that is marked for the agent as possibly not in memory yet."""

_WITH_WORDS = 1_000
"""Tokens of a context from which its best memories come with words that they rest on."""

_SAID, _SAID_OF_REST = 0.1, 0.5
"""Share of raw words in a context, beside memories worded by a model or a person, and beside those that only repeat words."""

_KINDS: Mapping[Depth, tuple[HitKind, ...]] = {
    "memories": (),
    "blocks": ("memory", "block"),
    "messages": ("memory", "block", "message"),
    "summaries": (),
}
"""The kinds of records searched with the same words, at each depth."""

_UNSEARCHED: Update = {"index": "none", "degraded": ()}


class _AgentInput(TypedDict):
    routed: Routed
    asked_at: datetime


class _State(RecallInput, Found):
    partitions: tuple[Partition, ...]
    searches: tuple[Routed, ...]
    hits: Annotated[tuple[Hit, ...], operator.add]
    failures: Annotated[tuple[str, ...], operator.add]
    """Failures of Sub Agents."""
    entries: tuple[Hit, ...]
    """Index entries that custom Sub Agents found."""
    traced: tuple[Hit, ...]
    """All messages that memories are traced to, best first."""


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

    `agents` are custom Sub Agents by topic key or topic type; the mapping may grow later. `sharing` says how far other
    agents are believed, and how much of an answer each may make. The reranker decides what comes first.
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
    last: Literal["rerank", "assemble"] = "assemble"
    if reranker is not None:
        last = "rerank"
        graph.add_node("rerank", partial(steps.rerank, reranker), input_schema=Rerankable)
        graph.add_edge("rerank", "assemble")
    graph.add_conditional_edges(
        "fuse", lambda state: last if state["depth"] == "memories" else "trace_back", [last, "trace_back"]
    )
    graph.add_edge("trace_back", last)
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
        self._beside = Beside(archive)
        self._weights = {semantic: default_weights(semantic=semantic) for semantic in (False, True)}

    def route(self, state: _State) -> Update:
        """Load self memory and the topic index, and choose topics: those asked for, named, or found by the search."""
        partitions = self._archive.visible(state["scope"])
        if state["depth"] == "summaries":  # only raw words are wanted, not memories
            return {"partitions": partitions, "self_memories": (), "routed": (), "searches": (), **_UNSEARCHED}
        shelves = self._archive.topics(partitions)
        own = [shelf.topic for shelf in shelves if shelf.topic.type == "self"]
        self_memories = self._archive.memories(partitions, topics=own, statuses=sorted(LIVE)) if own else ()
        found = self._search(state, partitions, "memory")
        if state["mode"] == "associative":
            found = with_tagged(self._archive, partitions, state["question"], found)
        enough = 20 * max(self._policy.k, self._wanted(state))  # some are of topics that are not chosen
        looked_at = None if picks(state) else enough  # what passes may rank low
        by_shelf = self._by_shelf(partitions, found, looked_at)
        open_to = [shelf for shelf in shelves if not state["only"].types or shelf.topic.type in state["only"].types]
        scores = {shelf: found_here[0].score for shelf, found_here in by_shelf.items() if found_here}
        claims = claims_of(
            state["query"], open_to, scores, self_memories, own_way=lambda shelf: bool(self._agent(shelf))
        )
        all_of_them = state["only"].looks_back or timed(state["mode"], state["time_start"], state["time_end"])
        chosen = choose(open_to, claims, state["topics"], all_of_them=all_of_them)[: self._policy.max_topics]
        self._read_ahead(partitions, [by_shelf.get(shelf, ())[: self._wanted(state)] for shelf in chosen])
        searches = tuple(
            Routed(
                Search(
                    query=state["query"],
                    shelf=shelf,
                    k=self._wanted(state),
                    time_start=state["time_start"],
                    time_end=state["time_end"],
                    only=state["only"],
                    mode=state["mode"],
                ),
                tuple(by_shelf.get(shelf, ())),
            )
            for shelf in chosen
        )
        return {
            "partitions": partitions,
            "self_memories": self_memories,
            "routed": tuple(shelf.topic.key for shelf in chosen),
            "searches": searches,
            "index": found.index,
            "degraded": (*found.degraded, *unsearched(state, semantic=self._searcher.semantic)),
        }

    def after_route(self, state: _State) -> list[Send | Literal["borrow"]] | Literal["fuse"]:
        """Send the query to each chosen topic, and to what others let the agent read."""
        sends: list[Send | Literal["borrow"]] = [
            Send("sub_agent", {"routed": routed, "asked_at": state["asked_at"]}) for routed in state["searches"]
        ]
        return ([*sends, "borrow"] if self._borrower.may(state) else sends) or "fuse"

    def sub_agent(self, state: _AgentInput) -> Update:
        """Retrieve from one topic: by the agent registered for it, else by what the query or its time finds."""
        search, candidates = state["routed"].search, state["routed"].candidates
        ask = partial(TopicAgent, self._archive, self._searcher, search, state["asked_at"], candidates=candidates)
        failures: tuple[str, ...] = ()
        if agent := self._agent(search.shelf):
            self._archive.away()  # it may take its time
            found, failures = agent_hits(agent, search, ask())
            if found is not None:
                return {"hits": tuple(found), "failures": failures}
        topic = ask(entries=False)  # the index is searched once for all topics, if at all
        if timed(search.mode, search.time_start, search.time_end):
            hits = topic.time_aware_retrieve((search.time_start, search.time_end))
        else:
            hits = topic.retrieve_by_query(search.query, search.k, threshold=0.0)  # one limit for the whole recall
        return {"hits": hits, "failures": failures}

    def _agent(self, shelf: Shelf) -> RetrievalAgent | None:
        return self._agents.get(shelf.topic.key.casefold()) or self._agents.get(shelf.topic.type)

    def borrow(self, state: _State) -> Update:
        """Retrieve from what other agents let this one read."""
        return {"hits": self._borrower.find(state, self._wanted(state))}

    def fuse(self, state: _State) -> Update:
        """Merge what the topics found: best first."""
        found = state.get("hits", ())
        hits = self._favoured([hit for hit in found if hit.kind == "memory"], state)
        return {
            "memories": tuple(sorted(hits, key=lambda hit: (-hit.score, hit.record_id))),
            "entries": tuple(hit for hit in found if hit.kind == "block"),
            "blocks": (),
            "messages": (),
            "traced": (),
            "degraded": (*state["degraded"], *state.get("failures", ())),
        }

    def _favoured(self, hits: Sequence[Hit], state: _State) -> Iterator[Hit]:
        """Yield hits with what counts besides relevance: what the policy favours, use, and low priority."""
        counted = self._archive.reviews(state["partitions"], [hit.record_id for hit in hits]) if hits else {}
        for hit in hits:
            reviews = counted.get((hit.partition, hit.record_id), Reviews())
            parts = proven(hit.contributions, reviews.used, low=hit.status == "low_priority")
            if state["ranking"].favours:
                age = state["asked_at"] - hit.time
                parts = favoured(parts, state["ranking"], age=age, reviews=reviews, importance=hit.importance)
            if parts != hit.contributions:
                hit = hit.model_copy(  # noqa: PLW2901
                    update={"contributions": parts, "score": sum(parts.values()), "why": reasons(parts)}
                )
            yield hit

    def trace_back(self, state: _State) -> Update:
        """Expand as far as asked: index entries, then raw messages (R10)."""
        blocks = self._blocks(state)
        return blocks | self._messages(state) if state["depth"] == "messages" else blocks

    def rerank(self, reranker: Reranker, state: Rerankable) -> Update:
        """Let the reranker decide what comes first; it may call a server."""
        self._archive.away()
        return reranker.rerank(state)

    def assemble(self, state: _State) -> Update:
        """Settle the best k and what is returned along with them; write the context, within the token budget."""
        k, now, reader = state["k"], state["asked_at"], state["scope"].agent
        unlikely = (*state["memories"], *state["blocks"], *state["messages"])
        silent = most_relevant(unlikely) < self._policy.threshold
        if silent:
            state = {**state, "memories": (), "blocks": (), "messages": (), "traced": (), "searches": ()}
        best, over = fair(companions.freshen(state["query"], state["memories"], k), k, self._share, reader)
        linked = self._with_linked(state, best)
        memories, beyond = fair(linked, len(linked), self._share, reader)
        capped: dict[str, LeftOut] = {hit.record_id: "cap" for hit in (*over, *beyond)}
        words = companions.with_blocks(self._archive, dated((*state["messages"], *state["traced"]), now), _LATELY)
        raw, traced = words[: len(state["messages"])], words[len(state["messages"]) :]
        shown = {
            "memories": dated(memories, now),
            "blocks": dated(state["blocks"], now),
            "messages": tuple(in_order(raw[:k], state)),
        }
        own = _own(state)
        held = self._beside.held(shown, state)
        told = chain(*shown.values()) if self._searcher.semantic and not state["working"] else ()
        notice = notices(self._archive.carried_out(state["scope"].partition()), told)
        found = [hit.record_id for hits in (state["memories"], raw) for hit in hits]
        first = (*dated(own, now), *self._beside.at_stake(state, state["partitions"], found))
        context = assemble(
            (hit for hit in self._for_context(shown, raw, traced, capped.keys(), state) if hit.record_id not in held),
            state["budget"],
            self._count,
            state["working"],
            first=[hit for hit in first if hit.record_id not in held],
            share=self._share,
            reader=reader,
            notice=notice,
            question=state["query"] if state["brief"] else "",
        )
        listed = {hit.record_id for hits in (own, *shown.values()) for hit in hits}
        listed |= {chunk.chunk_id for chunk in state["working"]}
        cut: dict[str, LeftOut] = {hit.record_id: "unlikely" for hit in unlikely if silent}
        unshown = {name: why for name, why in context.left_out.items() if name in listed}
        return {
            **shown,
            "beside": tuple(hit for hit in context.shown if hit.record_id not in listed),
            "context": context.text,
            "left_out": {**cut, **capped, **held, **unshown},
            "unlikely": dated(unlikely, now) if silent else (),
        }

    def _for_context(
        self,
        shown: Mapping[str, Sequence[Hit]],
        raw: Sequence[Hit],
        traced: Sequence[Hit],
        capped: Collection[str],
        state: _State,
    ) -> Iterator[Hit]:
        """Yield what was found in the order in which it gets room in the context.

        Memories worded by a model or a person take nine tenths of it: the best, each with words that it rests on unless
        the context is short, then what bears less on the question. Raw words, and memories that only repeat some, take
        half of the rest each; if most only repeat some, all of it. Index entries take what is left.
        """
        best, stood_on = shown["memories"], companions.words_of(shown["memories"], traced)
        searches = [each for each in state["searches"] if self._agent(each.search.shelf) is None]
        more = list(self._beside.more(state, searches, {hit.record_id for hit in best} | set(capped)))
        written = 2 * sum(map(verbatim, best)) <= len(best)
        words = 1 if state["budget"] >= _WITH_WORDS else 0
        first = [each for hit in filterfalse(verbatim, best) for each in (hit, *stood_on[hit.record_id][:words])]
        worded = [*first, *filterfalse(verbatim, more)] if written else []
        repeated = [  # if there is no room for a whole message, the part that a memory repeats is enough
            each for hit in best if not written or verbatim(hit) for each in (hit, *stood_on[hit.record_id])
        ]
        said = in_turn(repeated, raw, _SAID_OF_REST, self._count)
        yield from in_turn(worded, said, _SAID, self._count)
        yield from more
        yield from shown["blocks"]

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
            beside=_KINDS[state["depth"]],
            patience=state["patience"],
        )

    def _with_linked(self, state: _State, hits: list[Hit]) -> list[Hit]:
        """Add what comes along with the hits. With filters or another mode, that was not asked for."""
        partitions, k, only = state["partitions"], state["k"], state["only"]
        plain = not picks(state) and state["mode"] != "associative"
        if state["mode"] == "temporal":
            hits = companions.with_causes(self._archive, partitions, hits, only, k)
        elif state["mode"] == "associative":
            hits = companions.with_linked(self._archive, partitions, hits, only)[:k]
        elif plain and asks_past(state["query"]):
            hits = companions.with_replaced(self._archive, partitions, hits)[:k]
        return companions.with_counterparts(self._archive, partitions, hits, all_of_them=plain)

    def _by_shelf(
        self, partitions: Sequence[Partition], found: Candidates, looked_at: int | None
    ) -> dict[Shelf, list[Ranked]]:
        best = found.found[:looked_at]
        shelved = self._archive.shelved(partitions, [scored.record_id for scored in best]) if best else {}
        return {shelf: [scored for scored in best if scored.record_id in ids] for shelf, ids in shelved.items()}

    def _read_ahead(self, partitions: Sequence[Partition], first: Sequence[Sequence[Ranked]]) -> None:
        """Read in one query what each topic is about to read: the snapshot keeps it."""
        if len(first) > 1 and (ids := [scored.record_id for found in first for scored in found]):
            self._archive.memories(partitions, ids=ids)

    def _blocks(self, state: _State) -> Update:
        """Return the index entries of the blocks that memories came from, then those that the search finds."""
        found = self._search(state, state["partitions"], "block")
        traced = companions.traced_blocks(state["memories"][: self._wanted(state)], state["partitions"])
        scores = {(each.partition, each.record_id): each.parts for each in found.found}
        scores |= {(hit.partition, hit.record_id): (hit.contributions, hit.relevance) for hit in state["entries"]}
        best = list(dict.fromkeys((*traced, *scores)))[: state["k"] * OVERFETCH]
        ids = list(dict.fromkeys(block_id for _, block_id in best))
        entries = self._archive.summaries(state["partitions"], ids=ids) if ids else ()
        passing = {(entry.partition, entry.block_id): entry for entry in entries if returnable(entry, state)}
        led_to = [block_hit(passing[place], {TRACED: score}) for place, score in traced.items() if place in passing]
        searched = [block_hit(passing[place], *told) for place, told in scores.items() if place in passing]
        searched.sort(key=lambda hit: (-hit.score, hit.record_id))
        hits = companions.traced_first(led_to, searched, state["k"])
        blocks: Update = {"blocks": tuple(in_order(hits[: state["k"]], state))}
        if state["depth"] == "summaries":  # nothing else was searched
            blocks["index"] = found.index
        return blocks | {"degraded": tuple(dict.fromkeys((*state["degraded"], *found.degraded)))}

    def _messages(self, state: _State) -> Update:
        """Return the words that memories rest on, then what the search finds: each message once."""
        partitions, memories = state["partitions"], state["memories"][: self._wanted(state)]
        traced = companions.traced_messages(self._archive, memories, partitions, lambda row: self._may_pass(row, state))
        found = self._searched_messages(state)
        if timed(state["mode"], state["time_start"], state["time_end"]):
            found += self._rest(found, state)
        return {"messages": tuple(companions.traced_first(traced, found, state["k"])), "traced": tuple(traced)}

    def _searched_messages(self, state: _State) -> list[Hit]:
        """Rank by words and meaning, read the best, rank them by their text; if filters reject some, read more."""
        tokens = state["question"].tokens if state["mode"] != "semantic" else {}
        beside = _KINDS[state["depth"]]
        matches = self._archive.match(state["partitions"], "message", list(tokens), beside=beside) if tokens else ()
        meant = self._searcher.meant(state["query"], state["partitions"])
        weights = self._weights[bool(meant)]
        ranked = rank(signs_of_all(matches, meant, self._archive.layout, tokens), weights)
        hits: list[Hit] = []
        then = self._then(state, weights.read)
        while (page := list(islice(ranked, max(weights.read, self._wanted(state)) + len(state["without"])))) or then:
            passing = self._passing(page, state)
            read = {row.message_id for _, row in passing}
            passing += [(Ranked(row.partition, row.message_id, {}), row) for row in then if row.message_id not in read]
            then = ()
            hits.extend(self._judged(passing, weights, matches, meant, state))
            if len(hits) >= self._wanted(state) or len(passing) == len(page):
                break
        return hits

    def _then(self, state: _State, most: int) -> Sequence[StoredMessage]:
        """Return the newest messages of the time that a question names: they may share no word with it ("yesterday")."""
        found: dict[str, StoredMessage] = {}
        for time in state["question"].times if state["mode"] == "hybrid" else ():
            rows = self._archive.messages(
                state["partitions"], time_start=time.begins, time_end=time.ends, limit=most, newest=True
            )
            found |= {row.message_id: row for row in rows if self._may_pass(row, state)}
        return tuple(found.values())

    @staticmethod
    def _may_pass(row: StoredMessage, state: _State) -> bool:
        return row.message_id not in state["without"] and not row.hidden and passes(row, state)

    def _rest(self, hits: Sequence[Hit], state: _State) -> list[Hit]:
        """Return the first messages of the time asked for, whatever they say."""
        known = {hit.record_id for hit in hits} | state["without"]
        rows = self._archive.messages(
            state["partitions"],
            time_start=state["time_start"],
            time_end=state["time_end"],
            limit=state["k"] + len(known),
        )
        rest = [row for row in rows if row.message_id not in known and self._may_pass(row, state)]
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
            if self._may_pass(row, state)
        }
        return [
            (Ranked(row.partition, row.message_id, item.contributions), row)
            for item in page
            if (row := read.get((item.partition, item.seq))) is not None
        ]

    def _judged(
        self,
        read: Sequence[tuple[Ranked, StoredMessage]],
        weights: Weights,
        matches: Sequence[TextMatches],
        meant: Mapping[Partition, Meant],
        state: _State,
    ) -> list[Hit]:
        rows = {(item.partition, item.record_id): row for item, row in read}
        signs = self._searcher.signs(state["question"], matches, meant, list(rows.values()))
        read = [(replace(item, signs=signs[item.partition, item.record_id]), row) for item, row in read]
        judged = judge(state["question"], read, weights)
        fresh = freshen(state["query"], [(item, rows[item.partition, item.record_id]) for item in judged])
        return [message_hit(rows[item.partition, item.record_id], item) for item in fresh]


def _own(state: _State) -> list[Hit]:
    """Return what an agent knows of itself, what the question found first, and working memory."""
    found = {hit.record_id: hit.score for hit in state["memories"]}
    itself = sorted(state["self_memories"], key=lambda each: (-found.get(each.memory_id, 0.0), -each.importance))
    return [memory_hit(memory, {}) for memory in (*itself, *state["active"])]
