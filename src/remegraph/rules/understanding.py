"""What an item of another agent says, as a memory of one's own would say it (MEK, 2.2.3: understand). No model is asked."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from pydantic import JsonValue, ValidationError

from remegraph.language.plain import plain
from remegraph.language.scripts import language_of
from remegraph.models import (
    EpisodeContent,
    EpisodeKnowledge,
    Kind,
    KnowledgeContent,
    MemoryContent,
    ProfileContent,
    ProfileKnowledge,
    SemanticContent,
    Skill,
    Topic,
    WorkflowContent,
    WorkflowKnowledge,
)

__all__ = ["ItemContent", "Understood", "texts", "understood"]

ItemContent = KnowledgeContent | MemoryContent

_OURS = frozenset({"abstraction", "key", "session"})
"""Keys of a payload by which our own code knows where a memory comes from: nobody else sets them."""

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
    kept = json.loads(content.to_json())
    language = language_of(" ".join((title, *texts(kept))))
    table = _table(language)
    said = plain(_sentence(content, kept, table)).strip()
    head = plain(title).strip()
    situation = f"{head}: {said}" if head and head.casefold() not in said.casefold() else ""
    is_workflow = isinstance(content, WorkflowKnowledge | WorkflowContent)
    return Understood(
        kind=_kind(content),
        content=said,
        when_to_use=plain(content.task_description) if is_workflow else situation,
        payload={name: value for name, value in kept.items() if name not in _OURS},
        topic=_topic(content, kept),
        language=language,
        skill=_skill(kept) if is_workflow else None,
    )


def texts(value: JsonValue) -> Iterator[str]:
    """Yield all texts of a JSON value, names among them."""
    inside = [value]
    while inside:
        part = inside.pop()
        if isinstance(part, str):
            yield part
        elif isinstance(part, dict):
            yield from part
            inside.extend(reversed(part.values()))
        elif isinstance(part, list):
            inside.extend(reversed(part))


def _kind(content: ItemContent) -> Kind:
    match content:
        case WorkflowKnowledge() | WorkflowContent():
            return "workflow"
        case ProfileKnowledge() | ProfileContent():
            return "profile"
        case EpisodeKnowledge() | EpisodeContent():
            return "episode"
        case _:
            return "semantic"


def _topic(content: ItemContent, kept: Mapping[str, Any]) -> Topic:
    """Return the shelf: that of the person it is about, if it names one; else that of its field. Never the agent's own."""
    if isinstance(content, ProfileContent) and content.entity_type.strip().casefold() in _PERSONS:
        return Topic(type="personal", target_name=plain(content.entity_name).strip() or "user")
    field = kept.get("domain") or kept.get("source_domain")
    name = plain(field).strip() if isinstance(field, str) else ""
    return Topic(type="task", target_name=name or "general")


def _sentence(content: ItemContent, kept: Mapping[str, Any], table: Mapping[str, str]) -> str:
    match content:
        case WorkflowKnowledge() | WorkflowContent():
            steps = (_joined(table["of"], step.name, step.description) for step in content.steps)
            about, told = content.task_description, table["then"].join(filter(None, steps))
        case EpisodeKnowledge() | EpisodeContent():
            about, told = "", _episode(content, table)
        case ProfileKnowledge() | ProfileContent():
            named = isinstance(content, ProfileContent)
            about = content.entity_name if isinstance(content, ProfileContent) else content.entity_type
            told = _words(kept["attributes" if named else "generalized_attributes"], table)
        case _:
            about, named = content.concept_name, isinstance(content, SemanticContent)
            told = _words(kept["properties" if named else "generalized_properties"], table)
            told = table["and"].join(filter(None, (kept.get("definition"), told)))
    return _joined(table["of"], about, told)


def _episode(content: EpisodeKnowledge | EpisodeContent, table: Mapping[str, str]) -> str:
    if isinstance(content, EpisodeContent):
        what, parts = content.event_summary, {"lesson": content.learnings}
    else:
        chain = content.generalized_causal_chain
        what, parts = (
            content.event_pattern,
            {
                "before": chain.precedent_pattern,
                "after": chain.consequence_pattern,
                "lesson": content.generalized_learnings,
            },
        )
    told = (_joined(table["of"], table[name], text) for name, text in parts.items() if text.strip())
    return table["and"].join((what, *told))


def _words(value: JsonValue, table: Mapping[str, str]) -> str:
    """Return a JSON value in words: names and what they hold, one after the other."""
    if isinstance(value, dict):
        parts = (_joined(table["of"], name, _words(each, table)) for name, each in value.items())
        return table["and"].join(filter(None, parts))
    if isinstance(value, list):
        return table["comma"].join(filter(None, (_words(each, table) for each in value)))
    return value if isinstance(value, str) else json.dumps(value)


def _joined(colon: str, *parts: str) -> str:
    return colon.join(part.strip() for part in parts if part.strip())


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


@cache
def _table(language: str) -> Mapping[str, str]:
    text = (files("remegraph.rules") / "data" / "understanding.toml").read_text(encoding="utf-8")
    table: Mapping[str, str] = tomllib.loads(text)[language]
    return table
