"""Gathers what is known about a memory beside what it says (memory layer RFC, section 2.9)."""

from __future__ import annotations

from remegraph.errors import NotFoundError
from remegraph.kit.reviewing import ReviewBuffer
from remegraph.models import Memory, MemoryMetadata, Reviews, Scope
from remegraph.ports import Archive, GrantBook

__all__ = ["metadata"]


def metadata(archive: Archive, grants: GrantBook, buffer: ReviewBuffer, memory_id: str, scope: Scope) -> MemoryMetadata:
    """Return a memory's metadata; reviews that are not written down yet count.

    Args:
        archive: The ledger.
        grants: What other agents let the scope read.
        buffer: Reviews that are not in it yet.
        memory_id: The memory.
        scope: Who asks.

    Raises:
        NotFoundError: The scope sees no such memory.
    """
    partitions = archive.visible(scope)
    found = archive.memories(partitions, ids=[memory_id]) or grants.memories(scope, [memory_id])
    if not found:
        raise NotFoundError(f"There is no memory {memory_id!r} here.")
    memory = found[0]
    written = archive.reviews([memory.partition], [memory_id]).get((memory.partition, memory_id), Reviews())
    counted = written.noted(review for review in buffer.waiting(memory_id) if review.partition == memory.partition)
    return MemoryMetadata(
        memory_id=memory_id,
        memory_type=memory.category,
        source_session_id=_session(archive, memory, scope),
        source_agent_id=memory.partition.agent or "",
        access_count=counted.count,
        last_accessed_at=counted.last,
        utility_score=counted.utility,
        sentiment=_sentiment(memory),
        source=memory.source,
        perspective=memory.perspective,
        extractor_model_id=memory.extractor,
        previous_version_id=_previous(memory),
    )


def _session(archive: Archive, memory: Memory, scope: Scope) -> str:
    """Return the session that was named when it was saved, else the thread of the words that it came from first."""
    named = memory.payload.get("session") if isinstance(memory.payload, dict) else None
    if named:
        return str(named)
    first = [item.message_id for item in memory.evidence[:1]]
    said = archive.messages(archive.visible(scope), ids=first) if first else ()
    return said[0].thread if said else ""


def _sentiment(memory: Memory) -> float | None:
    """Return what a model or a caller gave."""
    given = memory.payload.get("sentiment") if isinstance(memory.payload, dict) else None
    return max(-1.0, min(1.0, float(given))) if isinstance(given, int | float) else None


def _previous(memory: Memory) -> str | None:
    if memory.version > 1:
        return f"{memory.memory_id}@{memory.version - 1}"
    return memory.supersedes[0] if memory.supersedes else None
