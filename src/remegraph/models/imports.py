"""What another memory system exported, record by record, and what taking it in did."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from remegraph.models.base import AwareTime, Json, Record, Text, Token

__all__ = ["ForeignMemory", "ForeignSystem", "Imported"]

ForeignSystem = Literal["mem0", "langmem"]


class ForeignMemory(Record):
    """One memory of another system, as its export has it."""

    system: ForeignSystem = Field(description="The system.")
    record_id: Token = Field(min_length=1, description="Its id there; of a store: the key.")
    content: Token = Field(min_length=1, description="What it says.")
    user: Token = Field(default="", description="Whom it is of there; empty where the export does not say.")
    agent: Token = Field(default="", description="The agent there, if any.")
    session: Token = Field(default="", description="The session or run there, if any.")
    namespace: tuple[Token, ...] = Field(default=(), description="Its namespace in a store.")
    tags: tuple[Token, ...] = Field(default=(), description="Its categories there.")
    created_at: AwareTime | None = Field(default=None, description="When it was made there.")
    updated_at: AwareTime | None = Field(default=None, description="When it got its present words.")
    record: Json = Field(default_factory=dict, description="The record to the letter.")


class Imported(Record):
    """What an import did."""

    created: int = Field(default=0, ge=0, description="New memories.")
    corroborated: int = Field(
        default=0, ge=0, description="Records whose words a memory had already: it rests on them, too."
    )
    known: int = Field(default=0, ge=0, description="Records that were imported before: nothing was done.")
    erased: int = Field(
        default=0, ge=0, description="Records that were erased here before: they are not taken in again."
    )
    changed: tuple[Text, ...] = Field(
        default=(), description="Records that were imported before with other words: what is here stays."
    )
    invalid: tuple[Text, ...] = Field(
        default=(), description="Records that could not be read and were skipped, and why."
    )
    relations: int = Field(
        default=0, ge=0, description="Relations of a mem0 graph in the export; they are not taken in."
    )
    users: tuple[Text, ...] = Field(default=(), description="The users here who now have them.")
    degraded: tuple[str, ...] = Field(default=(), description="What could not be brought up to date, and why.")
