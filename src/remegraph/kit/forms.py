"""`kit.forms`: memories in the form of the MEK protocol, and items in this form as memories (K1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from remegraph.errors import InputError, SkillError
from remegraph.kit.calling import check_text, required, twin
from remegraph.kit.facade import Access, Facade
from remegraph.models import LIVE, Memory, MemoryItem, SaveResult, Scope, Skill

if TYPE_CHECKING:
    from remegraph.engine.forming import ItemWriter
    from remegraph.kit.parts import Parts
    from remegraph.kit.skills import Skills

__all__ = ["Forms"]


class Forms(Facade):
    """Shows memories as items, and takes items in.

    Args:
        access: To the kit.
        skills: Keeps workflows that can be executed.
    """

    def __init__(self, access: Access, skills: Skills) -> None:
        super().__init__(access)
        self._skills = skills

    def view(self, memory_ids: Sequence[str], *, scope: Scope) -> tuple[MemoryItem, ...]:
        """Return live memories as items, in the order given; ids of others are left out.

        Args:
            memory_ids: The memories.
            scope: Who asks.

        Raises:
            InputError: An id is no text.
        """
        from remegraph.rules.forms import item_of

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
            SkillError: The memory is a skill, and nobody could execute or check it so.
            ConflictError: Other changes came first, again and again, or another memory says the same.
        """
        from remegraph.rules.procedures import is_skill

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
        from remegraph.exchange.perceiving import read_item
        from remegraph.rules.forms import NOTES

        read = read_item(item, MemoryItem, **unless_given)
        if ours := sorted(NOTES & (read.content.model_extra or {}).keys()):
            raise InputError(f"item.content.{ours[0]} is a name of our own notes.", "Give that field another name.")
        item = MemoryItem.model_validate({name: getattr(read, name) for name in MemoryItem.model_fields})
        return parts.redactor.record(item, "content")

    def _add(self, parts: Parts, item: MemoryItem, scope: Scope) -> SaveResult:
        from remegraph.engine.forming import candidate
        from remegraph.engine.saving import MemoryWriter
        from remegraph.rules.forms import skill_of

        skill = skill_of(item.content)
        if skill is not None and (memory := self._learn(skill, scope)) is not None:
            return SaveResult(outcome="new" if memory.version == 1 else "merged", memory=memory)
        writer = MemoryWriter(parts.archive, parts.searcher, parts.clock, parts.new_id, parts.settings)
        result = writer.save(candidate(item), scope)
        return result.evolve(degraded=tuple(dict.fromkeys((*result.degraded, *self._follow()))))

    def _learn(self, skill: Skill, scope: Scope) -> Memory | None:
        """Keep a skill; none where nobody could execute or check it: then it tells in words how something is done."""
        try:
            return self._skills.add(skill, scope=scope)
        except SkillError:
            return None

    def _with_skill(self, old: Memory, item: MemoryItem, scope: Scope) -> MemoryItem:
        """Make the next version of a skill, if it changes; return the item as it stands then, with all else to be done."""
        from remegraph.rules.forms import content_of, skill_of
        from remegraph.rules.procedures import read_workflow

        skill, name = skill_of(item.content), read_workflow(old).name
        if skill is None or skill.name != name:
            raise SkillError(
                f"The memory holds the skill {name!r}, and the item does not.", "Keep its name and its steps' patterns."
            )
        new = self._skills.add(skill, scope=scope)
        return item.evolve(content=content_of(new), timestamp=new.said_at)

    def _writer(self, parts: Parts) -> ItemWriter:
        from remegraph.engine.forming import ItemWriter

        return ItemWriter(parts.archive, parts.disputes, parts.clock, parts.new_id, parts.settings)


def _held(result: SaveResult) -> Memory:
    """Return the memory that holds a statement.

    Raises:
        InputError: It was refused.
    """
    if result.memory is None:
        raise InputError(f"It was not taken up: {result.reason}", "Say it in other words, or leave it.")
    return result.memory
