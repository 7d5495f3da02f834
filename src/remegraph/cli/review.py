"""Commands for what a person decides: memories that contradict each other, and those that wait for approval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, get_args

from rich.text import Text
from typer import Argument, Option

from remegraph.cli.command import SHORT_ID, Session, Views, first_match, group, minute, of_scope, plain, state_of, table
from remegraph.cli.options import By, MemoryId, Note
from remegraph.cli.recall import memory_list
from remegraph.models import Conflict, ConflictKind, ConflictState, Decision, Memory, Scope

__all__ = ["app"]

app = group()

_ALL: Sequence[ConflictKind] = get_args(ConflictKind)
_SHORT = 6
"""Characters of a conflict's id that are shown; `resolve` takes them."""


@of_scope(app)
def conflicts(
    session: Session,
    scope: Scope,
    *,
    state: Annotated[ConflictState, Option("--state", help="open: to be decided; resolved: decided.")] = "open",
    every: Annotated[bool, Option("--all", help="Also pairs of which one says all that the other says.")] = False,
) -> None:
    """List memories that contradict each other, side by side."""
    kinds: Sequence[ConflictKind] = _ALL if every else ["contradiction"]
    found = session.kit().conflicts.list(scope=scope, state=state, kinds=kinds)
    session.show(found, *_conflicts(found))


@of_scope(app)
def resolve(
    session: Session,
    scope: Scope,
    conflict_id: Annotated[str, Argument(help="The conflict: its id, or the beginning of it.", metavar="ID")],
    decision: Annotated[Decision, Argument(help="What becomes of the two.")],
    *,
    by: By = "",
    note: Note = "",
    keep: Annotated[
        str,
        Option(
            "--keep", help="Id of the memory that stays, of supersede and merge; else the newer.", show_default=False
        ),
    ] = "",
) -> None:
    """Decide a conflict. No version is lost, and the journal records who decided what, and why."""
    facade = session.kit().conflicts
    known = (each.conflict_id for each in facade.list(scope=scope, kinds=_ALL))
    name, keep = first_match(known, conflict_id, "conflicts"), session.memory_id(scope, keep)
    found = facade.resolve(name, decision, scope=scope, by=by or scope.user, note=note, keep=keep)
    session.show(found, *_conflicts([found]))


def _conflicts(found: Sequence[Conflict]) -> Views:
    """Show conflicts, each with both memories, and what was decided."""

    def side(each: Memory) -> Text:
        return Text.assemble(plain(each.content), " ", state_of(each.status), (f" {each.memory_id[:SHORT_ID]}", "dim"))

    def row(each: Conflict) -> tuple[object, ...]:
        outcome = each.reason if each.state == "open" else "over: one of the two is gone"
        if decided := each.decided:
            note = f": {decided.note}" if decided.note else ""
            outcome = f"{decided.decision} by {decided.by}, {minute(decided.at)}{note}"
        what = each.kind if each.certain else f"{each.kind}?"
        return each.conflict_id[:_SHORT], what, side(each.older), side(each.newer), outcome

    return table(found, ("!id", "what", "older", "newer", "in what, or decided"), row, empty="No conflicts.")


@of_scope(app)
def waiting(session: Session, scope: Scope) -> None:
    """List what waits for approval."""
    found = session.kit().knowledge.waiting(scope=scope)
    session.show(found, *memory_list(found))


@of_scope(app)
def approve(session: Session, scope: Scope, memory_id: MemoryId, *, by: By = "", note: Note = "") -> None:
    """Let a memory hold. It is believed no more than before, and its links stay disarmed."""
    name = session.memory_id(scope, memory_id)
    found = session.kit().knowledge.approve(name, scope=scope, by=by or scope.user, note=note)
    session.show(found, *memory_list([found]))


@of_scope(app)
def reject(session: Session, scope: Scope, memory_id: MemoryId, *, by: By = "", note: Note = "") -> None:
    """Delete a memory that waits."""
    name = session.memory_id(scope, memory_id)
    found = session.kit().knowledge.reject(name, scope=scope, by=by or scope.user, note=note)
    session.show(found, *memory_list([found]))
