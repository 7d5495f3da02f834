"""The row of a memory's head: what the columns beside its body say, and what full text finds it by."""

from __future__ import annotations

from typing import Any

from remegraph.language.plain import folded
from remegraph.models import Memory
from remegraph.rules.tiers import always_active
from remegraph.storage.rows import digest, micros

__all__ = ["columns", "indexed", "words"]


def words(memory: Memory) -> str:
    """Return a digest that two memories share if they say the same, case, spaces and final stop aside."""
    return digest(folded(memory.content))


def indexed(memory: Memory) -> str:
    """Return the words that full text finds a memory by."""
    return " ".join((memory.content, memory.when_to_use, *memory.tags))


def columns(memory: Memory, topic_id: int) -> dict[str, Any]:
    """Return the columns of a head, as the table `memories` has them.

    Args:
        memory: The version.
        topic_id: Number of the topic it stands on.
    """
    return {
        "topic_id": topic_id,
        "version": memory.version,
        "status": memory.status,
        "layer": memory.layer,
        "kind": memory.kind,
        "canonical_topic": memory.canonical_topic,
        "importance": memory.importance,
        "applies_to": memory.applies_to,
        "memory_class": memory.memory_class,
        "words": words(memory),
        "said_at": micros(memory.said_at),
        "recorded_at": micros(memory.recorded_at),
        "resident": always_active(memory),
        "body": memory.to_json(),
    }
