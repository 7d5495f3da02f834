"""Commands about rules: which an agent is given whatever is said, and what it is given for certain words."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from remegraph.cli import views
from remegraph.cli.options import ME, Agent, AsJson, Home, MemoryId, Project, Tenant, User, scope_of
from remegraph.cli.reading import full_id
from remegraph.cli.session import guarded, open_kit

__all__ = ["inject", "promote", "rules"]

_Workspace = Annotated[
    Path | None,
    typer.Option(
        "--workspace", "-w", help="Working directory: tells the languages, and the project where none is given.",
        show_default=False,
    ),
]  # fmt: skip


def rules(
    *,
    workspace: _Workspace = None,
    user: User = ME,
    agent: Agent = None,
    project: Project = None,
    tenant: Tenant = "default",
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """List the rules that an agent is given whatever is said: core rules, then what applies to the project or language."""
    with guarded(as_json=as_json) as out:
        scope = scope_of(user, agent, project, tenant)
        with open_kit(home) as kit:
            found = kit.rules(scope=scope, workspace=workspace)
        out.show(found, *views.rules(found))


def inject(
    text: Annotated[str, typer.Argument(help="What the person says.", show_default=False)],
    *,
    turn: Annotated[int, typer.Option("--turn", min=0, help="Which of their messages it is.")] = 1,
    budget: Annotated[
        int | None, typer.Option("--budget", min=1, help="Tokens of the context.", show_default="2000")
    ] = None,
    always: Annotated[bool, typer.Option("--always", help="Look up what bears on it, whatever it says.")] = False,
    workspace: _Workspace = None,
    context: Annotated[bool, typer.Option("--context", help="Print the text for a prompt instead of a table.")] = False,
    user: User = ME,
    agent: Agent = None,
    project: Project = None,
    tenant: Tenant = "default",
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Show what an agent would be given for some words, in layers, why, and what there is no room for."""
    with guarded(as_json=as_json) as out:
        scope = scope_of(user, agent, project, tenant)
        with open_kit(home) as kit:
            found = kit.inject(text, scope=scope, turn=turn, budget=budget, workspace=workspace, always=always)
        out.show(found, *([views.text(found.context)] if context else views.injection(found)))


def promote(
    memory_id: MemoryId,
    *,
    reason: Annotated[str, typer.Option("--reason", help="Why, for the journal.", show_default=False)],
    user: User = ME,
    agent: Agent = None,
    project: Project = None,
    tenant: Tenant = "default",
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Let a memory of a project hold in all projects."""
    with guarded(as_json=as_json) as out:
        scope = scope_of(user, agent, project, tenant)
        with open_kit(home) as kit:
            found = kit.promote(full_id(kit, memory_id, scope), scope=scope, reason=reason)
        out.show(found, *views.memories([found]))
