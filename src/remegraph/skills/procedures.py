"""Record skills in the ledger, stated explicitly or learned from a run, like every memory: with evidence, by one commit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from remegraph.engine.disputes import Disputes, repeated
from remegraph.engine.frame import shows_recalled
from remegraph.engine.routes import as_known, own
from remegraph.engine.slices import cut
from remegraph.engine.statements import Stated, closing, state
from remegraph.engine.trajectories import Run, contrasted, joined, read_run
from remegraph.errors import ConflictError, NotFoundError, SkillError
from remegraph.models import (
    FORGOTTEN,
    LIVE,
    ChangeSet,
    Evidence,
    Learned,
    Memory,
    MemoryChange,
    Partition,
    Scope,
    Shelf,
    Skill,
    SkillSource,
    Status,
    StoredMessage,
    Topic,
)
from remegraph.models.base import operation_id
from remegraph.models.skills import check_skill, is_skill, read_workflow, recall_text, same_procedure, workflow
from remegraph.models.standing import TOMBSTONES
from remegraph.ports import Clock
from remegraph.settings import Settings
from remegraph.text.scripts import folded, language_of, plain
from remegraph.text.sentences import summary_of

if TYPE_CHECKING:
    from remegraph.ledger.archive import Archive

__all__ = ["Attempt", "SkillWriter"]


@dataclass(frozen=True, slots=True)
class Attempt:
    """A run, and the messages that it was read from."""

    thread: str
    run: Run
    messages: tuple[StoredMessage, ...]

    @property
    def doubt(self) -> str:
        """Why what it teaches must be approved, if so: untrusted text may have led it."""
        if not self.run.requests:
            return "No person asked for this run."
        if named := self.run.named_by_results:
            return f"A result named {named} before it was called."
        return ""

    @property
    def trust(self) -> float:
        """How far it is believed: like the agent's own calls, or no more than what the tools said."""
        return min(each.trust for each in self.messages if self.doubt or each.role != "tool")


@dataclass(frozen=True, slots=True)
class _Origin:
    """Material of the next version of a skill."""

    evidence: tuple[Evidence, ...]
    block_ids: tuple[str, ...]
    trust: float
    extractor: str
    stated: Stated | None = None


class SkillWriter:
    """Writes skills, in the partition of the caller: an untried skill is never shared."""

    def __init__(self, archive: Archive, disputes: Disputes, clock: Clock, settings: Settings) -> None:
        self._archive = archive
        self._disputes = disputes
        self._clock = clock
        self._settings = settings

    def known(self, scope: Scope) -> tuple[Memory, ...]:
        """Return the live skills that are this user's."""
        found = self._archive.memories(self._own(scope), statuses=sorted(LIVE), layers=["procedural"])
        return tuple(memory for memory in found if is_skill(memory))

    def by_name(self, scope: Scope) -> dict[str, Skill]:
        """Return the live skills by name; of two with one name, that of the scope's own partition."""
        found = sorted(self.known(scope), key=lambda memory: memory.partition == scope.partition())
        return {skill.name: skill for skill in map(read_workflow, found)}

    def get(self, skill_id: str, scope: Scope) -> Memory:
        """Return a skill of this user, whatever its status.

        Raises:
            NotFoundError: There is no such skill, or it is not this user's.
        """
        found = self._archive.memories(self._own(scope), ids=[skill_id], layers=["procedural"])
        if not found or not is_skill(found[0]) or found[0].status in TOMBSTONES:
            raise NotFoundError(f"There is no skill {skill_id!r} here.")
        return found[0]

    def add(self, skill: Skill, scope: Scope) -> Memory:
        """Keep a stated skill, or make it the next version of the one that has its name.

        Raises:
            SkillError: It cannot be executed or checked.
            ConflictError: Other changes kept coming first.
        """
        check_skill(skill, self.by_name(scope))
        stated: Stated | None = None

        def act() -> Memory:
            nonlocal stated
            old = self._head(skill, scope)
            new = _next(skill, old)
            if old is not None and old.live and old.payload == workflow(new):
                return old
            stated = stated or self._state(skill, old, scope)
            origin = _Origin((stated.evidence,), (stated.block.block_id,), 1.0, scope.agent or "operator", stated)
            return self._commit(self._memory(new, old, scope, origin, "active"), scope, origin)

        return repeated(act, lost=ConflictError([_id(skill, scope)], "Add it again."))

    def attempt(self, thread: str, task: str, scope: Scope) -> Attempt:
        """Read a run from a thread: the messages that name the task, or all if none does, without recalled memory.

        Raises:
            NotFoundError: There are no messages in this thread.
        """
        found = self._archive.messages([scope.partition()], thread=thread)
        messages = tuple(message for message in found if not shows_recalled(message))
        if not messages:
            raise NotFoundError(f"There are no messages in the thread {thread!r}.", "Record the run with add_messages.")
        named = tuple(message for message in messages if folded(message.task) == folded(task))
        return Attempt(thread, read_run(named or messages), named or messages)

    def learn(self, skill: Skill, attempt: Attempt, failed: Sequence[Attempt], scope: Scope, extractor: str) -> Learned:
        """Keep what a successful run taught, compared with failed runs of the same task.

        Raises:
            SkillError: It cannot be executed or checked.
            ConflictError: Other changes kept coming first.
        """
        for each in failed:
            skill = contrasted(skill, each.run)
        agent = scope.agent or ""
        source = SkillSource(source_type="trajectory", session_id=attempt.thread, source_agent=agent)
        return self._keep(skill.evolve(source=source), attempt, scope, extractor)

    def learn_failure(self, attempt: Attempt, task: str, scope: Scope) -> Learned:
        """Compare a failed run with the most similar skill for its task, and keep the difference."""
        called = {call.tool for call in attempt.run.calls}
        if not called:
            return Learned(outcome="nothing", reason="The run made no calls.")
        known = [
            memory
            for memory in self.known(scope)
            if memory.partition == scope.partition() and folded(read_workflow(memory).task) == folded(task)
        ]
        if not known:
            return Learned(outcome="nothing", reason="There is no skill of this task to compare the failed run with.")
        memory = min(known, key=lambda each: (-len(called & _tools(read_workflow(each))), each.memory_id))
        return self._keep(contrasted(read_workflow(memory), attempt.run), attempt, scope, memory.extractor)

    def _keep(self, skill: Skill, attempt: Attempt, scope: Scope, extractor: str) -> Learned:
        """Keep what a run taught; what is in doubt waits for approval."""
        check_skill(skill, self.by_name(scope))
        evidence, block_ids = self._sources(attempt, scope.partition())
        origin = _Origin(evidence, block_ids, attempt.trust, extractor)
        status: Status = "quarantined" if attempt.doubt else "active"

        def act() -> Learned:
            old = self._head(skill, scope)
            if old is not None and old.status == FORGOTTEN and (refusal := _refusal(old, attempt.doubt)):
                return Learned(outcome="refused", reason=refusal)
            new = _next(joined(skill, read_workflow(old)) if old else skill, old)
            if old is not None:
                if old.payload == workflow(new) and (old.live or old.status == status):
                    return Learned(outcome="unchanged", skill=new, memory=old, reason="It is known as it is.")
                if refusal := _refusal(old, attempt.doubt):
                    return Learned(outcome="refused", reason=refusal)
            memory = self._commit(self._memory(new, old, scope, origin, status), scope, origin)
            outcome: Literal["new", "changed"] = "changed" if old else "new"
            reason = f"{attempt.doubt} Add the skill if it is right." if attempt.doubt else ""
            return Learned(outcome=outcome, skill=new, memory=memory, reason=reason)

        return repeated(act, lost=ConflictError([_id(skill, scope)], "Learn it again."))

    def _head(self, skill: Skill, scope: Scope) -> Memory | None:
        """Return the memory that holds the skill of this name: stated or learned here, else one that others gave."""
        found = self._archive.memories([scope.partition()], ids=[_id(skill, scope)]) or tuple(
            memory
            for memory in self.known(scope)
            if memory.partition == scope.partition() and folded(read_workflow(memory).name) == folded(skill.name)
        )
        if found and found[0].status in TOMBSTONES:
            raise SkillError(f"The skill {skill.name!r} was {found[0].status} for good.", "Give it another name.")
        return found[0] if found else None

    def _state(self, skill: Skill, old: Memory | None, scope: Scope) -> Stated:
        """Record it; what a crash left behind, or another process states at the same time, is used again."""
        return state(
            self._archive,
            self._clock,
            scope.partition(),
            recall_text(skill),
            statement_id=operation_id("skill", _id(skill, scope), old.version if old else 0, skill.to_json()),
            role="system",
            actor=scope.agent or "operator",
            recipe=self._settings.summary.recipe,
            extra={"skill": skill.model_dump(mode="json")},
        )

    def _sources(self, attempt: Attempt, partition: Partition) -> tuple[tuple[Evidence, ...], tuple[str, ...]]:
        """Return what people said in a run as evidence, and its blocks; messages that no block holds become one."""
        recipe, slicing = self._settings.summary.recipe, self._settings.slicing
        cuts = [
            each
            for tail in self._archive.tails(partition, thread=attempt.thread)
            for each in cut(tail, slicing, close=True)
        ]
        self._archive.add_blocks(partition, cuts, recipe)
        blocks = self._archive.blocks([partition], thread=attempt.thread)
        holding = {
            message.message_id: block.block_id
            for block in blocks
            for message in attempt.messages
            if block.first_seq <= message.seq <= block.last_seq
        }
        evidence = tuple(
            Evidence(message_id=message.message_id, quote=message.text, block_id=holding[message.message_id])
            for message in attempt.messages
            if message.from_user and message.text and message.message_id in holding
        )
        return evidence, tuple(dict.fromkeys(holding.values()))

    def _memory(self, skill: Skill, old: Memory | None, scope: Scope, origin: _Origin, status: Status) -> Memory:
        now = self._clock()
        evidence, block_ids, trust = (old.evidence, old.block_ids, old.trust) if old else ((), (), 1.0)
        return Memory(
            memory_id=old.memory_id if old else _id(skill, scope),
            version=old.version + 1 if old else 1,
            partition=scope.partition(),
            topic=self._topic(skill, scope.partition()),
            content=recall_text(skill),
            summary=summary_of(recall_text(skill)),
            when_to_use=plain(skill.when_to_use or skill.task),
            kind="workflow",
            payload=workflow(skill),
            evidence=tuple(dict.fromkeys((*evidence, *origin.evidence))),
            block_ids=tuple(dict.fromkeys((*block_ids, *origin.block_ids))),
            layer="procedural",
            status=status,
            importance=old.importance if old else 0.5,  # these three were decided independently of its content
            resident=old.resident if old else None,
            tags=old.tags if old else (),
            language=language_of(skill.task),
            trust=origin.trust if origin.stated else min(trust, origin.trust),
            origin=old.origin if old and not origin.stated else None,
            source="tool-call" if origin.stated else "factual",
            extractor=origin.extractor,
            said_at=now,
            recorded_at=now,
        )

    def _topic(self, skill: Skill, partition: Partition) -> Topic:
        topic = Topic(type="task", target_name=skill.domain, description=f"How to go about {skill.domain}.")
        return as_known(topic, self._archive.topics([partition]))

    def _own(self, scope: Scope) -> list[Partition]:
        return own(self._archive.visible(scope), scope, self._settings.trust_boundary)

    def _commit(self, memory: Memory, scope: Scope, origin: _Origin) -> Memory:
        stated, recipe = origin.stated, self._settings.summary.recipe
        summaries, work = closing(self._archive, stated, recipe) if stated else ((), ())
        self._disputes.commit(
            ChangeSet(
                operation_id=operation_id("skill", memory.memory_id, memory.version, memory.to_json()),
                actor=scope.agent or "operator",
                recorded_at=memory.recorded_at,
                extracted=stated is None,
                at_home=scope.agent is None,
                shelves=(Shelf(partition=memory.partition, topic=memory.topic),),
                changes=(
                    MemoryChange(
                        memory=memory,
                        expected_version=memory.version - 1,
                        action="create" if memory.version == 1 else "refine",
                    ),
                ),
                summaries=summaries,
                work=work,
            )
        )
        return memory


def _id(skill: Skill, scope: Scope) -> str:
    return operation_id(scope.partition().to_json(), "skill", folded(skill.name))


def _next(skill: Skill, old: Memory | None) -> Skill:
    """Return a skill as the next version of its head; its own version increases if it does something else."""
    if old is None:
        return skill.evolve(version=1)
    if old.status == FORGOTTEN:  # what it did is withheld
        return skill.evolve(version=old.version + 1)
    before = read_workflow(old)
    return skill.evolve(version=before.version if same_procedure(skill, before) else old.version + 1)


def _refusal(old: Memory, doubt: str) -> str:
    """Return why a run must not change what is known, or an empty text."""
    if old.status in {"deleted", "superseded"}:
        return "This skill was taken back: add it to have it again."
    return f"{doubt} It changes no skill that was approved." if doubt and old.status != "quarantined" else ""


def _tools(skill: Skill) -> set[str]:
    return {step.step_pattern.tool for step in skill.steps if step.step_pattern}
