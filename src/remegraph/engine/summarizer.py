"""The Meta Agent's write path, as a graph (design document, "Summarizer"):

    START -> slice -> compress_message_block -> (Send) sub_agent, one per topic, in parallel -> revise_memory -> commit -> END
    slice -> END                      where no block is pending
    compress_message_block -> commit  where nothing is learned from the block
    revise_memory -> sub_agent        the rejected topics only, with the reasons, at most N times
    commit -> sub_agent               the topics whose memories changed meanwhile, at most N times

One run does one block. Durability is the ledger's: no graph of ours has a checkpointer.
"""  # noqa: D415 - the first line introduces the picture

from __future__ import annotations

import operator
from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Send

from remegraph.engine.change_set import change_set, former, giving_way, inspect, is_done, note_outage, touched_by
from remegraph.engine.disputes import Disputes
from remegraph.engine.forget_requests import Wish, Wishes, asked_of
from remegraph.engine.nodes import Body, Think, Update, node
from remegraph.engine.owner_rules import FAILED, Draft, Passed, screened, unmissed, unreasoned
from remegraph.engine.perception import Perceiver, attended, attention, citing, language_spoken
from remegraph.engine.proposals import ProposalKey, create_sub_agent, newest_of
from remegraph.engine.retrieval.search import Searcher
from remegraph.engine.routes import home, resolve, shelves_for
from remegraph.engine.slices import before, cut, overlap, readable
from remegraph.engine.summary_tasks import (
    Digest,
    DigestTask,
    Meter,
    Objection,
    Operation,
    OwnerRules,
    Proposal,
    ProposeTask,
    Thinker,
    ThinkerOf,
)
from remegraph.errors import ConflictError, InvalidAnswerError, ModelUnavailableError
from remegraph.models import Block, BlockSummary, Memory, Receipt, Scope, Shelf, StoredMessage
from remegraph.ports import Attention, Clock
from remegraph.settings import Settings

if TYPE_CHECKING:
    from remegraph.ledger.archive import Archive

__all__ = ["BlockOutcome", "Redo", "SummarizerInput", "Tools", "build_summarizer"]


@dataclass(frozen=True, slots=True)
class Tools:
    """Components of the summariser."""

    archive: Archive
    searcher: Searcher
    clock: Clock
    thinker_of: ThinkerOf
    plain: Thinker
    """The thinker without a model; it indexes what is not worth a call."""
    settings: Settings
    perceiver: Perceiver
    """Has attachments read."""
    attention: Attention
    """Scores what was said, where `SummaryPolicy.salience` asks for it."""
    wishes: Wishes
    """Carries out what a person asks memory to forget."""


@dataclass(frozen=True, slots=True)
class Redo:
    """Topics of a block to try again; its digest is kept. No topics: the block is read again as a whole."""

    block_id: str
    topics: tuple[str, ...]


class SummarizerInput(TypedDict):
    """One run: where the block is, and whether to cut the open tail, too."""

    scope: Scope
    close: bool
    redo: Redo | None
    meter: Meter


class BlockOutcome(TypedDict, total=False):
    """The result of one run; without a block there was nothing to do."""

    block: Block | None
    receipt: Receipt
    objections: Annotated[tuple[str, ...], operator.add]
    notes: Annotated[tuple[str, ...], operator.add]
    """Notes on what a model wrote that was read differently or left out, and why."""
    kept_out: tuple[str, ...]
    """For each statement left out, the owner's rule that it broke."""


class _State(SummarizerInput, BlockOutcome, total=False):
    rows: tuple[StoredMessage, ...]
    """The whole block."""
    messages: tuple[StoredMessage, ...]
    """The messages that got attention. No thinker sees the others, and nothing is learned from them; nor is
    what was merely recalled."""
    wishes: tuple[Wish, ...]
    """Its requests to forget or to put right."""
    summary: BlockSummary
    last: str | None
    """Who read the block last, if all of it is read again."""
    former: str | None
    """The thinkers whose memories of it are retired."""
    topics: tuple[Shelf, ...]
    allowed: tuple[Shelf, ...]
    refused: tuple[str, ...]
    digest_failure: str
    proposals: Annotated[dict[ProposalKey, Proposal], operator.or_]
    standing: tuple[Objection, ...]
    """Objections of the reviser to the newest attempts."""
    unreviewed: str
    """Why no model reviewed them, if one should have."""
    again: dict[str, tuple[str, ...]]
    """Topic keys to send again, each with its reasons."""


Summarizer = CompiledStateGraph[_State, None, SummarizerInput, BlockOutcome]


def build_summarizer(tools: Tools) -> Summarizer:
    """Return the summariser's graph."""
    steps = _Steps(tools)
    graph = StateGraph(_State, input_schema=SummarizerInput, output_schema=BlockOutcome)
    graph.add_node("slice", steps.slice)
    graph.add_node(
        "compress_message_block", node(steps.compress_message_block, "compress_message_block", tools.archive.session)
    )
    graph.add_node("sub_agent", create_sub_agent(tools.searcher, tools.thinker_of))
    graph.add_node("revise_memory", node(steps.revise_memory, "revise_memory", tools.archive.session))
    graph.add_node("commit", node(steps.commit, "commit", tools.archive.session))
    graph.add_edge(START, "slice")
    graph.add_conditional_edges("slice", steps.after_slice, ["compress_message_block", END])
    graph.add_conditional_edges("compress_message_block", steps.handoff_to_summary_agent, ["sub_agent", "commit"])
    graph.add_edge("sub_agent", "revise_memory")
    graph.add_conditional_edges("revise_memory", steps.after_revision, ["sub_agent", "commit"])
    graph.add_conditional_edges("commit", steps.after_commit, ["sub_agent", END])
    return graph.compile(checkpointer=False, name="summarizer")


class _Steps:
    """The nodes and routers of the summariser."""

    def __init__(self, tools: Tools) -> None:
        self._archive = tools.archive
        self._searcher = tools.searcher
        self._disputes = Disputes(tools.archive, tools.searcher)
        self._clock = tools.clock
        self._thinker_of = tools.thinker_of
        self._plain = tools.plain
        self._attention = tools.attention
        self._perceiver = tools.perceiver
        self._wishes = tools.wishes
        self._policy = tools.settings.summary
        self._slicing = tools.settings.slicing
        self._settings = tools.settings

    def slice(self, state: _State) -> Update:
        """Cut what is complete, and take the oldest pending block (or the one to redo)."""
        with self._archive.session():
            return self._sliced(state)

    def _sliced(self, state: _State) -> Update:
        """See `slice`."""
        partition = state["scope"].partition()
        redo = state["redo"]
        if redo is None:
            turns = self._settings.for_agent(state["scope"].agent).extraction.gathers
            cuts = [
                each
                for tail in self._archive.tails(partition, overlap(self._slicing, turns=turns))
                for each in cut(tail, self._slicing, close=state["close"], turns=turns)
            ]
            if cuts:
                self._archive.add_blocks(partition, cuts, self._policy.recipe)
            pending = self._archive.work([partition], states=["pending"], recipe=self._policy.recipe)
            block_id = next((work.block_id for work in pending if not work.topic), None)
        else:
            block_id = redo.block_id
        if block_id is None:
            return {"block": None}
        block = self._archive.blocks([partition], ids=[block_id])[0]
        read = partial(
            self._archive.messages,
            [partition],
            thread=block.thread,
            first_seq=block.first_seq,
            last_seq=block.last_seq,
        )
        rows = read(shown=["asked"] if self._learns(state["scope"]) else ())
        wishes = self._wishes.of(state["scope"], rows)
        causes = {wish.cause for wish in wishes}
        if any(row.asked - causes for row in rows):  # if a later block asks to forget words, that block decides
            rows = tuple(each if row.asked - causes else row for row, each in zip(rows, read(), strict=True))
        return {
            "block": block,
            "rows": rows,
            "wishes": wishes,
            "messages": attended(readable(rows), self._attention, self._policy.salience),
        }

    def after_slice(self, state: _State) -> Literal["compress_message_block", "__end__"]:
        """Go on where there is a block."""
        return "__end__" if state.get("block") is None else "compress_message_block"

    def compress_message_block(self, state: _State) -> Body:
        """Summarise the block and route it; a block to redo keeps its digest and goes to the topics named."""
        messages, unread = yield from self._perceived(state)
        scope, block = state["scope"], _block(state)
        where = home(scope, self._settings.trust_boundary)
        shelves = (each for each in self._archive.topics(self._archive.visible(scope)) if each.partition == where)
        allowed = shelves_for(scope, where, messages, shelves, self._policy)
        known = self._archive.summaries([block.partition], ids=[block.block_id])
        invents = self._policy.create_topics
        redo = state["redo"]
        extracts = bool(messages) and self._settings.for_agent(scope.agent).extracts
        last = known[0].extractor if redo is not None and known else None
        if redo is not None and redo.topics and known:
            topics, refused = resolve(redo.topics if extracts else (), allowed, where, invents=invents)
            routed = {"summary": known[0], "topics": topics, "allowed": allowed, "refused": refused}
            left = self._plain.name if last != self._plain.name else None  # as a topic failed when it was read again
            return {"messages": messages, "objections": unread, "former": left, **routed}
        task = DigestTask(
            scope=scope,
            block=block,
            messages=messages,
            shelves=allowed,
            language=language_spoken(messages),
            held=self._archive.attributes([where]),
            itself=self._searcher.itself(scope),
            invents=invents,
        )
        digest, failure, asked = yield from self._digested(state, task, known, extracts=extracts)
        topics, refused = resolve(digest.topics, allowed, where, invents=invents)
        if refused and not topics:  # named twice, although it does not exist: otherwise all that was said would be lost
            spoken = self._plain.digest(task, state["meter"]).topics
            topics, _ = resolve(spoken, allowed, where, invents=invents)
        wishes = self._wishes.named(state["wishes"], messages, forget=digest.forget, correct=digest.correct)
        decides = extracts and self._thinker(state).learns
        if wishes and decides and not failure and (shelf := asked_of(wishes, scope, allowed)) not in topics:
            topics = (*topics, shelf)
        told = (*digest.notes, *(f"no topic {key!r}" for key in refused))
        return {
            "messages": messages,
            "wishes": wishes,
            "objections": unread,
            "summary": digest.summary,
            "topics": topics,
            "allowed": allowed,
            "refused": refused,
            "digest_failure": failure,
            "notes": () if self._rules(scope) else tuple(f"digest: {note}" for note in told),
            "last": last,
            "former": last if asked else None,
        }

    def _digested(
        self, state: _State, task: DigestTask, known: tuple[BlockSummary, ...], *, extracts: bool
    ) -> Generator[Think, Any, tuple[Digest, str, bool]]:
        """Return the digest of a block, why a model's could not be used, and whether a model was asked."""
        thinker, plainly = self._thinker(state), self._plain.name
        decides = extracts and thinker.learns
        if not extracts or (decides and not state["wishes"] and attention(task.messages) < self._policy.attention):
            whole = replace(
                task, messages=task.messages or readable(state["rows"])
            )  # what gets no attention is only indexed
            return self._plain.digest(whole, state["meter"]).read_by(thinker.name if decides else plainly), "", False
        try:
            return (yield Think(thinker, "digest", task, state["meter"])), "", True
        except ModelUnavailableError as error:
            self._out(task.block, thinker.name, error)
            raise
        except InvalidAnswerError as error:  # the index still gets an entry; the model's can be retried
            failure = FAILED if self._rules(task.scope) else str(error)
            digest = Digest(known[0], ()) if known else self._plain.digest(task, state["meter"]).read_by(plainly)
            return digest, failure, True

    def _perceived(self, state: _State) -> Generator[Think, Any, tuple[tuple[StoredMessage, ...], tuple[str, ...]]]:
        """Return the messages with what is in their attachments, and what could not be read."""
        messages, thinker, language = state["messages"], self._thinker(state), language_spoken(state["messages"])
        looks = thinker if self._settings.for_agent(state["scope"].agent).extracts else self._plain
        try:
            return (yield from self._perceiver.read(_block(state), messages, language, looks, state["meter"]))
        except ModelUnavailableError as error:
            self._out(_block(state), thinker.name, error)
            raise

    def handoff_to_summary_agent(self, state: _State) -> list[Send] | Literal["commit"]:
        """Send the block to each of its topics, or to the commit if there is none."""
        with self._archive.session():
            failed = self._failed(state)
            sends = [self._send(state, shelf, 1, failed.get(shelf.topic.key, ())) for shelf in state["topics"]]
        return sends or "commit"

    def _failed(self, state: _State) -> dict[str, tuple[str, ...]]:
        """Return why the topics to be tried again failed, to be shown to the model."""
        if state["redo"] is None:
            return {}
        block = _block(state)
        failed = self._archive.work([block.partition], states=["failed"], recipe=self._policy.recipe)
        return {work.topic: tuple(work.reason.splitlines()) for work in failed if work.block_id == block.block_id}

    def revise_memory(self, state: _State) -> Body:
        """Check completeness, duplicates and conflicts; say which topics go back."""
        newest = newest_of(state["proposals"])
        if newest and all(proposal.failure and not proposal.changes for proposal in newest.values()):
            return {"standing": (), "again": {}, "unreviewed": ""}
        language, weighs = language_spoken(state["messages"]), self._weighs(state)
        asked = {row.message_id for wish in state["wishes"] for row in (wish.message, *wish.words)}
        messages = [
            row for row in state["messages"] if row.message_id not in asked
        ]  # what is to be forgotten is not an omission
        task = inspect(state["scope"], messages, newest.values(), language, weighed=weighs)
        if ruled := bool(self._rules(state["scope"])):
            task = replace(task, flags=unmissed(task.flags))
        objections, unreviewed = task.flags, ""
        if weighs and (self._policy.reviser == "always" or task.flags):
            try:
                objections = yield Think(self._thinker(state), "review", task, state["meter"])
            except (InvalidAnswerError, ModelUnavailableError) as error:
                unreviewed = f"not reviewed: {error}"  # without a model, what the rules flagged counts
        objections = unmissed(objections) if ruled else objections
        again = self._rejected(state, newest, objections)
        objections = unreasoned(objections) if ruled else objections
        return {
            "standing": objections,
            "again": again,
            "unreviewed": unreviewed,
            "objections": (
                *(f"{item.topic}: {item.kind}: {item.reason}" for item in objections),
                *((unreviewed,) if unreviewed else ()),
            ),
        }

    def after_revision(self, state: _State) -> list[Send] | Literal["commit"]:
        """Send the rejected topics back with the reasons; commit if there are none."""
        return self._resend(state, amends=True) or "commit"

    def commit(self, state: _State) -> Body:
        """Write what was accepted and passes the owner's rules, in one change set.

        If memories changed meanwhile, name their topics.
        """
        newest, passed = newest_of(state["proposals"]), None
        if rules := self._rules(state["scope"]):
            passed = yield from self._screened(state, newest, rules)
            newest = passed.proposals
        done = self._committed(state, newest, passed)
        return {**done, "kept_out": passed.kept_out if passed and "receipt" in done else ()}

    def _screened(
        self, state: _State, newest: Mapping[str, Proposal], rules: OwnerRules
    ) -> Generator[Think, Any, Passed]:
        read = {message.message_id: message for message in (*readable(state["rows"]), *state["messages"])}
        draft = Draft(
            rows=state["rows"],
            messages=tuple(read.values()),
            summary=state["summary"],
            proposals=newest,
            thread=_block(state).thread,
            language=language_spoken(state["messages"]),
        )
        try:
            return (yield from screened(rules, draft, self._thinker(state), state["meter"]))
        except ModelUnavailableError as error:
            self._out(_block(state), self._thinker(state).name, error)
            raise

    def _committed(self, state: _State, newest: Mapping[str, Proposal], passed: Passed | None) -> Update:
        """Write what passed, or name the topics to send again."""
        try:
            return {"receipt": self._write(state, newest, passed), "again": {}, "notes": _notes(newest)}
        except ConflictError as conflict:
            elsewhere = state["redo"] is None and is_done(self._archive, _block(state), self._policy.recipe)
            if elsewhere or _block(state).block_id in conflict.records:
                return {"again": {}}  # if its words were withheld meanwhile, it still waits, and is read again
            touched = touched_by(conflict, newest, self._archive, state["scope"])
            again = {key: (str(conflict),) for key in touched if newest[key].attempt < self._policy.max_attempts}
            if again:
                return {"again": again}
            if not touched:
                raise
            failed = {key: replace(newest[key], changes=(), links=(), failure=str(conflict)) for key in touched}
        left = {**newest, **failed}
        return {"receipt": self._write(state, left, passed), "again": {}, "notes": _notes(left)}

    def after_commit(self, state: _State) -> list[Send] | Literal["__end__"]:
        """End, or run the touched topics again."""
        return self._resend(state, amends=False) or "__end__"

    def _write(self, state: _State, newest: Mapping[str, Proposal], passed: Passed | None) -> Receipt:
        failure = state.get("digest_failure")
        changes = change_set(
            scope=state["scope"],
            block=_block(state),
            messages=state["rows"],
            summary=passed.summary if passed else state["summary"],
            proposals={key: citing(proposal) for key, proposal in newest.items()},
            objections=state.get("standing", ()),
            refused=() if passed else state.get("refused", ()),
            weighed=self._weighs(state) and not state.get("unreviewed"),
            unreviewed=state.get("unreviewed", ""),
            failure=failure if failure is None or passed is None else failure or passed.failure,
            again=state.get("last"),
            policy=self._policy,
            actor=self._thinker(state).name,
            now=self._clock(),
        )
        wishes = [wish for wish in state["wishes"] if wish.cause]
        owner = asked_of(wishes, state["scope"], state["allowed"]).topic.key if wishes else ""
        decided = self._learns(state["scope"]) and owner in newest and not newest[owner].failure
        changes = self._wishes.settle(changes, state["scope"], _block(state), state["rows"], wishes, decided=decided)
        changes = giving_way(changes, self._former(state), f"read again by {self._thinker(state).name}")
        changes = passed.within(changes) if passed else changes
        _, receipt = self._disputes.commit(changes)
        return receipt

    def _former(self, state: _State) -> tuple[Memory, ...]:
        """Return what is retired once the block is read again."""
        where, reader = home(state["scope"], self._settings.trust_boundary), state.get("former")
        if reader in {None, self._thinker(state).name} or not self._learns(state["scope"]):
            return ()
        return former(self._archive, where, _block(state), reader)

    def _out(self, block: Block, actor: str, error: ModelUnavailableError) -> None:
        note_outage(self._archive, block, self._policy.recipe, error, actor=actor, now=self._clock())

    def _learns(self, scope: Scope) -> bool:
        """Whether a model reads a block, so that it may decide on requests in it."""
        return self._thinker_of(scope.agent).learns and self._settings.for_agent(scope.agent).extracts

    def _thinker(self, state: _State) -> Thinker:
        return self._thinker_of(state["scope"].agent)

    def _rules(self, scope: Scope) -> OwnerRules:
        """Return the owner's rules on what to remember, and what never to."""
        return OwnerRules.of(self._settings.for_agent(scope.agent).extraction)

    def _weighs(self, state: _State) -> bool:
        """Whether a model weighs what the rules flag."""
        return self._thinker(state).learns and self._policy.reviser != "rules"

    def _rejected(
        self, state: _State, newest: Mapping[str, Proposal], objections: tuple[Objection, ...]
    ) -> dict[str, tuple[str, ...]]:
        """Return the topics to send again: those objected to that may be tried once more.

        That words are not covered is a guess, which is worth a call only if a model agrees.
        """
        if not self._thinker(state).learns:
            return {}
        if not self._weighs(state):
            objections = tuple(objection for objection in objections if objection.kind != "omission")
        allowed = {shelf.topic.key for shelf in state["allowed"]} | set(newest)
        rejected: dict[str, tuple[str, ...]] = {}
        for objection in objections:
            tried = newest[objection.topic].attempt if objection.topic in newest else 0
            if objection.topic in allowed and tried < self._policy.max_attempts:
                reason = f"{objection.kind}: {objection.reason}"
                rejected[objection.topic] = (*rejected.get(objection.topic, ()), reason)
        return rejected

    def _resend(self, state: _State, *, amends: bool) -> list[Send]:
        """Send topics again; an attempt amends the last one, unless its memories changed meanwhile."""
        newest = newest_of(state["proposals"])
        shelves = {shelf.topic.key: shelf for shelf in (*state["allowed"], *state["topics"])}
        return [
            self._send(state, shelves[key], 1, reasons)
            if key not in newest
            else self._send(state, shelves[key], newest[key].attempt + 1, reasons, newest[key].operations * amends)
            for key, reasons in state.get("again", {}).items()
        ]

    def _send(
        self, state: _State, shelf: Shelf, attempt: int, reasons: tuple[str, ...], last: tuple[Operation, ...] = ()
    ) -> Send:
        asked, given_way = state["wishes"], frozenset(each.memory_id for each in self._former(state))
        wishes = asked if asked and shelf == asked_of(asked, state["scope"], (*state["allowed"], shelf)) else ()
        task = ProposeTask(
            scope=state["scope"],
            shelf=shelf,
            attempt=attempt,
            block=_block(state),
            messages=state["messages"],
            reasons=reasons,
            language=language_spoken(state["messages"]),
            now=self._clock(),
            recipe=f"{self._policy.recipe} {self._thinker(state).name}" if given_way else self._policy.recipe,
            former=given_way,
            itself=self._searcher.itself(state["scope"]) if self._thinker(state).looks_back else (),
            before=before(self._archive, _block(state), self._policy),
            last=last,
            wishes=tuple(wish.message for wish in wishes),
            meant=self._wishes.meant(state["scope"], wishes) if wishes else (),
        )
        return Send("sub_agent", {"task": task, "meter": state["meter"]})


def _block(state: _State) -> Block:
    block = state["block"]
    assert block is not None
    return block


def _notes(proposals: Mapping[str, Proposal]) -> tuple[str, ...]:
    return tuple(f"{key}: {note}" for key, proposal in proposals.items() for note in proposal.notes)
