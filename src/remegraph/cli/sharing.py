"""Commands about what agents share: what one lets another read, and what all agents of a user know."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, cast

from typer import Argument, Option

from remegraph.cli.command import SHORT_ID, Session, Views, group, minute, of_scope, read_time, state_of, table
from remegraph.cli.options import By, MemoryId, Reason, Topic
from remegraph.models import Grant, Layer, Proposal, ProposalState, Scope

__all__ = ["app"]

app = group()

_ProposalId = Annotated[
    str, Argument(help="The proposal: its id, or the beginning of it.", metavar="ID", show_default=False)
]


@of_scope(app)
def grants(session: Session, scope: Scope) -> None:
    """List what an agent (--agent) lets others read, and what it may read; those that are over, too."""
    found = session.kit().sharing.grants(scope=scope)
    session.show(found, *_grants(found))


@of_scope(app)
def grant(
    session: Session,
    scope: Scope,
    to_agent: Annotated[str, Argument(help="The agent that may read.", metavar="AGENT", show_default=False)],
    *,
    reason: Reason,
    memory: Annotated[list[str] | None, Option("--memory", help="Only this memory, by id.", metavar="ID")] = None,
    topic: Topic = None,
    layer: Annotated[list[str] | None, Option("--layer", help="Only these layers; episodic unless given.")] = None,
    until: Annotated[str | None, Option("--until", help="When it ends.")] = None,
    by: By = "",
) -> None:
    """Let another agent read memories of an agent (--agent) of the same user and project."""
    found = session.kit().sharing.grant(
        to_agent,
        scope=scope,
        memory_ids=[session.memory_id(scope, each) for each in memory or ()],
        topic=topic,
        layers=cast("list[Layer]", layer) or ("episodic",),  # the kit refuses what is none
        expires_at=read_time(until, None),
        reason=reason,
        actor=by or scope.user,
    )
    session.show(found, *_grants([found]))


@of_scope(app)
def revoke(
    session: Session,
    scope: Scope,
    grant_id: Annotated[str, Argument(help="The grant.", metavar="ID", show_default=False)],
    *,
    reason: Reason,
    by: By = "",
) -> None:
    """Take back what an agent (--agent) granted: it opens nothing any more."""
    found = session.kit().sharing.revoke(grant_id, scope=scope, reason=reason, actor=by or scope.user)
    session.show(found, *_grants([found]))


def _grants(found: Sequence[Grant]) -> Views:
    """Show grants, each with what it opens, to whom, and until when."""

    def row(each: Grant) -> tuple[str, ...]:
        what = ", ".join((*each.layers, *filter(None, [each.topic]), *(name[:SHORT_ID] for name in each.memory_ids)))
        ends = [end for end in (each.revoked_at, each.expires_at) if end is not None]
        until = minute(min(ends)) if ends else "until revoked"
        return each.grant_id, each.giver.agent or "", each.to_agent, what, until, each.reason

    return table(found, ("!id", "from", "to", "what", "until", "why"), row, empty="No grants.", whole=True)


@of_scope(app)
def proposals(
    session: Session,
    scope: Scope,
    *,
    state: Annotated[
        ProposalState | None, Option("--state", help="Only these; stale: its author says otherwise by now.")
    ] = None,
) -> None:
    """List what agents proposed for all agents of the user, and which agents support it."""
    found = session.kit().sharing.proposals(scope=scope, state=state)
    session.show(found, *_proposals(found))


@of_scope(app)
def propose(
    session: Session,
    scope: Scope,
    memory_id: MemoryId,
    *,
    reason: Reason,
    replaces: Annotated[
        str, Option("--replaces", help="Id of the shared memory that it shall replace.", show_default=False)
    ] = "",
    expected_version: Annotated[
        int | None, Option("--expected-version", min=1, help="The version of that memory that was read.")
    ] = None,
) -> None:
    """Propose a memory of an agent (--agent) for all agents of the user. It is not recalled until they agree."""
    found = session.kit().sharing.propose(
        session.memory_id(scope, memory_id),
        scope=scope,
        reason=reason,
        replaces=session.memory_id(scope, replaces),
        expected_version=expected_version,
    )
    session.show(found, *_proposals([found]))


@of_scope(app)
def corroborate(
    session: Session,
    scope: Scope,
    proposal_id: _ProposalId,
    *,
    memory: Annotated[
        str, Option("--memory", help="The agent's own memory that says so.", metavar="ID", show_default=False)
    ],
) -> None:
    """Support a proposal with a memory of another agent (--agent), on evidence of its own."""
    name, own = session.memory_id(scope, proposal_id), session.memory_id(scope, memory)
    found = session.kit().sharing.corroborate(name, scope=scope, memory_id=own)
    session.show(found, *_proposals([found]))


@of_scope(app)
def approve(session: Session, scope: Scope, proposal_id: _ProposalId, *, by: By = "", reason: Reason = "") -> None:
    """Make a proposal a memory of all agents of the user, on a person's word."""
    name = session.memory_id(scope, proposal_id)
    found = session.kit().sharing.approve(name, scope=scope, actor=by or scope.user, reason=reason)
    session.show(found, *_proposals([found]))


@of_scope(app)
def reject(session: Session, scope: Scope, proposal_id: _ProposalId, *, by: By = "", reason: Reason = "") -> None:
    """Refuse a proposal, on a person's word. It stays in the ledger, and is never recalled."""
    name = session.memory_id(scope, proposal_id)
    found = session.kit().sharing.reject(name, scope=scope, actor=by or scope.user, reason=reason)
    session.show(found, *_proposals([found]))


@of_scope(app)
def withdraw(session: Session, scope: Scope, proposal_id: _ProposalId, *, reason: Reason = "") -> None:
    """Take back what an agent (--agent) proposed."""
    found = session.kit().sharing.withdraw(session.memory_id(scope, proposal_id), scope=scope, reason=reason)
    session.show(found, *_proposals([found]))


def _proposals(found: Sequence[Proposal]) -> Views:
    """Show proposals, each with its state, the agents that support it, and what was said last."""

    def row(each: Proposal) -> tuple[object, ...]:
        last = each.endorsements[-1]
        words = f"{last.act} by {last.by}" + (f": {last.reason}" if last.reason else "")
        content, agents = each.memory.content, ", ".join(each.agents)
        return each.proposal_id[:SHORT_ID], state_of(each.state), content, agents, words

    return table(found, ("!id", "state", "what", "agents", "last said"), row, empty="No proposals.")
