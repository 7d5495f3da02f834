"""What an item of another agent says, as a memory of one's own would say it (MEK, 2.2.3: understand). No model is asked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import ValidationError

from remegraph.language.plain import plain
from remegraph.language.scripts import language_of
from remegraph.models import (
    MEMORY_FORMS,
    EpisodeContent,
    EpisodeKnowledge,
    Kind,
    KnowledgeContent,
    MemoryContent,
    ProfileContent,
    ProfileKnowledge,
    SemanticContent,
    SemanticKnowledge,
    Skill,
    Topic,
    WorkflowContent,
    WorkflowKnowledge,
)
from remegraph.rules.forms import NOTES, payload_of
from remegraph.rules.saying import sentence
from remegraph.rules.tables import table

__all__ = ["ItemContent", "Understood", "topic_of", "understood"]

ItemContent = KnowledgeContent | MemoryContent

_TOLD = frozenset(
    {
        *(name for form in MEMORY_FORMS.values() for name in form.model_fields if name != "domain"),
        *("generalized_attributes", "generalized_properties", "generalized_learnings", "event_pattern"),
    }
)
"""Fields of knowledge that fields of a memory's content tell, and such fields, which no other one may write over."""

_SKILL_FIELDS = ("preconditions", "postconditions", "avoid", "when_to_use")
_PERSONS = frozenset({"user", "person", "用户", "人", "人物"})


@dataclass(frozen=True, slots=True)
class Understood:
    """What an item says."""

    kind: Kind
    content: str
    when_to_use: str
    payload: dict[str, Any]
    topic: Topic
    language: Literal["en", "zh"]
    skill: Skill | None = None
    """What it may be, if it is a workflow whose form is that of a skill: whether it can be executed is not said."""


def understood(content: ItemContent, title: str = "") -> Understood:
    """Return what an item says.

    Args:
        content: Its content, in any of the protocol's forms.
        title: Its title; searched, too.
    """
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
    return {name: value for name, value in rest.items() if name not in _TOLD}


def _pattern(content: EpisodeKnowledge) -> str:
    """Return what happens, with what leads to it and what follows from it."""
    chain, words = content.generalized_causal_chain, content.event_pattern
    forms = table("understanding")[language_of(words)]
    for name, text in (("before", chain.precedent_pattern), ("after", chain.consequence_pattern)):
        words = forms[name].format(event=words.rstrip(".。"), text=text.rstrip(".。")) if text.strip() else words
    return words


def _kind(content: MemoryContent) -> Kind:
    kinds: Mapping[type[MemoryContent], Kind] = {form: kind for kind, form in MEMORY_FORMS.items()}
    return kinds[type(content)]


def topic_of(content: MemoryContent) -> Topic:
    """Return the shelf: that of the person it is about, if it names one; else that of its field. Never the agent's own.

    Args:
        content: Of any form.
    """
    if isinstance(content, ProfileContent) and _is_person(content):
        return Topic(type="personal", target_name=plain(content.entity_name).strip())
    payload = payload_of(content)
    field = payload.get("domain") or payload.get("source_domain")
    name = plain(field).strip() if isinstance(field, str) else ""
    return Topic(type="task", target_name=name or "general")


def _is_person(content: ProfileContent) -> bool:
    name, kind = content.entity_name.strip(), content.entity_type.strip()
    return kind.casefold() in _PERSONS and name not in {"", kind}  # knowledge says it of all that are of a type


def _skill(kept: Mapping[str, Any]) -> Skill | None:
    """Return a workflow as a skill; none where it does not have the form of one, or is told as what failed."""
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
