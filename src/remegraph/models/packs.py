"""What is told of packs: what they hold, what installing one would do, and what it did (K9)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from remegraph.models.absorbing import Absorbed
from remegraph.models.base import Record, Text, Token

__all__ = ["PackBuilt", "PackDiff", "PackInfo", "PackInstalled", "PackKind", "PackReason"]

PackKind = Literal["preset", "export"]
"""preset: items for any agent to learn from; export: memories of one's own, whole, with the words they came from."""

PackReason = Literal[
    "unreadable", "container", "member", "too_large", "format", "version", "checksum", "signature", "untrusted",
    "record", "duplicate", "reference", "foreign_scope", "conflict",
]  # fmt: skip
"""Why a pack is refused."""


class PackInfo(Record):
    """What a pack says of itself, checked as far as that goes without installing it."""

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
    """What `build` wrote."""

    path: Text = Field(description="The file.")
    pack: PackInfo = Field(description="What it holds.")
    left_out: dict[str, str] = Field(default_factory=dict, description="Memories that stayed behind, and why, by id.")
    dropped: int = Field(default=0, ge=0, description="References to memories that did not come along.")


class PackDiff(Record):
    """What installing a pack would do."""

    pack: PackInfo = Field(description="The pack.")
    trust: float = Field(ge=0, le=1, description="How far it is believed here.")
    new: tuple[str, ...] = Field(default=(), description="Items or memories that would be new and active.")
    known: tuple[str, ...] = Field(default=(), description="Those that are here already; some are borne out by it.")
    conflicting: tuple[str, ...] = Field(
        default=(),
        description="Items that contradict a memory; of an export, records that are here with other content.",
    )
    quarantined: tuple[str, ...] = Field(default=(), description="Items that would wait for approval.")
    refused: tuple[str, ...] = Field(default=(), description="Items that would not be taken.")


class PackInstalled(Record):
    """What `install` did: all of it in one transaction."""

    pack: PackInfo = Field(description="The pack.")
    trust: float = Field(ge=0, le=1, description="How far it is believed here.")
    memory_ids: tuple[str, ...] = Field(default=(), description="The memories that are new, or have a new version.")
    items: tuple[Absorbed, ...] = Field(default=(), description="What became of each item of a preset.")
    replayed: bool = Field(default=False, description="Whether it was installed before: then nothing was done.")
    degraded: tuple[str, ...] = Field(default=(), description="What could not be brought up to date, and why.")
