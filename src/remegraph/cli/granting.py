"""Commands about what one agent lets another read."""

from __future__ import annotations

from typing import Annotated, cast

import typer

from remegraph.cli import views
from remegraph.cli.asking import Asked, asked, full_id
from remegraph.cli.options import By, Reason, read_time
from remegraph.models import Layer

__all__ = ["grant", "grants", "revoke"]


@asked
def grants(ask: Asked) -> None:
    """List what an agent (--agent) lets others read, and what it may read; those that are over, too."""
    with ask.kit() as kit:
        found = kit.sharing.grants(scope=ask.scope)
    ask.out.show(found, *views.grants(found))


@asked
def grant(
    ask: Asked,
    to_agent: Annotated[str, typer.Argument(help="The agent that may read.", metavar="AGENT", show_default=False)],
    *,
    reason: Reason,
    memory: Annotated[
        list[str] | None, typer.Option("--memory", help="Only this memory, by id.", metavar="ID", show_default=False)
    ] = None,
    topic: Annotated[str | None, typer.Option("--topic", help="Only this topic, as type:name.")] = None,
    layer: Annotated[
        list[str] | None, typer.Option("--layer", help="Only these layers; episodic unless given.", show_default=False)
    ] = None,
    until: Annotated[str | None, typer.Option("--until", help="When it ends.", show_default=False)] = None,
    by: By = "",
) -> None:
    """Let another agent read memories of an agent (--agent) of the same user and project."""
    scope = ask.scope
    with ask.kit() as kit:
        found = kit.sharing.grant(
            to_agent,
            scope=scope,
            memory_ids=[full_id(kit, each, scope) for each in memory or ()],
            topic=topic,
            layers=cast("list[Layer]", layer) or ("episodic",),  # the kit refuses what is none
            expires_at=read_time(until, None),
            reason=reason,
            actor=by or scope.user,
        )
    ask.out.show(found, *views.grants([found]))


@asked
def revoke(
    ask: Asked,
    grant_id: Annotated[str, typer.Argument(help="The grant.", metavar="ID", show_default=False)],
    *,
    reason: Reason,
    by: By = "",
) -> None:
    """Take back what an agent (--agent) granted: it opens nothing any more."""
    scope = ask.scope
    with ask.kit() as kit:
        found = kit.sharing.revoke(grant_id, scope=scope, reason=reason, actor=by or scope.user)
    ask.out.show(found, *views.grants([found]))
