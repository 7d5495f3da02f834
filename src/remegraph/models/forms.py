"""Memories in the content forms of the protocol, and what an item in these forms says as a memory (MEK, 2.2.3)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import ValidationError

from remegraph.models import (
    MEMORY_FORMS,
    CausalChain,
    EpisodeContent,
    EpisodeKnowledge,
    ImportanceLevel,
    Kind,
    KnowledgeContent,
    Link,
    Memory,
    MemoryContent,
    MemoryItem,
    ProfileContent,
    ProfileKnowledge,
    SemanticContent,
    SemanticKnowledge,
    Skill,
    SourceInfo,
    Topic,
    WorkflowContent,
    WorkflowKnowledge,
)
from remegraph.models.item_text import STATEMENTS, sentence
from remegraph.models.skills import read_payload
from remegraph.text import table
from remegraph.text.scripts import language_of, plain
from remegraph.text.sentences import summary_of

__all__ = [
    "NOTES",
    "ItemContent",
    "Understood",
    "content_of",
    "fields_of",
    "fused",
    "importance_of",
    "in_form",
    "item_of",
    "level_of",
    "links_of",
    "named_by",
    "payload_of",
    "revised",
    "skill_of",
    "topic_of",
    "understood",
]


_LEVELS: Mapping[ImportanceLevel, tuple[float, float]] = {"high": (0.67, 0.8), "mid": (0.34, 0.5), "low": (0.0, 0.2)}
"""The least importance of each level, and the importance that a level means: never a core rule's."""

NOTES = frozenset({"abstraction", "key", "sentiment", "session"})
"""Keys of a payload by which our own code knows how a memory was made: they are part of no content."""

_ENTITY_TYPES = {"self": "agent", "personal": "user", "task": "task", "tool": "tool"}


def level_of(importance: float) -> ImportanceLevel:
    """Return the protocol's level of an importance from 0 to 1."""
    return next(level for level, (least, _) in _LEVELS.items() if importance >= least)


def importance_of(level: ImportanceLevel) -> float:
    """Return the importance that a level means, which is of that level."""
    return _LEVELS[level][1]


def payload_of(content: MemoryContent) -> dict[str, Any]:
    """Return a content as the payload of a memory: JSON, from which `content_of` makes the same content."""
    payload: dict[str, Any] = json.loads(content.to_json())
    return payload


def content_of(memory: Memory) -> MemoryContent:
    """Return what a memory says in the form of its kind: its payload where it has that form, else made from its fields."""
    return in_form(memory) or _TOLD[memory.kind](memory)


def in_form(memory: Memory) -> MemoryContent | None:
    """Return the payload of a memory in the form of its kind; None if it is something else."""
    payload = memory.payload
    told = {key: value for key, value in payload.items() if key not in NOTES} if isinstance(payload, dict) else payload
    try:
        return MEMORY_FORMS[memory.kind].model_validate(told)
    except ValidationError:  # most payloads are notes of how a memory was made
        return None


def item_of(memory: Memory, links: Sequence[Link] = ()) -> MemoryItem:
    """Return a memory as the protocol sees it."""
    mine = [link for link in links if memory.memory_id in {link.source_id, link.target_id}]
    content, told = content_of(memory), set[tuple[str, str, str]]()
    if isinstance(content, EpisodeContent):
        content = content.evolve(causal_chain=_chain(memory.memory_id, content.causal_chain, mine))
        told = {_key(link) for link in _causes(memory.memory_id, content.causal_chain)}
    related = [
        link.target_id if link.source_id == memory.memory_id else link.source_id
        for link in mine
        if _key(link) not in told
    ]
    return MemoryItem(
        memory_id=memory.memory_id,
        memory_type=memory.kind,
        timestamp=memory.said_at,
        content=content,
        importance=level_of(memory.importance),
        related_memory_ids=tuple(dict.fromkeys(related)),
    )


def links_of(item: MemoryItem) -> tuple[Link, ...]:
    """Return the links that an item names: its causes, effects and relations."""
    chain = item.content.causal_chain if isinstance(item.content, EpisodeContent) else CausalChain()
    related = (Link(source_id=item.memory_id, type="related", target_id=each) for each in item.related_memory_ids)
    found = (*_causes(item.memory_id, chain), *related)
    return tuple(link for link in dict.fromkeys(found) if link.source_id != link.target_id)


def named_by(item: MemoryItem) -> frozenset[str]:
    """Return the ids of the other memories that an item names."""
    return frozenset(end for link in links_of(item) for end in (link.source_id, link.target_id)) - {item.memory_id}


def fields_of(item: MemoryItem) -> dict[str, Any]:
    """Return the fields of a memory that says what an item says.

    Its content must say something: `sentence` of it is not empty.
    """
    words = sentence(item.content)
    return {
        "kind": item.memory_type,
        "payload": payload_of(item.content),
        "content": words,
        "language": language_of(words),
        "importance": importance_of(item.importance),
        "said_at": item.timestamp,
    }


def fused(old: Any, new: Any) -> Any:
    """Return the union of two payloads that say the same: what was known stays, what it lacks is added.

    In lists, parts with the same name are one part.
    """
    if isinstance(old, dict) and isinstance(new, dict):
        return old | {key: fused(old[key], value) if key in old else value for key, value in new.items()}
    if isinstance(old, list) and isinstance(new, list):
        named = {each["name"]: each for each in new if _named(each)}
        kept = [fused(each, named.get(each["name"], each)) if _named(each) else each for each in old]
        names = {each["name"] for each in old if _named(each)}
        return [*kept, *(each for each in new if not (_named(each) and each["name"] in names) and each not in old)]
    return new if old in (None, "") else old


def _named(part: Any) -> bool:
    return isinstance(part, dict) and isinstance(part.get("name"), str)


def revised(memory: Memory, item: MemoryItem, links: Sequence[Link] = ()) -> Memory:
    """Return a memory that says what an item says; what the item leaves unchanged stays.

    `links` are those with which it was seen.
    """
    seen, fields = item_of(memory, links), fields_of(item)
    if item.importance == seen.importance:
        del fields["importance"]
    if (item.memory_type, item.content) == (seen.memory_type, seen.content):
        for name in ("kind", "payload", "content", "language"):
            del fields[name]
        return memory.evolve(**fields)
    if isinstance(memory.payload, dict):
        fields["payload"] |= {key: value for key, value in memory.payload.items() if key in NOTES - {"abstraction"}}
    if fields["content"] != memory.content:
        fields["summary"] = summary_of(fields["content"])
        fields["when_to_use"] = memory.when_to_use.replace(memory.content, fields["content"])
    return memory.evolve(**fields)


def skill_of(content: MemoryContent) -> Skill | None:
    """Return a workflow as a skill; None if it does not have the form of one. It need not be executable."""
    if not isinstance(content, WorkflowContent) or any(step.model_extra for step in content.steps):
        return None
    kept = payload_of(content)
    try:
        return read_payload(kept | {"source_info": kept["source_info"] or {}})
    except ValidationError:  # it says more than a skill does, or something else
        return None


# ----------------------------------------------------------------------------- made from other fields


def _profile(memory: Memory) -> ProfileContent:
    _, _, attribute = memory.canonical_topic.partition(":")
    value: Any = [memory.slot_value] if memory.slot_many else memory.slot_value
    attributes = {attribute: value} if attribute and memory.slot_value else {}
    return ProfileContent(
        entity_name=memory.topic.target_name,
        entity_type=_ENTITY_TYPES[memory.topic.type],
        attributes={**attributes, STATEMENTS: [memory.content]},
    )


def _semantic(memory: Memory) -> SemanticContent:
    return SemanticContent(
        concept_name=memory.canonical_topic or memory.topic.target_name, definition=memory.content, properties={}
    )


def _episode(memory: Memory) -> EpisodeContent:
    persons = [memory.topic.target_name] if memory.topic.type == "personal" else []
    return EpisodeContent(
        event_summary=memory.content,
        timestamp=memory.valid_from or memory.said_at,
        participants=tuple(persons),
    )


def _workflow(memory: Memory) -> WorkflowContent:
    topic, origin = memory.topic, memory.origin
    session = memory.payload.get("session") if isinstance(memory.payload, dict) else None
    return WorkflowContent(
        task_description=memory.content,
        workflow_name=topic.target_name,
        domain=topic.target_name if topic.type == "task" else "general",
        source_info=SourceInfo(
            source_type="absorbed_knowledge" if origin is not None else memory.source,
            session_id=session if isinstance(session, str) else "",
            source_agent=origin.agents[0] if origin is not None and origin.agents else memory.partition.agent or "",
        ),
    )


_TOLD: Mapping[Kind, Callable[[Memory], MemoryContent]] = {
    "profile": _profile,
    "semantic": _semantic,
    "episode": _episode,
    "workflow": _workflow,
}


# ------------------------------------------------------------------------------------------------- links


def _chain(memory_id: str, chain: CausalChain, links: Sequence[Link]) -> CausalChain:
    """Return causes and effects of an event: as stated, else as linked."""
    causes = [link for link in links if link.type == "causes"]
    before = next((link.source_id for link in causes if link.target_id == memory_id), "")
    after = next((link.target_id for link in causes if link.source_id == memory_id), "")
    return chain.evolve(precedent=chain.precedent or before, consequence=chain.consequence or after)


def _causes(memory_id: str, chain: CausalChain) -> tuple[Link, ...]:
    ends = ((chain.precedent, memory_id), (memory_id, chain.consequence))
    return tuple(Link(source_id=one, type="causes", target_id=other) for one, other in ends if one and other)


def _key(link: Link) -> tuple[str, str, str]:
    return (link.source_id, link.type, link.target_id)


ItemContent = KnowledgeContent | MemoryContent

_TOLD_FIELDS = frozenset(
    {
        *(name for form in MEMORY_FORMS.values() for name in form.model_fields if name != "domain"),
        *("generalized_attributes", "generalized_properties", "generalized_learnings", "event_pattern"),
    }
)
"""Fields of knowledge that correspond to fields of a memory's content, and those fields, which no other may overwrite."""

_SKILL_FIELDS = ("preconditions", "postconditions", "avoid", "when_to_use")
_PERSONS = frozenset({"user", "person", "用户", "人", "人物"})


@dataclass(frozen=True, slots=True)
class Understood:
    """The content of an item as a memory."""

    kind: Kind
    content: str
    when_to_use: str
    payload: dict[str, Any]
    topic: Topic
    language: Literal["en", "zh"]
    skill: Skill | None = None
    """The skill that it may be, where it is a workflow of that form: it may still not be executable."""


def understood(content: ItemContent, title: str = "") -> Understood:
    """Return what an item says."""
    memory = _as_memory(content)
    payload = payload_of(memory)
    words, head = sentence(memory), plain(title).strip()
    situation = f"{head}: {words}" if head and head.casefold() not in words.casefold() else ""
    is_workflow = isinstance(memory, WorkflowContent)
    return Understood(
        kind=_kind(memory),
        content=words,
        when_to_use=plain(memory.task_description) if isinstance(memory, WorkflowContent) else situation,
        payload={name: value for name, value in payload.items() if name not in NOTES},
        topic=topic_of(memory),
        language=language_of(words),
        skill=_skill(payload) if is_workflow else None,
    )


def _as_memory(content: ItemContent) -> MemoryContent:
    """Return knowledge in the form of a memory's content; what that has no field for stays beside it."""
    match content:
        case WorkflowKnowledge():
            return WorkflowContent.from_json(content.to_json())
        case ProfileKnowledge():
            told: dict[str, Any] = {
                "entity_name": content.entity_type,
                "entity_type": content.entity_type,
                "attributes": content.generalized_attributes,
            }
            return ProfileContent.model_validate(_beside(content) | told)
        case SemanticKnowledge():
            properties = dict(content.generalized_properties)
            definition = properties.pop("definition", "")
            told = {
                "concept_name": content.concept_name,
                "definition": definition if isinstance(definition, str) else json.dumps(definition, ensure_ascii=False),
                "properties": properties,
            }
            return SemanticContent.model_validate(_beside(content) | told)
        case EpisodeKnowledge():
            told = {"event_summary": _pattern(content), "learnings": content.generalized_learnings}
            return EpisodeContent.model_validate(_beside(content) | told)
        case _:
            return content


def _beside(content: KnowledgeContent) -> dict[str, Any]:
    """Return the fields of a content that the form of a memory has no place for."""
    rest = json.loads(content.to_json())
    return {name: value for name, value in rest.items() if name not in _TOLD_FIELDS}


def _pattern(content: EpisodeKnowledge) -> str:
    """Return what happens, with what leads to it and what follows from it."""
    chain, words = content.generalized_causal_chain, content.event_pattern
    forms = table("translation")[language_of(words)]
    for name, text in (("before", chain.precedent_pattern), ("after", chain.consequence_pattern)):
        words = forms[name].format(event=words.rstrip(".。"), text=text.rstrip(".。")) if text.strip() else words
    return words


def _kind(content: MemoryContent) -> Kind:
    kinds: Mapping[type[MemoryContent], Kind] = {form: kind for kind, form in MEMORY_FORMS.items()}
    return kinds[type(content)]


def topic_of(content: MemoryContent) -> Topic:
    """Return the shelf: that of the person it is about, if it names one; else that of its field. Never the agent's own."""
    if isinstance(content, ProfileContent) and _is_person(content):
        return Topic(type="personal", target_name=plain(content.entity_name).strip())
    payload = payload_of(content)
    field = payload.get("domain") or payload.get("source_domain")
    name = plain(field).strip() if isinstance(field, str) else ""
    return Topic(type="task", target_name=name or "general")


def _is_person(content: ProfileContent) -> bool:
    name, kind = content.entity_name.strip(), content.entity_type.strip()
    return kind.casefold() in _PERSONS and name not in {"", kind}  # knowledge is about everything of a type


def _skill(kept: Mapping[str, Any]) -> Skill | None:
    """Return a workflow as a skill; None if it does not have the form of one, or describes a failure."""
    if kept["result_status"] == "failed":
        return None
    steps = [{**step["details"], "name": step["name"], "description": step["description"]} for step in kept["steps"]]
    rest = {name: kept[name] for name in _SKILL_FIELDS if name in kept}
    try:
        return Skill.model_validate(
            {
                "name": kept["workflow_name"],
                "task": kept["task_description"],
                "domain": kept["domain"].strip() or "general",
                "steps": steps,
                "result_status": "success" if kept["result_status"] == "success" else "unknown",
                "source": {"source_type": "absorbed_knowledge"},
                **rest,
            }
        )
    except ValidationError:
        return None
