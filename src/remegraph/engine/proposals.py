"""From a decision to the next versions of memories: evidence, trust, layer and links follow from code."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from remegraph.engine.tasks import ProposeTask, Voice
from remegraph.language.plain import plain
from remegraph.models import Category, Claim, Evidence, Link, LinkType, Memory, MemoryChange
from remegraph.rules.claims import conflicting, same
from remegraph.rules.disputes import disputed
from remegraph.rules.duplicates import content_digest
from remegraph.rules.naming import operation_id
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

    def new_memory(
        self,
        content: str,
        evidence: Sequence[Evidence],
        *,
        when_to_use: str = "",
        category: Category = "fact",
        canonical_topic: str = "",
        claims: Sequence[Claim] = (),
        importance: float = 0.5,
        valid_from: datetime | None = None,
        trust: float | None = None,
        replaces: Sequence[Memory] = (),
    ) -> Memory:
        """Add a new memory; under the trust limit it is quarantined.

        Args:
            content: The statement.
            evidence: The words it came from, all in this block.
            when_to_use: The situation to recall it in (tasks, tools).
            category: Sort of statement.
            canonical_topic: Slot with one current value, or empty.
            claims: The statement in slots.
            importance: 0 to 1; capped under .9.
            valid_from: Since when it is true.
            trust: Instead of the least trust of the evidence, for what code itself counted.
            replaces: Memories that it retires; what is firm among them stays, and is linked as what it may contradict.
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
            claims=tuple(claims),
            canonical_topic=canonical_topic,
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
            said_at=self._said_at(evidence),
            recorded_at=task.now,
        )
        self.changes.append(MemoryChange(memory=memory, expected_version=0, action="create"))
        for old in retired:
            self._supersede(old, memory)
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

    def is_known(self, content: str, claims: Sequence[Claim]) -> bool:
        """Return whether something firm says this already, in the same words or slots: then there is nothing to remember."""
        digest = content_digest(plain(content))
        return any(content_digest(known.content) == digest or same(claims, known.claims) for known in self._firm)

    def corroborate(self, old: Memory, evidence: Sequence[Evidence]) -> None:
        """Book that a memory was said again; a second block makes it long-term.

        Only a person's words corroborate: an assistant may be repeating what it recalled.
        """
        spoken = [item for item in evidence if self._by_id[item.message_id].from_user]
        told = {(item.message_id, item.quote) for item in old.evidence}
        if old.firm or all((item.message_id, item.quote) in told for item in spoken):  # words count once
            return
        layer = "long_term" if self._task.block.block_id not in old.block_ids and old.layer == "episodic" else old.layer
        self._revise(old, spoken, "corroborate", layer=layer, merges=old.merges + 1)

    def update_memory(self, old: Memory, content: str, evidence: Sequence[Evidence], *, when_to_use: str = "") -> None:
        """Give a memory a fuller text; its trust falls to that of the new words."""
        self._revise(
            old,
            evidence,
            "refine",
            content=plain(content),
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

    def _join_firm(self, new: Memory, replaces: Sequence[Memory]) -> None:
        """Link a new memory to what is firm and says otherwise: both are kept."""
        for known in self._firm:
            if known in replaces or conflicting(new.claims, known.claims) or _of_one_slot(new, known):
                self._link(new, "may_contradict", known)

    def _supersede(self, old: Memory, new: Memory) -> None:
        memory = old.evolve(
            version=old.version + 1,
            status="superseded",
            valid_to=old.valid_to or new.valid_from or new.said_at,
            recorded_at=self._task.now,
        )
        self.changes.append(MemoryChange(memory=memory, expected_version=old.version, action="supersede"))

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


def _of_one_slot(one: Memory, other: Memory) -> bool:
    return bool(one.canonical_topic) and one.canonical_topic == other.canonical_topic
