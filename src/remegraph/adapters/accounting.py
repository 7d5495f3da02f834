"""Two tools by which an agent accounts for what it remembers: why, until when, and how it came to be so."""

from __future__ import annotations

from typing import Any

from langchain_core.tools import BaseTool
from langgraph.prebuilt import ToolRuntime

from remegraph.adapters.answering import NO_RUNTIME, Answer, MemoryId, OfSomebody, answered, as_tool, reply
from remegraph.adapters.scopes import ScopeSource
from remegraph.kit import MemoryKit
from remegraph.kit.calling import twin
from remegraph.models import Archaeology, Explanation, Find, Scope, VersionNote
from remegraph.rules.context import framed
from remegraph.rules.disarming import vouched

__all__ = ["history_tools"]

_MINUTE = "%Y-%m-%d %H:%M"


def history_tools(kit: MemoryKit, scope: Scope | ScopeSource | None = None) -> list[BaseTool]:
    """Return the tools `explain_memory` and `memory_archaeology` for an agent; they work like those of `memory_tools`.

    Args:
        kit: The memory.
        scope: Whose memory, or what all calls have in common; see `resolve_scope` for what a run may say.
    """
    tools = _Tools(kit, scope)
    return [
        as_tool("explain_memory", tools.explain, tools.aexplain),
        as_tool("memory_archaeology", tools.dig, tools.adig),
    ]


class _Tools(OfSomebody):
    """What the tools do; models read the docstrings."""

    def explain(self, memory_id: MemoryId, runtime: ToolRuntime[Any, Any] = NO_RUNTIME) -> Answer:
        """Say of one memory how sure and how alive it is, when it will be forgotten, and everything that befell it."""
        with answered():
            found = self._kit.explain(memory_id, scope=self._who(runtime))
        return reply("explain_memory", _explained(found), runtime, [memory_id])

    aexplain = twin(explain)

    def dig(self, memory_id: MemoryId, runtime: ToolRuntime[Any, Any] = NO_RUNTIME) -> Answer:
        """Show what a memory replaced and what replaced it, with every version, who wrote it, why, and from which words."""
        with answered():
            found = self._kit.governance.archaeology(memory_id, scope=self._who(runtime))
        return reply("memory_archaeology", _dug(found), runtime, [find.memory_id for find in found.finds])

    adig = twin(dig)


def _explained(found: Explanation) -> str:
    memory = found.memory
    head = {
        "id": memory.memory_id,
        "status": found.status,
        "version": memory.version,
        "layer": found.layer,
        "tier": found.tier,
        "trust": round(memory.trust, 2),
        "importance": round(memory.importance, 2),
        "weight": found.weight.reason,
        "forgotten_from": found.forget_at and f"{found.forget_at:{_MINUTE}}",
        "came_back": len(found.reviews),
        "quotes": len(found.trace.quotes),
        "text": vouched(memory.content, memory.trust),
    }
    events = [
        {"at": f"{event.time:{_MINUTE}}", "did": event.action, "by": event.actor}
        | ({"because": vouched(event.reason, memory.trust)} if event.reason else {})
        for event in found.trace.events
    ]
    return framed([head, *events, *({"missing": what} for what in found.trace.missing)])


def _dug(found: Archaeology) -> str:
    versions = [_version(find, note) for find in found.finds for note in find.versions]
    return framed([*versions, {"holds": [memory.memory_id for memory in found.held]}])


def _version(find: Find, note: VersionNote) -> dict[str, object]:
    """Return what a line says of a version; what lies next to its memory stands with the newest one."""
    memory = note.memory
    said: dict[str, object] = {
        "id": find.memory_id,
        "version": memory.version,
        "at": f"{memory.recorded_at:{_MINUTE}}",
        "did": note.action,
        "by": note.actor,
        "text": vouched(memory.content, memory.trust),
        "words": [vouched(quote.words, min(memory.trust, quote.message.trust)) for quote in note.quotes],
    }
    if note.reason:
        said["because"] = vouched(note.reason, memory.trust)
    if memory == find.head:
        said |= {"status": find.status, "replaced": find.replaced, "replaced_by": find.replaced_by}
    return said
