"""From a decision to the next versions of memories: evidence, trust, layer and links follow from code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Literal

from remegraph.engine.tasks import Operation, ProposeTask, Voice
from remegraph.language.plain import plain
from remegraph.models import Category, Evidence, Link, LinkType, Memory, MemoryChange
from remegraph.rules.disputes import disputed
from remegraph.rules.duplicates import content_digest
from remegraph.rules.naming import operation_id
from remegraph.rules.slots import holds, relation
from remegraph.rules.standing import QUARANTINE_BELOW
from remegraph.rules.tainting import trust_of_evidence

__all__ = ["COUNTED_TRUST", "Writer"]

COUNTED_TRUST = 0.8
"""Trust of what code itself counted over tool calls; the words of a tool are believed less."""

_IMPORTANCE_LIMIT = 0.89
"""Only a person or an explicit call sets .9 or more (core rules)."""


class Writer:
    """Writes the changes of one Sub Agent on one block. What is firm stays as it is, whatever the block says.

    Args:
        task: What the Sub Agent was asked.
        extractor: Who decides: the model's name, or `extractive`.
        voice: How it is written.
        prompt: Digest of the prompt that the model was asked with.
    """

    def __init__(self, task: ProposeTask, extractor: str, voice: Voice, prompt: str = "") -> None:
        self._task = task
        self._extractor = extractor
        self._voice = voice
        self._firm = [memory for memory in task.similar if memory.firm]
        self._prompt = prompt
        self._by_id = {message.message_id: message for message in task.messages}
        self.changes: list[MemoryChange] = []
        self.links: list[Link] = []
        self.notes: list[str] = []
        """What was wanted and is not done, and why."""

    def apply(self, operation: Operation, known: Mapping[str, Memory]) -> None:
        """Write what a checked operation changes.

        Args:
            operation: What a model wants.
            known: The memories that it was shown, by id.
        """
        olds = [known[memory_id] for memory_id in operation.targets]
        evidence = operation.evidence
        match operation.action:
            case "CORROBORATE":
                for old in olds:
                    self.corroborate(old, evidence)
            case "REFINE" if len(olds) == 1:
                self.update_memory(
                    olds[0],
                    operation.content,
                    evidence,
                    when_to_use=operation.when_to_use,
                    canonical_topic=operation.canonical_topic,
                    slot_value=operation.slot_value,
                )
            case "CORRECT" if not operation.content:
                for old in olds:
                    self._retire(old, None, "correct")
            case "END":
                self._end(operation, olds)
            case "DELETE":
                for old in olds:
                    self.delete_memory(old, evidence)
            case _:
                self._say(operation, olds)

    def _end(self, operation: Operation, olds: Sequence[Memory]) -> None:
        if operation.content and all(operation.content != old.content for old in olds):
            # "no longer likes coffee", itself held until then, would say the contrary: it takes their place
            self._say(replace(operation, valid_from=operation.valid_to, valid_to=None), olds)
            return
        for old in olds:
            self.end(old, operation.evidence, until=operation.valid_to)

    def settle(self, operation: Operation, known: Mapping[str, Memory]) -> None:
        """Settle what stands in one slot together: nothing new is said, so no words of this block are needed.

        Args:
            operation: What a model wants.
            known: The memories that it was shown, by id.
        """
        olds = [known[memory_id] for memory_id in operation.targets]
        ids = {old.memory_id for old in olds}
        pair = next((each for each in self._task.settle if ids <= set(each)), ())
        left = [memory for memory in self._task.similar if memory.memory_id in pair and memory.memory_id not in ids]
        match operation.action:
            case "CORROBORATE":
                for old in olds if operation.slot_many else ():
                    self._revise(old, (), "refine", slot_many=True)
            case "CORRECT":
                for old in olds:
                    self._retire(old, None, "correct")
            case "END":
                for old in olds:
                    self.end(old, (), until=operation.valid_to)
            case _:
                holding = max(left or olds, key=lambda memory: memory.said_at)
                for old in olds:
                    if old is not holding:
                        self._retire(old, holding, "supersede")

    def _say(self, operation: Operation, olds: Sequence[Memory]) -> None:
        """Write a new memory, in the place of others or beside them."""
        content, slot, value = operation.content, operation.canonical_topic, operation.slot_value
        beside = operation.action == "CONTRADICT"
        if self.is_known(content, slot, value):
            self.notes.append(f"known already, as knowledge or a policy: {content!r}")
            return
        if operation.action == "SUPERSEDE":
            olds = self._before(operation, olds)
        new = self.new_memory(
            content,
            operation.evidence,
            when_to_use=operation.when_to_use,
            category=operation.category,
            canonical_topic=slot,
            slot_value=value,
            slot_many=operation.slot_many,
            importance=operation.importance,
            valid_from=operation.valid_from,
            valid_to=operation.valid_to,
            replaces=() if beside else olds,
            corrects=operation.action == "CORRECT",
        )
        for old in olds if beside else ():
            self.contradict(new, old)

    def _before(self, operation: Operation, olds: Sequence[Memory]) -> list[Memory]:
        """Return what a statement may take the place of: what was said later than it did not come before it."""
        began = max(filter(None, (operation.valid_from, self._said_at(operation.evidence))))
        later = [old for old in olds if old.said_at > began]
        self.notes += [f"not superseded, it was said later: {old.content!r}" for old in later]
        return [old for old in olds if old not in later]

    def new_memory(
        self,
        content: str,
        evidence: Sequence[Evidence],
        *,
        when_to_use: str = "",
        category: Category = "fact",
        canonical_topic: str = "",
        slot_value: str = "",
        slot_many: bool = False,
        importance: float = 0.5,
        valid_from: datetime | None = None,
        valid_to: datetime | None = None,
        trust: float | None = None,
        replaces: Sequence[Memory] = (),
        corrects: bool = False,
    ) -> Memory:
        """Add a new memory; under the trust limit it is quarantined.

        Args:
            content: The statement.
            evidence: The words it came from, all in this block.
            when_to_use: The situation to recall it in (tasks, tools).
            category: Sort of statement.
            canonical_topic: Its slot, whose and which attribute, or empty.
            slot_value: What stands in the slot, or empty.
            slot_many: Whether the slot holds many values at once.
            importance: 0 to 1; capped under .9.
            valid_from: Since when it is true.
            valid_to: Until when, where that was told.
            trust: Instead of the least trust of the evidence, for what code itself counted.
            replaces: Memories that it retires; what is firm among them stays, and is linked as what it may contradict.
            corrects: Whether what it retires never was true, rather than until now.
        """
        task = self._task
        content = plain(content)
        trust = self._trust(evidence) if trust is None else trust
        retired = [old for old in replaces if not old.firm]
        memory = Memory(
            memory_id=operation_id(
                task.shelf.to_json(),
                task.block.partition.to_json(),
                task.block.block_id,
                task.recipe,
                content_digest(content),
            ),
            partition=task.shelf.partition,
            topic=task.shelf.topic,
            content=content,
            when_to_use=when_to_use,
            kind="profile" if task.shelf.topic.type in {"self", "personal"} else "workflow",
            category=category,
            canonical_topic=canonical_topic,
            slot_value=slot_value,
            slot_many=slot_many,
            evidence=tuple(evidence),
            block_ids=(task.block.block_id,),
            importance=min(importance, _IMPORTANCE_LIMIT),
            language=task.language,
            trust=trust,
            status="active" if trust >= QUARANTINE_BELOW else "quarantined",
            source=self._voice.mode,
            extractor=self._extractor,
            prompt=self._prompt,
            perspective=self._voice.perspective,
            supersedes=tuple(old.memory_id for old in retired),
            valid_from=valid_from,
            valid_to=valid_to,
            said_at=self._said_at(evidence),
            recorded_at=task.now,
        )
        self.changes.append(MemoryChange(memory=memory, expected_version=0, action="create"))
        for old in retired:
            self._retire(old, memory, "correct" if corrects else "supersede")
        self._join_firm(memory, replaces)
        return memory

    def contradict(self, new: Memory, old: Memory) -> None:
        """Keep a new memory beside one that it contradicts, both in dispute; what is firm or core stays as it is.

        Args:
            new: A memory that `new_memory` returned.
            old: The other.
        """
        if old.firm or not new.live:
            self._link(new, "may_contradict", old)
            return
        self._link(new, "contradicts", old)
        place = next(at for at, change in enumerate(self.changes) if change.memory.memory_id == new.memory_id)
        self.changes[place] = self.changes[place].evolve(memory=disputed(new))
        now = disputed(old)
        if now is not old:
            memory = now.evolve(version=old.version + 1, recorded_at=self._task.now)
            self.changes.append(MemoryChange(memory=memory, expected_version=old.version, action="dispute"))

    def is_known(self, content: str, canonical_topic: str = "", slot_value: str = "") -> bool:
        """Return whether something firm says this already, in the same words or with one value of one slot."""
        digest = content_digest(plain(content))
        return any(
            content_digest(known.content) == digest or holds(known, canonical_topic, slot_value) for known in self._firm
        )

    def corroborate(self, old: Memory, evidence: Sequence[Evidence]) -> None:
        """Book that a memory was said again; a second block makes it long-term.

        Only a person's words corroborate: an assistant may be repeating what it recalled.
        """
        spoken = [item for item in evidence if self._by_id[item.message_id].from_user]
        told = {(item.message_id, item.quote) for item in old.evidence}
        if old.firm or not spoken:
            why = "it is knowledge or a policy" if old.firm else "nobody but the agent said it again"
            self.notes.append(f"not corroborated, {why}: {old.content!r}")
            return
        if all((item.message_id, item.quote) in told for item in spoken):  # words count once
            return
        layer = "long_term" if self._task.block.block_id not in old.block_ids and old.layer == "episodic" else old.layer
        self._revise(old, spoken, "corroborate", layer=layer, merges=old.merges + 1)

    def update_memory(
        self,
        old: Memory,
        content: str,
        evidence: Sequence[Evidence],
        *,
        when_to_use: str = "",
        canonical_topic: str = "",
        slot_value: str = "",
    ) -> None:
        """Give a memory a fuller text; its trust falls to that of the new words. It keeps the slot that it has."""
        slot = old.canonical_topic or canonical_topic
        self._revise(
            old,
            evidence,
            "refine",
            content=plain(content),
            canonical_topic=slot,
            slot_value=(slot_value if slot == canonical_topic else "") or old.slot_value,
            when_to_use=when_to_use or old.when_to_use,
            trust=min(old.trust, self._trust(evidence)),
            source=self._voice.mode,
            extractor=self._extractor,
            prompt=self._prompt,
            perspective=self._voice.perspective,
        )

    def delete_memory(self, old: Memory, evidence: Sequence[Evidence]) -> None:
        """Retire a memory that is not wanted or was never true; its versions stay."""
        self._revise(old, evidence, "delete", status="deleted")

    def end(self, old: Memory, evidence: Sequence[Evidence], *, until: datetime | None = None) -> None:
        """Say that a memory held until a time, and no longer: it is history from then on.

        Args:
            old: The memory.
            evidence: The words that say so.
            until: The time; none: when they were said.
        """
        self._revise(
            old,
            evidence,
            "end",
            valid_from=old.valid_from or old.said_at,
            valid_to=until or self._said_at(evidence),
        )

    def _join_firm(self, new: Memory, replaces: Sequence[Memory]) -> None:
        """Link a new memory to what is firm and says otherwise: both are kept."""
        for known in self._firm:
            if known in replaces or relation(new, known, one_source=False) == "disputes":
                self._link(new, "may_contradict", known)

    def _retire(self, old: Memory, new: Memory | None, action: Literal["supersede", "correct"]) -> None:
        """Let a memory hold until another holds; or, corrected, at no time: it never was true."""
        if any(change.memory.memory_id == old.memory_id for change in self.changes):
            return  # by another of those that take its place
        began = old.valid_from or old.said_at
        over = began if action == "correct" or new is None else old.valid_to or new.valid_from or new.said_at
        memory = old.evolve(version=old.version + 1, status="superseded", valid_to=over, recorded_at=self._task.now)
        self.changes.append(MemoryChange(memory=memory, expected_version=old.version, action=action))

    def _link(self, new: Memory, kind: LinkType, old: Memory) -> None:
        self.links.append(Link(source_id=new.memory_id, type=kind, target_id=old.memory_id))

    def _revise(self, old: Memory, evidence: Sequence[Evidence], action: str, **changes: object) -> None:
        memory = old.evolve(
            **changes,
            version=old.version + 1,
            evidence=tuple(dict.fromkeys((*old.evidence, *evidence))),
            block_ids=tuple(dict.fromkeys((*old.block_ids, self._task.block.block_id))),
            said_at=max(old.said_at, self._said_at(evidence)),
            recorded_at=self._task.now,
        )
        self.changes.append(MemoryChange(memory=memory, expected_version=old.version, action=action))

    def _trust(self, evidence: Sequence[Evidence]) -> float:
        return trust_of_evidence(evidence, self._task.messages)

    def _said_at(self, evidence: Sequence[Evidence]) -> datetime:
        times = [self._by_id[item.message_id].time for item in evidence]
        return max(times) if times else self._task.block.end_time
