"""Items of the MEK protocol into the ledger: a memory says from now on what its item says (K6)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from remegraph.engine.candidates import Candidate
from remegraph.engine.disputes import UPDATE, Disputes
from remegraph.engine.explicit import Stated, check_statement, closing, state
from remegraph.engine.routing import at_home, own
from remegraph.errors import ConflictError, InputError, NotFoundError
from remegraph.language.plain import plain
from remegraph.models import (
    ChangeSet,
    EpisodeContent,
    Link,
    Memory,
    MemoryChange,
    MemoryItem,
    Partition,
    ProfileContent,
    Scope,
    SemanticContent,
    WorkflowContent,
)
from remegraph.ports import Archive, Clock, NewId
from remegraph.rules.forms import importance_of, item_of, links_of, revised
from remegraph.rules.naming import operation_id
from remegraph.rules.saying import sentence
from remegraph.rules.tombstones import TOMBSTONES
from remegraph.rules.understanding import topic_of
from remegraph.settings import Settings

__all__ = ["ItemWriter", "candidate"]

_ATTEMPTS = 4
"""How often an update is made anew because another change came first."""


def candidate(item: MemoryItem) -> Candidate:
    """Return an item as a statement that the memory writer takes up.

    Args:
        item: What it says stands on the shelf of the person, or of the field, that it is about; an event, on the user's.
    """
    content = item.content
    key = ""
    if isinstance(content, ProfileContent):
        key = content.entity_name
    elif isinstance(content, SemanticContent):
        key = content.concept_name
    elif isinstance(content, WorkflowContent):
        key = content.workflow_name
    event = isinstance(content, EpisodeContent)
    return Candidate(
        key=plain(key).strip(),
        content=sentence(content).strip(),
        importance=importance_of(item.importance),
        topic=None if event else topic_of(content).key,
        category="episode" if event else None,
        item=item,
    )


@dataclass(frozen=True, slots=True)
class ItemWriter:
    """Updates memories from items."""

    archive: Archive
    disputes: Disputes
    clock: Clock
    new_id: NewId
    settings: Settings

    def known(self, memory_id: str, scope: Scope) -> Memory | None:
        """Return a memory that this user may change; none if there is no such memory, or it was deleted.

        Args:
            memory_id: The memory.
            scope: Who asks.
        """
        found = self.archive.memories(self._own(scope), ids=[memory_id])
        return found[0] if found and found[0].status not in {"deleted", *TOMBSTONES} else None

    def update(self, item: MemoryItem, scope: Scope) -> Memory:
        """Let a memory say what its item says. What the item leaves as it was stays; the same item changes nothing.

        Args:
            item: The memory's id, and all that it shall say.
            scope: Whose.

        Raises:
            InputError: The memory does not hold now, or the item says nothing.
            NotFoundError: There is no such memory, or none of an id that the item links it with.
            ConflictError: Other changes came first, again and again, or another memory says the same.
        """
        check_statement(sentence(item.content), importance_of(item.importance))
        statement_id, stated = self.new_id(), None
        for _ in range(_ATTEMPTS):
            old = self.known(item.memory_id, scope)
            if old is None:
                raise NotFoundError(f"There is no memory {item.memory_id!r} here.")
            if not old.live:
                raise InputError(f"Memory {old.memory_id!r} is {old.status}.", "Update what holds: restore it first.")
            new, links = self._revised(old, item, scope)
            if new == old and not links:
                return old
            stated = stated or self._state(new, item, statement_id, scope)
            try:
                committed, _ = self.disputes.commit(self._change(old, new, links, stated, scope))
            except ConflictError:
                continue
            return committed.changes[0].memory
        raise ConflictError([item.memory_id], "Read it again, and update it then.")

    def _revised(self, old: Memory, item: MemoryItem, scope: Scope) -> tuple[Memory, tuple[Link, ...]]:
        """Return a memory as it shall be, and the links that it has not yet."""
        mine = self._own(scope)
        links = self.archive.links(mine, [old.memory_id], live=True)
        known = {*links, *links_of(item_of(old, links))}
        new = tuple(link for link in links_of(item) if not any(_same(link, each) for each in known))
        ends = {end for link in new for end in (link.source_id, link.target_id)}
        there = {
            memory.memory_id
            for memory in self.archive.memories(mine, ids=sorted(ends))
            if memory.status not in {"deleted", *TOMBSTONES}
        }
        if missing := sorted(ends - there):
            raise NotFoundError(f"There is no memory {missing[0]!r} here.", "Link it with memories of this scope.")
        return revised(old, item, links), new

    def _state(self, new: Memory, item: MemoryItem, statement_id: str, scope: Scope) -> Stated:
        return state(
            self.archive,
            self.clock,
            scope.partition(),
            new.content,
            statement_id=statement_id,
            role="system",
            actor=scope.agent or "operator",
            recipe=self.settings.summary.recipe,
            extra={"item": json.loads(item.to_json())},
            said_at=item.timestamp,
        )

    def _change(self, old: Memory, new: Memory, links: Sequence[Link], stated: Stated, scope: Scope) -> ChangeSet:
        message = stated.message
        memory = new.evolve(
            version=old.version + 1,
            evidence=(*old.evidence, stated.evidence),
            block_ids=tuple(dict.fromkeys((*old.block_ids, stated.block.block_id))),
            trust=min(old.trust, message.trust),
            recorded_at=message.recorded_at,
        )
        summaries, work = closing(self.archive, stated, self.settings.summary.recipe)
        return ChangeSet(
            operation_id=operation_id("update", message.message_id, old.version),
            actor=scope.agent or "operator",
            recorded_at=message.recorded_at,
            at_home=at_home(scope, self.settings),
            changes=(MemoryChange(memory=memory, expected_version=old.version, action=UPDATE),),
            links=tuple(links),
            summaries=summaries,
            work=work,
        )

    def _own(self, scope: Scope) -> list[Partition]:
        return own(self.archive.visible(scope), scope, self.settings.trust_boundary)


def _same(one: Link, other: Link) -> bool:
    return (one.source_id, one.type, one.target_id) == (other.source_id, other.type, other.target_id)
