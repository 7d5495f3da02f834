"""What becomes of each thing that is offered, held against what is known. Nothing is read or written here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from remegraph.exchange.offers import Offer
from remegraph.language.plain import folded
from remegraph.models import Memory, Skill
from remegraph.rules.context import holds_recalled
from remegraph.rules.duplicates import content_digest
from remegraph.rules.procedures import is_skill, read_workflow, same_procedure
from remegraph.rules.tombstones import TOMBSTONES
from remegraph.rules.understanding import Understood

__all__ = ["Candidate", "Known", "Outcome", "Verdict", "weigh"]

Outcome = Literal["created", "corroborated", "quarantined", "known", "refused"]

_NOT_COUNTED = "It says what is known; its source is not believed enough to count."


@dataclass(frozen=True, slots=True)
class Candidate:
    """An offer as it is understood, and the ids that follow from it."""

    offer: Offer
    says: Understood
    content: str
    """The words of its memory."""
    skill: Skill | None
    """Where it can be executed and checked."""
    memory_id: str
    """Follows from what it says, whoever says it."""
    message_id: str
    """Follows from what it says, and from who does."""

    def repeats(self, memory: Memory) -> bool:
        """Return whether it says what a memory says, in the same words; of a skill, whether it does the same for the same task.

        Args:
            memory: A live memory.
        """
        if self.skill is not None or is_skill(memory):
            return self.skill is not None and is_skill(memory) and _same_skill(self.skill, read_workflow(memory))
        mine, yours = self.says.topic, memory.topic
        of_others = mine.type == yours.type == "personal" and mine.target != yours.target
        return not of_others and content_digest(self.content) == content_digest(memory.content)


@dataclass(frozen=True, slots=True)
class Known:
    """What the ledger holds that offers are held against."""

    absorbed: Mapping[str, Memory]
    """By the ids of raw records: the memories that hold those items already."""
    heads: Mapping[str, Memory]
    """By id: what was made of the same items of other sources."""
    near: Mapping[str, Sequence[Memory]]
    """By the ids of candidates: live memories like them."""
    witnesses: Mapping[str, frozenset[str]]
    """By the ids of memories: the agents that bear them out."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of a candidate."""

    candidate: Candidate
    outcome: Outcome
    memory_id: str = ""
    reason: str = ""

    @property
    def writes(self) -> bool:
        """Whether a memory gets a new version by it."""
        return self.outcome not in {"known", "refused"}


def weigh(candidates: Sequence[Candidate], known: Known) -> list[Verdict]:
    """Return what becomes of each candidate, in their order: a later one is held against the earlier ones, too.

    Args:
        candidates: What is offered.
        known: What the ledger holds.
    """
    weighing = _Weighing(known)
    return [weighing.verdict(candidate) for candidate in candidates]


@dataclass
class _Weighing:
    known: Known
    made: dict[str, Candidate] = field(default_factory=dict)
    """What is made now, by the memory's id; what is believed, by its words, too."""
    borne_out: dict[str, set[str]] = field(default_factory=dict)
    """By the ids of memories: the agents that bear them out now."""
    taken: set[str] = field(default_factory=set)
    """Raw records that are made now."""

    def verdict(self, each: Candidate) -> Verdict:
        """Return what becomes of a candidate."""
        if refusal := each.offer.refusal or _refusal(each):
            return Verdict(each, "refused", reason=refusal)
        head = self.known.heads.get(each.memory_id)
        done = self.known.absorbed.get(each.message_id)
        if done is None and head is not None and not head.live and head.status != "quarantined":
            done = head
        if done is not None:
            return _again(each, done)
        if each.message_id in self.taken:
            return Verdict(each, "known", each.memory_id, "It is given twice.")
        made = self.made.get(each.memory_id) or self.made.get(_words(each))
        return self._beside(each, made) if made is not None else self._beside_known(each, head)

    def _beside(self, each: Candidate, made: Candidate) -> Verdict:
        """Return what becomes of one that another one of those that are given says as well."""
        if made.offer.believed and not each.offer.believed:
            return Verdict(each, "known", made.memory_id, _NOT_COUNTED)
        return self._bear_out(each, made.memory_id)

    def _beside_known(self, each: Candidate, head: Memory | None) -> Verdict:
        if head is not None and head.status == "quarantined" and each.offer.believed:
            self._note(each, head.memory_id)
            reason = "It waited for approval, and this source is believed."
            return Verdict(each, "corroborated", head.memory_id, reason)
        near = self.known.near[each.memory_id]
        twin = head or next((memory for memory in near if each.repeats(memory)), None)
        return self._of_old(each, twin) if twin is not None else self._new(each)

    def _new(self, each: Candidate) -> Verdict:
        self._note(each, each.memory_id)
        self.made |= {each.memory_id: each} | ({_words(each): each} if each.offer.believed else {})
        if each.offer.believed:
            return Verdict(each, "created", each.memory_id, each.offer.notice)
        why = each.offer.doubt or f"It is trusted {each.offer.trust:g} only."
        return Verdict(each, "quarantined", each.memory_id, " ".join(filter(None, (why, each.offer.notice))))

    def _of_old(self, each: Candidate, memory: Memory) -> Verdict:
        if memory.firm or memory.is_core:
            return Verdict(each, "known", memory.memory_id, "A rule or knowledge of the agent's own says it already.")
        if memory.live and not each.offer.believed:
            return Verdict(each, "known", memory.memory_id, _NOT_COUNTED)
        return self._bear_out(each, memory.memory_id)

    def _bear_out(self, each: Candidate, memory_id: str) -> Verdict:
        agent, witnesses = each.offer.agent, self.known.witnesses.get(memory_id, frozenset())
        if not agent:
            return Verdict(each, "known", memory_id, "It says what is known, and nothing proves who else says it.")
        if agent in witnesses | self.borne_out.get(memory_id, set()):
            return Verdict(each, "known", memory_id, f"{agent} bears it out already.")
        self._note(each, memory_id)
        return Verdict(each, "corroborated", memory_id, "It says the same.")

    def _note(self, each: Candidate, memory_id: str) -> None:
        self.taken.add(each.message_id)
        self.borne_out.setdefault(memory_id, set()).update(each.offer.origin.agents)


def _refusal(each: Candidate) -> str:
    if not each.content:
        return "It says nothing."
    if holds_recalled(each.content) or holds_recalled(each.offer.title):
        return "It is recalled memory, and no statement of anybody."
    return ""


def _again(each: Candidate, memory: Memory) -> Verdict:
    if memory.status == "deleted" or memory.status in TOMBSTONES:
        return Verdict(each, "refused", memory.memory_id, f"It was taken back: the memory is {memory.status}.")
    return Verdict(each, "known", memory.memory_id, f"It was absorbed before; the memory is {memory.status}.")


def _words(each: Candidate) -> str:
    return f"{each.says.topic.key.casefold()}\n{content_digest(each.content)}"


def _same_skill(one: Skill, other: Skill) -> bool:
    return folded(one.task) == folded(other.task) and same_procedure(one, other)
