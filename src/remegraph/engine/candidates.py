"""A statement that someone wants remembered, and what the memory of it becomes once it is decided."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from remegraph.engine.explicit import Stated
from remegraph.engine.governed import UNGOVERNED, Governed
from remegraph.language.scripts import language_of
from remegraph.models import (
    Category,
    ChangeSet,
    Link,
    LinkType,
    Memory,
    MemoryChange,
    MemoryItem,
    SaveResult,
    Scope,
    Shelf,
)
from remegraph.rules.forms import fused, in_form, links_of, payload_of
from remegraph.rules.merging import Decision, joined
from remegraph.rules.naming import operation_id
from remegraph.rules.procedures import is_skill
from remegraph.rules.summarising import summary_of
from remegraph.settings import Perspective

__all__ = ["Candidate", "Change"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """What someone wants remembered."""

    key: str
    """What it is about, in a few words."""
    content: str
    tags: tuple[str, ...] = ()
    importance: float = 0.5
    topic: str | None = None
    """Key of its topic, `type:name`; the scope's user unless given."""
    category: Category | None = None
    session: str = ""
    call_id: str = ""
    """Names the call: the same call again changes nothing."""
    by_model: bool = False
    """Whether a model states it: it is trusted less, and replaces no core rule."""
    usage: Literal["memory", "knowledge"] | None = None
    """As what it is kept; as the agent's settings say unless given."""
    governed: Governed = UNGOVERNED
    """What it says of itself as governance has it."""
    sentiment: float | None = None
    """How good or bad it is for whom it is about, where the caller says so."""
    item: MemoryItem | None = None
    """The item whose words it is, if it is one's: the memory has its form, time and links."""

    @property
    def perspective(self) -> Perspective:
        """Whose words it is in: a model writes for itself."""
        return "first-person" if self.by_model else "third-person"

    @property
    def indexed_text(self) -> str:
        """What is embedded and searched: the content, under its key where it does not hold it."""
        return self.content if self.key.casefold() in self.content.casefold() else f"{self.key}: {self.content}"

    def actor(self, scope: Scope) -> str:
        """Return who states it."""
        return scope.agent or ("agent" if self.by_model else "operator")


@dataclass(frozen=True, slots=True)
class Change:
    """A decision, carried out on paper."""

    candidate: Candidate
    scope: Scope
    shelf: Shelf
    stated: Stated
    decision: Decision
    there: frozenset[str] = frozenset()
    """Those of the memories that its item names which are here."""

    def changes(self) -> tuple[MemoryChange, ...]:
        """Return the next versions; the first is that of the memory that holds the statement."""
        if self.decision.target is not None:
            old = self.decision.target.memory
            return (MemoryChange(memory=self._merged(old), expected_version=old.version, action="merge"),)
        new = self._new()
        retired = tuple(
            MemoryChange(
                memory=old.evolve(
                    version=old.version + 1,
                    status="superseded",
                    valid_to=old.valid_to or new.said_at,
                    recorded_at=new.recorded_at,
                ),
                expected_version=old.version,
                action="supersede",
            )
            for old in self.decision.replaced
        )
        return (MemoryChange(memory=new, expected_version=0, action="create"), *retired)

    def links(self, memory: Memory) -> tuple[Link, ...]:
        """Return the links of a memory: to those that a new one is like, and to those that its item names."""
        item = self.candidate.item
        told = links_of(item.evolve(memory_id=memory.memory_id)) if item is not None else ()
        here = {*self.there, memory.memory_id}
        return (
            *(
                Link(source_id=memory.memory_id, type="related", target_id=one.memory.memory_id, reason="similar")
                for one in self.decision.similar
            ),
            *(link for link in told if {link.source_id, link.target_id} <= here),
        )

    def result(self, committed: ChangeSet) -> SaveResult:
        """Return what was done.

        Args:
            committed: The change as it was committed, with what followed from it.
        """
        memory = committed.changes[0].memory
        target = self.decision.target
        if target is not None:
            same = memory.content == target.memory.content
            reason = "It says the same." if same else "It gives the slot the same value: both are kept in one text."
            return SaveResult(outcome="merged", memory=memory, reason=reason, similarity=target.similarity)
        return SaveResult(
            outcome="new",
            memory=memory,
            superseded=memory.supersedes,
            similar=tuple(one.memory.memory_id for one in self.decision.similar),
            contradicts=_targets(committed, "contradicts"),
            may_contradict=_targets(committed, "may_contradict"),
        )

    def _new(self) -> Memory:
        candidate, message = self.candidate, self.stated.message
        return Memory(
            memory_id=operation_id(self.shelf.to_json(), message.message_id),
            partition=self.shelf.partition,
            topic=self.shelf.topic,
            content=candidate.content,
            when_to_use="" if candidate.indexed_text == candidate.content else candidate.indexed_text,
            **self._form(),
            category=candidate.category or "fact",
            **candidate.governed.fields(candidate.content, self.shelf.partition),
            evidence=(self.stated.evidence,),
            block_ids=(self.stated.block.block_id,),
            importance=candidate.importance,
            tags=candidate.tags,
            language=language_of(candidate.content),
            trust=message.trust,
            source="tool-call",
            extractor=candidate.actor(self.scope),
            perspective=candidate.perspective,
            usage=candidate.usage or "memory",
            supersedes=tuple(old.memory_id for old in self.decision.replaced),
            said_at=message.time,
            recorded_at=message.recorded_at,
        )

    def _form(self) -> dict[str, Any]:
        """Return kind, payload and layer of a new memory."""
        candidate = self.candidate
        if candidate.item is not None:
            kind = candidate.item.memory_type
            layer = "episodic" if kind == "episode" else "long_term"
            return {"kind": kind, "payload": payload_of(candidate.item.content), "layer": layer}
        notes = {"session": candidate.session or None, "sentiment": candidate.sentiment}
        return {
            "layer": "long_term",
            "kind": "profile" if self.shelf.topic.type == "personal" else "workflow",
            "payload": {"key": candidate.key} | {name: note for name, note in notes.items() if note is not None},
        }

    def _form_of(self, old: Memory) -> dict[str, Any]:
        """Return kind and payload of a memory that an item is merged into: what both say, in the form of one type."""
        item = self.candidate.item
        if item is None or is_skill(old) or (in_form(old) is not None and old.kind != item.memory_type):
            return {}
        return {"kind": item.memory_type, "payload": fused(old.payload, payload_of(item.content))}

    def _merged(self, old: Memory) -> Memory:
        message = self.stated.message
        content = joined(old.content, self.candidate.content)
        return old.evolve(
            version=old.version + 1,
            content=content,
            summary=old.summary if content == old.content else summary_of(content),
            **self.candidate.governed.confirmed(old),
            when_to_use=old.when_to_use.replace(old.content, content),
            evidence=(*old.evidence, self.stated.evidence),
            block_ids=tuple(dict.fromkeys((*old.block_ids, self.stated.block.block_id))),
            tags=tuple(dict.fromkeys((*old.tags, *self.candidate.tags))),
            merges=old.merges + 1,
            **self._form_of(old),
            perspective=self.candidate.perspective
            if old.content != content == self.candidate.content
            else old.perspective,
            usage="knowledge" if self.candidate.usage == "knowledge" else old.usage,
            trust=old.trust if content == old.content else min(old.trust, message.trust),
            said_at=max(old.said_at, message.time),
            recorded_at=message.recorded_at,
        )


def _targets(committed: ChangeSet, kind: LinkType) -> tuple[str, ...]:
    return tuple(link.target_id for link in committed.links if link.type == kind)
