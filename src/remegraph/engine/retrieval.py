"""What a retrieval is asked with, and what it finds: the interface of the retriever and of custom Sub Agents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypedDict

from remegraph.deadlines import Patience
from remegraph.models import Chunk, Depth, Hit, IndexState, LeftOut, Memory, RecallFilter, RecallMode, Scope, Shelf
from remegraph.ports import Archive
from remegraph.rules.blending import Ranked
from remegraph.rules.questions import Question
from remegraph.settings import RetrievalPolicy

__all__ = ["OVERFETCH", "Found", "RecallInput", "RetrievalAgent", "Search"]

OVERFETCH = 5
"""Vectors looked at for each hit wanted."""


@dataclass(frozen=True, slots=True)
class Search:
    """What a Sub Agent is asked to retrieve."""

    query: str
    shelf: Shelf
    candidates: tuple[Ranked, ...]
    """What the Meta Agent's own search found on this shelf, best first."""
    k: int
    time_start: datetime | None
    time_end: datetime | None
    only: RecallFilter
    """Which memories may be returned."""
    mode: RecallMode


class RetrievalAgent(Protocol):
    """A custom Sub Agent (R9): retrieves from one topic in its own way, over the archive's reads."""

    def __call__(self, search: Search, archive: Archive) -> Sequence[Hit]:
        """Return hits, best first; scores 0 to 1."""
        ...


class RecallInput(TypedDict):
    """A query and how far to expand."""

    scope: Scope
    query: str
    question: Question
    k: int
    depth: Depth
    topics: tuple[str, ...] | None
    time_start: datetime | None
    time_end: datetime | None
    only: RecallFilter
    mode: RecallMode
    without: frozenset[str]
    """Ids of messages that the caller has at hand."""
    asked_at: datetime
    ranking: RetrievalPolicy
    """What counts beside relevance where memories are ranked."""
    working: tuple[Chunk, ...]
    """What is in mind for the task at hand."""
    active: tuple[Memory, ...]
    """What stands ready, whatever is asked."""
    patience: Patience
    """How long all its searches together wait for the index."""


class Found(TypedDict):
    """Everything that a recall returns, before it becomes a record."""

    self_memories: tuple[Memory, ...]
    routed: tuple[str, ...]
    memories: tuple[Hit, ...]
    blocks: tuple[Hit, ...]
    messages: tuple[Hit, ...]
    index: IndexState
    degraded: tuple[str, ...]
    context: str
    left_out: Mapping[str, LeftOut]
