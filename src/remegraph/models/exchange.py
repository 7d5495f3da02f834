"""What goes from agent to agent: memories and knowledge in the forms of the MEK protocol (sections 2.1.2, 2.2.1, 2.4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import ConfigDict, Field, ValidationInfo, field_validator, model_validator

from remegraph.models.base import AwareTime, Json, Record, Text, Token
from remegraph.models.memories import Kind

__all__ = [
    "CHINESE_NAMES",
    "CHINESE_VALUES",
    "KNOWLEDGE_FORMS",
    "MEMORY_FORMS",
    "CausalChain",
    "CausalPattern",
    "ConceptRelation",
    "Content",
    "EntityRelation",
    "EpisodeContent",
    "EpisodeKnowledge",
    "ImportanceLevel",
    "KnowledgeContent",
    "KnowledgeItem",
    "MemoryContent",
    "MemoryItem",
    "ProfileContent",
    "ProfileKnowledge",
    "SemanticContent",
    "SemanticKnowledge",
    "SourceInfo",
    "WorkflowContent",
    "WorkflowKnowledge",
    "WorkflowStep",
    "in_english",
]

ImportanceLevel = Literal["high", "mid", "low"]

CHINESE_NAMES: Mapping[str, str] = {
    "记忆标识": "memory_id",
    "记忆类型": "memory_type",
    "时间戳": "timestamp",
    "内容主体": "content",
    "重要性等级": "importance",
    "关联记忆": "related_memory_ids",
    "包标识": "pack_id",
    "领域标签": "domain",
    "内容列表": "items",
}
"""The fields of items and packs (section 3.1.1) as the protocol names them in Chinese."""

_KINDS = {"画像": "profile", "工作流": "workflow", "语义": "semantic", "情景": "episode"}
CHINESE_VALUES: Mapping[str, Mapping[str, str]] = {
    "memory_type": _KINDS,
    "source_memory_type": _KINDS,
    "importance": {"高": "high", "中": "mid", "低": "low"},
}
"""The values of fields, by their English names, as the protocol writes them in Chinese."""


def in_english(given: Any) -> Any:
    """Return an item or a pack with the English names of its fields and values. What is no mapping stays as it is.

    Args:
        given: As it was written, in Chinese, English or both.

    Raises:
        ValueError: A field is given under both names.
    """
    if not isinstance(given, Mapping):
        return given
    found: dict[Any, Any] = {}
    for key, value in given.items():
        name = CHINESE_NAMES.get(key, key)
        if name in found:
            raise ValueError(f"{name} is given twice, in English and in Chinese")
        found[name] = CHINESE_VALUES.get(name, {}).get(value, value) if isinstance(value, str) else value
    return found


class Content(Record):
    """The content of an item. Fields beyond the protocol's are kept as they are, as JSON; no name holds lone surrogates."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Json]


class _Item(Record):
    """What is exchanged: its type says which form its content has, and Chinese names are read, too."""

    @model_validator(mode="before")
    @classmethod
    def _read_in_english(cls, given: Any) -> Any:
        return in_english(given)


# ------------------------------------------------------------------------------------------- memories


class SourceInfo(Content):
    """Where a workflow comes from."""

    source_type: Token = Field(description="trajectory, stated, absorbed_knowledge, ...")
    session_id: Token = Field(default="", description="The thread that it was learned from.")
    source_agent: Token = Field(default="", description="The agent that learned it.")


class WorkflowStep(Content):
    """A step of a workflow."""

    name: Text = Field(description="Its name.")
    description: Text = Field(default="", description="What it does.")
    details: dict[Text, Json] = Field(default_factory=dict, description="Parameters, and what else it needs.")


class WorkflowContent(Content):
    """How a task is done (section 2.4.1)."""

    task_description: Text = Field(description="The task, in words.")
    workflow_name: Text = Field(description="Its canonical name.")
    steps: tuple[WorkflowStep, ...] = Field(default=(), description="Its steps, in their order.")
    result_status: Text = Field(default="unknown", description="How it went: success, failed, unknown.")
    domain: Text = Field(default="general", description="The field it belongs to.")
    source_info: SourceInfo | None = Field(default=None, description="Where it comes from.")


class EntityRelation(Content):
    """What an entity is to another."""

    target_entity: Text = Field(description="The other entity.")
    relation_type: Text = Field(description="What the first is to it: member_of, ...")


class ProfileContent(Content):
    """Who or what somebody or something is (section 2.4.2)."""

    entity_name: Text = Field(description="The entity.")
    entity_type: Text = Field(description="user, system, ...")
    attributes: dict[Text, Json] = Field(default_factory=dict, description="Preferences, habits, ...")
    relations: tuple[EntityRelation, ...] = Field(default=(), description="What it is to others.")


class ConceptRelation(Content):
    """What a concept is to another."""

    target_concept: Text = Field(description="The other concept.")
    relation_type: Text = Field(description="What the first is to it: is_a, ...")


class SemanticContent(Content):
    """A fact or concept of the world (section 2.4.3)."""

    concept_name: Text = Field(description="The concept.")
    definition: Text = Field(default="", description="What it is.")
    properties: dict[Text, Json] = Field(default_factory=dict, description="Its properties.")
    relations: tuple[ConceptRelation, ...] = Field(default=(), description="What it is to others.")


class CausalChain(Content):
    """What came before an event, and what came of it."""

    precedent: Token = Field(default="", description="Id of the event before.")
    consequence: Token = Field(default="", description="Id of the event after.")


class EpisodeContent(Content):
    """Something that happened (section 2.4.4)."""

    event_summary: Text = Field(description="What happened.")
    timestamp: AwareTime | None = Field(default=None, description="When.")
    location: Text = Field(default="", description="Where.")
    participants: tuple[Text, ...] = Field(default=(), description="Who took part.")
    causal_chain: CausalChain = Field(default_factory=CausalChain, description="Why, and what came of it.")
    learnings: Text = Field(default="", description="What was learned from it.")


MemoryContent = WorkflowContent | ProfileContent | SemanticContent | EpisodeContent

MEMORY_FORMS: Mapping[Kind, type[MemoryContent]] = {
    "workflow": WorkflowContent,
    "profile": ProfileContent,
    "semantic": SemanticContent,
    "episode": EpisodeContent,
}
"""The form of a memory's content, by its type."""


class MemoryItem(_Item):
    """A memory as the protocol sees it (section 2.1.2)."""

    memory_id: Token = Field(min_length=1, description="Its id.")
    memory_type: Kind = Field(description="profile, workflow, semantic or episode: the form of the content.")
    timestamp: AwareTime = Field(description="When it was made.")
    content: MemoryContent = Field(description="What it says, in the form of its type.")
    importance: ImportanceLevel = Field(default="mid", description="high, mid or low.")
    related_memory_ids: tuple[Token, ...] = Field(default=(), description="The memories it is linked with.")

    @field_validator("content", mode="before")
    @classmethod
    def _in_its_form(cls, content: Any, info: ValidationInfo) -> Any:
        form = MEMORY_FORMS.get(info.data.get("memory_type", ""))
        return form.model_validate(content) if form else content  # without a type, the item is refused for that


# ------------------------------------------------------------------------------------------ knowledge


class WorkflowKnowledge(Content):
    """How a task is done, by whom and where left out."""

    task_description: Text = Field(description="The task, in words.")
    workflow_name: Text = Field(description="Its canonical name.")
    steps: tuple[WorkflowStep, ...] = Field(default=(), description="Its steps, in their order.")
    result_status: Text = Field(default="unknown", description="How it went: success, failed, unknown.")
    domain: Text = Field(default="general", description="The field it belongs to.")


class ProfileKnowledge(Content):
    """What entities of a type are like, none of them named."""

    entity_type: Text = Field(description="user, system, ...")
    generalized_attributes: dict[Text, Json] = Field(default_factory=dict, description="What they have in common.")
    source_domain: Text = Field(default="general", description="The field it was learned in.")


class SemanticKnowledge(Content):
    """A concept, without what is so in one place only."""

    concept_name: Text = Field(description="The concept.")
    generalized_properties: dict[Text, Json] = Field(default_factory=dict, description="Its properties.")
    domain: Text = Field(default="general", description="The field it belongs to.")


class CausalPattern(Content):
    """What comes before events of a kind, and what comes of them."""

    precedent_pattern: Text = Field(default="", description="What leads to them.")
    consequence_pattern: Text = Field(default="", description="What follows from them.")


class EpisodeKnowledge(Content):
    """What events of a kind teach, without who took part, when and where."""

    event_pattern: Text = Field(description="What happens.")
    generalized_causal_chain: CausalPattern = Field(default_factory=CausalPattern, description="Why, and what follows.")
    generalized_learnings: Text = Field(default="", description="What is learned from it.")
    domain: Text = Field(default="general", description="The field it belongs to.")


KnowledgeContent = WorkflowKnowledge | ProfileKnowledge | SemanticKnowledge | EpisodeKnowledge

KNOWLEDGE_FORMS: Mapping[Kind, type[KnowledgeContent]] = {
    "workflow": WorkflowKnowledge,
    "profile": ProfileKnowledge,
    "semantic": SemanticKnowledge,
    "episode": EpisodeKnowledge,
}
"""The form of knowledge, by the type of the memory it was made from."""


class KnowledgeItem(_Item):
    """Knowledge that may leave an agent (section 2.2.1)."""

    knowledge_id: Token = Field(min_length=1, description="Its id; the same knowledge shared again has the same id.")
    title: Text = Field(min_length=1, description="A short title.")
    source_memory_type: Kind = Field(description="The type of the memory it was made from.")
    content: KnowledgeContent = Field(description="What it says, in the form of its source's type.")
    source_agent: Token = Field(description="The agent that shared it first.")
    created_at: AwareTime = Field(description="When it was made.")
    metadata: dict[Text, Json] = Field(default_factory=dict, description="Whatever else: trust, times said, tags.")

    @field_validator("content", mode="before")
    @classmethod
    def _in_its_form(cls, content: Any, info: ValidationInfo) -> Any:
        form = KNOWLEDGE_FORMS.get(info.data.get("source_memory_type", ""))
        return form.model_validate(content) if form else content
