"""What became of memories on their way to knowledge (K7)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from remegraph.models.base import AwareTime, Record, Text, Token
from remegraph.models.exchange import KnowledgeItem
from remegraph.models.reports import Usage

__all__ = ["Extraction", "ExtractionReport", "Rejection", "Removal", "SharedItem"]


class Rejection(Record):
    """A memory that was found and does not leave."""

    memory_id: Token = Field(description="The memory.")
    step: Literal["filter", "desensitize", "generalize", "check"] = Field(description="The step that held it back.")
    reason: Text = Field(description="Why, without a word of what was found in it.")


class Removal(Record):
    """What was taken out of a memory: where, of which kind and how often, never what it was."""

    memory_id: Token = Field(description="The memory.")
    path: Text = Field(description="Where in its content, as in $.steps[0].description.")
    kind: Token = Field(description="email, phone, name, ...")
    count: int = Field(ge=1, description="How often.")


class ExtractionReport(Record):
    """What became of each memory that was found."""

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
