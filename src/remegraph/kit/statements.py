"""The verbs that state or take back single memories outright, beside those that learn from conversations."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Literal, get_args

from remegraph.errors import InputError, NotFoundError
from remegraph.importers.messages import MessageLike, to_messages
from remegraph.kit.base import Verbs, twin
from remegraph.kit.validation import acting, actor_of, check_text, required
from remegraph.models import (
    Category,
    ChangeSet,
    EnforcementLevel,
    Forgotten,
    Link,
    LinkType,
    Memory,
    MemoryClass,
    Partition,
    SaveResult,
    Scope,
    Shelf,
)
from remegraph.models.standing import TOMBSTONES
from remegraph.text.scripts import language_of

if TYPE_CHECKING:
    from remegraph.engine.writer import MemoryCandidate, MemoryWriter
    from remegraph.ledger.archive import Archive

__all__ = ["Statements", "tie"]

_log = logging.getLogger(__name__)


class Statements(Verbs):
    """The verbs of the kit that write one memory at a time. Each has a raw record, a block and evidence, too."""

    def remember_self(
        self,
        content: str,
        *,
        scope: Scope,
        importance: float = 0.9,
        memory_class: MemoryClass = "episodic",
        enforcement_level: EnforcementLevel | None = None,
    ) -> Memory:
        """State something that the agent knows of itself, for all its users. Stating it again changes nothing.

        Args:
            content: The statement.
            scope: Names tenant and agent; its user and project do not matter.
            importance: 0 to 1; .9 and more make it a core rule.
            memory_class: policy: a rule; only `save` with `supersedes` and `forget` take it back.
            enforcement_level: How binding a policy is: soft, or hard.

        Raises:
            InputError: The statement is no text or empty, or a field cannot be used.
            LimitError: The tenant or the user has used up what the settings' `limits` allow.
            ScopeError: The scope is missing, or names no agent.
        """
        from remegraph.engine.routes import self_topic
        from remegraph.engine.statements import Governed, remember

        parts = self._open_parts()
        check_text(content=content)
        parts.tenants.admit(acting(scope))
        content = parts.redactor.text(content)
        governed = Governed(memory_class=memory_class, enforcement_level=enforcement_level)
        governed.check(acting(scope))
        where = scope.partition().evolve(user=None, project=None)
        memory = remember(
            parts.archive,
            self._clock,
            self._new_id,
            Shelf(partition=where, topic=self_topic()),
            content,
            actor=actor_of(scope),
            recipe=self.settings.summary.recipe,
            importance=importance,
            governed=governed,
        )
        self._bring_up_to_date()
        return memory

    aremember_self = twin(remember_self)

    def save(
        self,
        key: str,
        content: str,
        *,
        scope: Scope,
        tags: Sequence[str] = (),
        importance: float = 0.5,
        topic: str | None = None,
        category: Category | None = None,
        session: str = "",
        call_id: str = "",
        by_model: bool = False,
        usage: Literal["memory", "knowledge"] | None = None,
        summary: str = "",
        memory_class: MemoryClass = "episodic",
        enforcement_level: EnforcementLevel | None = None,
        applies_to: str = "",
        canonical_topic: str = "",
        slot: str = "",
        value: str = "",
        many: bool = False,
        supersedes: Sequence[str] = (),
        sentiment: float | None = None,
        heard: Sequence[MessageLike] = (),
    ) -> SaveResult:
        """Remember one statement (F3, F4). No model is called, unless one states it and its agent's owner has rules.

        The same words, and the same value of the same slot, are merged into the memory that is there: its priority grows
        by 10, up to 200. Another value of a slot that holds one supersedes what the same user said of it before; where
        somebody else said it, or both at the same moment, both are kept, in dispute, and `kit.conflicts` has them.
        Anything else is a new memory. What is similar strictly above `merge_threshold` (the agent's, else that of the
        summary policy) is only linked with it: likeness decides nothing.

        Args:
            key: What it is about, in a few words; searched too.
            content: The statement, understandable by itself.
            scope: Whose memory.
            tags: Labels, searched too. Associative recall goes from a tag to those that stand beside it on memories.
            importance: 0 to 1, priority is 100 times that; .9 and more make it a core rule.
            topic: Key of its topic, `type:name`; the scope's user unless given.
            category: preference, fact, decision, emotion or episode; fact unless given.
            session: The session that it comes from.
            call_id: Names this call, where it may be carried out twice (as on replay): that changes nothing.
            by_model: Whether a model states it, not a person: "I" is the agent then, its words are trusted less, and it
                replaces no core rule, nor, as mere memory, any knowledge. What `extraction.never_remember` forbids is
                refused; what a person states is theirs to say.
            usage: knowledge: what is learned from conversations never changes it; memory: it may. Where none is given,
                knowledge for agents whose usage is knowledge or hybrid.
            summary: The statement in at most 50 words or Chinese characters; made by a rule unless given.
            memory_class: policy: a rule, which nothing replaces that does not name it; episodic; or mixed.
            enforcement_level: How binding a policy is: soft (unless given), or hard.
            applies_to: global, also from within a project; `project:<name>`, the scope's; or `lang:<name>`. The scope's
                project, or global, unless given.
            canonical_topic: The slot, by its name in the governance protocol.
            slot: Whose attribute it tells, as `ann:lives_in` or `database:choice`; it is never read from the words.
            value: What stands in the slot, as `Lisbon`, so that the same value is known in other words.
            many: Whether the slot holds many values at once, as `ann:likes` does: they stand side by side.
            supersedes: Memories that it replaces, by id: the only way to replace a policy.
            sentiment: How good or bad it is for whom it is about, -1 to 1; not known unless given.
            heard: What was said to the model that states it, as far as it is not recorded yet: what only a tool or a
                document says is believed no further than that, and waits for approval under .5.

        Returns:
            Whether it is new, merged or refused, into which memory, and why.

        Raises:
            InputError: The statement is empty, or a field cannot be used.
            LimitError: The tenant or the user has used up what the settings' `limits` allow.
            NotFoundError: There is no live memory of an id in `supersedes`, or it is not this user's.
            ConflictError: Other changes came first, again and again.
            ModelError: The owner has rules, and no answer said whether they let it pass; nothing was saved.
        """
        from remegraph.engine.statements import Governed
        from remegraph.engine.writer import MemoryCandidate

        for name, several, wanted in (("tags", tags, "labels"), ("supersedes", supersedes, "memory ids")):
            if isinstance(several, str):
                raise InputError(f"{name} is one text.", f"Give a list of {wanted}.")
            for one in several:
                check_text(**{name: one})
        check_text(key=key, content=content, session=session, call_id=call_id)
        check_text(summary=summary, applies_to=applies_to, slot=slot, value=value)
        check_text(canonical_topic=canonical_topic)
        if slot and canonical_topic and slot != canonical_topic:
            raise InputError("slot and canonical_topic name two slots.", "Give one of them.")
        if sentiment is not None and not -1 <= sentiment <= 1:
            raise InputError(f"The sentiment is {sentiment}.", "Give a number from -1 to 1.")
        if topic is not None:
            check_text(topic=topic)
        parts = self._open_parts()
        parts.tenants.admit(required(scope))
        told = parts.redactor.text
        candidate = MemoryCandidate(
            key=told(key.strip()),
            content=told(content.strip()),
            tags=tuple(dict.fromkeys(map(told, tags))),
            importance=importance,
            topic=topic,
            category=category,
            session=session,
            call_id=call_id,
            by_model=by_model,
            heard=to_messages(heard, thread=session or "main", default_time=self._clock(), timezone=None),
            usage=usage,
            governed=Governed(
                told(summary),
                memory_class,
                enforcement_level,
                applies_to,
                told(slot or canonical_topic),
                tuple(dict.fromkeys(supersedes)),
                told(value),
                many,
            ),
            sentiment=sentiment,
        )
        if by_model and (rule := self._broken_rule(candidate, required(scope))):
            return SaveResult(
                outcome="refused", reason=f"The owner's rules keep it out ({rule}). Do not save it again."
            )
        result = self._writer().save(candidate, required(scope))
        return result.evolve(degraded=tuple(dict.fromkeys((*result.degraded, *self._bring_up_to_date()))))

    asave = twin(save)

    def forget(self, memory_id: str, *, scope: Scope, leave: Collection[str] = (), dry_run: bool = False) -> Forgotten:
        """Take a memory back, and the words it stands on: from now on no recall, list, trace or file shows them.

        What says the same elsewhere goes with it: other memories, sentences of raw messages, what the agent answered, index
        entries of blocks. Look at it first with `dry_run`, and name in `leave` what shall stay. The rest of a message
        stays. Raw rows stay in the ledger, withheld, until `admin.erase`; `restore` brings all of it back. Forgetting it
        again changes nothing.

        Args:
            memory_id: The memory: its id, or what a context calls it.
            scope: Who asks.
            leave: Ids of memories and messages that stay as they are.
            dry_run: Whether nothing is done, and only shown what would be.

        Returns:
            What was, or would be, taken back; once it is done, no words of it.

        Raises:
            NotFoundError: There is no such memory, or it is not this user's.
            InputError: An id is no text.
            ConflictError: Other changes came first, again and again.
        """
        check_text(memory_id=memory_id, **{f"leave[{at}]": each for at, each in enumerate(leave)})
        from remegraph.engine.retrieval.hits import named

        parts = self._open_parts()
        done = parts.retraction.forget(
            named(parts.archive, parts.grants, required(scope), memory_id),
            required(scope),
            leave=leave,
            dry_run=dry_run,
            discard=self._working.discard,
        )
        if not dry_run:
            self._bring_up_to_date()
        return done

    aforget = twin(forget)

    def link(
        self,
        source_id: str,
        type: LinkType,  # noqa: A002 - as in a link
        target_id: str,
        *,
        scope: Scope,
        reason: str = "",
    ) -> Link:
        """State how one memory is tied to another; stating it again changes nothing. The journal tells who did.

        Temporal recall follows `causes`, associative recall follows every type, and a contradiction brings its
        counterpart along.

        Args:
            source_id: From this memory: the cause, of `causes`.
            type: causes, depends_on, is_a, superset_of, related, contradicts or may_contradict.
            target_id: To this memory: the effect.
            scope: Whose memories both are.
            reason: Why they are tied.

        Returns:
            The link as it stands.

        Raises:
            InputError: The type is none of these, the memories are one, or something is no text.
            NotFoundError: There is no such memory, or it is not this user's.
        """
        check_text(source_id=source_id, target_id=target_id, reason=reason)
        if type not in get_args(LinkType):
            raise InputError(f"There is no type of link {type!r}.", f"Give one of {', '.join(get_args(LinkType))}.")
        parts = self._open_parts()
        return tie(
            parts.archive,
            parts.own(required(scope)),
            Link(source_id=source_id, type=type, target_id=target_id, reason=parts.redactor.text(reason)),
            actor=actor_of(scope),
            at_home=parts.at_home(scope),
            operation_id=self._new_id(),
            now=self._clock(),
        )

    alink = twin(link)

    def _broken_rule(self, candidate: MemoryCandidate, scope: Scope) -> str:
        """Return the owner's rule that a statement of a model breaks, and count it; nothing where it breaks none."""
        from remegraph.engine.screen import broken
        from remegraph.engine.tasks import OwnerRules

        rules, parts = OwnerRules.of(self.settings.for_agent(scope.agent).extraction), self._open_parts()
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
            self.health.count("statements_refused")
            parts.telemetry.count("remegraph.memories.refused", 1)
        return rule

    def _writer(self) -> MemoryWriter:
        from remegraph.engine.writer import MemoryWriter

        parts = self._open_parts()
        return MemoryWriter(parts.archive, parts.searcher, self._clock, self._new_id, self.settings)


_STATED: frozenset[LinkType] = frozenset(get_args(LinkType)) - {"supersedes", "derived_from", "settled"}
"""The others say what a change did; stated by themselves they would be untrue."""


def tie(
    archive: Archive,
    partitions: Sequence[Partition],
    link: Link,
    *,
    actor: str,
    at_home: bool,
    operation_id: str,
    now: datetime,
) -> Link:
    """Record a link, through the one door for change; one that is there already stays as it is.

    Args:
        archive: The ledger.
        partitions: Where both memories live.
        link: The link.
        actor: Who states it.
        at_home: Whether what all agents of the user own is theirs to change.
        operation_id: Names the operation.
        now: When.

    Raises:
        InputError: The type is none that can be stated, or the memories are one.
        NotFoundError: One of the memories is not there, or gone.
    """
    if link.type not in _STATED:
        raise InputError(
            f"A link of type {link.type} is made by the change that it tells of.",
            f"Give one of {', '.join(sorted(_STATED))}; what replaces a memory, save.",
        )
    if link.source_id == link.target_id:
        raise InputError(f"Both ends are memory {link.source_id}.", "Name two memories.")
    ends = [link.source_id, link.target_id]
    found = archive.memories(partitions, ids=ends)
    there = {memory.memory_id for memory in found if memory.status not in {"deleted", *TOMBSTONES}}
    for end in ends:
        if end not in there:
            raise NotFoundError(f"There is no memory {end!r} here.")
    change = ChangeSet(operation_id=operation_id, actor=actor, recorded_at=now, at_home=at_home, links=(link,))
    archive.commit(change)
    stands = archive.links(partitions, [link.source_id], types=[link.type])
    return next(each for each in stands if each.target_id == link.target_id)
