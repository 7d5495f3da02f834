"""Exchange between agents (K7 to K9): memories and knowledge in the forms of the MEK protocol, packs, signatures.

The forms are those of its sections 2.1.2, 2.2.1 and 2.4.
"""

from __future__ import annotations

import hashlib
from base64 import b64decode
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from remegraph.models.base import AwareTime, Json, Record, Text, Token
from remegraph.models.memories import Kind
from remegraph.models.reports import Usage

__all__ = [
    "CHINESE_NAMES",
    "CHINESE_VALUES",
    "KNOWLEDGE_FORMS",
    "MEMORY_FORMS",
    "Absorbed",
    "Absorption",
    "CausalChain",
    "CausalPattern",
    "ConceptRelation",
    "EntityRelation",
    "EpisodeContent",
    "EpisodeKnowledge",
    "Extraction",
    "ExtractionReport",
    "ImportanceLevel",
    "KnowledgeContent",
    "KnowledgeItem",
    "MemoryContent",
    "MemoryItem",
    "PackBuilt",
    "PackDiff",
    "PackInfo",
    "PackInstalled",
    "PackKind",
    "PackReason",
    "ProfileContent",
    "ProfileKnowledge",
    "Rejection",
    "Removal",
    "SemanticContent",
    "SemanticKnowledge",
    "SharedItem",
    "Signature",
    "SourceInfo",
    "TrustedKey",
    "WorkflowContent",
    "WorkflowKnowledge",
    "WorkflowStep",
    "in_english",
    "key_id_of",
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

PackKind = Literal["preset", "export"]
"""preset: items for any agent to learn from; export: memories of one's own, whole, with the words they came from."""

PackReason = Literal[
    "unreadable", "container", "member", "too_large", "format", "version", "checksum", "signature", "untrusted",
    "record", "duplicate", "reference", "foreign_scope", "conflict",
]  # fmt: skip
"""Why a pack is refused."""


def _base64(length: int) -> AfterValidator:
    def check(value: str) -> str:
        try:
            raw = b64decode(value, validate=True)
        except ValueError as error:  # so is binascii.Error
            raise ValueError("must be base64") from error
        if len(raw) != length:
            raise ValueError(f"must be {length} bytes in base64, and is {len(raw)}")
        return value

    return AfterValidator(check)


_PublicKey = Annotated[str, _base64(32)]
"""The 32 bytes of a public Ed25519 key, in base64."""


def key_id_of(public: bytes) -> str:
    """Return the id of a public key: the first half of its SHA-256, in hex.

    Args:
        public: Its 32 bytes.
    """
    return hashlib.sha256(public).hexdigest()[:32]


class Signature(Record):
    """Who signed something, and the result of the check."""

    algorithm: Literal["ed25519"] = Field(default="ed25519", description="How it was signed.")
    key_id: Token = Field(pattern=r"^[0-9a-f]{32}$", description="The key that signed it: see `key_id_of`.")
    value: Annotated[str, _base64(64)] = Field(description="The 64 bytes of the signature, in base64.")


class TrustedKey(Record):
    """A public key, and its owner according to the person who listed it."""

    name: Token = Field(min_length=1, max_length=200, description="Whose it is: the name that trust is given to.")
    public: _PublicKey = Field(description="The public key.")
    revoked: bool = Field(default=False, description="Whether it is believed no more.")

    @property
    def key_id(self) -> str:
        """The id of the key."""
        return key_id_of(b64decode(self.public))


def in_english(given: Any) -> Any:
    """Return an item or a pack with the English names of its fields and values. Anything but a mapping is returned unchanged.

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


class _Content(Record):
    """The content of an item. Fields beyond the protocol's are kept as they are, as JSON; no name holds lone surrogates."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Json]


class _Item(Record):
    """Base of items: the type says which form the content has, and Chinese names are read, too."""

    @model_validator(mode="before")
    @classmethod
    def _read_in_english(cls, given: Any) -> Any:
        return in_english(given)


# ------------------------------------------------------------------------------------------- memories


class SourceInfo(_Content):
    """Where a workflow comes from."""

    source_type: Token = Field(description="trajectory, stated, absorbed_knowledge, ...")
    session_id: Token = Field(default="", description="The thread that it was learned from.")
    source_agent: Token = Field(default="", description="The agent that learned it.")


class WorkflowStep(_Content):
    """A step of a workflow."""

    name: Text = Field(description="Its name.")
    description: Text = Field(default="", description="What it does.")
    details: dict[Text, Json] = Field(default_factory=dict, description="Parameters, and what else it needs.")


class WorkflowContent(_Content):
    """How a task is done (section 2.4.1)."""

    task_description: Text = Field(description="The task, in words.")
    workflow_name: Text = Field(description="Its canonical name.")
    steps: tuple[WorkflowStep, ...] = Field(default=(), description="Its steps, in their order.")
    result_status: Text = Field(default="unknown", description="How it went: success, failed, unknown.")
    domain: Text = Field(default="general", description="The field it belongs to.")
    source_info: SourceInfo | None = Field(default=None, description="Where it comes from.")


class EntityRelation(_Content):
    """A relation of an entity to another."""

    target_entity: Text = Field(description="The other entity.")
    relation_type: Text = Field(description="What the first is to it: member_of, ...")


class ProfileContent(_Content):
    """A person or a thing, and its attributes (section 2.4.2)."""

    entity_name: Text = Field(description="The entity.")
    entity_type: Text = Field(description="user, system, ...")
    attributes: dict[Text, Json] = Field(default_factory=dict, description="Preferences, habits, ...")
    relations: tuple[EntityRelation, ...] = Field(default=(), description="What it is to others.")


class ConceptRelation(_Content):
    """A relation of a concept to another."""

    target_concept: Text = Field(description="The other concept.")
    relation_type: Text = Field(description="What the first is to it: is_a, ...")


class SemanticContent(_Content):
    """A fact or concept of the world (section 2.4.3)."""

    concept_name: Text = Field(description="The concept.")
    definition: Text = Field(default="", description="What it is.")
    properties: dict[Text, Json] = Field(default_factory=dict, description="Its properties.")
    relations: tuple[ConceptRelation, ...] = Field(default=(), description="What it is to others.")


class CausalChain(_Content):
    """Causes and effects of an event."""

    precedent: Token = Field(default="", description="Id of the event before.")
    consequence: Token = Field(default="", description="Id of the event after.")


class EpisodeContent(_Content):
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


class WorkflowKnowledge(_Content):
    """How a task is done, without who did it and where."""

    task_description: Text = Field(description="The task, in words.")
    workflow_name: Text = Field(description="Its canonical name.")
    steps: tuple[WorkflowStep, ...] = Field(default=(), description="Its steps, in their order.")
    result_status: Text = Field(default="unknown", description="How it went: success, failed, unknown.")
    domain: Text = Field(default="general", description="The field it belongs to.")


class ProfileKnowledge(_Content):
    """A profile of entities of one type, none of them named."""

    entity_type: Text = Field(description="user, system, ...")
    generalized_attributes: dict[Text, Json] = Field(default_factory=dict, description="What they have in common.")
    source_domain: Text = Field(default="general", description="The field it was learned in.")


class SemanticKnowledge(_Content):
    """A concept, without what holds in one place only."""

    concept_name: Text = Field(description="The concept.")
    generalized_properties: dict[Text, Json] = Field(default_factory=dict, description="Its properties.")
    domain: Text = Field(default="general", description="The field it belongs to.")


class CausalPattern(_Content):
    """Causes and effects of events of one kind."""

    precedent_pattern: Text = Field(default="", description="What leads to them.")
    consequence_pattern: Text = Field(default="", description="What follows from them.")


class EpisodeKnowledge(_Content):
    """A lesson of events of one kind, without participants, time and place."""

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


class Rejection(Record):
    """A memory that was found and is not shared."""

    memory_id: Token = Field(description="The memory.")
    step: Literal["filter", "desensitize", "generalize", "check"] = Field(description="The step that held it back.")
    reason: Text = Field(description="Why, without a word of what was found in it.")


class Removal(Record):
    """Private data taken out of a memory: where, of which kind and how often, never the data."""

    memory_id: Token = Field(description="The memory.")
    path: Text = Field(description="Where in its content, as in $.steps[0].description.")
    kind: Token = Field(description="email, phone, name, ...")
    count: int = Field(ge=1, description="How often.")


class ExtractionReport(Record):
    """Outcome for each memory that was found."""

    examined: int = Field(default=0, ge=0, description="Memories that were found.")
    rejected: tuple[Rejection, ...] = Field(default=(), description="Those that do not leave, and why.")
    removed: tuple[Removal, ...] = Field(default=(), description="What was taken out of those that went on.")
    by_rules: tuple[Token, ...] = Field(
        default=(), description="Memories that the model failed to generalise; rules did."
    )


class Extraction(Record):
    """Knowledge that was made of memories, and how."""

    items: tuple[KnowledgeItem, ...] = Field(default=(), description="What may leave.")
    report: ExtractionReport = Field(default_factory=ExtractionReport, description="What became of each memory.")
    usage: Usage = Field(default_factory=Usage, description="Calls and tokens.")


class SharedItem(Record):
    """The ledger's note that an agent shared an item: it holds no word of it."""

    knowledge_id: Token = Field(min_length=1, description="The item.")
    digest: Token = Field(min_length=1, description="Of all that it says, but for the time.")
    agent: Token = Field(min_length=1, description="Who shared it.")
    at: AwareTime = Field(description="When, for the first time.")


class Absorbed(Record):
    """Outcome for one item."""

    item_id: Token = Field(description="The item.")
    outcome: Literal["created", "corroborated", "quarantined", "known", "refused"] = Field(
        description="created: a new memory; corroborated: it bears out a memory that was there; quarantined: a new "
        "memory that waits for approval; known: nothing changed, as it is there already; refused: see `reason`."
    )
    memory_id: str = Field(default="", description="The memory that holds it; empty where it was refused.")
    reason: Text = Field(default="", description="Why it was not simply created.")
    source: Token = Field(default="", description="The agent that gave it; empty where nothing proves which.")
    trust: float = Field(default=0.0, ge=0, le=1, description="How far it is believed.")
    contradicts: tuple[str, ...] = Field(default=(), description="Memories that it contradicts: both are in dispute.")
    may_contradict: tuple[str, ...] = Field(default=(), description="Memories that it may contradict.")
    more_than: tuple[str, ...] = Field(default=(), description="Memories of which it says all, and more.")
    less_than: tuple[str, ...] = Field(default=(), description="Memories that say all that it says, and more.")


class Absorption(Record):
    """Result of `absorb`."""

    items: tuple[Absorbed, ...] = Field(default=(), description="What became of each item, in the order given.")
    degraded: tuple[str, ...] = Field(default=(), description="What could not be brought up to date, and why.")

    @property
    def memory_ids(self) -> tuple[str, ...]:
        """The memories that are new or have a new version, each once, in the order of the items."""
        done = (item.memory_id for item in self.items if item.outcome in {"created", "corroborated", "quarantined"})
        return tuple(dict.fromkeys(done))


class PackInfo(Record):
    """A pack's own account of itself, checked as far as that goes without installing it."""

    pack_id: Token = Field(description="Its id.")
    kind: PackKind = Field(description="preset or export.")
    domain: tuple[Text, ...] = Field(default=(), description="The fields it is for.")
    digest: str = Field(
        description="SHA-256 of its manifest: what its signature is over, and what tells it from others."
    )
    counts: dict[str, int] = Field(default_factory=dict, description="Records, by member.")
    activate: tuple[Token, ...] = Field(default=(), description="Ids and tags that it wants to have active.")
    key_id: str = Field(default="", description="The key that signed it; empty where none did.")
    signer: Text = Field(default="", description="Whose key that is, where it is trusted and the signature holds.")
    problem: Text = Field(default="", description="Why its signature is worth nothing here, if so.")


class PackBuilt(Record):
    """Result of `build`."""

    path: Text = Field(description="The file.")
    pack: PackInfo = Field(description="What it holds.")
    left_out: dict[str, str] = Field(default_factory=dict, description="Memories that stayed behind, and why, by id.")
    dropped: int = Field(default=0, ge=0, description="References to memories that did not come along.")


class PackDiff(Record):
    """Preview of installing a pack."""

    pack: PackInfo = Field(description="The pack.")
    trust: float = Field(ge=0, le=1, description="How far it is believed here.")
    new: tuple[str, ...] = Field(default=(), description="Items or memories that would be new and active.")
    known: tuple[str, ...] = Field(default=(), description="Those that are here already; some are corroborated by it.")
    conflicting: tuple[str, ...] = Field(
        default=(),
        description="Items that contradict a memory; of an export, records that are here with other content.",
    )
    quarantined: tuple[str, ...] = Field(default=(), description="Items that would wait for approval.")
    refused: tuple[str, ...] = Field(default=(), description="Items that would not be taken.")


class PackInstalled(Record):
    """Result of `install`: all of it in one transaction."""

    pack: PackInfo = Field(description="The pack.")
    trust: float = Field(ge=0, le=1, description="How far it is believed here.")
    memory_ids: tuple[str, ...] = Field(default=(), description="The memories that are new, or have a new version.")
    items: tuple[Absorbed, ...] = Field(default=(), description="What became of each item of a preset.")
    replayed: bool = Field(default=False, description="Whether it was installed before: then nothing was done.")
    degraded: tuple[str, ...] = Field(default=(), description="What could not be brought up to date, and why.")
