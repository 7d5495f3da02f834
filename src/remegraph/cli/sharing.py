"""Commands about what all agents of a user know: what was proposed, who bears it out, and what a person decides."""

from __future__ import annotations

from typing import Annotated

import typer

from remegraph.cli import views
from remegraph.cli.asking import Asked, asked, full_id
from remegraph.cli.options import By, MemoryId, Reason
from remegraph.models import ProposalState

__all__ = ["approve", "corroborate", "proposals", "propose", "reject", "withdraw"]

_ProposalId = Annotated[
    str, typer.Argument(help="The proposal: its id, or the beginning of it.", metavar="ID", show_default=False)
]


@asked
def proposals(
    ask: Asked,
    *,
    state: Annotated[
        ProposalState | None,
        typer.Option("--state", help="Only these; stale: its author says otherwise by now.", show_default=False),
    ] = None,
) -> None:
    """List what agents proposed for all agents of the user, and who bears it out."""
    scope = ask.scope
    with ask.kit() as kit:
        found = kit.sharing.proposals(scope=scope, state=state)
    ask.out.show(found, *views.proposals(found))


@asked
def propose(
    ask: Asked,
    memory_id: MemoryId,
    *,
    reason: Reason,
    replaces: Annotated[
        str, typer.Option("--replaces", help="Id of the shared memory that it shall replace.", show_default=False)
    ] = "",
    expected_version: Annotated[
        int | None, typer.Option("--expected-version", min=1, help="The version of that memory that was read.")
    ] = None,
) -> None:
    """Propose a memory of an agent (--agent) for all agents of the user. Nobody recalls it until they agree."""
    scope = ask.scope
    with ask.kit() as kit:
        found = kit.sharing.propose(
            full_id(kit, memory_id, scope),
            scope=scope,
            reason=reason,
            replaces=full_id(kit, replaces, scope),
            expected_version=expected_version,
        )
    ask.out.show(found, *views.proposals([found]))


@asked
def corroborate(
    ask: Asked,
    proposal_id: _ProposalId,
    *,
    memory: Annotated[
        str, typer.Option("--memory", help="The agent's own memory that says so.", metavar="ID", show_default=False)
    ],
) -> None:
    """Bear a proposal out with a memory of another agent (--agent), on evidence of its own."""
    scope = ask.scope
    with ask.kit() as kit:
        found = kit.sharing.corroborate(
            full_id(kit, proposal_id, scope), scope=scope, memory_id=full_id(kit, memory, scope)
        )
    ask.out.show(found, *views.proposals([found]))


@asked
def approve(ask: Asked, proposal_id: _ProposalId, *, by: By = "", reason: Reason = "") -> None:
    """Make a proposal a memory of all agents of the user, on a person's word."""
    scope = ask.scope
    with ask.kit() as kit:
        name = full_id(kit, proposal_id, scope)
        found = kit.sharing.approve(name, scope=scope, actor=by or scope.user, reason=reason)
    ask.out.show(found, *views.proposals([found]))


@asked
def reject(ask: Asked, proposal_id: _ProposalId, *, by: By = "", reason: Reason = "") -> None:
    """Refuse a proposal, on a person's word. It stays in the ledger, and is never recalled."""
    scope = ask.scope
    with ask.kit() as kit:
        name = full_id(kit, proposal_id, scope)
        found = kit.sharing.reject(name, scope=scope, actor=by or scope.user, reason=reason)
    ask.out.show(found, *views.proposals([found]))


@asked
def withdraw(ask: Asked, proposal_id: _ProposalId, *, reason: Reason = "") -> None:
    """Take back what an agent (--agent) proposed."""
    scope = ask.scope
    with ask.kit() as kit:
        found = kit.sharing.withdraw(full_id(kit, proposal_id, scope), scope=scope, reason=reason)
    ask.out.show(found, *views.proposals([found]))
