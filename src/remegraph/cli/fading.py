"""Commands about what lasts and what fades: why, what goes next, and the runs that make and archive memories."""

from __future__ import annotations

from typing import Annotated

import typer

from remegraph.cli import views
from remegraph.cli.asking import Asked, asked, full_id
from remegraph.cli.options import MemoryId, Model

__all__ = ["consolidate", "explain", "forecast", "maintain", "restore"]


@asked
def explain(
    ask: Asked,
    memory_id: MemoryId,
) -> None:
    """Say of a memory which layer it is in, when it will be forgotten and why, what it came from, what befell it."""
    scope = ask.scope
    with ask.kit() as kit:
        found = kit.explain(full_id(kit, memory_id, scope), scope=scope)
    ask.out.show(found, *views.explanation(found))


@asked
def forecast(
    ask: Asked,
    *,
    days: Annotated[float, typer.Option("--days", min=0, help="How many days ahead.")] = 30,
) -> None:
    """List what will be forgotten soon unless it is asked for before. Nothing is changed."""
    scope = ask.scope
    with ask.kit() as kit:
        found = kit.forecast(days, scope=scope)
    ask.out.show(found, *views.forecast(found, days))


@asked
def maintain(
    ask: Asked,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,
) -> None:
    """Archive what faded, merge what says the same, abstract what is alike, and say why.

    `restore` brings back what was archived; what is archived for 60 days is purged, but for the messages it came from.
    """
    scope = ask.scope
    with ask.out.bars() as report, ask.kit() as kit:
        found = kit.maintain(scope=scope, dry_run=dry_run, progress=report)
    ask.out.show(found, *views.maintenance(found))


@asked
def restore(
    ask: Asked,
    memory_id: MemoryId,
    *,
    version: Annotated[
        int | None, typer.Option("--version", min=1, help="Let this version hold again, as a new one.", metavar="N")
    ] = None,
) -> None:
    """Bring an archived memory back, or an old version of any: what replaced it since is replaced in turn."""
    scope = ask.scope
    with ask.kit() as kit:
        whole = full_id(kit, memory_id, scope)
        found = (
            kit.restore(whole, scope=scope) if version is None else kit.governance.restore(whole, version, scope=scope)
        )
    ask.out.show(found, *views.memories([found]))


@asked
def consolidate(
    ask: Asked,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,
    model: Model = None,
) -> None:
    """Make long-term memories of similar episodes, each with its sources. The episodes stay as they are."""
    scope = ask.scope
    with ask.out.bars() as report, ask.kit(model) as kit:
        found = kit.consolidate(scope=scope, dry_run=dry_run, progress=report)
    ask.out.show(found, *views.consolidation(found))
