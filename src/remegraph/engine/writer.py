"""The memory writer: a statement becomes a memory, strengthens one, replaces one, or is refused (F3, F4)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, get_args

from remegraph.engine.disputes import ATTEMPTS, Disputes
from remegraph.engine.frame import holds_recalled, shows_recalled
from remegraph.engine.origin import Sources, commands
from remegraph.engine.retrieval.search import Searcher
from remegraph.engine.routes import as_known, at_home, home, own
from remegraph.engine.schemas import Schemas
from remegraph.engine.statements import UNGOVERNED, Governed, Stated, check_statement, closing, state
from remegraph.errors import ConflictError, InputError, NotFoundError
from remegraph.models import (
    DOCUMENT,
    Category,
    ChangeSet,
    Link,
    LinkType,
    Memory,
    MemoryChange,
    MemoryItem,
    Message,
    Partition,
    Receipt,
    SaveResult,
    Scope,
    Shelf,
    StoredMessage,
    Topic,
    TopicType,
)
from remegraph.models.base import operation_id
from remegraph.models.forms import fused, in_form, links_of, named_by, payload_of
from remegraph.models.messages import TRUST_BY_ROLE
from remegraph.models.skills import is_skill
from remegraph.models.standing import QUARANTINE_BELOW, TOMBSTONES
from remegraph.models.supersession import Alike, Decision, Statement, content_digest, decide, joined, revision
from remegraph.models.tools import of_own_systems
from remegraph.ports import Clock, NewId
from remegraph.settings import AgentMemorySettings, Perspective, Settings
from remegraph.text.scripts import language_of
from remegraph.text.sentences import summary_of

if TYPE_CHECKING:
    from remegraph.ledger.archive import Archive

__all__ = ["Change", "MemoryCandidate", "MemoryWriter"]


@dataclass(frozen=True, slots=True)
class MemoryCandidate:
    """A statement to be remembered."""

    key: str
    """Its subject, in a few words."""
    content: str
    tags: tuple[str, ...] = ()
    importance: float = 0.5
    topic: str | None = None
    """Key of its topic, `type:name`; the scope's user unless given."""
    category: Category | None = None
    session: str = ""
    call_id: str = ""
    """Identifies the call: the same call again changes nothing."""
    heard: tuple[Message, ...] = ()
    """Words said to the model that states it, if the ledger does not hold them yet."""
    trust: float = 1.0
    """The most that it is believed, whoever states it."""
    by_model: bool = False
    """Whether a model states it: it is trusted less, and replaces no core rule."""
    usage: Literal["memory", "knowledge"] | None = None
    """The kind of memory; the agent's settings decide unless given."""
    governed: Governed = UNGOVERNED
    """Its governance fields."""
    sentiment: float | None = None
    """How good or bad it is for the person it is about, if the caller says so."""
    item: MemoryItem | None = None
    """The item that the words are from, if any: the memory gets its form, time and links."""

    @property
    def believed(self) -> bool:
        """Whether it holds without approval."""
        return self.trust >= QUARANTINE_BELOW

    @property
    def perspective(self) -> Perspective:
        """The voice of its words: a model writes for itself."""
        return "first-person" if self.by_model else "third-person"

    @property
    def indexed_text(self) -> str:
        """The text that is embedded and searched: the content, under its key where it does not hold it."""
        return self.content if self.key.casefold() in self.content.casefold() else f"{self.key}: {self.content}"

    def actor(self, scope: Scope) -> str:
        """Return who states it."""
        return scope.agent or ("agent" if self.by_model else "operator")


@dataclass(frozen=True, slots=True)
class Change:
    """A decision, worked out but not yet committed."""

    candidate: MemoryCandidate
    scope: Scope
    shelf: Shelf
    stated: Stated
    decision: Decision
    there: frozenset[str] = frozenset()
    """The memories named by its item that exist here."""

    def changes(self) -> tuple[MemoryChange, ...]:
        """Return the next versions; the first is that of the memory that holds the statement."""
        if self.decision.target is not None:
            old = self.decision.target.memory
            return (MemoryChange(memory=self._merged(old), expected_version=old.version, action="merge"),)
        new = self._new()
        retired = tuple(
            revision(old, new.recorded_at, "supersede", status="superseded", valid_to=old.valid_to or new.said_at)
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
        """Return what was done."""
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
            trust=min(self.candidate.trust, message.trust),
            status="active" if self.candidate.believed else "quarantined",
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
            trust=old.trust if content == old.content else min(old.trust, message.trust, self.candidate.trust),
            said_at=max(old.said_at, message.time),
            recorded_at=message.recorded_at,
        )


def _targets(committed: ChangeSet, kind: LinkType) -> tuple[str, ...]:
    return tuple(link.target_id for link in committed.links if link.type == kind)


_HEARD = 60
"""The newest messages that a model's statement is checked against."""

_LOOKED_AT = 32
"""Memories that a statement is compared with, by words and by vectors each."""


class MemoryWriter:
    """Writes single statements."""

    def __init__(self, archive: Archive, searcher: Searcher, clock: Clock, new_id: NewId, settings: Settings) -> None:
        self._archive = archive
        self._searcher = searcher
        self._disputes = Disputes(archive, searcher)
        self._clock = clock
        self._new_id = new_id
        self._settings = settings

    def save(self, candidate: MemoryCandidate, scope: Scope) -> SaveResult:
        """Remember a statement.

        Raises:
            InputError: The statement is empty, or a field cannot be used.
            ConflictError: Other changes kept coming first.
        """
        check_statement(candidate.content, candidate.importance)
        if holds_recalled(candidate.content):
            return SaveResult(outcome="refused", reason="It is recalled memory, not a statement.")
        with self._archive.session():
            return self._save(candidate, scope)

    def _save(self, candidate: MemoryCandidate, scope: Scope) -> SaveResult:
        candidate.governed.check(scope, by_model=candidate.by_model)
        agent = self._settings.for_agent(scope.agent)
        candidate = replace(candidate, usage=candidate.usage or ("memory" if agent.usage == "memory" else "knowledge"))
        given = agent.lifecycle.merge_threshold
        threshold = self._settings.summary.merge_threshold if given is None else given
        shelf = self._shelf(candidate, scope)
        candidate = self._weighed(self._typed(candidate, shelf, agent), scope, shelf.topic)
        named = self._named(candidate, scope)
        statement_id = self._statement_id(candidate, scope)
        if (done := self._done(statement_id, scope, shelf.partition)) is not None:
            return done
        there, elsewhere = self._there(candidate, scope)
        statement = self._statement(candidate)
        rivals: tuple[Memory, ...] = ()
        stated: Stated | None = None
        for attempt in range(ATTEMPTS):
            known, degraded = self._known(candidate, shelf, rivals)
            if not candidate.believed and (told := _repetition(candidate, known)):
                return SaveResult(outcome="refused", reason=told, degraded=degraded)
            known = known if candidate.believed else ()
            rivals_in_slot = (
                one.memory for one in known if one.memory.canonical_topic == statement.canonical_topic != ""
            )
            mine = self._disputes.ids_from(rivals_in_slot, scope.user)
            decision = decide(
                statement,
                known,
                threshold=threshold,
                by_person=not candidate.by_model,
                settles_knowledge=not candidate.by_model or candidate.usage == "knowledge",
                one_source=mine.__contains__,
                named=named if candidate.believed else (),
            )
            if decision.refusal:
                return SaveResult(outcome="refused", reason=decision.refusal, degraded=degraded)
            stated = stated or self._state(candidate, scope, statement_id)
            change = Change(candidate, scope, shelf, stated, decision, there)
            try:
                committed, receipt = self._commit(change, new=attempt == 0)
            except ConflictError as conflict:
                rivals = self._archive.memories([shelf.partition], ids=conflict.records)
            else:
                warnings = (*receipt.warnings, *elsewhere)
                return change.result(committed).evolve(warnings=warnings, degraded=degraded)
        raise ConflictError([memory.memory_id for memory in rivals] or [statement_id], "Save it again.")

    def _weighed(self, candidate: MemoryCandidate, scope: Scope, topic: Topic) -> MemoryCandidate:
        """Return a statement with how far it is believed: a model that repeats a page does not vouch for it.

        It is checked against the newest messages of its session, or of all sessions if it names none.
        """
        if not candidate.by_model:
            return candidate
        own, thread = scope.partition(), candidate.session or None
        held = self._archive.messages([own], thread=thread, limit=_HEARD, newest=True)
        fresh = {message.message_id for message in candidate.heard} - {""}
        now = [_stored(each, own, at, self._clock()) for at, each in enumerate(candidate.heard, start=1)]
        said = (*(each for each in held if each.message_id not in fresh), *now)
        messages = of_own_systems([each for each in said if not shows_recalled(each)], self._settings.tools.trusted)
        heard = Sources(messages, (scope.user, scope.agent or ""))
        text = f"{candidate.indexed_text} {candidate.governed.slot_value}"
        trust = heard.belief(text, topic=topic).trust
        return replace(candidate, trust=min(trust, TRUST_BY_ROLE["tool"]) if commands([text]) else trust)

    def _typed(self, candidate: MemoryCandidate, shelf: Shelf, agent: AgentMemorySettings) -> MemoryCandidate:
        """Return a statement whose slot, if it is a field of a schema, is that field with a valid value.

        Raises:
            InputError: The value is not valid for the field.
        """
        governed, schemas = candidate.governed, Schemas(agent.extraction.schemas)
        there = (each.topic for each in self._archive.topics([shelf.partition])) if governed.slot() else ()
        found = schemas.field(governed.slot(), (shelf.topic, *there))
        if found is None:
            return candidate
        try:
            found.field.read(governed.slot_value)
        except ValueError as error:
            raise InputError(
                f"{governed.slot_value!r} is no value of {found.slot}: {error}.",
                f"Give value so: {found.field.form}; or leave slot and value out.",
            ) from error
        governed = replace(governed, canonical_topic=found.slot, slot_many=found.field.many)
        return replace(candidate, governed=governed)

    def _shelf(self, candidate: MemoryCandidate, scope: Scope) -> Shelf:
        where = candidate.governed.place(home(scope, self._settings.trust_boundary))
        key = candidate.topic or f"personal:{scope.user}"
        kind, _, name = key.partition(":")
        if kind not in get_args(TopicType) or not name.strip():
            raise InputError(f"{key!r} names no topic.", "Write it as type:name, as in task:deploy.")
        if candidate.category not in {None, *get_args(Category)}:
            raise InputError(f"There is no category {candidate.category!r}.", f"Give one of {get_args(Category)}.")
        if candidate.usage not in {None, "memory", "knowledge"}:
            raise InputError(f"There is no usage {candidate.usage!r}.", "Give memory or knowledge.")
        if kind == "self":
            raise InputError("The agent's memory of itself is shared by all its users.", "Use remember_self.")
        topic = Topic.model_validate({"type": kind, "target_name": name.strip()})
        return Shelf(partition=where, topic=as_known(topic, self._archive.topics([where])))

    def _own(self, scope: Scope) -> list[Partition]:
        return own(self._archive.visible(scope), scope, self._settings.trust_boundary)

    def _named(self, candidate: MemoryCandidate, scope: Scope) -> tuple[Memory, ...]:
        """Return the memories that the statement is to replace; they may be in another project, or in none."""
        if not (ids := candidate.governed.supersedes):
            return ()
        found = {memory.memory_id: memory for memory in self._archive.memories(self._own(scope), ids=ids)}
        for memory_id in ids:
            if memory_id not in found or not found[memory_id].live:
                raise NotFoundError(f"There is no live memory {memory_id!r} here.")
        return tuple(found[memory_id] for memory_id in ids)

    def _there(self, candidate: MemoryCandidate, scope: Scope) -> tuple[frozenset[str], tuple[str, ...]]:
        """Return the memories named by an item that exist here, and a warning about the others."""
        if candidate.item is None or not (ids := named_by(candidate.item)):
            return frozenset(), ()
        found = self._archive.memories(self._own(scope), ids=sorted(ids))
        there = frozenset(memory.memory_id for memory in found if memory.status not in {"deleted", *TOMBSTONES})
        missing = sorted(ids - there)
        warning = f"It is linked with memories that are not here: {', '.join(missing)}."
        return there, (warning,) if missing else ()

    def _statement_id(self, candidate: MemoryCandidate, scope: Scope) -> str:
        if not candidate.call_id:
            return self._new_id()
        return operation_id("call", scope.to_json(), candidate.call_id, candidate.key, candidate.content)

    def _done(self, statement_id: str, scope: Scope, where: Partition) -> SaveResult | None:
        """Return the result of this same call from before, if there was one."""
        own = scope.partition()
        if not (stored := self._archive.messages([own], ids=[statement_id])):
            return None
        blocks = [block.block_id for block in self._archive.blocks([own], thread=stored[0].thread)]
        for memory in self._archive.memories([where], block_ids=blocks) if blocks else ():
            evidence = [item.message_id for item in memory.evidence]
            if statement_id in evidence:
                outcome: Literal["new", "merged"] = "new" if evidence[0] == statement_id else "merged"
                return SaveResult(outcome=outcome, memory=memory, reason="This call was carried out before.")
        return None

    def _statement(self, candidate: MemoryCandidate) -> Statement:
        governed = candidate.governed
        said_at = candidate.item.timestamp if candidate.item else self._clock()
        return Statement(candidate.content, said_at, governed.slot(), governed.slot_value, governed.slot_many)

    def _known(
        self, candidate: MemoryCandidate, shelf: Shelf, rivals: Sequence[Memory]
    ) -> tuple[tuple[Alike, ...], tuple[str, ...]]:
        """Return what the statement is compared with: its slot, and its shelf, or all persons of the partition."""
        found, degraded = self._searcher.alike(shelf.partition, candidate.indexed_text, _LOOKED_AT)
        ids = {one.memory.memory_id for one in found}
        slot = candidate.governed.slot()
        more = [*rivals, *(self._archive.memories([shelf.partition], canonical_topics=[slot]) if slot else ())]
        found += tuple(Alike(memory, None) for memory in more if memory.live and memory.memory_id not in ids)
        anywhere = candidate.topic is None and shelf.partition.user is not None
        mine = (shelf.topic.type, shelf.topic.target)
        return tuple(
            one
            for one in found
            if (one.memory.topic.type, one.memory.topic.target) == mine
            or (anywhere and one.memory.topic.type == "personal")
            or (slot and one.memory.canonical_topic == slot)
        ), degraded

    def _state(self, candidate: MemoryCandidate, scope: Scope, statement_id: str) -> Stated:
        return state(
            self._archive,
            self._clock,
            scope.partition(),
            candidate.content,
            statement_id=statement_id,
            role="assistant" if candidate.by_model else "system",
            actor=candidate.actor(scope),
            recipe=self._settings.summary.recipe,
            extra={
                "key": candidate.key,
                "tags": list(candidate.tags),
                "session": candidate.session,
                **({} if candidate.believed else {DOCUMENT: True}),
                **({"item": json.loads(candidate.item.to_json())} if candidate.item else {}),
            },
            said_at=candidate.item.timestamp if candidate.item else None,
        )

    def _commit(self, change: Change, *, new: bool) -> tuple[ChangeSet, Receipt]:
        stated, recipe = change.stated, self._settings.summary.recipe
        changes = change.changes()
        summaries, work = closing(self._archive, stated, recipe, new=new)
        return self._disputes.commit(
            ChangeSet(
                operation_id=operation_id("save", stated.message.message_id),
                actor=change.candidate.actor(change.scope),
                recorded_at=stated.message.recorded_at,
                at_home=at_home(change.scope, self._settings),
                shelves=(change.shelf,),
                changes=changes,
                links=change.links(changes[0].memory),
                summaries=summaries,
                work=work,
            )
        )


def _repetition(candidate: MemoryCandidate, known: Sequence[Alike]) -> str:
    """Return why an untrusted statement is not kept: a memory already says it; empty if none does."""
    digest = content_digest(candidate.content)
    twin = next((one.memory for one in known if content_digest(one.memory.content) == digest), None)
    return f"Memory {twin.memory_id} says it already, and a tool or a document says no more." if twin else ""


def _stored(message: Message, partition: Partition, seq: int, now: datetime) -> StoredMessage:
    """Return a message as the ledger will show it."""
    fields = {name: getattr(message, name) for name in Message.model_fields}
    return StoredMessage.model_validate({**fields, "partition": partition, "seq": seq, "recorded_at": now})
