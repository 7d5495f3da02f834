"""The caller, the place of a row, and whom an erasure is about."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from pydantic import Field

from remegraph.models.base import Record, Token

__all__ = ["Partition", "Scope", "Subject", "Tenant", "visible"]

_Name = Annotated[Token, Field(min_length=1)]


class Scope(Record):
    """Who calls. Required on every call; its values are compared, never parsed."""

    user: _Name = Field(description="The person the agent talks with.")
    tenant: _Name = Field(default="default", description="The organisation; never crossed.")
    agent: _Name | None = Field(default=None, description="The agent that remembers; none if there is one only.")
    project: _Name | None = Field(default=None, description="The project worked on; none outside of any.")

    def partition(self) -> Partition:
        """Return the caller's own partition: all four fields as given."""
        return Partition(tenant=self.tenant, user=self.user, agent=self.agent, project=self.project)


class Partition(Record):
    """Where a row lives: the fields of a scope, each a value or explicitly none.

    None is a value like any other ("belongs to no user"), never a wildcard.
    """

    tenant: _Name = Field(description="The organisation.")
    user: _Name | None = Field(default=None, description="The person, or none: shared by the agent's users.")
    agent: _Name | None = Field(default=None, description="The agent, or none.")
    project: _Name | None = Field(default=None, description="The project, or none: of no project.")

    @property
    def applies_to(self) -> str:
        """Where what lives here applies, as the governance protocol writes it: `global`, or `project:<name>`."""
        return "global" if self.project is None else f"project:{self.project}"

    def sees(self, scope: Scope | Partition) -> bool:
        """Return whether rows here may be shown to `scope`: each field is the scope's or none.

        Of a partition, whether they may be shown wherever its own rows may.
        """
        return self.tenant == scope.tenant and all(
            mine in (None, theirs)
            for mine, theirs in (
                (self.user, scope.user),
                (self.agent, scope.agent),
                (self.project, scope.project),
            )
        )


class Subject(Record):
    """A person: whom an export or an erasure is about."""

    tenant: _Name = Field(default="default", description="The organisation.")
    user: _Name = Field(description="The person.")


class Tenant(Record):
    """An organisation with all that is recorded under its name: whom an export or an erasure is about."""

    tenant: _Name = Field(description="The organisation.")


def visible(scope: Scope, partitions: Iterable[Partition]) -> tuple[Partition, ...]:
    """Return the existing partitions that `scope` may read, its own first.

    Args:
        scope: The scope of the caller.
        partitions: The partitions that exist.
    """
    own = scope.partition()
    found = [partition for partition in partitions if partition.sees(scope)]
    return tuple(sorted(found, key=lambda partition: partition != own))
