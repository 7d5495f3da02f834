"""The format of packs, version 1: its members, its manifest, and the records on its lines (docs/packs.md)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from remegraph.models import (
    MEMORY_FORMS,
    BroughtBlock,
    ImportanceLevel,
    Kind,
    Memory,
    MemoryContent,
    Partition,
    Record,
    in_english,
)
from remegraph.models.base import Text, Token
from remegraph.models.packs import PackKind

__all__ = [
    "ALLOWED",
    "FORMAT",
    "MANIFEST",
    "MEMBERS",
    "NOWHERE",
    "PURPOSE",
    "SIGNATURE",
    "VERSION",
    "BlockEntry",
    "BlockLine",
    "Document",
    "Item",
    "Manifest",
    "Member",
    "line_of",
    "version_fields",
    "version_of",
]

FORMAT, VERSION = "remegraph-pack", 1
MANIFEST, SIGNATURE = "manifest.json", "signature.json"
MEMBERS: Mapping[PackKind, tuple[str, ...]] = {
    "preset": ("items.jsonl",),
    "export": ("messages.jsonl", "blocks.jsonl", "memories.jsonl", "links.jsonl"),
}
"""The members of each kind of pack, beside the manifest and the signature: all of them, and no others."""

ALLOWED = frozenset({MANIFEST, SIGNATURE}.union(*MEMBERS.values()))
PURPOSE = "pack"
"""What a manifest is signed as."""

NOWHERE = Partition(tenant="pack")
"""Where memories in a pack live: whoever installs it says where that is."""


class Member(Record):
    """What the manifest says of a member."""

    name: Token = Field(description="Its name.")
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$", description="Digest of its bytes, expanded.")
    size: int = Field(ge=0, description="How many bytes these are.")
    count: int = Field(ge=0, description="How many records, one on each line.")


class Manifest(Record):
    """What a pack holds. The signature is over its bytes."""

    format: Literal["remegraph-pack"] = Field(description="Tells packs from other files.")
    version: Literal[1] = Field(description="Of the format.")
    pack_id: Token = Field(min_length=1, max_length=200, description="The pack's id.")
    kind: PackKind = Field(description="preset or export.")
    domain: tuple[Text, ...] = Field(default=(), description="The fields that it is for.")
    activate: tuple[Token, ...] = Field(default=(), description="Ids and tags that it wants to have active.")
    members: tuple[Member, ...] = Field(description="Its members.")

    @model_validator(mode="after")
    def _whole(self) -> Manifest:
        if tuple(member.name for member in self.members) != MEMBERS[self.kind]:
            raise ValueError(f"the members of a pack of kind {self.kind} are {', '.join(MEMBERS[self.kind])}")
        return self


class Item(Record):
    """A line of `items.jsonl`: a memory for any agent, as the document has it."""

    item_id: Token = Field(default="", max_length=200, description="Its id in the pack; its place unless given.")
    memory_type: Kind = Field(description="profile, workflow, semantic or episode: the form of the content.")
    content: MemoryContent = Field(description="What it says.")
    importance: ImportanceLevel = Field(default="mid", description="high, mid or low.")
    tags: tuple[Token, ...] = Field(default=(), description="Labels.")

    @model_validator(mode="before")
    @classmethod
    def _read_in_english(cls, given: Any) -> Any:
        return in_english(given)

    @field_validator("content", mode="before")
    @classmethod
    def _in_its_form(cls, content: Any, info: ValidationInfo) -> Any:
        form = MEMORY_FORMS.get(info.data.get("memory_type", ""))
        return form.model_validate(content) if form else content


class Document(Record):
    """A pack that is one JSON document, as section 3.1.1 of the protocol has it."""

    pack_id: Token = Field(min_length=1, max_length=200, description="The pack's id.")
    domain: tuple[Text, ...] = Field(default=(), description="The fields that it is for.")
    items: tuple[Item, ...] = Field(min_length=1, description="Its items.")

    @model_validator(mode="before")
    @classmethod
    def _read_in_english(cls, given: Any) -> Any:
        return in_english(given)

    @field_validator("domain", mode="before")
    @classmethod
    def _one_or_more(cls, domain: Any) -> Any:
        return (domain,) if isinstance(domain, str) else domain


class BlockEntry(Record):
    """The index entry of a block."""

    summary: str = Field(description="What happened.")
    entities: tuple[str, ...] = Field(default=(), description="Names, places and things it speaks of.")
    language: str = Field(default="en", description="en or zh.")
    extractor: str = Field(default="extractive", description="The model that wrote it, or `extractive`.")


class BlockLine(BroughtBlock):
    """A line of `blocks.jsonl`."""

    entry: BlockEntry | None = Field(default=None, description="Its index entry, if it has one.")


def line_of(value: Record | Mapping[str, Any]) -> bytes:
    """Return a record as a line: the same record is always the same bytes, ASCII only.

    Args:
        value: A record, or its fields as JSON.
    """
    fields = json.loads(value.to_json()) if isinstance(value, Record) else value
    return json.dumps(fields, sort_keys=True, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def version_fields(memory: Memory) -> dict[str, Any]:
    """Return a version of a memory as JSON that does not say where it lives.

    Args:
        memory: The version.
    """
    fields: dict[str, Any] = json.loads(memory.to_json())
    del fields["partition"]
    if not memory.language_it_applies_to:
        del fields["applies_to"]
    return fields


def version_of(fields: Mapping[str, Any], home: Partition) -> Memory:
    """Return a version of a memory that lives in a place.

    Args:
        fields: From `version_fields`.
        home: Where it shall live.

    Raises:
        pydantic.ValidationError: They are no memory.
    """
    return Memory.model_validate({**fields, "partition": home})
