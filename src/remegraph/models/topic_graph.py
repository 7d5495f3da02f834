"""The topics of a scope and what ties them together (R5): self memory at the centre."""

from __future__ import annotations

from pydantic import Field

from remegraph.models.base import Record
from remegraph.models.memories import Topic

__all__ = ["TopicEdge", "TopicGraph", "TopicNode"]


class TopicNode(Record):
    """A topic, and how much stands on its shelf."""

    topic: Topic = Field(description="The topic.")
    memories: int = Field(default=0, ge=0, description="Live memories on it.")
    block_ids: tuple[str, ...] = Field(default=(), description="The blocks that they came from.")


class TopicEdge(Record):
    """What two topics have in common."""

    source: str = Field(description="Key of the first topic; of the centre in the edges of the centre.")
    target: str = Field(description="Key of the second topic.")
    block_ids: tuple[str, ...] = Field(default=(), description="Blocks that memories of both came from.")
    links: int = Field(default=0, ge=0, description="Links between memories of both.")


class TopicGraph(Record):
    """All topics that a scope sees. The centre is tied to every other one: what the agent is bears on all it knows."""

    centre: TopicNode = Field(description="What the agent knows of itself.")
    topics: tuple[TopicNode, ...] = Field(default=(), description="All others, by key.")
    edges: tuple[TopicEdge, ...] = Field(default=(), description="The edges of the centre first.")
