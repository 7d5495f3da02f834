"""Sub Agents that write (R8): the graph that compares a block with the memories of one topic, and the changes that it proposes.

    START -> recall_similar_memory -> decide -> END

For reading, `engine.retrieval.retriever` has one step for all topics, in which a host's own agents take the place of
ours.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any, Literal, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from remegraph.engine.grounds import DatedText, Ground
from remegraph.engine.nodes import Body, Think, Update, node
from remegraph.engine.origin import Belief, Sources, best_sentence
from remegraph.engine.retrieval.search import Searcher, Similar
from remegraph.engine.summary_tasks import Meter, Operation, Proposal, ProposeTask, ThinkerOf, Voice
from remegraph.errors import InvalidAnswerError, ModelUnavailableError
from remegraph.models import Evidence, Link, LinkType, Memory, MemoryChange, Shelf
from remegraph.models.base import operation_id
from remegraph.models.standing import QUARANTINE_BELOW
from remegraph.models.supersession import content_digest, disputed, holds, relation, revision
from remegraph.models.tools import is_guideline
from remegraph.text.scripts import plain

__all__ = [
    "COUNTED_TRUST",
    "ProposalKey",
    "SubAgentInput",
    "SubAgentOutput",
    "Writer",
    "create_sub_agent",
    "ground_of",
    "newest_of",
    "sources_of",
]


ProposalKey = tuple[str, int]
"""Topic key and attempt: a rejected proposal is never taken for its successor."""


class SubAgentInput(TypedDict):
    """The task that the Meta Agent sends to a Sub Agent."""

    task: ProposeTask
    meter: Meter


class SubAgentOutput(TypedDict):
    """The result of a Sub Agent, joined with those of its siblings."""

    proposals: Annotated[dict[ProposalKey, Proposal], operator.or_]


class _State(SubAgentInput, SubAgentOutput):
    similar: Similar


SubAgent = CompiledStateGraph[_State, None, SubAgentInput, SubAgentOutput]


def create_sub_agent(searcher: Searcher, thinker_of: ThinkerOf) -> SubAgent:
    """Return the Sub Agent's graph."""

    def recall_similar_memory(state: _State) -> Update:
        task = state["task"]
        budget = thinker_of(task.scope.agent).similar_tokens
        with searcher.session():
            return {"similar": searcher.similar(task.shelf, task.messages, budget)}

    def decide(state: _State) -> Body:
        shown, former = state["similar"], state["task"].former
        known = [memory for memory in shown.memories if memory.memory_id not in former]
        task = replace(
            state["task"],
            similar=tuple(memory for memory in known if not is_guideline(memory)),
            settle=tuple(pair for pair in shown.pairs if former.isdisjoint(pair)),
            beside=tuple(memory for memory in shown.beside if memory.memory_id not in former),
            meant=tuple(memory for memory in state["task"].meant if memory not in known),
        )
        try:
            proposal: Proposal = yield Think(thinker_of(task.scope.agent), "propose", task, state["meter"])
        except (InvalidAnswerError, ModelUnavailableError) as error:
            proposal = Proposal(shelf=task.shelf, attempt=task.attempt, similar=task.similar, failure=str(error))
        return {"proposals": {(task.shelf.topic.key, task.attempt): proposal}}

    graph = StateGraph(_State, input_schema=SubAgentInput, output_schema=SubAgentOutput)
    graph.add_node("recall_similar_memory", recall_similar_memory)
    graph.add_node("decide", node(decide, "decide"))
    graph.add_edge(START, "recall_similar_memory")
    graph.add_edge("recall_similar_memory", "decide")
    graph.add_edge("decide", END)
    return graph.compile(checkpointer=False, name="sub_agent")


def newest_of(proposals: Mapping[ProposalKey, Proposal]) -> dict[str, Proposal]:
    """Return the last attempt of each topic, by topic key."""
    return {key: proposals[key, attempt] for key, attempt in sorted(proposals)}


COUNTED_TRUST = 0.8
"""Trust of what code itself counted over tool calls; the words of a tool are believed less."""

_IMPORTANCE_LIMIT = 0.89
"""Only a person or an explicit call sets .9 or more (core rules)."""


class Writer:
    """Writes the changes of one Sub Agent for one block. What is firm never changes, whatever the block says.

    `extractor` is the model's name, or `extractive`; `prompt` is the digest of the prompt that it was asked with.
    """

    def __init__(self, task: ProposeTask, extractor: str, voice: Voice, prompt: str = "") -> None:
        self._task = task
        self._extractor = extractor
        self._voice = voice
        self._firm = [memory for memory in task.similar if memory.firm]
        self._prompt = prompt
        self._by_id = {message.message_id: message for message in task.messages}
        self._heard = sources_of(task)
        self.changes: list[MemoryChange] = []
        self.links: list[Link] = []
        self.notes: list[str] = []
        """Operations that were requested but not carried out, and why."""

    def apply(self, operation: Operation, known: Mapping[str, Memory]) -> None:
        """Write what a checked operation changes.

        `known` are the memories that it was shown, by id.
        """
        olds = [known[memory_id] for memory_id in operation.targets]
        evidence = operation.evidence
        if operation.action in {"SUPERSEDE", "CORRECT", "END", "DELETE"}:
            olds = self._before(operation, olds)
        match operation.action:
            case "CORROBORATE":
                for old in olds:
                    self.corroborate(old, evidence)
            case "REFINE" if len(olds) == 1:
                self.update_memory(olds[0], operation)
            case "CORRECT" if not operation.content:
                for old in olds:
                    self._retire(old, None, "correct")
            case "END":
                self._end(operation, olds)
            case "DELETE":
                for old in olds:
                    self.delete_memory(old, evidence)
            case _:
                self._create(operation, olds)

    def _end(self, operation: Operation, olds: Sequence[Memory]) -> None:
        if operation.content and all(operation.content != old.content for old in olds):
            # "no longer likes coffee", itself held until then, would say the contrary: it takes their place, without its value
            over = any(holds(old, operation.canonical_topic, operation.slot_value) for old in olds)
            value = "" if over else operation.slot_value
            self._create(replace(operation, slot_value=value, valid_from=operation.valid_to, valid_to=None), olds)
            return
        for old in olds:
            self.end(old, operation.evidence, until=operation.valid_to)

    def settle(self, operation: Operation, known: Mapping[str, Memory]) -> None:
        """Settle memories that share a slot. Nothing new is said, so no words of this block are needed."""
        olds = [known[memory_id] for memory_id in operation.targets]
        ids = {old.memory_id for old in olds}
        pair = next((each for each in self._task.settle if ids <= set(each)), ())
        left = [memory for memory in self._task.similar if memory.memory_id in pair and memory.memory_id not in ids]
        match operation.action:
            case "CORROBORATE":
                for old in olds if operation.slot_many else ():
                    self._revise(old, (), "refine", slot_many=True)
            case "CORRECT":
                for old in olds:
                    self._retire(old, None, "correct")
            case "END":
                for old in olds:
                    self.end(old, (), until=operation.valid_to)
            case _:
                holding = max(left or olds, key=lambda memory: memory.said_at)
                for old in olds:
                    if old is not holding:
                        self._retire(old, holding, "supersede")

    def _create(self, operation: Operation, olds: Sequence[Memory]) -> None:
        """Write a new memory, in the place of others or beside them."""
        content, slot, value = operation.content, operation.canonical_topic, operation.slot_value
        beside = operation.action == "CONTRADICT"
        if self.is_known(content, slot, value):
            self.notes.append(f"known already, as knowledge or a policy: {content!r}")
            return
        new = self.new_memory(operation, replaces=() if beside else olds)
        for old in olds if beside else ():
            self.contradict(new, old)

    def _before(self, operation: Operation, olds: Sequence[Memory]) -> list[Memory]:
        """Return what a statement may replace: nothing that was said after it.

        What is wrong, over, or to be forgotten may have been saved by the agent itself in the same turn.
        """
        said_at = self._time_of(operation.evidence)
        told = said_at if operation.action == "SUPERSEDE" else max(said_at, self._task.block.end_time)
        began = max(filter(None, (operation.valid_from, told)))
        later = [old for old in olds if old.said_at > began]
        self.notes += [f"left as it is, it was said later: {old.content!r}" for old in later]
        return [old for old in olds if old not in later]

    def new_memory(
        self, operation: Operation, *, trust: float | None = None, replaces: Sequence[Memory] = ()
    ) -> Memory:
        """Add a new memory; under the trust limit it is quarantined. No talk makes a core rule: importance is capped.

        `trust` replaces the least trust of the evidence, for what code itself counted. `replaces` are memories
        that it retires: as never true if it corrects them, else as true until now. What is firm among them stays,
        and is linked as what it may contradict.
        """
        task = self._task
        content, evidence = plain(operation.content), operation.evidence
        if trust is None:
            belief = self._belief(operation)
            trust, evidence = belief.trust, self._with_sources(content, evidence, belief)
        retired = [old for old in replaces if not old.firm]
        shelf = self._shelf(replaces)
        memory = Memory(
            memory_id=operation_id(
                shelf.to_json(),
                task.block.partition.to_json(),
                task.block.block_id,
                task.recipe,
                content_digest(content),
            ),
            partition=shelf.partition,
            topic=shelf.topic,
            content=content,
            when_to_use=operation.when_to_use,
            kind="profile" if shelf.topic.type in {"self", "personal"} else "workflow",
            category=operation.category,
            canonical_topic=operation.canonical_topic,
            slot_value=operation.slot_value,
            slot_many=operation.slot_many,
            evidence=evidence,
            block_ids=(task.block.block_id,),
            importance=min(operation.importance, _IMPORTANCE_LIMIT),
            tags=operation.tags,
            payload={"session": task.block.thread},
            language=task.language,
            trust=trust,
            status="active" if trust >= QUARANTINE_BELOW else "quarantined",
            source=self._voice.mode,
            extractor=self._extractor,
            prompt=self._prompt,
            perspective=self._voice.perspective,
            supersedes=tuple(old.memory_id for old in retired),
            valid_from=operation.valid_from,
            valid_to=operation.valid_to,
            said_at=self._time_of(operation.evidence),
            recorded_at=task.now,
        )
        self.changes.append(MemoryChange(memory=memory, expected_version=0, action="create"))
        for old in retired:
            self._retire(old, memory, "correct" if operation.action == "CORRECT" else "supersede")
        self._join_firm(memory, replaces)
        return memory

    def contradict(self, new: Memory, old: Memory) -> None:
        """Keep a new memory beside one that it contradicts, both in dispute; what is firm or core stays as it is."""
        if old.firm or not new.live:
            self._link(new, "may_contradict", old)
            return
        self._link(new, "contradicts", old)
        place = next(at for at, change in enumerate(self.changes) if change.memory.memory_id == new.memory_id)
        self.changes[place] = self.changes[place].evolve(memory=disputed(new))
        now = disputed(old)
        if now is not old:
            self.changes.append(revision(now, self._task.now, "dispute"))

    def is_known(self, content: str, canonical_topic: str = "", slot_value: str = "") -> bool:
        """Return whether something firm already says this, in the same words or with the same value of one slot."""
        digest = content_digest(plain(content))
        return any(
            content_digest(known.content) == digest or holds(known, canonical_topic, slot_value) for known in self._firm
        )

    def corroborate(self, old: Memory, evidence: Sequence[Evidence]) -> None:
        """Record that a memory was said again; a second block makes it long-term.

        Only a person's words corroborate: an assistant may be repeating what it recalled.
        """
        spoken = [item for item in evidence if self._by_id[item.message_id].from_user]
        told = {(item.message_id, item.quote) for item in old.evidence}
        if old.firm or not spoken:
            why = "it is knowledge or a policy" if old.firm else "nobody but the agent said it again"
            self.notes.append(f"not corroborated, {why}: {old.content!r}")
            return
        if all((item.message_id, item.quote) in told for item in spoken):  # words count once
            return
        layer = "long_term" if self._task.block.block_id not in old.block_ids and old.layer == "episodic" else old.layer
        self._revise(old, spoken, "corroborate", layer=layer, merges=old.merges + 1)

    def update_memory(self, old: Memory, operation: Operation) -> None:
        """Give a memory a fuller text; its trust falls to that of the new words. It keeps the slot that it has."""
        slot = old.canonical_topic or operation.canonical_topic
        value = operation.slot_value if slot == operation.canonical_topic else ""
        belief = self._belief(operation)
        self._revise(
            old,
            self._with_sources(operation.content, operation.evidence, belief),
            "refine",
            content=plain(operation.content),
            canonical_topic=slot,
            slot_value=value or old.slot_value,
            when_to_use=operation.when_to_use or old.when_to_use,
            tags=tuple(dict.fromkeys((*old.tags, *operation.tags))),
            trust=min(old.trust, belief.trust),
            source=self._voice.mode,
            extractor=self._extractor,
            prompt=self._prompt,
            perspective=self._voice.perspective,
        )

    def delete_memory(self, old: Memory, evidence: Sequence[Evidence]) -> None:
        """Retire a memory that is not wanted or was never true; its versions stay."""
        self._revise(old, evidence, "delete", status="deleted")

    def end(self, old: Memory, evidence: Sequence[Evidence], *, until: datetime | None = None) -> None:
        """Record that a memory held until a time and no longer: it is history from then on.

        Without `until` it ended when the words were said.
        """
        self._revise(
            old,
            evidence,
            "end",
            valid_from=old.valid_from or old.said_at,
            valid_to=until or self._time_of(evidence),
        )

    def _join_firm(self, new: Memory, replaces: Sequence[Memory]) -> None:
        """Link a new memory to something firm that contradicts it: both are kept."""
        for known in self._firm:
            if known in replaces or relation(new, known, one_source=False) == "disputes":
                self._link(new, "may_contradict", known)

    def _retire(self, old: Memory, new: Memory | None, action: Literal["supersede", "correct"]) -> None:
        """Let a memory hold until another one does; if corrected, it was never true."""
        if any(change.memory.memory_id == old.memory_id for change in self.changes):
            return  # by another of those that take its place
        began = old.valid_from or old.said_at
        over = began if action == "correct" or new is None else old.valid_to or new.valid_from or new.said_at
        self.changes.append(revision(old, self._task.now, action, status="superseded", valid_to=over))

    def _link(self, new: Memory, kind: LinkType, old: Memory) -> None:
        self.links.append(Link(source_id=new.memory_id, type=kind, target_id=old.memory_id))

    def _revise(self, old: Memory, evidence: Sequence[Evidence], action: str, **changes: Any) -> None:
        change = revision(
            old,
            self._task.now,
            action,
            **changes,
            evidence=tuple(dict.fromkeys((*old.evidence, *evidence))),
            block_ids=tuple(dict.fromkeys((*old.block_ids, self._task.block.block_id))),
            said_at=max(old.said_at, self._time_of(evidence)),
        )
        self.changes.append(change)

    def _shelf(self, replaces: Sequence[Memory]) -> Shelf:
        """Return where a new memory belongs: with what it replaces, which a request may have found under another topic."""
        shelves = {Shelf(partition=old.partition, topic=old.topic) for old in replaces if old in self._task.meant}
        return shelves.pop() if len(shelves) == 1 and len(replaces) == 1 else self._task.shelf

    def _belief(self, operation: Operation) -> Belief:
        said = filter(None, (plain(operation.content), operation.slot_value, operation.when_to_use))
        return self._heard.belief(" ".join(said), operation.evidence, self._task.shelf.topic)

    def _with_sources(self, content: str, evidence: Sequence[Evidence], belief: Belief) -> tuple[Evidence, ...]:
        """Return evidence with the words of tools and documents of this block that a text draws on and nothing cites."""
        cited = {item.message_id for item in evidence}
        drawn = [each for each in belief.drawn if each.message_id in self._by_id and each.message_id not in cited]
        found = [(each.message_id, best_sentence(content, each.text)) for each in drawn]
        block_id = self._task.block.block_id
        more = (Evidence(message_id=name, quote=words, block_id=block_id) for name, words in found if words)
        return (*evidence, *more)

    def _time_of(self, evidence: Sequence[Evidence]) -> datetime:
        times = [self._by_id[item.message_id].time for item in evidence]
        return max(times) if times else self._task.block.end_time


def sources_of(task: ProposeTask) -> Sources:
    """Return what was said where the memories of a task come from, and what is believed already."""
    shown = (*task.similar, *task.beside, *task.itself, *task.meant)
    names = (task.scope.user, task.scope.agent or "", task.shelf.topic.target_name.replace("_", " "))
    known = (each.content for each in shown if each.trust >= QUARANTINE_BELOW)
    return Sources((*task.before, *task.messages), (*names, *known))


def ground_of(task: ProposeTask) -> Ground:
    """Return everything that a memory written by a Sub Agent may say: what it was shown."""
    shown = (*task.similar, *task.beside, *task.itself, *task.meant)
    topic, now = task.shelf.topic, task.block.end_time
    names = (task.scope.user, task.scope.agent or "", topic.target_name, topic.description)
    return Ground(
        (
            *(DatedText(each.indexed_text, each.time) for each in (*task.before, *task.messages)),
            *(DatedText(f"{each.content} {each.slot_value} {each.canonical_topic}", each.said_at) for each in shown),
            *(DatedText(each.valid_to.isoformat(), each.valid_to) for each in shown if each.valid_to),
            *(DatedText(name, now) for name in names if name),
        ),
        named=(*names, *(each.speaker for each in task.messages)),
    )
