"""What agents of one person share: what one of them lets another read (brain-like layers, section 4)."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from remegraph.models.base import AwareTime, Record, Text, Token
from remegraph.models.memories import Layer
from remegraph.models.scope import Partition

__all__ = ["GRANTABLE", "Grant"]

# ------------------------------------------------------------------------------------------- grants

GRANTABLE: tuple[Layer, ...] = ("episodic", "long_term", "procedural")
"""The layers that may be granted: what is sensed, and what is in mind, is nobody else's."""


class Grant(Record):
    """The leave of an agent for another one to read some of its memories: to read, and nothing else."""

    grant_id: Token = Field(min_length=1, description="Its id.")
    giver: Partition = Field(description="Where the memories live: the own partition of the agent that gives it.")
    to_agent: Token = Field(min_length=1, description="The agent that may read, of the same user and project.")
    memory_ids: tuple[Token, ...] = Field(default=(), description="Only these memories; all unless given.")
    topic: Token = Field(default="", description="Only memories of this topic, by key; of all unless given.")
    layers: tuple[Layer, ...] = Field(default=("episodic",), description="Only memories of these layers.")
    given_at: AwareTime = Field(description="When it was given.")
    expires_at: AwareTime | None = Field(
        default=None, description="From then on it opens nothing; none: until revoked."
    )
    actor: Token = Field(min_length=1, description="Who decided it.")
    reason: Text = Field(min_length=1, description="Why.")
    revoked_at: AwareTime | None = Field(default=None, description="When it was revoked, if it was.")

    def open_at(self, time: datetime) -> bool:
        """Return whether it lets anything through at a time."""
        return all(end is None or time < end for end in (self.expires_at, self.revoked_at))
