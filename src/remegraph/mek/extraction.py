"""The way from memories to knowledge, as a graph (MEK, section 2.1.5):

    START -> retrieve -> filter -> desensitize -> generalize -> check -> standardize -> END

Each step passes on what may continue, and reports why the rest stays. A model may find names and say things more
generally; its answers are searched like everything else, and nothing in which something private is found leaves.
"""  # noqa: D415 - the first line introduces the picture

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from remegraph.engine.redaction import Cleaner
from remegraph.errors import InvalidAnswerError, RequestRefusedError
from remegraph.mek.generalization import (
    Known,
    as_slots,
    common_words,
    generalized,
    has_substance,
    known,
    prose,
    reworded,
    stand_ins,
    title_of,
)
from remegraph.mek.items import knowledge_id, short
from remegraph.models import Kind, KnowledgeItem, Memory, Progress, Rejection, Removal, Scope, SkillFigures
from remegraph.models.forms import content_of
from remegraph.models.quotes import copied
from remegraph.models.standing import QUARANTINE_BELOW
from remegraph.ports import Draft, Generalizer
from remegraph.text.desensitization import LONGEST
from remegraph.text.entities import entities
from remegraph.text.scripts import texts

if TYPE_CHECKING:
    from remegraph.ledger.archive import Archive

__all__ = ["ExtractService", "ShareInput", "Sources", "build_extractor", "invented", "unsharable"]


def unsharable(memory: Memory, now: datetime, *, figures: SkillFigures | None = None, episodes: bool = False) -> str:
    """Return why a memory may not be shared (B11, K7), or an empty text. For a skill, `figures` are its success figures."""
    reasons = (
        (memory.status not in {"active", "low_priority"}, f"It is {memory.status}."),
        (memory.trust < QUARANTINE_BELOW, "It is not trusted enough."),
        (memory.valid_to is not None and memory.valid_to <= now, "It no longer holds."),
        (memory.topic.type == "self", "It is about the agent itself."),
        (memory.memory_class == "policy" or memory.is_core, "It is a rule of its own agent."),
        (memory.partition.user is None, "It is not this user's alone."),
        (memory.origin is not None, "It came from another agent or a pack."),
        (memory.category == "emotion", "It is how somebody felt."),
        (memory.layer in {"sensory", "working"}, f"What is {memory.layer} is never shared."),
        (memory.layer == "episodic" and not episodes, "Episodes are shared only where they are asked for."),
        (figures is not None and figures.candidate, "Nobody has told yet how it goes: it is a candidate."),
        (figures is not None and not figures.successes, "It has never worked."),
    )
    return next((why for applies, why in reasons if applies), "")


_FIGURE = re.compile(r"\d+(?:[.,]\d+)*")
_ADDRESS = re.compile(r"[a-z][\w+.-]*://\S+|\S+@\S+|\bwww\.\S+|<[^<>\s]*>", re.IGNORECASE)
_CAPITAL = re.compile(r"[^\W\d_]*[A-Z][\w’'-]*")


def invented(texts: Iterable[str], sources: Iterable[str]) -> str:
    """Return a figure, name or address in texts that their sources lack, or an empty text."""
    known = "\n".join(sources).casefold()
    figures = set(_FIGURE.findall(known))
    for text in texts:
        new = [figure.group() for figure in _FIGURE.finditer(text) if figure.group() not in figures]
        new += [name for name in _named(text) if name.casefold() not in known]
        if new:
            return new[0]
    return ""


def _named(text: str) -> Iterator[str]:
    yield from (match.group() for match in _ADDRESS.finditer(text))
    for entity in entities(text):
        if entity.kind != "date":
            yield entity.text
    for match in _CAPITAL.finditer(text):
        if match.start() and not re.search(r"[.!?:;。！？：；\n]\s*$|[\"“(]$", text[: match.start()]):
            yield match.group()


_WORD = re.compile(r"[^\W_]{3,}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A memory on its way through the graph."""

    memory: Memory
    kind: Kind
    names: Known = frozenset()
    """Names that must not leave with it."""
    taken: frozenset[str] = frozenset()
    """Words that were taken out of it, and must not come back."""
    quotes: tuple[str, ...] = ()
    """Words of conversations, which never leave verbatim."""
    content: dict[str, Any] = field(default_factory=dict)
    title: str = ""
    figures: SkillFigures | None = None


def words(said: Any) -> frozenset[str]:
    """Return the distinctive Latin words and figures of JSON, in the form in which they are compared."""
    found = (word.casefold() for text in texts(said) for word in _WORD.findall(text))
    return frozenset(found) - stand_ins()


def objection(candidate: Candidate, fields: Mapping[str, str], texts: Sequence[str]) -> str:
    """Return the objection to a model's words for one memory, or an empty text."""
    if new := invented(texts, fields.values()):
        return f"{new!r} does not stand in it; add nothing."
    return private(list(texts), candidate)


def private(said: Any, candidate: Candidate) -> str:
    """Return what is private in content that is about to leave, or an empty text."""
    again = Cleaner(candidate.names)
    again.clean(said)
    if again.removed:
        (path, kind), _ = next(iter(sorted(again.removed.items())))
        return f"There is still something of the kind {kind} at {path}."
    if words(said) & candidate.taken:
        return "A word that was taken out has come back."
    texts = prose(candidate.kind, said["content"]).values() if isinstance(said, Mapping) else said
    if any(copied(text, quote) for text in texts for quote in candidate.quotes):
        return "It repeats the words of a conversation; say it in other words."
    return ""


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
    """A request to share, and who made it."""

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
    """Items that may leave, and the outcome of the rest."""

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
    """Return the graph that makes knowledge from memories."""
    steps = _Steps(sources)
    graph = StateGraph(_State, input_schema=ShareInput, output_schema=Shared)
    order = (steps.retrieve, steps.filter, steps.desensitize, steps.generalize, steps.check, steps.standardize)
    for step in order:
        graph.add_node(step.__name__, step)
    for source, target in pairwise((START, *(step.__name__ for step in order), END)):
        graph.add_edge(source, target)
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
        """Replace what is private with placeholders; a model, if there is one, then looks for remaining names."""
        _begin(state, "desensitize", len(state["left"]))
        told = {each.memory.memory_id: self._content(each) for each in state["left"]}
        long = {name for name, content in told.items() if sum(map(len, texts(content))) > LONGEST}
        short_enough = [each for each in state["left"] if each.memory.memory_id not in long]
        archive, said = self._sources.archive, texts(list(told.values()))
        memories = [each.memory for each in short_enough]
        names = known(archive, state["scope"], state["agent"], memories, said=said, public=state["public"])
        cleaners = {name: Cleaner(names) for name in told}
        clean = [
            replace(each, content=cleaners[each.memory.memory_id].clean(told[each.memory.memory_id]))
            for each in short_enough
        ]
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
        removed = tuple(
            Removal(memory_id=name, path=path, kind=kind, count=count)
            for name in (each.memory.memory_id for each in left)
            for (path, kind), count in sorted(cleaners[name].removed.items())
        )
        return {"left": tuple(left), "removed": removed, "rejected": rejected}

    def generalize(self, state: _State) -> _Update:
        """Generalise beyond the single case: by rules, then by the model if there is one."""
        _begin(state, "generalize", len(state["left"]))
        made = [
            replace(each, content=generalized(each.kind, each.content, each.memory.language)) for each in state["left"]
        ]
        kept = [each for each in made if has_substance(each.kind, each.content, each.memory.language)]
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
                said |= {each.memory.memory_id: each for each in _generalized(batch, state["generalizer"])}
            except (InvalidAnswerError, RequestRefusedError):  # the words of the rules are just as safe
                failed += [each.memory.memory_id for each in batch]
        return {"left": tuple(said.values()), "rejected": rejected, "by_rules": tuple(failed)}

    def check(self, state: _State) -> _Update:
        """Search everything that is about to leave once again."""
        _begin(state, "check", len(state["left"]))
        whys = {
            each.memory.memory_id: private({"title": each.title, "content": each.content}, each)
            for each in state["left"]
        }
        return {
            "left": tuple(each for each in state["left"] if not whys[each.memory.memory_id]),
            "rejected": tuple(_held(name, "check", why) for name, why in whys.items() if why),
        }

    def standardize(self, state: _State) -> _Update:
        """Write the remaining memories as knowledge items; equal ones become one."""
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

    def _quotes(self, memory: Memory) -> tuple[str, ...]:
        """Return the words of conversations behind a memory; an explicit statement is the memory itself."""
        if memory.source == "tool-call" or memory.layer == "procedural":
            return ()
        ids = [item.message_id for item in memory.evidence]
        return tuple(message.text for message in self._sources.archive.messages([memory.partition], ids=ids))


def _begin(state: _State, stage: str, total: int) -> None:
    state["check"]()
    state["tell"](Progress(stage=stage, done=0, total=total))


def _held(memory_id: str, step: Literal["filter", "desensitize", "generalize", "check"], reason: str) -> Rejection:
    return Rejection(memory_id=memory_id, step=step, reason=reason)


def _names_left(candidates: Sequence[Candidate], state: _State) -> tuple[dict[str, Known], tuple[Rejection, ...]]:
    """Return the names that the model finds in otherwise clean content, by memory; unchecked memories stay behind."""
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


def _generalized(batch: Sequence[Candidate], generalizer: Generalizer) -> list[Candidate]:
    fields = [prose(each.kind, each.content) for each in batch]
    drafts = [Draft(each.kind, said, partial(objection, each, said)) for each, said in zip(batch, fields, strict=True)]
    answers = generalizer.generalize(drafts, batch[0].memory.language)
    return [
        each if answer is None else replace(each, content=reworded(each.content, answer.fields), title=answer.title)
        for each, answer in zip(batch, answers, strict=True)
    ]


def _item(candidate: Candidate, agent: str, now: datetime) -> KnowledgeItem:
    content = dict(candidate.content)
    if candidate.kind == "workflow":  # what was removed from a step's arguments becomes a slot for the next caller
        content["steps"] = [{**step, "details": as_slots(step["details"])} for step in content["steps"]]
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
    """Return figures and labels, without labels that hold something private."""
    memory, figures = candidate.memory, candidate.figures
    tags = [tag for tag in memory.tags if not private([tag], candidate)]
    outcomes = {"runs": figures.runs, "successes": figures.successes} if figures else {}
    return {"trust": memory.trust, "said": memory.merges + 1, "language": memory.language, "tags": tags, **outcomes}
