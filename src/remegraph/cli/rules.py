"""Commands about rules: which an agent is given whatever is said, and what it is given for certain words."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from remegraph.cli import views
from remegraph.cli.asking import Asked, asked, full_id
from remegraph.cli.options import MemoryId, Reason

__all__ = ["inject", "promote", "rules"]

_Workspace = Annotated[
    Path | None,
    typer.Option(
        "--workspace", "-w", help="Working directory: tells the languages, and the project where none is given.",
        show_default=False,
    ),
]  # fmt: skip


@asked
def rules(
    ask: Asked,
    *,
    workspace: _Workspace = None,
) -> None:
    """List the rules that an agent is given whatever is said: core rules, then what applies to the project or language."""
    scope = ask.scope
    with ask.kit() as kit:
        found = kit.rules(scope=scope, workspace=workspace)
    ask.out.show(found, *views.rules(found))


@asked
def inject(
    ask: Asked,
    text: Annotated[str, typer.Argument(help="What the person says.", show_default=False)],
    *,
    turn: Annotated[int, typer.Option("--turn", min=0, help="Which of their messages it is.")] = 1,
    budget: Annotated[
        int | None, typer.Option("--budget", min=1, help="Tokens of the context.", show_default="2000")
    ] = None,
    always: Annotated[bool, typer.Option("--always", help="Look up what bears on it, whatever it says.")] = False,
    workspace: _Workspace = None,
    context: Annotated[bool, typer.Option("--context", help="Print the text for a prompt instead of a table.")] = False,
) -> None:
    """Show what an agent would be given for some words, in layers, why, and what there is no room for."""
    scope = ask.scope
    with ask.kit() as kit:
        found = kit.inject(text, scope=scope, turn=turn, budget=budget, workspace=workspace, always=always)
    ask.out.show(found, *([views.text(found.context)] if context else views.injection(found)))


@asked
def promote(
    ask: Asked,
    memory_id: MemoryId,
    *,
    reason: Reason,
) -> None:
    """Let a memory of a project hold in all projects."""
    scope = ask.scope
    with ask.kit() as kit:
        found = kit.promote(full_id(kit, memory_id, scope), scope=scope, reason=reason)
    ask.out.show(found, *views.memories([found]))
