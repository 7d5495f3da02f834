"""The command that erases for good: it asks first, and shows the receipt."""

from __future__ import annotations

from typing import Annotated

import typer

from remegraph.cli import views
from remegraph.cli.asking import Asked, asked, full_id
from remegraph.models import Subject

__all__ = ["erase"]


@asked
def erase(
    ask: Asked,
    *,
    thread: Annotated[str | None, typer.Option("--thread", help="Only this thread, of this scope.")] = None,
    message: Annotated[list[str] | None, typer.Option("--message", help="Only this message; repeat.")] = None,
    memory: Annotated[list[str] | None, typer.Option("--memory", help="Only this memory; repeat.")] = None,
    person: Annotated[bool, typer.Option("--person", help="All of the user, whatever agent and project.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Finish what was stopped, and erase no more.")] = False,
    full: Annotated[bool, typer.Option("--full", help="PostgreSQL: VACUUM FULL, which locks the tables.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Erase a person, a thread, messages or memories for good, from every place, and show the receipt.

    Exit code 1 where anything is left. Backups, packs and the host's own records are not reached: the receipt says so.
    """
    if not (resume or yes):
        typer.confirm("This cannot be undone. Erase?", abort=True, err=True)
    with ask.kit() as kit:
        if resume:
            receipts = kit.admin.resume(full=full)
        else:
            whom = Subject(tenant=ask.scope.tenant, user=ask.scope.user) if person else ask.scope
            memories = [full_id(kit, each, ask.scope) for each in memory or ()]
            receipts = (
                kit.admin.erase(whom, thread=thread, message_ids=message or (), memory_ids=memories, full=full),
            )
    ask.out.show(
        [{**each.model_dump(mode="json"), "complete": each.complete} for each in receipts], *views.erasures(receipts)
    )
    if not all(each.complete for each in receipts):
        raise typer.Exit(1)
