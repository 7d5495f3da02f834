"""Commands about memories that contradict each other: which there are, and what somebody decides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, get_args

import typer

from remegraph.cli import views
from remegraph.cli.asking import Asked, asked, full_id, one_of
from remegraph.cli.options import By, Note
from remegraph.models import ConflictKind, ConflictState, Decision

__all__ = ["conflicts", "resolve"]

_ALL: Sequence[ConflictKind] = get_args(ConflictKind)


@asked
def conflicts(
    ask: Asked,
    *,
    state: Annotated[ConflictState, typer.Option("--state", help="open: to be decided; resolved: decided.")] = "open",
    every: Annotated[bool, typer.Option("--all", help="Also pairs of which one says all that the other says.")] = False,
) -> None:
    """List memories that contradict each other, side by side."""
    scope = ask.scope
    with ask.kit() as kit:
        kinds: Sequence[ConflictKind] = _ALL if every else ["contradiction"]
        found = kit.conflicts.list(scope=scope, state=state, kinds=kinds)
    ask.out.show(found, *views.conflicts(found))


@asked
def resolve(
    ask: Asked,
    conflict_id: Annotated[str, typer.Argument(help="The conflict: its id, or the beginning of it.", metavar="ID")],
    decision: Annotated[Decision, typer.Argument(help="What becomes of the two.")],
    *,
    by: By = "",
    note: Note = "",
    keep: Annotated[
        str,
        typer.Option(
            "--keep", help="Id of the memory that stays, of supersede and merge; else the newer.", show_default=False
        ),
    ] = "",
) -> None:
    """Decide a conflict. No version is lost, and the journal tells who decided what, and why."""
    scope = ask.scope
    with ask.kit() as kit:
        known = (each.conflict_id for each in kit.conflicts.list(scope=scope, kinds=_ALL))
        found = kit.conflicts.resolve(
            one_of(known, conflict_id, "conflicts"),
            decision,
            scope=scope,
            by=by or scope.user,
            note=note,
            keep=full_id(kit, keep, scope),
        )
    ask.out.show(found, *views.conflicts([found]))
