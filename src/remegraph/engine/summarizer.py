"""The Meta Agent's write path, as a graph (design document, "Summarizer"):

    START -> slice -> compress_message_block -> (Send) sub_agent, one per topic, in parallel -> revise_memory -> commit -> END
    slice -> END                      where no block is pending
    compress_message_block -> commit  where the block teaches nothing
    revise_memory -> sub_agent        the rejected topics only, with the reasons, at most N times
    commit -> sub_agent               the topics whose memories changed meanwhile, likewise

One run does one block. Durability is the ledger's: no graph of ours has a checkpointer.
"""  # noqa: D415 - the first line introduces the picture

from __future__ import annotations

import operator
from collections.abc import Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, Literal, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Send

from remegraph.engine.attention import attended, attention
from remegraph.engine.committing import change_set
from remegraph.engine.disputes import Disputes
from remegraph.engine.metering import Meter
from remegraph.engine.nodes import Body, Think, Update, node
from remegraph.engine.perceiving import Perceiver, citing, spoken
from remegraph.engine.reviser import inspect
from remegraph.engine.routing import home, person, resolve, self_topic, shelves_for
from remegraph.engine.search import Searcher
from remegraph.engine.slicing import before, cut, readable
from remegraph.engine.subagents import ProposalKey, create_sub_agent
from remegraph.engine.tasks import DigestTask, Operation, Proposal, ProposeTask, Thinker, ThinkerOf
from remegraph.engine.wishes import WAITS, Wish, Wishes
from remegraph.errors import ConflictError, InvalidAnswerError, ModelUnavailableError
from remegraph.language.scripts import language_of
from remegraph.models import LIVE, Block, BlockSummary, ChangeSet, Memory, Receipt, Scope, Shelf, StoredMessage
from remegraph.ports import Archive, Attention, Clock
from remegraph.prompts import Language
from remegraph.rules.naming import operation_id
from remegraph.rules.objections import Objection
from remegraph.settings import Settings

__all__ = ["BlockOutcome", "Redo", "SummarizerInput", "Tools", "build_summarizer"]

_MOST_OF_ITSELF = 12
"""Self memories shown to a thinker that looks back as the agent, the most important first."""


@dataclass(frozen=True, slots=True)
class Tools:
    """What the summariser works with."""

    archive: Archive
    searcher: Searcher
    clock: Clock
    thinker_of: ThinkerOf
    plain: Thinker
    """Thinks without a model; indexes what is not worth a call."""
    settings: Settings
    perceiver: Perceiver
    """Has attachments read."""
    attention: Attention
    """Scores what was said, where `SummaryPolicy.salience` asks for it."""
    wishes: Wishes
    """Carries out what a person asks memory to forget."""


@dataclass(frozen=True, slots=True)
class Redo:
    """Topics of a block to try again; its digest stands. No topics: the digest itself failed."""

    block_id: str
    topics: tuple[str, ...]


class SummarizerInput(TypedDict):
    """One run: whose block, and whether the open tail is cut too."""

    scope: Scope
    close: bool
    redo: Redo | None
    meter: Meter


class BlockOutcome(TypedDict, total=False):
    """What came of one run; without a block there was nothing to do."""

    block: Block | None
    receipt: Receipt
    objections: Annotated[tuple[str, ...], operator.add]
    notes: Annotated[tuple[str, ...], operator.add]
    """What a model wrote that was read otherwise or left out, and why."""


class _State(SummarizerInput, BlockOutcome, total=False):
    rows: tuple[StoredMessage, ...]
    """The whole block."""
    messages: tuple[StoredMessage, ...]
    """What was said in it and got attention. All else is shown to no thinker, and nothing is learned from it; nor is
    what was merely recalled."""
    wishes: tuple[Wish, ...]
    """What it asks to be forgotten or put right."""
    summary: BlockSummary
    topics: tuple[Shelf, ...]
    allowed: tuple[Shelf, ...]
    refused: tuple[str, ...]
    digest_failure: str
    proposals: Annotated[dict[ProposalKey, Proposal], operator.or_]
    standing: tuple[Objection, ...]
    """What the reviser says of the newest attempts."""
    unreviewed: str
    """Why no model reviewed them, where one should have."""
    again: dict[str, tuple[str, ...]]
    """Topic keys to send again, each with its reasons."""


Summarizer = CompiledStateGraph[_State, None, SummarizerInput, BlockOutcome]


def build_summarizer(tools: Tools) -> Summarizer:
    """Return the summariser's graph.

    Args:
        tools: What it works with.
    """
    steps = _Steps(tools)
    graph = StateGraph(_State, input_schema=SummarizerInput, output_schema=BlockOutcome)
    graph.add_node("slice", steps.slice)
    graph.add_node("compress_message_block", node(steps.compress_message_block, "compress_message_block"))
    graph.add_node("sub_agent", create_sub_agent(tools.searcher, tools.thinker_of))
    graph.add_node("revise_memory", node(steps.revise_memory, "revise_memory"))
    graph.add_node("commit", steps.commit)
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
        partition = state["scope"].partition()
        redo = state["redo"]
        if redo is None:
            overlap = self._slicing.overlap if self._slicing.strategy == "length" else 0
            cuts = [
                each
                for tail in self._archive.tails(partition, overlap)
                for each in cut(tail, self._slicing, close=state["close"])
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
        rows = read(asked=self._learns(state["scope"]))
        wishes = self._wishes.of(state["scope"], rows)
        causes = {wish.cause for wish in wishes}
        if any(row.asked - causes for row in rows):  # of words that a later block asks to forget, that one decides
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
        existing = self._archive.topics(self._archive.visible(scope))
        allowed = shelves_for(
            scope, where, messages, (shelf for shelf in existing if shelf.partition == where), self._policy
        )
        known = self._archive.summaries([block.partition], ids=[block.block_id])
        redo = state["redo"]
        extracts = bool(messages) and self._settings.for_agent(scope.agent).extracts
        if redo is not None and redo.topics and known:
            topics, refused = resolve(redo.topics if extracts else (), allowed, where, self._policy)
            routed = {"summary": known[0], "topics": topics, "allowed": allowed, "refused": refused}
            return {"messages": messages, "objections": unread, **routed}
        language = _language(messages)
        task = DigestTask(scope=scope, block=block, messages=messages, shelves=allowed, language=language)
        plain = replace(task, messages=messages or readable(state["rows"]))  # what nobody attends to is still indexed
        failure, thinker = "", self._thinker(state)
        decides, wishes = extracts and thinker.learns, state["wishes"]
        if not extracts or (decides and not wishes and attention(messages) < self._policy.attention):
            digest = self._plain.digest(plain, state["meter"]).without_topics()
        else:
            try:
                digest = yield Think(thinker, "digest", task, state["meter"])
            except ModelUnavailableError as error:
                self._note_outage(block, thinker.name, error)
                raise
            except InvalidAnswerError as error:  # the index has its entry all the same; the model's can be retried
                digest, failure = self._plain.digest(task, state["meter"]).without_topics(), str(error)
        topics, refused = resolve(digest.topics, allowed, where, self._policy)
        wishes = self._wishes.named(wishes, messages, forget=digest.forget, correct=digest.correct)
        if wishes and decides and not failure and (shelf := _asked_of(wishes, scope, allowed)) not in topics:
            topics = (*topics, shelf)
        return {
            "messages": messages,
            "wishes": wishes,
            "objections": unread,
            "summary": digest.summary,
            "topics": topics,
            "allowed": allowed,
            "refused": refused,
            "digest_failure": failure,
            "notes": tuple(f"digest: {note}" for note in digest.notes),
        }

    def _perceived(self, state: _State) -> Generator[Think, Any, tuple[tuple[StoredMessage, ...], tuple[str, ...]]]:
        """Return the messages with what is in their attachments, and what could not be read."""
        messages, thinker = state["messages"], self._thinker(state)
        looks = thinker if self._settings.for_agent(state["scope"].agent).extracts else self._plain
        try:
            return (
                yield from self._perceiver.read(_block(state), messages, _language(messages), looks, state["meter"])
            )
        except ModelUnavailableError as error:
            self._note_outage(_block(state), thinker.name, error)
            raise

    def handoff_to_summary_agent(self, state: _State) -> list[Send] | Literal["commit"]:
        """Send the block to each of its topics; to the commit where there is none."""
        failed = self._failed(state)
        sends = [self._send(state, shelf, 1, failed.get(shelf.topic.key, ())) for shelf in state["topics"]]
        return sends or "commit"

    def _failed(self, state: _State) -> dict[str, tuple[str, ...]]:
        """Return why the topics failed that are tried again: what went wrong is shown."""
        if state["redo"] is None:
            return {}
        block = _block(state)
        failed = self._archive.work([block.partition], states=["failed"], recipe=self._policy.recipe)
        return {work.topic: tuple(work.reason.splitlines()) for work in failed if work.block_id == block.block_id}

    def revise_memory(self, state: _State) -> Body:
        """Check completeness, duplicates and conflicts; say which topics go back."""
        newest = _newest(state["proposals"])
        if newest and all(proposal.failure and not proposal.changes for proposal in newest.values()):
            return {"standing": (), "again": {}, "unreviewed": ""}
        language, weighs = _language(state["messages"]), self._weighs(state)
        asked = {row.message_id for wish in state["wishes"] for row in (wish.message, *wish.words)}
        messages = [row for row in state["messages"] if row.message_id not in asked]  # nobody misses what is to be gone
        task = inspect(state["scope"], messages, newest.values(), language, weighed=weighs)
        objections, unreviewed = task.flags, ""
        if weighs and (self._policy.reviser == "always" or task.flags):
            try:
                objections = yield Think(self._thinker(state), "review", task, state["meter"])
            except (InvalidAnswerError, ModelUnavailableError) as error:
                unreviewed = f"not reviewed: {error}"  # what the rules flagged stands where no model can weigh it
        again = self._rejected(state, newest, objections)
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
        """Send the rejected topics back with the reasons; commit where there is none."""
        return self._resend(state, amends=True) or "commit"

    def commit(self, state: _State) -> Update:
        """Write what was accepted in one change set; where memories changed meanwhile, name their topics."""
        newest = _newest(state["proposals"])
        try:
            return {"receipt": self._write(state, newest), "again": {}, "notes": _notes(newest)}
        except ConflictError as conflict:
            if self._done_elsewhere(state) or (state["redo"] is None and _block(state).block_id in conflict.records):
                return {"again": {}}  # where its words were withheld meanwhile, it waits still, and is read again
            touched = self._touched(state, newest, conflict)
            again = {key: (str(conflict),) for key in touched if newest[key].attempt < self._policy.max_attempts}
            if again:
                return {"again": again}
            if not touched:
                raise
            failed = {key: replace(newest[key], changes=(), links=(), failure=str(conflict)) for key in touched}
        return {"receipt": self._write(state, newest | failed), "again": {}, "notes": _notes(newest | failed)}

    def after_commit(self, state: _State) -> list[Send] | Literal["__end__"]:
        """End, or run the touched topics again."""
        return self._resend(state, amends=False) or "__end__"

    def _write(self, state: _State, newest: Mapping[str, Proposal]) -> Receipt:
        changes = change_set(
            scope=state["scope"],
            block=_block(state),
            messages=state["rows"],
            summary=state["summary"],
            proposals={key: citing(proposal) for key, proposal in newest.items()},
            objections=state.get("standing", ()),
            refused=state.get("refused", ()),
            weighed=self._weighs(state) and not state.get("unreviewed"),
            unreviewed=state.get("unreviewed", ""),
            failure=state.get("digest_failure"),
            policy=self._policy,
            actor=self._thinker(state).name,
            now=self._clock(),
        )
        wishes = [wish for wish in state["wishes"] if wish.cause]
        owner = _asked_of(wishes, state["scope"], state["allowed"]).topic.key if wishes else ""
        decided = self._learns(state["scope"]) and owner in newest and not newest[owner].failure
        changes = self._wishes.settle(changes, state["scope"], _block(state), state["rows"], wishes, decided=decided)
        if wishes and not decided:
            changes = _waiting(changes)
        _, receipt = self._disputes.commit(changes)
        return receipt

    def _note_outage(self, block: Block, actor: str, error: ModelUnavailableError) -> None:
        """Write on a pending block why it waits, and how often it was tried."""
        pending = self._archive.work([block.partition], states=["pending"], recipe=self._policy.recipe)
        for work in pending:
            if (work.block_id, work.topic) == (block.block_id, ""):
                noted = work.evolve(reason=str(error), attempts=work.attempts + 1)
                changes = ChangeSet(
                    operation_id=operation_id("outage", noted.to_json()),
                    actor=actor,
                    recorded_at=self._clock(),
                    work=(noted,),
                )
                with suppress(ConflictError):  # another worker has done it
                    self._archive.commit(changes)

    def _done_elsewhere(self, state: _State) -> bool:
        """Whether another worker did this block meanwhile."""
        block = _block(state)
        done = self._archive.work([block.partition], states=["done"], recipe=self._policy.recipe)
        return state["redo"] is None and any(each.block_id == block.block_id and not each.topic for each in done)

    def _touched(self, state: _State, newest: Mapping[str, Proposal], conflict: ConflictError) -> list[str]:
        """Return the topics whose memories changed, or got a twin, since their Sub Agent looked."""
        memories = self._archive.memories(self._archive.visible(state["scope"]), ids=conflict.records)
        changed = {memory.topic.key for memory in memories}
        return [
            key
            for key, proposal in newest.items()
            if key in changed or any(change.memory.memory_id in conflict.records for change in proposal.changes)
        ]

    def _learns(self, scope: Scope) -> bool:
        """Whether a model reads a block, so that it may decide what is asked there."""
        return self._thinker_of(scope.agent).learns and self._settings.for_agent(scope.agent).extracts

    def _thinker(self, state: _State) -> Thinker:
        return self._thinker_of(state["scope"].agent)

    def _weighs(self, state: _State) -> bool:
        """Whether a model weighs what the rules flag."""
        return self._thinker(state).learns and self._policy.reviser != "rules"

    def _rejected(
        self, state: _State, newest: Mapping[str, Proposal], objections: tuple[Objection, ...]
    ) -> dict[str, tuple[str, ...]]:
        """Return the topics to send again: those objected to that may be tried once more.

        That words are not covered is a guess, which costs a call only where a model shares it.
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
        newest = _newest(state["proposals"])
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
        asked = state["wishes"]
        wishes = asked if asked and shelf == _asked_of(asked, state["scope"], (*state["allowed"], shelf)) else ()
        task = ProposeTask(
            scope=state["scope"],
            shelf=shelf,
            attempt=attempt,
            block=_block(state),
            messages=state["messages"],
            reasons=reasons,
            language=_language(state["messages"]),
            now=self._clock(),
            recipe=self._policy.recipe,
            itself=self._itself(state["scope"]) if self._thinker(state).looks_back else (),
            before=before(self._archive, _block(state), self._policy),
            last=last,
            wishes=tuple(wish.message for wish in wishes),
            meant=self._wishes.meant(state["scope"], wishes) if wishes else (),
        )
        return Send("sub_agent", {"task": task, "meter": state["meter"]})

    def _itself(self, scope: Scope) -> tuple[Memory, ...]:
        """Return what the agent knows of itself, the most important first."""
        found = self._archive.memories(self._archive.visible(scope), topics=[self_topic()], statuses=sorted(LIVE))
        return tuple(sorted(found, key=lambda memory: -memory.importance)[:_MOST_OF_ITSELF])


def _asked_of(wishes: Sequence[Wish], scope: Scope, allowed: Sequence[Shelf]) -> Shelf:
    """Return the topic whose writer decides the requests of a block: that of the person who asks first."""
    who = person(wishes[0].message, scope)
    key = f"personal:{who}".casefold()
    return next((shelf for shelf in allowed if shelf.topic.key.casefold() == key), allowed[0])


def _waiting(changes: ChangeSet) -> ChangeSet:
    """Return a block's change with the mark that a request in it waits for a decision."""
    work = tuple(
        each.evolve(state="review", reason=WAITS) if not each.topic and each.state == "done" else each
        for each in changes.work
    )
    return changes.evolve(work=work)


def _language(messages: Sequence[StoredMessage]) -> Language:
    return language_of("\n".join(message.text for message in spoken(messages)))


def _block(state: _State) -> Block:
    block = state["block"]
    assert block is not None
    return block


def _newest(proposals: Mapping[ProposalKey, Proposal]) -> dict[str, Proposal]:
    """Return the last attempt of each topic, by topic key."""
    return {key: proposals[key, attempt] for key, attempt in sorted(proposals)}


def _notes(proposals: Mapping[str, Proposal]) -> tuple[str, ...]:
    return tuple(f"{key}: {note}" for key, proposal in proposals.items() for note in proposal.notes)
