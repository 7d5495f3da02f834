"""Commands about memories that wait for approval: what tools, documents and strangers say."""

from __future__ import annotations

from remegraph.cli import views
from remegraph.cli.asking import Asked, asked, full_id
from remegraph.cli.options import By, MemoryId, Note, group

__all__ = ["app"]

app = group(
    "What waits for approval: memories of what tools, documents and strangers say. Nothing recalls them until then."
)


@app.command("list")
@asked
def waiting(ask: Asked) -> None:
    """List what waits for approval."""
    with ask.kit() as kit:
        found = kit.knowledge.waiting(scope=ask.scope)
    ask.out.show(found, *views.memories(found))


@app.command()
@asked
def approve(ask: Asked, memory_id: MemoryId, *, by: By = "", note: Note = "") -> None:
    """Let a memory hold. It is believed no more than before, and its links stay disarmed."""
    with ask.kit() as kit:
        name = full_id(kit, memory_id, ask.scope)
        found = kit.knowledge.approve(name, scope=ask.scope, by=by or ask.scope.user, note=note)
    ask.out.show(found, *views.memories([found]))


@app.command()
@asked
def reject(ask: Asked, memory_id: MemoryId, *, by: By = "", note: Note = "") -> None:
    """Delete a memory that waits."""
    with ask.kit() as kit:
        name = full_id(kit, memory_id, ask.scope)
        found = kit.knowledge.reject(name, scope=ask.scope, by=by or ask.scope.user, note=note)
    ask.out.show(found, *views.memories([found]))
