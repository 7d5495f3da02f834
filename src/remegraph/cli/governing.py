"""Commands about versions and the journal: how a memory came about, what changed, who did it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from remegraph.cli import views
from remegraph.cli.asking import Asked, asked, full_id
from remegraph.cli.options import (
    Heads,
    MemoryId,
    Timezone,
    read_time,
    read_zone,
)

__all__ = ["archaeology", "audit", "diff"]

_Number = Annotated[int, typer.Argument(min=1, help="Number of a version.", show_default=False)]


@asked
def archaeology(
    ask: Asked,
    memory_id: MemoryId,
    *,
    known_at: Annotated[
        str | None, typer.Option("--known-at", help="As it was recorded by this time.", show_default=False)
    ] = None,
    true_at: Annotated[
        str | None, typer.Option("--true-at", help="Say what of it was true at this time.", show_default=False)
    ] = None,
    timezone: Timezone = None,
) -> None:
    """Dig out the chain of a memory: what it replaced and what replaced it, with versions, times, actors, reasons, words."""
    scope, zone = ask.scope, read_zone(timezone)
    times = {"known_at": read_time(known_at, zone), "true_at": read_time(true_at, zone)}
    with ask.kit() as kit:
        found = kit.governance.archaeology(full_id(kit, memory_id, scope), scope=scope, **times)
    ask.out.show(found, *views.archaeology(found))


@asked
def diff(
    ask: Asked,
    memory_id: MemoryId,
    a: _Number,
    b: _Number,
) -> None:
    """Say what differs between two versions of a memory, field by field and word by word."""
    scope = ask.scope
    with ask.kit() as kit:
        found = kit.governance.diff(full_id(kit, memory_id, scope), a, b, scope=scope)
    ask.out.show(found, *views.difference(found))


@asked
def audit(
    ask: Asked,
    *,
    export: Annotated[
        Path | None,
        typer.Option(
            "--export", help="Write it as JSON lines to this file, which must not be there yet.", metavar="FILE"
        ),
    ] = None,
    check: Annotated[
        Path | None, typer.Option("--check", help="Say whether an exported file is whole instead.", metavar="FILE")
    ] = None,
    heads: Heads = None,
    since: Annotated[
        str | None, typer.Option("--since", help="From this time on, e.g. 2026-03-01T00:00Z.", show_default=False)
    ] = None,
    until: Annotated[str | None, typer.Option("--until", help="To this time.", show_default=False)] = None,
    timezone: Timezone = None,
) -> None:
    """Tell who changed what, when and why; no word of any memory is shown. Exit code 1 where a checked file is not whole."""
    scope, zone = ask.scope, read_zone(timezone)
    times = {"since": read_time(since, zone), "until": read_time(until, zone)}
    with ask.kit() as kit:
        if check is not None:
            known = () if heads is None else kit.governance.read_heads(heads)
            wrong = kit.governance.verify_export(check, known)
            ask.out.show({"whole": not wrong, "differences": wrong}, *views.checked(check.name, wrong))
            if wrong:
                raise typer.Exit(1)
        elif export is not None:
            ended = kit.governance.export_audit(export, scope=scope, **times)
            ask.out.show(ended, *views.exported(export.name, ended))
        else:
            found = list(kit.governance.audit(scope=scope, **times))
            ask.out.show(found, *views.audit(found))
