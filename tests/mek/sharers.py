"""Agents of one person who learn from each other, and short ways to what they give."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from remegraph import MemoryKit, Scope
from remegraph.mek.items import item_digest, knowledge_id
from remegraph.models import Absorbed, Absorption, KnowledgeItem, Memory, SharedItem
from tests.talk import NOON, packed

__all__ = ["TRUST", "Household", "knows"]

TRUST = {"scout": 0.9, "clerk": 0.7, "shady": 0.2}
"""How far the agents are believed."""

_NUMBERS = itertools.count(1)


def knows(
    kind: str, content: Mapping[str, Any], agent: str = "scout", title: str = "", **metadata: Any
) -> KnowledgeItem:
    """A knowledge item."""
    return KnowledgeItem.model_validate(
        {
            "knowledge_id": knowledge_id(kind, content),  # type: ignore[arg-type]
            "title": title or "What is known",
            "content": dict(content),
            "source_memory_type": kind,
            "source_agent": agent,
            "created_at": NOON,
            "metadata": metadata,
        }
    )


def fact(concept: str, agent: str = "scout", domain: str = "shop", **properties: str) -> KnowledgeItem:
    """What is so of something."""
    content = {"concept_name": concept, "generalized_properties": properties, "domain": domain}
    return knows("semantic", content, agent)


def steps(task: str, *names: str, agent: str = "scout", **more: Any) -> KnowledgeItem:
    """How something is done, in words."""
    told = [{"name": name, "description": f"{name} it"} for name in names]
    return knows("workflow", {"task_description": task, "workflow_name": task, "steps": told, **more}, agent)


@dataclass
class Household:
    """A person whom nobody has met before, and one of their agents: bee."""

    kit: MemoryKit
    scope: Scope = field(default_factory=lambda: Scope(user=f"ann{next(_NUMBERS)}", agent="bee"))

    def shares(self, *items: KnowledgeItem) -> tuple[KnowledgeItem, ...]:
        """Let the agents that the items name share them, as the ledger notes it; return the items."""
        archive = self.kit.context.parts().archive
        for item in items:
            sharer = self.scope.evolve(agent=item.source_agent).partition()
            note = SharedItem(
                knowledge_id=item.knowledge_id, digest=item_digest(item), agent=item.source_agent, at=NOON
            )
            archive.add_shared(sharer, [note])
        return items

    def absorbs(self, *items: KnowledgeItem) -> Absorption:
        """Let the agents share items, and bee absorb them."""
        return self.kit.knowledge.absorb(self.shares(*items), scope=self.scope)

    def absorb(self, item: KnowledgeItem) -> Absorbed:
        """Let bee absorb one item that its agent shares."""
        (done,) = self.absorbs(item).items
        return done

    def memory(self, memory_id: str) -> Memory:
        """The head of a memory, whatever its status."""
        found = self.kit.context.parts().archive.memories([self.scope.partition()], ids=[memory_id])
        return found[0]

    def saved(self, content: str, **fields: Any) -> Memory:
        """Let the person have bee remember something."""
        memory = self.kit.save("note", content, scope=self.scope, **packed(fields)).memory
        assert memory is not None
        return memory

    def heads(self) -> dict[str, str]:
        """All of bee's memories, of any status, with what they hold."""
        found = self.kit.context.parts().archive.memories([self.scope.partition()])
        return {memory.memory_id: memory.to_json() for memory in found}

    def rows(self) -> dict[str, int]:
        """How many rows bee's partition has in each table."""
        return dict(self.kit.context.parts().archive.counts([self.scope.partition()]))
