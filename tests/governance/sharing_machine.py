"""Random agents who share, and the simplest model of who may read what: both must always agree.

Extend it by subclassing: a method whose name begins with `step_` is a step; `readable` is the model.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from remegraph import MemoryKit, NotFoundError, RecallFilter, Scope
from remegraph.models import (
    ChangeSet,
    Cut,
    Depth,
    Evidence,
    Grant,
    Layer,
    Memory,
    MemoryChange,
    Message,
    RecallMode,
    Status,
    Topic,
)
from remegraph.testing import FrozenClock

AGENTS = ("ada", "bob", "cy", "dot", "eve")
SCOPES = [
    Scope(user=user, agent=agent, project=project)
    for user in ("ann", "zoe")
    for project in ("atlas", "borealis")
    for agent in AGENTS
]
LAYERS: tuple[Layer, ...] = ("episodic", "long_term", "procedural")
LIVE: tuple[Status, ...] = ("active", "disputed", "low_priority")
TOPICS = ("task:tea", "task:chess")
MOST = 60
"""Memories, and open grants, at a time: enough to meet, few enough to check often."""
WORDS = "What is the fact of the matter?"


@dataclass
class Fact:
    """What the model knows of a memory."""

    owner: Scope
    memory: Memory

    @property
    def live(self) -> bool:
        """Whether anybody else could read it."""
        return self.memory.status in LIVE


class SharingMachine:
    """A kit, and a model of what each of its agents may read.

    Args:
        kit: A kit of its own.
        clock: Its clock.
        seed: Of all that happens.
    """

    def __init__(self, kit: MemoryKit, clock: FrozenClock, seed: int) -> None:
        self.kit = kit
        self.clock = clock
        self.chance = random.Random(seed)
        self.archive = kit.context.parts().archive
        self.facts: dict[str, Fact] = {}
        self.grants: dict[str, Grant] = {}
        self.revoked: set[str] = set()
        self.evidence: dict[Scope, Evidence] = {}
        self.counted = 0
        self.steps: list[Callable[[], None]] = [
            getattr(self, name) for name in sorted(dir(self)) if name.startswith("step_")
        ]

    # ------------------------------------------------------------------------------------------- the model

    def own(self, scope: Scope) -> set[str]:
        """The live memories that an agent has itself."""
        return {key for key, fact in self.facts.items() if fact.owner == scope and fact.live}

    def granted(self, scope: Scope) -> set[str]:
        """The memories of others that it may read."""
        received = [grant for grant in self.open_grants() if grant.to_agent == scope.agent]
        return {key for key, fact in self.facts.items() if any(_opens(grant, fact, scope) for grant in received)}

    def open_grants(self) -> list[Grant]:
        """The grants that are neither revoked nor over."""
        now = self.clock()
        return [
            grant
            for grant in self.grants.values()
            if grant.grant_id not in self.revoked and (grant.expires_at is None or grant.expires_at > now)
        ]

    # ------------------------------------------------------------------------------------------- steps

    def step(self) -> None:
        """Let one thing happen."""
        self.chance.choice(self.steps)()

    def step_learn(self) -> None:
        """An agent learns something; some of it is quarantined, or only proposed."""
        if len(self.facts) >= MOST:
            return
        self.counted += 1
        scope = self.chance.choice(SCOPES)
        kind, name = self.chance.choice(TOPICS).split(":")
        evidence = self._evidence(scope)
        memory = Memory(
            memory_id=f"m{self.counted}",
            partition=scope.partition(),
            topic=Topic.model_validate({"type": kind, "target_name": name}),
            content=f"Fact {self.counted} of the matter is known to {scope.agent}.",
            layer=self.chance.choice(LAYERS),
            status=self.chance.choice(("active", "active", "active", "quarantined", "proposed")),
            evidence=(evidence,),
            block_ids=(evidence.block_id,),
            said_at=self.clock(),
            recorded_at=self.clock(),
        )
        self._commit(MemoryChange(memory=memory, expected_version=0, action="create"))
        self.facts[memory.memory_id] = Fact(scope, memory)

    def step_change(self) -> None:
        """A memory is reworded, archived, quarantined, deleted or brought back."""
        fact = self._fact()
        if fact is None:
            return
        told: list[dict[str, Any]] = [{"status": each} for each in (*LIVE, *_AWAY)]
        changes = self.chance.choice([{"content": f"{fact.memory.content} Indeed."}, *told])
        memory = fact.memory.evolve(version=fact.memory.version + 1, **changes)
        change = MemoryChange(
            memory=fact.memory.evolve(**changes), expected_version=fact.memory.version, action="change"
        )
        with suppress(ValueError):  # a move that the status machine does not have changes nothing
            self._commit(change)
            fact.memory = memory

    def step_grant(self) -> None:
        """An agent lets another one read: some memories, a topic, or layers; for ever or for a while."""
        if len(self.open_grants()) >= MOST:
            return
        scope = self.chance.choice(SCOPES)
        mine = sorted(self.own(scope))
        layers = self.chance.sample(LAYERS, self.chance.randint(1, 3))
        which = self.chance.choice(("ids", "topic", "all"))
        ids = [key for key in mine if self.facts[key].memory.layer in layers][:3] if which == "ids" else []
        topics = {self.facts[key].memory.topic.key for key in mine} if which == "topic" else set()
        lasts = self.chance.choice((None, 1, 5))
        grant = self.kit.sharing.grant(
            self.chance.choice([name for name in AGENTS if name != scope.agent]),
            scope=scope,
            memory_ids=ids,
            topic=min(topics, default=None),
            layers=layers,
            expires_at=None if lasts is None else self.clock() + timedelta(hours=lasts),
            reason="to work together",
            actor="ann",
        )
        self.grants[grant.grant_id] = grant

    def step_revoke(self) -> None:
        """A grant is taken back."""
        if self.grants:
            grant = self.chance.choice(self.open_grants() or list(self.grants.values()))
            giver = Scope.model_validate(grant.giver.model_dump())
            self.kit.sharing.revoke(grant.grant_id, scope=giver, reason="enough", actor="ann")
            self.revoked.add(grant.grant_id)

    def step_wait(self) -> None:
        """Time passes."""
        self.clock.move(timedelta(minutes=self.chance.choice((1, 30, 60))))

    def step_meddle(self) -> None:
        """An agent tries to pass on, to use, to restore or to take back what is not its own: nothing changes."""
        scope, fact = self.chance.choice(SCOPES), self._fact()
        if fact is None or fact.owner == scope:
            return
        key, sharing = fact.memory.memory_id, self.kit.sharing
        refused: list[Callable[[], object]] = [
            lambda: sharing.grant("eve" if scope.agent != "eve" else "ada", scope=scope, memory_ids=[key],
                                  layers=LAYERS, reason="mine now", actor="ann"),
            lambda: self.kit.retention.used([key], scope=scope),
            lambda: self.kit.restore(key, scope=scope),
            lambda: self.kit.restore(key, version=1, scope=scope),
            lambda: self.kit.rules.promote(key, scope=scope, reason="mine now"),
            *(lambda given=given: sharing.revoke(given, scope=scope, reason="x", actor="x")
              for given, grant in self.grants.items() if grant.giver == fact.owner.partition()),
        ]  # fmt: skip
        _refused(self.chance.choice(refused))

    # ------------------------------------------------------------------------------------------- checks

    def check(self, scope: Scope) -> None:
        """What an agent may read of others is what the model says."""
        assert {each.memory_id for each in self.kit.sharing.granted(scope=scope)} == self.granted(scope)

    def check_surfaces(self, scope: Scope) -> None:
        """Through every way of reading, an agent finds its own and what it was granted, and nothing else."""
        own, granted = self.own(scope), self.granted(scope)
        self._check_recall(scope, own, granted)
        given = self.kit.inject(WORDS, scope=scope, always=True)
        assert set(given.ids) <= own | granted
        assert {each.memory_id for each in self.kit.memories(scope=scope)} == {
            key for key, fact in self.facts.items() if fact.owner == scope
        }
        fact = self._fact()
        if fact is not None:
            self._check_one(scope, fact, fact.memory.memory_id in granted)

    def _check_recall(self, scope: Scope, own: set[str], granted: set[str]) -> None:
        modes: tuple[RecallMode, ...] = ("hybrid", "semantic", "temporal", "associative")
        mode = self.chance.choice(modes)
        only = self.chance.choice((None, None, RecallFilter(known_at=self.clock()), RecallFilter(true_at=self.clock())))
        depths: tuple[Depth, ...] = ("memories", "messages")
        depth = self.chance.choice(depths)
        found = self.kit.recall(WORDS, scope=scope, k=500, mode=mode, depth=depth, only=only)
        ids = {hit.record_id for hit in found.memories}
        assert ids == own | granted or (mode == "semantic" and ids <= own | granted)
        assert {hit.record_id for hit in found.memories if hit.granted} == ids & granted
        assert {hit.partition for hit in (*found.blocks, *found.messages)} <= {scope.partition()}
        lines = self.kit.recall("of the matter", scope=scope, k=500, mode="exact").memories
        assert {hit.record_id for hit in lines} == own | granted
        assert not self.kit.recall(WORDS, scope=scope, depth="summaries").memories

    def _check_one(self, scope: Scope, fact: Fact, granted: bool) -> None:
        """By its id a memory opens for its owner, and for whom it is granted to."""
        key = fact.memory.memory_id
        reads: tuple[Callable[[], object], ...] = (
            lambda: self.kit.trace(key, scope=scope),
            lambda: self.kit.explain(key, scope=scope),
            lambda: self.kit.retention.metadata(key, scope=scope),
            lambda: self.kit.governance.archaeology(key, scope=scope),
            lambda: self.kit.governance.diff(key, fact.memory.version, fact.memory.version, scope=scope),
        )
        for read in reads:
            if granted or fact.owner == scope:
                read()
            else:
                _refused(read)
        if granted:
            seen = self.kit.trace(key, scope=scope)
            assert (seen.memory.content, seen.memory.version) == (fact.memory.content, fact.memory.version)
            assert (seen.messages, seen.quotes, seen.events, seen.links) == ((), (), (), ())

    # ------------------------------------------------------------------------------------------- inside

    def _fact(self) -> Fact | None:
        return self.chance.choice(list(self.facts.values())) if self.facts else None

    def _evidence(self, scope: Scope) -> Evidence:
        """Words that all memories of an agent may stand on."""
        if scope not in self.evidence:
            partition, said = scope.partition(), f"said {len(self.evidence)}"
            message = Message(message_id=said, role="user", content="So it is in fact.", time=self.clock())
            self.archive.add_messages(partition, [message], self.clock())
            cut = Cut(thread="main", after_seq=0, first_seq=1, last_seq=1)
            (block,) = self.archive.add_blocks(partition, [cut], "1")
            self.evidence[scope] = Evidence(message_id=said, quote="in fact", block_id=block.block_id)
        return self.evidence[scope]

    def _commit(self, change: MemoryChange) -> None:
        self.counted += 1
        name = f"op{self.counted}"
        self.archive.commit(ChangeSet(operation_id=name, actor="machine", recorded_at=self.clock(), changes=(change,)))


def _opens(grant: Grant, fact: Fact, reader: Scope) -> bool:
    giver, memory = fact.owner, fact.memory
    return (
        fact.live
        and (grant.giver.agent, grant.giver.user, grant.giver.project) == (giver.agent, giver.user, giver.project)
        and (giver.user, giver.project) == (reader.user, reader.project)
        and memory.layer in grant.layers
        and (not grant.memory_ids or memory.memory_id in grant.memory_ids)
        and (not grant.topic or memory.topic.key == grant.topic)
    )


_AWAY: tuple[Status, ...] = ("archived", "quarantined", "deleted")


def _refused(step: Callable[[], object]) -> None:
    try:
        step()
    except NotFoundError:
        return
    raise AssertionError("an agent reached what is not its own")
