"""Memories, index entries and messages as hits."""

from __future__ import annotations

import json
from collections.abc import Mapping

from remegraph.models import BlockSummary, Hit, Memory, StoredMessage
from remegraph.rules.blending import Ranked
from remegraph.rules.perceiving import shown
from remegraph.rules.standing import confidence
from remegraph.rules.summarising import summary_of

__all__ = ["block_hit", "memory_hit", "message_hit", "reasons"]


def memory_hit(memory: Memory, contributions: Mapping[str, float]) -> Hit:
    """Return a memory as a hit.

    Args:
        memory: The memory.
        contributions: What its score is the sum of.
    """
    return Hit(
        kind="memory",
        record_id=memory.memory_id,
        partition=memory.partition,
        text=memory.content,
        summary=memory.summary or summary_of(memory.content),
        enforcement=memory.enforcement_level,
        score=sum(contributions.values()),
        contributions=dict(contributions),
        why=reasons(contributions),
        topic=memory.topic.key,
        time=memory.said_at,
        block_ids=memory.block_ids,
        evidence=memory.evidence,
        status=memory.status,
        version=memory.version,
        layer=memory.layer,
        trust=memory.trust,
        importance=memory.importance,
        confidence=confidence(memory.trust, memory.merges + 1, memory.status == "disputed"),
        said=memory.merges + 1,
        valid_to=memory.valid_to,
        perspective=memory.perspective,
        origin=memory.origin,
    )


def block_hit(entry: BlockSummary, contributions: Mapping[str, float]) -> Hit:
    """Return an index entry as a hit; see `memory_hit`."""
    return Hit(
        kind="block",
        record_id=entry.block_id,
        partition=entry.partition,
        text=entry.summary,
        score=sum(contributions.values()),
        contributions=dict(contributions),
        why=reasons(contributions),
        time=entry.start_time,
        trust=entry.trust,
        confidence=entry.trust,
        block_ids=(entry.block_id,),
    )


def message_hit(message: StoredMessage, ranked: Ranked) -> Hit:
    """Return a message as a hit; see `memory_hit`."""
    return Hit(
        kind="message",
        record_id=message.message_id,
        partition=message.partition,
        text=_said(message),
        score=ranked.score,
        contributions=ranked.contributions,
        why=reasons(ranked.contributions),
        time=message.time,
        trust=message.trust,
        confidence=message.trust,
        thread=message.thread,
        seq=message.seq,
    )


def _said(message: StoredMessage) -> str:
    """Return who says what, and what it asks of tools: many a request says nothing else."""
    calls = (f"{call.name}({json.dumps(call.args, ensure_ascii=False)})" for call in message.tool_calls)
    words = shown(message)
    return f"{message.speaker}: {' '.join((*([words] if words else ()), *calls))}"


def reasons(contributions: Mapping[str, float]) -> str:
    """Return in words what a score is made of, the most first."""
    parts = sorted(contributions.items(), key=lambda pair: -pair[1])
    return ", ".join(f"{name} {value:.2f}" for name, value in parts if value > 0)
