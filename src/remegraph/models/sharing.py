"""Sharing among agents of one person: grants to read, and memories that all agree on (brain-like layers, section 4)."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from remegraph.models.base import AwareTime, Record, Text, Token
from remegraph.models.memories import Layer, Memory
from remegraph.models.scope import Partition

__all__ = ["GRANTABLE", "Endorsement", "EndorsementAct", "Grant", "Proposal", "ProposalState"]

# ------------------------------------------------------------------------------------------- grants

GRANTABLE: tuple[Layer, ...] = ("episodic", "long_term", "procedural")
"""The layers that may be granted: the sensory buffer and working memory stay private."""


class Grant(Record):
    """The permission of an agent for another one to read some of its memories, and nothing else."""

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


# ------------------------------------------------------------------------------------------- proposals

EndorsementAct = Literal["propose", "corroborate", "approve", "reject", "withdraw"]
"""propose, corroborate and withdraw are acts of agents; approve and reject, of persons."""
ProposalState = Literal["open", "stale", "agreed", "rejected", "withdrawn"]
"""stale: its author has changed it or taken it back, so that it can no longer be agreed to."""


class Endorsement(Record):
    """An act on a proposal; appended, never changed."""

    proposal_id: Token = Field(min_length=1, description="The proposal.")
    act: EndorsementAct = Field(description="What was done.")
    by: Token = Field(min_length=1, description="The agent, or the person who approves or rejects.")
    memory_id: Token = Field(default="", description="The agent's own memory that supports it.")
    version: int = Field(default=0, ge=0, description="The version of that memory.")
    replaces: Token = Field(default="", description="The shared memory that it shall replace (of propose).")
    expected_version: int = Field(default=0, ge=0, description="The version of that memory that was read.")
    reason: Token = Field(default="", description="Why.")
    at: AwareTime = Field(description="When.")


class Proposal(Record):
    """A memory that an agent proposes to its user's other agents. It is not recalled until they agree."""

    proposal_id: Token = Field(min_length=1, description="Its id: that of the shared memory which it becomes.")
    memory: Memory = Field(description="The proposed memory, as it is now.")
    state: ProposalState = Field(description="What became of it.")
    endorsements: tuple[Endorsement, ...] = Field(min_length=1, description="Who said what, the author first.")

    @property
    def author(self) -> str:
        """The agent that proposed it."""
        return self.endorsements[0].by

    @property
    def agents(self) -> tuple[str, ...]:
        """The agents that support it, the author first."""
        return tuple(each.by for each in self.endorsements if each.act in {"propose", "corroborate"})
