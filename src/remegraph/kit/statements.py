"""The verbs that state or take back single memories outright, in words or in the form of the MEK protocol (K1, K6)."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from remegraph.engine.owner_rules import broken
from remegraph.engine.retrieval.hits import named
from remegraph.engine.routes import self_topic
from remegraph.engine.statements import Governed, remember
from remegraph.engine.summary_tasks import OwnerRules
from remegraph.engine.writer import MemoryCandidate, MemoryWriter
from remegraph.errors import InputError, SkillError
from remegraph.importers.messages import MessageLike, to_messages
from remegraph.kit.facade import Context, Facade, twin
from remegraph.kit.validation import acting, actor_of, check_text, required
from remegraph.mek.absorption import ItemWriter, candidate
from remegraph.mek.items import read_item
from remegraph.models import (
    LIVE,
    Category,
    EnforcementLevel,
    Forgotten,
    Memory,
    MemoryClass,
    MemoryItem,
    SaveResult,
    Scope,
    Shelf,
    Skill,
)
from remegraph.models.forms import NOTES, content_of, item_of, skill_of
from remegraph.models.skills import is_skill, read_workflow
from remegraph.text.scripts import language_of

if TYPE_CHECKING:
    from remegraph.kit.components import Parts
    from remegraph.kit.skills import Skills

__all__ = ["Forms", "SaveOptions", "Statements"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class SaveOptions:
    """Options that few callers need to save a statement."""

    session: str = ""
    """The session that it comes from."""
    call_id: str = ""
    """Names this call, where it may be carried out twice (as on replay): that changes nothing."""
    by_model: bool = False
    """Whether a model states it, not a person: "I" is the agent then, its words are trusted less, and it replaces no
    core rule, nor, as mere memory, any knowledge. What `extraction.never_remember` forbids is refused; what a person
    states is theirs to say."""
    usage: Literal["memory", "knowledge"] | None = None
    """`knowledge`: what is learned from conversations never changes it; `memory`: it may. Where none is given, knowledge
    for agents whose usage is knowledge or hybrid."""
    summary: str = ""
    """The statement in at most 50 words or Chinese characters; made by a rule unless given."""
    enforcement_level: EnforcementLevel | None = None
    """How binding a policy is: soft (unless given), or hard."""
    applies_to: str = ""
    """`global`, also from within a project; `project:<name>`, the scope's; or `lang:<name>`. The scope's project, or
    global, unless given."""
    canonical_topic: str = ""
    """The slot, by its name in the governance protocol."""
    many: bool = False
    """Whether the slot holds many values side by side, as `ann:likes` does."""
    sentiment: float | None = None
    """How good or bad it is for whom it is about, -1 to 1; not known unless given."""
    heard: Sequence[MessageLike] = ()
    """What was said to the model that states it, as far as it is not recorded yet: what only a tool or a document
    says is trusted no further than that, and waits for approval under .5."""


class Statements(Facade):
    """Writes one memory at a time. Each has a raw record, a block and evidence, too."""

    def remember_self(
        self,
        content: str,
        *,
        scope: Scope,
        importance: float = 0.9,
        memory_class: MemoryClass = "episodic",
        enforcement_level: EnforcementLevel | None = None,
    ) -> Memory:
        """State something that the agent knows of itself, for all its users; see `MemoryKit.remember_self`."""
        parts = self._parts()
        check_text(content=content)
        parts.tenants.admit(acting(scope))
        content = parts.redactor.text(content)
        governed = Governed(memory_class=memory_class, enforcement_level=enforcement_level)
        governed.check(acting(scope))
        where = scope.partition().evolve(user=None, project=None)
        memory = remember(
            parts.archive,
            self._context.clock,
            self._context.new_id,
            Shelf(partition=where, topic=self_topic()),
            content,
            actor=actor_of(scope),
            recipe=self._settings.summary.recipe,
            importance=importance,
            governed=governed,
        )
        self._follow()
        return memory

    def save(
        self,
        key: str,
        content: str,
        *,
        scope: Scope,
        tags: Sequence[str],
        importance: float,
        topic: str | None,
        category: Category | None,
        slot: str,
        value: str,
        memory_class: MemoryClass,
        supersedes: Sequence[str],
        options: SaveOptions,
    ) -> SaveResult:
        """Remember one statement; see `MemoryKit.save`."""
        _check(
            key=key,
            content=content,
            slot=slot,
            value=value,
            tags=tags,
            topic=topic,
            supersedes=supersedes,
            options=options,
        )
        parts = self._parts()
        parts.tenants.admit(required(scope))
        told = parts.redactor.text
        candidate = MemoryCandidate(
            key=told(key.strip()),
            content=told(content.strip()),
            tags=tuple(dict.fromkeys(map(told, tags))),
            importance=importance,
            topic=topic,
            category=category,
            session=options.session,
            call_id=options.call_id,
            by_model=options.by_model,
            heard=to_messages(
                options.heard, thread=options.session or "main", default_time=self._context.clock(), timezone=None
            ),
            usage=options.usage,
            governed=Governed(
                told(options.summary),
                memory_class,
                options.enforcement_level,
                options.applies_to,
                told(slot or options.canonical_topic),
                tuple(dict.fromkeys(supersedes)),
                told(value),
                options.many,
            ),
            sentiment=options.sentiment,
        )
        if options.by_model and (rule := self._broken_rule(candidate, required(scope))):
            return SaveResult(
                outcome="refused", reason=f"The owner's rules keep it out ({rule}). Do not save it again."
            )
        result = self._writer().save(candidate, required(scope))
        return result.evolve(degraded=tuple(dict.fromkeys((*result.degraded, *self._follow()))))

    def forget(self, memory_id: str, *, scope: Scope, leave: Collection[str] = (), dry_run: bool = False) -> Forgotten:
        """See `MemoryKit.forget`."""
        check_text(memory_id=memory_id, **{f"leave[{at}]": each for at, each in enumerate(leave)})
        parts = self._parts()
        done = parts.retraction.forget(
            named(parts.archive, parts.grants, required(scope), memory_id),
            required(scope),
            leave=leave,
            dry_run=dry_run,
            discard=self._context.in_mind.discard,
        )
        if not dry_run:
            self._follow()
        return done

    def _broken_rule(self, candidate: MemoryCandidate, scope: Scope) -> str:
        """Return the owner's rule that a statement of a model breaks, and count it; nothing where it breaks none."""
        rules, parts = OwnerRules.of(self._settings.for_agent(scope.agent).extraction), self._parts()
        if not rules:
            return ""
        governed = candidate.governed
        texts = (
            candidate.key,
            candidate.content,
            *candidate.tags,
            governed.summary,
            governed.slot(),
            governed.slot_value,
        )
        language = language_of(candidate.content)
        with parts.meter(scope.partition()) as meter:
            rule = broken(rules, (candidate.topic or "", *texts), language, parts.thinkers.of(scope.agent), meter)
        if rule:
            self._context.health.count("statements_refused")
            parts.telemetry.count("remegraph.memories.refused", 1)
        return rule

    def _writer(self) -> MemoryWriter:
        parts = self._parts()
        return MemoryWriter(parts.archive, parts.searcher, self._context.clock, self._context.new_id, self._settings)


def _check(
    *,
    key: str,
    content: str,
    slot: str,
    value: str,
    tags: Sequence[str],
    topic: str | None,
    supersedes: Sequence[str],
    options: SaveOptions,
) -> None:
    if not isinstance(options, SaveOptions):
        raise InputError(f"options is of type {type(options).__name__}.", "Give SaveOptions.")
    for name, several, wanted in (("tags", tags, "labels"), ("supersedes", supersedes, "memory ids")):
        if isinstance(several, str):
            raise InputError(f"{name} is one text.", f"Give a list of {wanted}.")
        for one in several:
            check_text(**{name: one})
    check_text(key=key, content=content, session=options.session, call_id=options.call_id)
    check_text(summary=options.summary, applies_to=options.applies_to, slot=slot, value=value)
    check_text(canonical_topic=options.canonical_topic)
    if slot and options.canonical_topic and slot != options.canonical_topic:
        raise InputError("slot and canonical_topic name two slots.", "Give one of them.")
    if options.sentiment is not None and not -1 <= options.sentiment <= 1:
        raise InputError(f"The sentiment is {options.sentiment}.", "Give a number from -1 to 1.")
    if topic is not None:
        check_text(topic=topic)


# ------------------------------------------------------------------------------------------- forms


class Forms(Facade):
    """Shows memories as items, and saves items.

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

        It is compared with what is known, as a statement is: see `kit.save`. The same words are one memory, and what its
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
        """Update a memory to say what its item says; where its id is unknown, add it under a new id.

        Nothing is overwritten: it is a new version, with the item as its evidence. What the item does not change stays,
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
            raise InputError(
                f"item.content.{ours[0]} is a name that remegraph uses itself.", "Give that field another name."
            )
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
        """Keep a skill; return none where it cannot be executed or checked and only describes how something is done."""
        try:
            return self._skills.add(skill, scope=scope)
        except SkillError:
            return None

    def _with_skill(self, old: Memory, item: MemoryItem, scope: Scope) -> MemoryItem:
        """Make the next version of a skill, if it changes; return the item as it is then, with everything else to be done."""
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
        raise InputError(f"It was not saved: {result.reason}", "Say it in other words, or leave it.")
    return result.memory
