"""What agents share: proposals for their common library, and who bears them out (B12, B13)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from remegraph.models.base import AwareTime, Record, Token
from remegraph.models.memories import Memory

__all__ = ["Endorsement", "EndorsementAct", "Proposal", "ProposalState"]

# ------------------------------------------------------------------------------------------- proposals

EndorsementAct = Literal["propose", "corroborate", "approve", "reject", "withdraw"]
"""propose, corroborate and withdraw are acts of agents; approve and reject, of persons."""
ProposalState = Literal["open", "stale", "agreed", "rejected", "withdrawn"]
"""stale: its author says otherwise by now, or took it back, so that nobody can agree to it any more."""


class Endorsement(Record):
    """Somebody's word on a proposal; appended, never changed."""

    proposal_id: Token = Field(min_length=1, description="The proposal.")
    act: EndorsementAct = Field(description="What was done.")
    by: Token = Field(min_length=1, description="The agent, or the person who approves or rejects.")
    memory_id: Token = Field(default="", description="The agent's own memory that bears it out.")
    version: int = Field(default=0, ge=0, description="The version of that memory.")
    replaces: Token = Field(default="", description="The shared memory that it shall replace (of propose).")
    expected_version: int = Field(default=0, ge=0, description="The version of that memory that was read.")
    reason: Token = Field(default="", description="Why.")
    at: AwareTime = Field(description="When.")


class Proposal(Record):
    """What an agent wants its user's other agents to know, too. Until they agree nobody recalls it."""

    proposal_id: Token = Field(min_length=1, description="Its id: that of the shared memory which it becomes.")
    memory: Memory = Field(description="What is proposed, as it stands now.")
    state: ProposalState = Field(description="What became of it.")
    endorsements: tuple[Endorsement, ...] = Field(min_length=1, description="Who said what, the author first.")

    @property
    def author(self) -> str:
        """The agent that proposed it."""
        return self.endorsements[0].by

    @property
    def agents(self) -> tuple[str, ...]:
        """The agents that bear it out, the author first."""
        return tuple(each.by for each in self.endorsements if each.act in {"propose", "corroborate"})
