"""Random histories: whatever people and agents do, one end of each chain holds, and the past can be computed again."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import get_args

import pytest

from remegraph import ConflictError, InputError, Scope
from remegraph.ledger.archive import Archive
from remegraph.models import ChangeSet, Decision, Link, Memory, MemoryChange, Partition
from tests.governance.conftest import DAY, Office

PROJECTS = ("atlas", "borealis", "cygnus")
CITIES = ("Paris", "Porto", "Lisbon", "Faro", "Madrid", "Bern", "Graz", "Ghent")
PEOPLE = ("Ann", "Bob")


def chains_of(memories: list[Memory]) -> list[set[str]]:
    """The sets of memories that replace each other, over any number of steps."""
    chains: list[set[str]] = []
    for memory in memories:
        mine = {memory.memory_id, *memory.supersedes}
        touched = [chain for chain in chains if chain & mine]
        chains = [chain for chain in chains if chain not in touched] + [mine.union(*touched)]
    return chains


def rebuilt(archive: Archive, partition: Partition) -> dict[str, Memory]:
    """The state of each memory, from versions and events alone."""
    newest = {event.record_id: event.version for event in archive.events([partition]) if event.version}
    found: dict[str, Memory] = {}
    for memory_id, number in newest.items():
        versions = archive.versions([partition], memory_id)
        kept_from = number if versions[-1].status == "purged" else 1
        assert [version.version for version in versions] == list(range(kept_from, number + 1))
        found[memory_id] = versions[-1]
    return found


def act(office: Office, scope: Scope, chance: random.Random) -> None:
    """Let one thing happen, as it may any day."""
    kit = office.kit
    known = kit.memories(scope=scope)
    match chance.choice(("add", "move", "move", "restore", "restore", "archive", "fade", "count", "decide", "tidy")):
        case "add":
            office.saved(f"{chance.choice(PEOPLE)} owns book {chance.randrange(10**6)}.", scope)
        case "move":
            office.saved(f"{chance.choice(PEOPLE)} lives in {chance.choice(CITIES)}.", scope)
        case "restore" if known:
            memory = chance.choice(known)
            _tried(lambda: kit.restore(memory.memory_id, version=chance.randint(1, memory.version), scope=scope))
        case "archive" if known:
            memory = chance.choice([each for each in known if each.live] or [known[0]])
            _tried(lambda: _archived(office, memory))
        case "fade" if known:
            _tried(lambda: kit.restore(chance.choice(known).memory_id, scope=scope))
        case "count":
            office.saved(f"{chance.choice(PEOPLE)} owns {chance.randint(2, 9)} cats.", scope)
        case "decide" if waiting := kit.conflicts.list(scope=scope):
            conflict = chance.choice(waiting)
            decision: Decision = chance.choice(get_args(Decision))
            _tried(lambda: kit.conflicts.resolve(conflict.conflict_id, decision, scope=scope, by="ann"))
        case "tidy":
            office.clock.move(chance.choice((20, 59, 200)) * DAY)
            kit.retention.maintain(scope=scope)


def _tried(step: Callable[[], object]) -> None:
    """Do what may be refused; then it changes nothing."""
    with suppress(InputError, ConflictError):
        step()


def _archived(office: Office, memory: Memory) -> None:
    change = MemoryChange(
        memory=memory.evolve(status="archived"), expected_version=memory.version, action="archive", reason="faded"
    )
    _commit(office, change)


def _commit(office: Office, *changes: MemoryChange, links: tuple[Link, ...] = ()) -> None:
    office.kit.context.parts().archive.commit(
        ChangeSet(
            operation_id=office.kit.context.new_id(),
            actor="maintenance",
            recorded_at=office.clock(),
            changes=changes,
            links=links,
        )
    )


@pytest.mark.requirement("G5", "G6", "G8", "X1")
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_any_history_leaves_one_end_no_circle_no_foreign_project_and_a_past_that_can_be_computed(
    office: Office, seed: int
) -> None:
    """The promise of version chains, over what nobody would think of."""
    chance = random.Random(seed)
    scopes = [office.ann.evolve(project=name) for name in PROJECTS]
    for _ in range(45):
        act(office, chance.choice(scopes), chance)
    archive = office.kit.context.parts().archive
    for scope in scopes:
        heads = list(office.kit.memories(scope=scope))
        assert {head.partition for head in heads} <= {scope.partition()}
        assert {head.memory_id: head for head in heads} == rebuilt(archive, scope.partition())
        replaced = {other for head in heads for other in head.supersedes}
        assert replaced <= {head.memory_id for head in heads}
        for chain in chains_of(heads):
            members = [head for head in heads if head.memory_id in chain]
            ends = [head for head in members if head.memory_id not in replaced]
            assert len(ends) == 1
            assert {head.memory_id for head in members if head.live} <= {ends[0].memory_id}
            dug = office.kit.governance.archaeology(ends[0].memory_id, scope=scope)
            assert {find.memory_id for find in dug.finds} == chain
        hits = office.kit.recall("Where does Ann live? Paris, Porto, Lisbon", scope=scope, k=20).memories
        assert {hit.record_id for hit in hits} <= {head.memory_id for head in heads if head.live}
        _nothing_went_early(archive, scope.partition())
    assert not [mismatch for mismatch in office.kit.admin.verify().differences if mismatch.where == "journal"]


def _nothing_went_early(archive: Archive, partition: Partition) -> None:
    """Check that each memory that was purged had been archived for sixty days."""
    archived: dict[str, datetime] = {}
    for event in archive.events([partition]):
        if event.action == "purge":
            assert event.time - archived[event.record_id] >= 60 * DAY
        elif event.action.startswith("archive"):
            archived[event.record_id] = event.time


@pytest.mark.requirement("G6")
def test_no_change_closes_a_circle(office: Office) -> None:
    """A chain without an end would have no version that holds."""
    chance = random.Random(7)
    heads = [office.saved(f"Ann owns book {number}.") for number in range(5)]
    edges: defaultdict[str, set[str]] = defaultdict(set)
    refused = 0
    for step in range(30):
        one, other = chance.choice(heads), chance.choice(heads)
        head = office.head(one)
        circle = one.memory_id in _below(edges, other.memory_id)
        known = tuple(dict.fromkeys((*head.supersedes, other.memory_id)))
        change = MemoryChange(memory=head.evolve(supersedes=known), expected_version=head.version, action="supersede")
        link = Link(source_id=one.memory_id, type="supersedes", target_id=other.memory_id)
        try:
            _commit(office, *(() if step % 3 == 0 else (change,)), links=(link,) if step % 3 == 0 else ())
        except InputError:
            assert circle
            refused += 1
        else:
            assert not circle
            edges[one.memory_id].add(other.memory_id)
    assert refused
    pair = [office.head(memory) for memory in (office.saved("Bob owns tea."), office.saved("Bob owns milk."))]
    both = [
        MemoryChange(
            memory=head.evolve(supersedes=(other.memory_id,)), expected_version=head.version, action="supersede"
        )
        for head, other in (pair, pair[::-1])
    ]
    with pytest.raises(InputError, match="would replace itself"):
        _commit(office, *both)


def _below(edges: dict[str, set[str]], start: str) -> set[str]:
    found = {start}
    ahead = [start]
    while ahead:
        for each in edges.get(ahead.pop(), set()) - found:
            found.add(each)
            ahead.append(each)
    return found
