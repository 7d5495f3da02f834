"""The memory writer: what someone wants remembered becomes a memory, strengthens one, replaces one, or is refused (F3, F4)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, get_args

from remegraph.engine.candidates import Candidate, Change
from remegraph.engine.disputes import Disputes
from remegraph.engine.explicit import Stated, check_statement, closing, state
from remegraph.engine.routing import as_known, at_home, home, own
from remegraph.engine.search import Searcher
from remegraph.errors import ConflictError, InputError, NotFoundError
from remegraph.models import (
    Category,
    ChangeSet,
    Memory,
    Partition,
    Receipt,
    SaveResult,
    Scope,
    Shelf,
    Topic,
    TopicType,
)
from remegraph.ports import Archive, Clock, NewId
from remegraph.rules.context import holds_recalled
from remegraph.rules.forms import named_by
from remegraph.rules.merging import Alike, decide
from remegraph.rules.naming import operation_id
from remegraph.rules.slots import Statement
from remegraph.rules.tombstones import TOMBSTONES
from remegraph.settings import Settings

__all__ = ["MemoryWriter"]

_ATTEMPTS = 4
"""How often a change is decided anew because another one came first."""

_LOOKED_AT = 32
"""Memories that a statement is compared with, by words and by vectors each."""


class MemoryWriter:
    """Writes single statements.

    Args:
        archive: The ledger.
        searcher: Finds what is like a statement.
        clock: Tells the time.
        new_id: Makes ids.
        settings: Threshold, recipe, and where memories live.
    """

    def __init__(self, archive: Archive, searcher: Searcher, clock: Clock, new_id: NewId, settings: Settings) -> None:
        self._archive = archive
        self._searcher = searcher
        self._disputes = Disputes(archive, searcher)
        self._clock = clock
        self._new_id = new_id
        self._settings = settings

    def save(self, candidate: Candidate, scope: Scope) -> SaveResult:
        """Remember a statement.

        Args:
            candidate: The statement.
            scope: Whose.

        Raises:
            InputError: The statement is empty, or a field cannot be used.
            ConflictError: Other changes came first, again and again.
        """
        check_statement(candidate.content, candidate.importance)
        if holds_recalled(candidate.content):
            return SaveResult(outcome="refused", reason="It is recalled memory, and no statement of anybody.")
        candidate.governed.check(scope, by_model=candidate.by_model)
        agent = self._settings.for_agent(scope.agent)
        candidate = replace(candidate, usage=candidate.usage or ("memory" if agent.usage == "memory" else "knowledge"))
        given = agent.lifecycle.merge_threshold
        threshold = self._settings.summary.merge_threshold if given is None else given
        shelf = self._shelf(candidate, scope)
        named = self._named(candidate, scope)
        statement_id = self._statement_id(candidate, scope)
        if (done := self._done(statement_id, scope, shelf.partition)) is not None:
            return done
        there, elsewhere = self._there(candidate, scope)
        statement = self._statement(candidate)
        rivals: tuple[Memory, ...] = ()
        stated: Stated | None = None
        for _ in range(_ATTEMPTS):
            known, degraded = self._known(candidate, shelf, rivals)
            decision = decide(
                statement,
                known,
                threshold=threshold,
                by_person=not candidate.by_model,
                settles_knowledge=not candidate.by_model or candidate.usage == "knowledge",
                one_source=lambda memory: self._disputes.told_by(memory, scope.user),
                named=named,
            )
            if decision.refusal:
                return SaveResult(outcome="refused", reason=decision.refusal, degraded=degraded)
            stated = stated or self._state(candidate, scope, statement_id)
            change = Change(candidate, scope, shelf, stated, decision, there)
            try:
                committed, receipt = self._commit(change)
            except ConflictError as conflict:
                rivals = self._archive.memories([shelf.partition], ids=conflict.records)
            else:
                warnings = (*receipt.warnings, *elsewhere)
                return change.result(committed).evolve(warnings=warnings, degraded=degraded)
        raise ConflictError([memory.memory_id for memory in rivals] or [statement_id], "Save it again.")

    def _shelf(self, candidate: Candidate, scope: Scope) -> Shelf:
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

    def _named(self, candidate: Candidate, scope: Scope) -> tuple[Memory, ...]:
        """Return the memories that the statement shall replace; they may live in another project than it, or in none."""
        if not (ids := candidate.governed.supersedes):
            return ()
        found = {memory.memory_id: memory for memory in self._archive.memories(self._own(scope), ids=ids)}
        for memory_id in ids:
            if memory_id not in found or not found[memory_id].live:
                raise NotFoundError(f"There is no live memory {memory_id!r} here.")
        return tuple(found[memory_id] for memory_id in ids)

    def _there(self, candidate: Candidate, scope: Scope) -> tuple[frozenset[str], tuple[str, ...]]:
        """Return which of the memories that an item names are here, and a warning about the others."""
        if candidate.item is None or not (ids := named_by(candidate.item)):
            return frozenset(), ()
        found = self._archive.memories(self._own(scope), ids=sorted(ids))
        there = frozenset(memory.memory_id for memory in found if memory.status not in {"deleted", *TOMBSTONES})
        missing = sorted(ids - there)
        warning = f"It is linked with memories that are not here: {', '.join(missing)}."
        return there, (warning,) if missing else ()

    def _statement_id(self, candidate: Candidate, scope: Scope) -> str:
        if not candidate.call_id:
            return self._new_id()
        return operation_id("call", scope.to_json(), candidate.call_id, candidate.key, candidate.content)

    def _done(self, statement_id: str, scope: Scope, where: Partition) -> SaveResult | None:
        """Return what this very call did before, if it did."""
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

    def _statement(self, candidate: Candidate) -> Statement:
        governed = candidate.governed
        said_at = candidate.item.timestamp if candidate.item else self._clock()
        return Statement(candidate.content, said_at, governed.slot(), governed.slot_value, governed.slot_many)

    def _known(
        self, candidate: Candidate, shelf: Shelf, rivals: Sequence[Memory]
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

    def _state(self, candidate: Candidate, scope: Scope, statement_id: str) -> Stated:
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
                **({"item": json.loads(candidate.item.to_json())} if candidate.item else {}),
            },
            said_at=candidate.item.timestamp if candidate.item else None,
        )

    def _commit(self, change: Change) -> tuple[ChangeSet, Receipt]:
        stated, recipe = change.stated, self._settings.summary.recipe
        changes = change.changes()
        summaries, work = closing(self._archive, stated, recipe)
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
