"""Offers of another agent or a pack: how far each is believed, and the verdict on it given what is known (K8, X6)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal

from remegraph.engine.frame import holds_recalled
from remegraph.engine.origin import commands
from remegraph.engine.redaction import Redactor
from remegraph.errors import SkillError
from remegraph.models import KnowledgeItem, Memory, Origin, Partition, Skill, Topic
from remegraph.models.base import operation_id
from remegraph.models.forms import ItemContent, Understood, understood
from remegraph.models.skills import check_skill, is_skill, read_workflow, recall_text, same_procedure
from remegraph.models.standing import QUARANTINE_BELOW, TOMBSTONES
from remegraph.models.supersession import content_digest
from remegraph.settings import SharingPolicy
from remegraph.text.scripts import folded, texts

__all__ = ["Candidate", "Known", "Offer", "Reception", "Verdict", "read", "weigh"]


@dataclass(frozen=True, slots=True)
class Offer:
    """An item and its checked origin."""

    item_id: str
    title: str
    content: ItemContent
    origin: Origin
    """It names only a proven agent."""
    trust: float
    """At most the lower of the item's own trust and that of its source."""
    raw: Mapping[str, Any]
    """The item as it came, for the record."""
    importance: float = 0.5
    tags: tuple[str, ...] = ()
    resident: bool | None = None
    """Whether its memory is pinned to the active tier; see `Memory.resident`."""
    doubt: str = ""
    """Why a person must approve it, however trusted its source."""
    refusal: str = ""
    """Why it is refused."""
    notice: str = ""
    """A remark for the report."""

    def redacted(self, redactor: Redactor) -> Offer:
        """Return it without private data, in its raw record, too. Check the signature first: it fits only the original words."""
        if not redactor.kinds:
            return self
        content = type(self.content).model_validate(redactor.json(json.loads(self.content.to_json())))
        tags = tuple(map(redactor.text, self.tags))
        return replace(self, title=redactor.text(self.title), content=content, raw=redactor.json(self.raw), tags=tags)

    @property
    def believed(self) -> bool:
        """Whether it becomes a memory without approval."""
        return self.trust >= QUARANTINE_BELOW and not self.doubt

    @property
    def agent(self) -> str:
        """The proven agent that gives it, or an empty text."""
        return self.origin.agents[0] if self.origin.agents else ""

    @property
    def source(self) -> str:
        """Distinguishes it from the same item of another source."""
        return "\n".join((*self.origin.agents, self.origin.claimed, self.origin.pack_id))


@dataclass(frozen=True, slots=True)
class Reception:
    """Makes offers of knowledge items."""

    policy: SharingPolicy
    receiver: str | None
    """The agent that takes them in."""
    expected: str | None
    """The agent that they are expected from; None: any."""
    at: datetime

    def offer(self, item: KnowledgeItem, agent: str | None) -> Offer:
        """Return an item as an offer of the agent that provably shared it, or of an unproven source (None)."""
        claimed = "" if agent is not None else item.source_agent
        trust, usual = self.policy.trust, self.policy.default_trust
        # A name that anyone may write can only lower the trust in a source.
        believed = trust.get(agent, usual) if agent is not None else min(usual, trust.get(claimed, usual))
        tags = item.metadata.get("tags")
        refusal = ""
        if agent is not None and agent == self.receiver:
            refusal = "It is what this agent shared itself."
        elif self.expected is not None and self.expected != (agent or item.source_agent):
            refusal = f"It is not from {self.expected}."
        return Offer(
            item_id=item.knowledge_id,
            title=item.title,
            content=item.content,
            origin=Origin(
                via="absorbed",
                agents=() if agent is None else (agent,),
                claimed=claimed,
                knowledge_id=item.knowledge_id,
                at=self.at,
            ),
            trust=min(_own_trust(item), believed),
            raw=json.loads(item.to_json()),
            tags=tuple(dict.fromkeys(each for each in tags if isinstance(each, str))) if isinstance(tags, list) else (),
            refusal=refusal,
            notice="" if agent is not None else f"Nothing proves that it is from {claimed or 'anybody'}.",
        )


def _own_trust(item: KnowledgeItem) -> float:
    """Return the trust that an item claims for itself; an invalid figure counts as 0."""
    given = item.metadata.get("trust", 1.0)
    is_figure = isinstance(given, int | float) and not isinstance(given, bool) and 0 <= given <= 1
    return float(given) if is_figure else 0.0


_COMMANDS = "It speaks to the agent as if it were to be obeyed."


def read(
    offers: Sequence[Offer],
    known: Mapping[str, Skill],
    topics: Mapping[str, Topic],
    said_in: Partition,
    lives_in: Partition,
) -> list[Candidate]:
    """Return the candidate for each offer."""
    skills = dict(known)
    candidates: list[Candidate] = []
    for offer in offers:
        each = _candidate(offer, skills, topics, said_in, lives_in)
        if each.skill is not None and each.offer.believed:
            skills[each.skill.name] = each.skill
        candidates.append(each)
    return candidates


def _candidate(
    offer: Offer, skills: Mapping[str, Skill], topics: Mapping[str, Topic], said_in: Partition, lives_in: Partition
) -> Candidate:
    says = understood(offer.content, offer.title)
    says = replace(says, topic=topics.get(says.topic.key.casefold(), says.topic))
    memory_id = operation_id("absorbed", lives_in.to_json(), says.kind, offer.content.to_json())
    skill = _skill(says.skill, skills, memory_id)
    content = recall_text(skill) if skill else says.content
    if not offer.doubt and commands((offer.title, *offer.tags, *texts(json.loads(offer.content.to_json())))):
        offer = replace(offer, doubt=_COMMANDS)
    return Candidate(
        offer=offer,
        says=says,
        content=content,
        skill=skill,
        memory_id=memory_id,
        message_id=operation_id("absorbed", said_in.to_json(), memory_id, offer.source),
    )


def _skill(skill: Skill | None, known: Mapping[str, Skill], memory_id: str) -> Skill | None:
    """Return a skill that can be executed and checked, under a name of its own beside known skills."""
    if skill is None:
        return None
    taken = {folded(name) for name in known}
    skill = skill if folded(skill.name) not in taken else skill.evolve(name=f"{skill.name} {memory_id[:8]}")
    try:
        check_skill(skill, known)
    except SkillError:  # then it is only a description, and cannot be executed
        return None
    return skill


Outcome = Literal["created", "corroborated", "quarantined", "known", "refused"]

_NOT_COUNTED = "It says what is known; its source is not believed enough to count."


@dataclass(frozen=True, slots=True)
class Candidate:
    """An offer as parsed, and the ids that follow from it."""

    offer: Offer
    says: Understood
    content: str
    """The words of its memory."""
    skill: Skill | None
    """Set if it can be executed and checked."""
    memory_id: str
    """It follows from the content alone."""
    message_id: str
    """It follows from the content and the source."""

    def repeats(self, memory: Memory) -> bool:
        """Return whether it repeats a live memory: the same words, or the same procedure for the same task."""
        if self.skill is not None or is_skill(memory):
            theirs = read_workflow(memory) if self.skill is not None and is_skill(memory) else None
            if self.skill is None or theirs is None:
                return False
            return folded(self.skill.task) == folded(theirs.task) and same_procedure(self.skill, theirs)
        mine, yours = self.says.topic, memory.topic
        of_others = mine.type == yours.type == "personal" and mine.target != yours.target
        return not of_others and content_digest(self.content) == content_digest(memory.content)


@dataclass(frozen=True, slots=True)
class Known:
    """The records of the ledger that offers are compared with."""

    absorbed: Mapping[str, Memory]
    """By the ids of raw records: the memories that hold those items already."""
    heads: Mapping[str, Memory]
    """By id: the memories made from the same items of other sources."""
    near: Mapping[str, Sequence[Memory]]
    """By the ids of candidates: live memories like them."""
    witnesses: Mapping[str, frozenset[str]]
    """By the ids of memories: the agents that corroborate them."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome for a candidate."""

    candidate: Candidate
    outcome: Outcome
    memory_id: str = ""
    reason: str = ""

    @property
    def writes(self) -> bool:
        """Whether it gives a memory a new version."""
        return self.outcome not in {"known", "refused"}


def weigh(candidates: Sequence[Candidate], known: Known) -> list[Verdict]:
    """Return the verdict on each candidate, in order; later ones are compared with earlier ones, too."""
    weighing = _Scale(known)
    return [weighing.verdict(candidate) for candidate in candidates]


@dataclass
class _Scale:
    known: Known
    made: dict[str, Candidate] = field(default_factory=dict)
    """New memories by id; trusted ones by their words, too."""
    borne_out: dict[str, set[str]] = field(default_factory=dict)
    """By the ids of memories: the agents that corroborate them now."""
    taken: set[str] = field(default_factory=set)
    """New raw records."""

    def verdict(self, each: Candidate) -> Verdict:
        """Return the verdict on a candidate."""
        if refusal := each.offer.refusal or _refusal(each):
            return Verdict(each, "refused", reason=refusal)
        head = self.known.heads.get(each.memory_id)
        done = self.known.absorbed.get(each.message_id)
        if done is None and head is not None and not head.live and head.status != "quarantined":
            done = head
        if done is not None and (done.status == "deleted" or done.status in TOMBSTONES):
            return Verdict(each, "refused", done.memory_id, f"It was taken back: the memory is {done.status}.")
        if done is not None:
            return Verdict(each, "known", done.memory_id, f"It was absorbed before; the memory is {done.status}.")
        if each.message_id in self.taken:
            return Verdict(each, "known", each.memory_id, "It is given twice.")
        made = self.made.get(each.memory_id) or self.made.get(_words(each))
        return self._beside(each, made) if made is not None else self._beside_known(each, head)

    def _beside(self, each: Candidate, made: Candidate) -> Verdict:
        """Return the verdict on a candidate that repeats another one of the same call."""
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
        return "It is recalled memory, not a statement."
    return ""


def _words(each: Candidate) -> str:
    return f"{each.says.topic.key.casefold()}\n{content_digest(each.content)}"
