"""The way from memories to knowledge, as a graph (MEK, section 2.1.5):

    START -> retrieve -> filter -> desensitize -> generalize -> check -> standardize -> END

Each step lets through what may go on and says of the rest why it stays. A model may find names and say things more
generally; what it answers is searched like everything else, and nothing leaves in which something private is found.
"""  # noqa: D415 - the first line introduces the picture

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from itertools import chain, groupby
from typing import Annotated, Any, Literal, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from remegraph.errors import InvalidAnswerError, RequestRefusedError
from remegraph.exchange.checking import Candidate, objection, private, still_private, words
from remegraph.exchange.cleaning import Cleaner
from remegraph.exchange.naming import Known, known
from remegraph.language.plain import texts
from remegraph.models import (
    Kind,
    KnowledgeItem,
    Memory,
    Progress,
    Rejection,
    Removal,
    Scope,
    SkillFigures,
)
from remegraph.ports import Archive, Draft, Generalizer
from remegraph.rules.desensitizing import LONGEST
from remegraph.rules.forms import content_of
from remegraph.rules.generalizing import (
    as_slots,
    common_words,
    generalized,
    prose,
    reworded,
    says_something,
    title_of,
)
from remegraph.rules.sharable import unsharable
from remegraph.rules.standardizing import knowledge_id, short

__all__ = ["ExtractService", "ShareInput", "Shared", "Sources", "build_extractor"]

_BATCH = 8
"""Memories in one question to a model."""


@dataclass(frozen=True, slots=True)
class Sources:
    """Where memories come from, and what is known of them."""

    archive: Archive
    recall: Callable[[str, Scope, int], Sequence[Memory]]
    """Memories that bear on a query, the best first."""
    figures: Callable[[Sequence[Memory]], Mapping[str, SkillFigures]]
    """How skills have gone so far, by memory."""


class ShareInput(TypedDict):
    """What is to be shared, by whom."""

    query: str
    scope: Scope
    agent: str
    now: datetime
    k: int
    episodes: bool
    public: tuple[str, ...]
    generalizer: Generalizer | None
    tell: Callable[[Progress], None]
    check: Callable[[], None]


class Shared(TypedDict):
    """What may leave, and what became of the rest."""

    found: tuple[Memory, ...]
    items: tuple[KnowledgeItem, ...]
    rejected: Annotated[tuple[Rejection, ...], operator.add]
    removed: tuple[Removal, ...]
    by_rules: tuple[str, ...]


class _State(ShareInput, Shared):
    left: tuple[Candidate, ...]


_Update = dict[str, Any]
ExtractService = CompiledStateGraph[_State, None, ShareInput, Shared]


def build_extractor(sources: Sources) -> ExtractService:
    """Return the graph that makes knowledge of memories.

    Args:
        sources: Where memories come from.
    """
    steps = _Steps(sources)
    graph = StateGraph(_State, input_schema=ShareInput, output_schema=Shared)
    graph.add_node("retrieve", steps.retrieve)
    graph.add_node("filter", steps.filter)
    graph.add_node("desensitize", steps.desensitize)
    graph.add_node("generalize", steps.generalize)
    graph.add_node("check", steps.check)
    graph.add_node("standardize", steps.standardize)
    graph.add_edge(START, "retrieve")
    graph.add_edge("retrieve", "filter")
    graph.add_edge("filter", "desensitize")
    graph.add_edge("desensitize", "generalize")
    graph.add_edge("generalize", "check")
    graph.add_edge("check", "standardize")
    graph.add_edge("standardize", END)
    return graph.compile(checkpointer=False, name="extractor")


class _Steps:
    """The nodes."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources

    def retrieve(self, state: _State) -> _Update:
        """Find the sharer's memories that bear on the query; raw messages are not looked at."""
        _begin(state, "retrieve", 0)
        return {"found": tuple(self._sources.recall(state["query"], state["scope"], state["k"]))}

    def filter(self, state: _State) -> _Update:
        """Keep what has value for others."""
        found = state["found"]
        _begin(state, "filter", len(found))
        figures = self._sources.figures(found)
        whys = {
            memory.memory_id: unsharable(
                memory, state["now"], figures=figures.get(memory.memory_id), episodes=state["episodes"]
            )
            for memory in found
        }
        kept = [memory for memory in found if not whys[memory.memory_id]]
        return {
            "left": tuple(
                Candidate(
                    memory,
                    "episode" if memory.layer == "episodic" else memory.kind,
                    figures=figures.get(memory.memory_id),
                )
                for memory in kept
            ),
            "rejected": tuple(_held(name, "filter", why) for name, why in whys.items() if why),
        }

    def desensitize(self, state: _State) -> _Update:
        """Put placeholders for all that is private; a model, where there is one, then looks for names that are left."""
        _begin(state, "desensitize", len(state["left"]))
        told = {each.memory.memory_id: self._content(each) for each in state["left"]}
        long = {name for name, content in told.items() if sum(map(len, texts(content))) > LONGEST}
        short_enough = [each for each in state["left"] if each.memory.memory_id not in long]
        names = self._known([each.memory for each in short_enough], told, state)
        cleaners = {name: Cleaner(names) for name in told}
        clean = [replace(each, content=_cleaned(each, cleaners, told)) for each in short_enough]
        found, rejected = _names_left(clean, state)
        rejected += tuple(_held(name, "desensitize", "It is too long to be searched.") for name in long)
        left = []
        for each in clean:
            name = each.memory.memory_id
            if name in found:
                cleaners[name].names |= found[name]
                content = cleaners[name].clean(each.content)
                left.append(
                    replace(
                        each,
                        names=cleaners[name].names,
                        taken=words(told[name]) - words(content),
                        quotes=self._quotes(each.memory),
                        content=content,
                    )
                )
        removed = (_removals(each.memory.memory_id, cleaners) for each in left)
        return {"left": tuple(left), "removed": tuple(chain(*removed)), "rejected": rejected}

    def generalize(self, state: _State) -> _Update:
        """Say what holds beyond the single case: by rules, then by the model where there is one."""
        _begin(state, "generalize", len(state["left"]))
        made = [
            replace(each, content=generalized(each.kind, each.content, each.memory.language)) for each in state["left"]
        ]
        kept = [each for each in made if says_something(each.kind, each.content, each.memory.language)]
        rejected = tuple(
            _held(each.memory.memory_id, "generalize", "Nothing of general value is left.")
            for each in made
            if each not in kept
        )
        if state["generalizer"] is None:
            return {"left": tuple(kept), "rejected": rejected, "by_rules": ()}
        said = {each.memory.memory_id: each for each in kept}
        failed: list[str] = []
        for batch in _batches(kept):
            state["check"]()
            try:
                said |= {each.memory.memory_id: each for each in _said_in_general(batch, state["generalizer"])}
            except (InvalidAnswerError, RequestRefusedError):  # the rules' words are as safe
                failed += [each.memory.memory_id for each in batch]
        return {"left": tuple(said.values()), "rejected": rejected, "by_rules": tuple(failed)}

    def check(self, state: _State) -> _Update:
        """Search everything again that is about to leave, whoever wrote it."""
        _begin(state, "check", len(state["left"]))
        whys = {each.memory.memory_id: still_private(each) for each in state["left"]}
        return {
            "left": tuple(each for each in state["left"] if not whys[each.memory.memory_id]),
            "rejected": tuple(_held(name, "check", why) for name, why in whys.items() if why),
        }

    def standardize(self, state: _State) -> _Update:
        """Write what is left as knowledge items; what says the same is one."""
        _begin(state, "standardize", len(state["left"]))
        items: dict[str, KnowledgeItem] = {}
        for each in state["left"]:
            item = _item(each, state["agent"], state["now"])
            items.setdefault(item.knowledge_id, item)
        return {"items": tuple(items.values())}

    def _content(self, candidate: Candidate) -> dict[str, Any]:
        memory = candidate.memory
        told = memory if candidate.kind == memory.kind else memory.evolve(kind=candidate.kind, payload={})
        content: dict[str, Any] = json.loads(content_of(told).to_json())
        return content

    def _known(self, memories: Sequence[Memory], told: Mapping[str, Any], state: _State) -> Known:
        said = texts(list(told.values()))
        return known(self._sources.archive, state["scope"], state["agent"], memories, said=said, public=state["public"])

    def _quotes(self, memory: Memory) -> tuple[str, ...]:
        """Return what was said in conversations; what was stated outright is the memory itself."""
        if memory.source == "tool-call" or memory.layer == "procedural":
            return ()
        ids = [item.message_id for item in memory.evidence]
        return tuple(message.text for message in self._sources.archive.messages([memory.partition], ids=ids))


def _begin(state: _State, stage: str, total: int) -> None:
    state["check"]()
    state["tell"](Progress(stage=stage, done=0, total=total))


def _held(memory_id: str, step: Literal["filter", "desensitize", "generalize", "check"], reason: str) -> Rejection:
    return Rejection(memory_id=memory_id, step=step, reason=reason)


def _cleaned(candidate: Candidate, cleaners: Mapping[str, Cleaner], told: Mapping[str, Any]) -> dict[str, Any]:
    name = candidate.memory.memory_id
    content: dict[str, Any] = cleaners[name].clean(told[name])
    return content


def _removals(memory_id: str, cleaners: Mapping[str, Cleaner]) -> Iterator[Removal]:
    for (path, kind), count in sorted(cleaners[memory_id].removed.items()):
        yield Removal(memory_id=memory_id, path=path, kind=kind, count=count)


def _names_left(candidates: Sequence[Candidate], state: _State) -> tuple[dict[str, Known], tuple[Rejection, ...]]:
    """Return the names that the model finds in what is clean else, by memory; what it does not look at stays."""
    generalizer = state["generalizer"]
    if generalizer is None:
        return {each.memory.memory_id: frozenset() for each in candidates}, ()
    found: dict[str, Known] = {}
    rejected: list[Rejection] = []
    public = {name.casefold() for name in state["public"]} | common_words()
    for batch in _batches(candidates):
        state["check"]()
        said = dict.fromkeys(text for each in batch for text in texts(list(each.content.values())) if len(text) > 1)
        try:
            names = generalizer.names(list(said), batch[0].memory.language)
        except (InvalidAnswerError, RequestRefusedError):
            why = "The model did not say which names stand in it."
            rejected += [_held(each.memory.memory_id, "desensitize", why) for each in batch]
        else:
            private = frozenset(name for name in names if name.casefold() not in public)
            found |= {each.memory.memory_id: private for each in batch}
    return found, tuple(rejected)


def _batches(candidates: Sequence[Candidate]) -> Iterator[list[Candidate]]:
    """Yield the candidates of a language together, so many at a time as one question holds."""
    by_language = sorted(candidates, key=lambda each: each.memory.language)
    for _, group in groupby(by_language, key=lambda each: each.memory.language):
        members = list(group)
        for start in range(0, len(members), _BATCH):
            yield members[start : start + _BATCH]


def _said_in_general(batch: Sequence[Candidate], generalizer: Generalizer) -> list[Candidate]:
    fields = [prose(each.kind, each.content) for each in batch]
    drafts = [Draft(each.kind, said, partial(objection, each, said)) for each, said in zip(batch, fields, strict=True)]
    answers = generalizer.generalize(drafts, batch[0].memory.language)
    return [
        each if answer is None else replace(each, content=reworded(each.content, answer.fields), title=answer.title)
        for each, answer in zip(batch, answers, strict=True)
    ]


def _item(candidate: Candidate, agent: str, now: datetime) -> KnowledgeItem:
    content = _with_slots(candidate.kind, candidate.content)
    name = candidate.title or title_of(candidate.kind, content)
    return KnowledgeItem.model_validate(
        {
            "knowledge_id": knowledge_id(candidate.kind, content),
            "title": short(name),
            "source_memory_type": candidate.kind,
            "content": content,
            "source_agent": agent,
            "created_at": now,
            "metadata": _metadata(candidate),
        }
    )


def _metadata(candidate: Candidate) -> dict[str, Any]:
    """Return figures and labels; a label in which something private is found stays behind."""
    memory, figures = candidate.memory, candidate.figures
    tags = [tag for tag in memory.tags if not private([tag], candidate)]
    outcomes = {"runs": figures.runs, "successes": figures.successes} if figures else {}
    return {"trust": memory.trust, "said": memory.merges + 1, "language": memory.language, "tags": tags, **outcomes}


def _with_slots(kind: Kind, content: Mapping[str, Any]) -> dict[str, Any]:
    """Return knowledge in which what was taken out of a step's arguments is a slot, which the next caller fills in."""
    if kind != "workflow":
        return dict(content)
    return {**content, "steps": [{**step, "details": as_slots(step["details"])} for step in content["steps"]]}
