"""Commands about what lasts and what fades: why, what goes next, and the runs that make and archive memories."""

from __future__ import annotations

from typing import Annotated

import typer

from remegraph.cli import views
from remegraph.cli.options import ME, Agent, AsJson, Home, MemoryId, Model, Project, Tenant, User, scope_of
from remegraph.cli.reading import full_id
from remegraph.cli.session import guarded, open_kit

__all__ = ["consolidate", "explain", "forecast", "maintain", "restore"]


def explain(
    memory_id: MemoryId,
    *,
    user: User = ME,
    agent: Agent = None,
    project: Project = None,
    tenant: Tenant = "default",
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Say of a memory which layer it is in, when it will be forgotten and why, what it came from, what befell it."""
    with guarded(as_json=as_json) as out:
        scope = scope_of(user, agent, project, tenant)
        with open_kit(home) as kit:
            found = kit.explain(full_id(kit, memory_id, scope), scope=scope)
        out.show(found, *views.explanation(found))


def forecast(
    *,
    days: Annotated[float, typer.Option("--days", min=0, help="How many days ahead.")] = 30,
    user: User = ME,
    agent: Agent = None,
    project: Project = None,
    tenant: Tenant = "default",
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """List what will be forgotten soon unless it is asked for before. Nothing is changed."""
    with guarded(as_json=as_json) as out:
        scope = scope_of(user, agent, project, tenant)
        with open_kit(home) as kit:
            found = kit.forecast(days, scope=scope)
        out.show(found, *views.forecast(found, days))


def maintain(
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,
    user: User = ME,
    agent: Agent = None,
    project: Project = None,
    tenant: Tenant = "default",
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Archive what faded, merge what says the same, abstract what is alike, and say why.

    `restore` brings back what was archived; what is archived for 60 days is purged, but for the messages it came from.
    """
    with guarded(as_json=as_json) as out:
        scope = scope_of(user, agent, project, tenant)
        with out.bars() as report, open_kit(home) as kit:
            found = kit.maintain(scope=scope, dry_run=dry_run, progress=report)
        out.show(found, *views.maintenance(found))


def restore(
    memory_id: MemoryId,
    *,
    version: Annotated[
        int | None, typer.Option("--version", min=1, help="Let this version hold again, as a new one.", metavar="N")
    ] = None,
    user: User = ME,
    agent: Agent = None,
    project: Project = None,
    tenant: Tenant = "default",
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Bring an archived memory back, or an old version of any: what replaced it since is replaced in turn."""
    with guarded(as_json=as_json) as out:
        scope = scope_of(user, agent, project, tenant)
        with open_kit(home) as kit:
            whole = full_id(kit, memory_id, scope)
            found = (
                kit.restore(whole, scope=scope)
                if version is None
                else kit.governance.restore(whole, version, scope=scope)
            )
        out.show(found, *views.memories([found]))


def consolidate(
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,
    user: User = ME,
    agent: Agent = None,
    project: Project = None,
    tenant: Tenant = "default",
    model: Model = None,
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Make long-term memories of similar episodes, each with its sources. The episodes stay as they are."""
    with guarded(as_json=as_json) as out:
        scope = scope_of(user, agent, project, tenant)
        with out.bars() as report, open_kit(home, model=model) as kit:
            found = kit.consolidate(scope=scope, dry_run=dry_run, progress=report)
        out.show(found, *views.consolidation(found))
