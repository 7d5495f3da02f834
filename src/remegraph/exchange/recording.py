"""The raw record of an item, and the memory that rests on it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from remegraph.exchange.weighing import Candidate, Verdict
from remegraph.models import (
    Evidence,
    Memory,
    MemoryChange,
    Message,
    Origin,
    Partition,
    Skill,
)
from remegraph.rules.origins import borne_out
from remegraph.rules.procedures import workflow
from remegraph.rules.standing import APPROVE

__all__ = ["THREAD", "Drafts", "message_of"]

THREAD = "absorbed:"
"""What the threads of raw records begin with."""

_IMPORTANCE_LIMIT = 0.89
"""Only a person of one's own makes a core rule."""


def message_of(candidate: Candidate, now: datetime) -> Message:
    """Return the raw record: the item to the letter, as a part that is no text, and an id of it as the text.

    Args:
        candidate: The item.
        now: When it is recorded.
    """
    item = {"type": "non_standard", "value": dict(candidate.offer.raw)}
    return Message(
        message_id=candidate.message_id,
        thread=f"{THREAD}{candidate.message_id}",
        role="tool",  # what others wrote
        name=candidate.offer.agent,
        content=[{"type": "text", "text": candidate.memory_id}, item],
        time=now,
    )


@dataclass
class Drafts:
    """The next versions that verdicts make, each memory once."""

    heads: dict[str, Memory]
    """Of the memories that are borne out."""
    lives_in: Partition
    now: datetime
    changes: dict[str, MemoryChange] = field(default_factory=dict)

    def add(self, verdict: Verdict, block_id: str) -> None:
        """Add what follows from a verdict.

        Args:
            verdict: One that writes.
            block_id: The block that holds its raw record.
        """
        each, name = verdict.candidate, verdict.memory_id
        planned = self.changes.get(name)
        if verdict.outcome != "corroborated":
            memory, version, action = self._new(each, block_id), 0, "create"
        elif planned is not None:
            memory, version = self._borne_out(planned.memory, each, block_id), planned.expected_version
            action = planned.action
        else:
            old = self.heads[name]
            memory, version = self._borne_out(old, each, block_id).evolve(version=old.version + 1), old.version
            action = APPROVE if memory.live and not old.live else "corroborate"
        reason = f"from {each.offer.agent}" if each.offer.agent else "from a source that nothing proves"
        self.changes[name] = MemoryChange(memory=memory, expected_version=version, action=action, reason=reason)

    def _new(self, each: Candidate, block_id: str) -> Memory:
        offer, says, skill = each.offer, each.says, each.skill
        return Memory(
            memory_id=each.memory_id,
            partition=self.lives_in,
            topic=says.topic,
            content=each.content,
            when_to_use=says.when_to_use,
            kind=says.kind,
            category="episode" if says.kind == "episode" else "fact",
            payload=workflow(_attributed(skill, offer.agent)) if skill else says.payload,
            evidence=(_evidence(each, block_id),),
            block_ids=(block_id,),
            layer="procedural" if skill else "long_term",
            status="active" if offer.believed else "quarantined",
            importance=min(offer.importance, _IMPORTANCE_LIMIT),
            resident=offer.resident,
            tags=offer.tags,
            language=says.language,
            trust=offer.trust,
            origin=offer.origin,
            source="tool-call",
            extractor=offer.origin.via,
            said_at=self.now,
            recorded_at=self.now,
        )

    def _borne_out(self, old: Memory, each: Candidate, block_id: str) -> Memory:
        """Return a memory that one more agent bears out: its words and what it replaces stay, and so does its trust.

        What waited for approval is active once a source that is believed says it, and trusted as far as that is.
        """
        released = old.status == "quarantined" and each.offer.believed
        return old.evolve(
            status="active" if released else old.status,
            trust=each.offer.trust if released else old.trust,
            origin=_joined(old.origin, each.offer.origin),
            evidence=tuple(dict.fromkeys((*old.evidence, _evidence(each, block_id)))),
            block_ids=tuple(dict.fromkeys((*old.block_ids, block_id))),
            merges=old.merges + (1 if each.offer.believed and not released else 0),
            said_at=max(old.said_at, self.now),
            recorded_at=self.now,
        )


def _evidence(each: Candidate, block_id: str) -> Evidence:
    return Evidence(message_id=each.message_id, quote=each.memory_id, block_id=block_id)


def _attributed(skill: Skill, agent: str) -> Skill:
    return skill.evolve(source=skill.source.evolve(source_agent=agent))


def _joined(own: Origin | None, other: Origin) -> Origin | None:
    """Return the origin of a memory that another source bears out; what was the agent's own stays so."""
    return None if own is None else borne_out(own, other)
