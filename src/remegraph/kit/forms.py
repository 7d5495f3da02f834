"""`kit.forms`: memories in the form of the MEK protocol, and items in this form as memories (K1, K6)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from remegraph.engine.disputes import UPDATE, Disputes
from remegraph.engine.routes import at_home, own
from remegraph.engine.statements import Stated, check_statement, closing, state
from remegraph.engine.writer import MemoryCandidate, MemoryWriter
from remegraph.errors import ConflictError, InputError, NotFoundError, SkillError
from remegraph.kit.context import Context, Facade, twin
from remegraph.kit.validation import check_text, required
from remegraph.ledger.archive import Archive
from remegraph.mek.items import read_item
from remegraph.models import (
    LIVE,
    ChangeSet,
    EpisodeContent,
    Link,
    Memory,
    MemoryChange,
    MemoryItem,
    Partition,
    ProfileContent,
    SaveResult,
    Scope,
    SemanticContent,
    Skill,
    WorkflowContent,
)
from remegraph.models.base import operation_id
from remegraph.models.forms import NOTES, content_of, importance_of, item_of, links_of, revised, skill_of, topic_of
from remegraph.models.item_text import sentence
from remegraph.models.skills import is_skill, read_workflow
from remegraph.models.standing import TOMBSTONES
from remegraph.ports import Clock, NewId
from remegraph.settings import Settings
from remegraph.text.scripts import plain

if TYPE_CHECKING:
    from remegraph.kit.components import Parts
    from remegraph.kit.skills import Skills

__all__ = ["Forms", "ItemWriter", "candidate"]


class Forms(Facade):
    """Shows memories as items, and takes items in.

    Args:
        context: What the verbs of the kit share.
        skills: Keeps workflows that can be executed.
    """

    def __init__(self, context: Context, skills: Skills) -> None:
        super().__init__(context)
        self._skills = skills

    def view(self, memory_ids: Sequence[str], *, scope: Scope) -> tuple[MemoryItem, ...]:
        """Return live memories as items, in the order given; ids of others are left out.

        Args:
            memory_ids: The memories.
            scope: Who asks.

        Raises:
            InputError: An id is no text.
        """
        if isinstance(memory_ids, str):
            raise InputError("memory_ids is one text.", "Give a list of memory ids.")
        for memory_id in memory_ids:
            check_text(memory_id=memory_id)
        archive = self._parts().archive
        visible = archive.visible(required(scope))
        if not visible or not memory_ids:
            return ()
        found = {each.memory_id: each for each in archive.memories(visible, ids=memory_ids, statuses=sorted(LIVE))}
        links = archive.links(visible, sorted(found), live=True) if found else ()
        return tuple(item_of(found[each], links) for each in dict.fromkeys(memory_ids) if each in found)

    aview = twin(view)

    def add(self, item: MemoryItem | Mapping[str, Any], *, scope: Scope) -> SaveResult:
        """Remember what an item says, as a memory with an id of its own. No model is called.

        It is held against what is known, as a statement is: see `kit.save`. The same words are one memory, and what its
        content lacks is added; nothing that was said later than the item is replaced by it. A workflow that can be
        executed and checked becomes a skill. Links to memories that are not here are left out, with a warning.

        Args:
            item: The item, or JSON in its form. Without an id, or a time, it is new, and of now.
            scope: Whose memory.

        Raises:
            InputError: It is no item, or says nothing.
            ConflictError: Other changes came first, again and again.
        """
        parts = self._parts()
        read = self._read(parts, item, memory_id=parts.new_id(), timestamp=parts.clock())
        return self._add(parts, read, required(scope))

    aadd = twin(add)

    def update(self, item: MemoryItem | Mapping[str, Any], *, scope: Scope) -> Memory:
        """Let a memory say what its item says; where there is none of its id, add it, under an id of ours.

        Nothing is overwritten: it is a new version, with the item as its evidence. What the item leaves as it was stays,
        and links stay in any case. The same item again changes nothing.

        Args:
            item: The item, or JSON in its form.
            scope: Whose memory.

        Returns:
            The memory that says it now.

        Raises:
            InputError: It is no item, says nothing, or the memory does not hold now.
            NotFoundError: It links the memory with one that is not here.
            SkillError: The memory is a skill, and could not be executed or checked so.
            ConflictError: Other changes came first, again and again, or another memory says the same.
        """
        parts = self._parts()
        read = self._read(parts, item, timestamp=parts.clock())
        writer = self._writer(parts)
        old = writer.known(read.memory_id, required(scope))
        if old is None:
            return _held(self._add(parts, read, scope))
        if is_skill(old):
            read = self._with_skill(old, read, scope)
        memory = writer.update(read, scope)
        self._follow()
        return memory

    aupdate = twin(update)

    # ------------------------------------------------------------------------------------------- inside

    def _read(self, parts: Parts, item: MemoryItem | Mapping[str, Any], **unless_given: object) -> MemoryItem:
        read = read_item(item, MemoryItem, **unless_given)
        if ours := sorted(NOTES & (read.content.model_extra or {}).keys()):
            raise InputError(f"item.content.{ours[0]} is a name of our own notes.", "Give that field another name.")
        item = MemoryItem.model_validate({name: getattr(read, name) for name in MemoryItem.model_fields})
        return parts.redactor.record(item, "content")

    def _add(self, parts: Parts, item: MemoryItem, scope: Scope) -> SaveResult:
        skill = skill_of(item.content)
        if skill is not None and (memory := self._learn(skill, scope)) is not None:
            return SaveResult(outcome="new" if memory.version == 1 else "merged", memory=memory)
        writer = MemoryWriter(parts.archive, parts.searcher, parts.clock, parts.new_id, parts.settings)
        result = writer.save(candidate(item), scope)
        return result.evolve(degraded=tuple(dict.fromkeys((*result.degraded, *self._follow()))))

    def _learn(self, skill: Skill, scope: Scope) -> Memory | None:
        """Keep a skill; none where it cannot be executed or checked: then it says in words how something is done."""
        try:
            return self._skills.add(skill, scope=scope)
        except SkillError:
            return None

    def _with_skill(self, old: Memory, item: MemoryItem, scope: Scope) -> MemoryItem:
        """Make the next version of a skill, if it changes; return the item as it stands then, with all else to be done."""
        skill, name = skill_of(item.content), read_workflow(old).name
        if skill is None or skill.name != name:
            raise SkillError(
                f"The memory holds the skill {name!r}, and the item does not.", "Keep its name and its steps' patterns."
            )
        new = self._skills.add(skill, scope=scope)
        return item.evolve(content=content_of(new), timestamp=new.said_at)

    def _writer(self, parts: Parts) -> ItemWriter:
        return ItemWriter(parts.archive, parts.disputes, parts.clock, parts.new_id, parts.settings)


def _held(result: SaveResult) -> Memory:
    """Return the memory that holds a statement.

    Raises:
        InputError: It was refused.
    """
    if result.memory is None:
        raise InputError(f"It was not taken up: {result.reason}", "Say it in other words, or leave it.")
    return result.memory


_ATTEMPTS = 4
"""How often an update is tried again because another change came first."""


def candidate(item: MemoryItem) -> MemoryCandidate:
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
    return MemoryCandidate(
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
