"""What an operator sees of tenants: how much each holds and uses, and what was exported."""

from __future__ import annotations

from pydantic import Field

from remegraph.models.base import AwareTime, Record
from remegraph.models.scope import Subject, Tenant

__all__ = [
    "AgentHoldings",
    "Export",
    "Holdings",
    "TenantHoldings",
    "TenantUsage",
    "ThreadHoldings",
    "UserHoldings",
    "UserUsage",
]


class Holdings(Record):
    """How much the ledger holds."""

    threads: int = Field(ge=0, description="Conversations.")
    messages: int = Field(ge=0, description="Messages.")
    memories: int = Field(ge=0, description="Memories that are live.")
    stored_bytes: int = Field(ge=0, description="Bytes of messages and their attachments.")


class TenantHoldings(Holdings):
    """How much it holds of a tenant."""

    tenant: str = Field(description="The tenant.")
    users: int = Field(ge=0, description="Its users.")
    agents: int = Field(ge=0, description="Its agents that have a name.")


class UserHoldings(Holdings):
    """How much it holds of a user."""

    user: str | None = Field(description="The user; none: what belongs to no user, as what agents know of themselves.")
    agents: int = Field(ge=0, description="Agents with a name that remember them.")


class AgentHoldings(Holdings):
    """How much it holds of an agent."""

    agent: str | None = Field(description="The agent; none: what belongs to no agent in particular.")
    users: int = Field(ge=0, description="Users that it remembers.")


class ThreadHoldings(Record):
    """How much it holds of a conversation."""

    thread: str = Field(description="The conversation.")
    agent: str | None = Field(description="The agent that it was held with, if it has a name.")
    project: str | None = Field(description="The project, if any.")
    messages: int = Field(ge=0, description="Messages.")
    last_at: AwareTime = Field(description="When the newest was recorded.")


class UserUsage(Record):
    """What a user has used since some time."""

    user: str | None = Field(description="The user; none: what belongs to no user.")
    messages: int = Field(ge=0, description="Messages that were recorded, and are still there.")
    message_bytes: int = Field(ge=0, description="Their bytes, with attachments.")
    calls: int = Field(ge=0, description="Calls of chat models, since the beginning of that day.")
    input_tokens: int = Field(ge=0, description="Tokens sent, likewise.")
    output_tokens: int = Field(ge=0, description="Tokens received, likewise.")
    refused: int = Field(ge=0, description="Calls that a limit refused, likewise.")


class TenantUsage(Record):
    """What a tenant has used since some time, by user."""

    tenant: str = Field(description="The tenant.")
    since: AwareTime = Field(description="From when on.")
    users: tuple[UserUsage, ...] = Field(description="Each user of it.")

    @property
    def total(self) -> UserUsage:
        """What all of them have used."""
        counted = [name for name in UserUsage.model_fields if name != "user"]
        return UserUsage(user=None, **{name: sum(getattr(each, name) for each in self.users) for name in counted})


class Export(Record):
    """What was written to a file."""

    whom: Subject | Tenant = Field(description="Whose data.")
    file: str = Field(description="The file.")
    counts: dict[str, int] = Field(description="Records, by kind.")
    sha256: str = Field(description="Of the file.")
