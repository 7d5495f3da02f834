"""Grants in the ledger, on both engines: what they let through is decided by each read, and by nothing else."""

from __future__ import annotations

from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest

from remegraph.errors import InputError, NotFoundError
from remegraph.ledger.archive import Archive
from remegraph.ledger.permissions import GrantBook
from remegraph.models import Grant, Partition, Scope, Topic
from tests.ledger.conftest import Ledger, create, following

pytestmark = pytest.mark.requirement("B11", "X5")

SCOUT = Partition(tenant="t", user="ann", agent="scout")
REMY = Scope(tenant="t", user="ann", agent="remy")
THIRD = REMY.evolve(agent="third")


def book(ledger: Ledger, archive: Archive | None = None) -> GrantBook:
    """The grants of a ledger, as it is open, or as another process has it."""
    archive = archive or ledger.archive
    return GrantBook(archive.database, archive.journal, lambda: ledger.now, lambda: f"id{next(ledger.ids)}")


def grant(ledger: Ledger, **fields: Any) -> Grant:
    """A grant of scout's for remy."""
    named = {"grant_id": f"g{next(ledger.ids)}", "giver": SCOUT, "to_agent": "remy", "given_at": ledger.now}
    return Grant.model_validate(named | {"actor": "ann", "reason": "to help"} | fields)


def test_a_grant_opens_what_it_names_until_it_is_over(ledger: Ledger) -> None:
    """By id, by topic and by layer; for its reader alone, and for as long as it lasts."""
    grants = book(ledger)
    tea, chess = ledger.learn(partition=SCOUT), ledger.learn("Ann likes chess.", partition=SCOUT)
    by_id = grants.give(grant(ledger, memory_ids=(tea.memory_id,)))
    assert grants.memories(REMY) == (tea,)
    assert grants.opened(REMY) == {SCOUT: (tea.memory_id,)}
    assert (grants.opened(THIRD), grants.memories(THIRD), grants.grants(THIRD)) == ({}, (), ())
    grants.give(grant(ledger, topic="personal:ANN", expires_at=ledger.now + timedelta(seconds=60)))
    assert grants.memories(REMY) == (tea, chess)
    assert grants.memories(REMY, [chess.memory_id, "unknown"]) == (chess,)
    ledger.wait(60)
    assert grants.memories(REMY) == (tea,)
    assert grants.revoke(SCOUT, by_id.grant_id, actor="ann", reason="done").revoked_at == ledger.now
    assert (grants.opened(REMY), grants.versions(REMY, tea.memory_id), grants.summaries(REMY, tea.memory_id)) == (
        {}, (), (),
    )  # fmt: skip
    assert len(grants.grants(REMY)) == len(grants.grants(Scope(tenant="t", user="ann", agent="scout"))) == 2


def test_a_grant_that_waits_for_an_erasure_is_given_where_it_is_found(ledger: Ledger) -> None:
    """In the place that lost its name it would open nothing, could not be revoked, and would name who was erased."""
    grants = book(ledger)
    ledger.learn(partition=SCOUT)
    given = grant(ledger)
    ledger.lose_names(lambda: grants.give(given))
    with closing(ledger.another()) as other:
        assert book(ledger, other).grants(REMY.evolve(agent="scout")) == (given,)


def test_a_memory_that_stops_being_live_is_closed_at_once(ledger: Ledger) -> None:
    """What is deleted, archived or quarantined in its own place is so for its readers, too."""
    grants = book(ledger)
    tea = ledger.learn(partition=SCOUT)
    grants.give(grant(ledger))
    for status in ("quarantined", "active", "archived", "active", "deleted"):
        ledger.commit(following(ledger.head(tea), status=status))
        assert bool(grants.memories(REMY)) == (status == "active")


def test_what_is_not_the_givers_own_is_refused_and_nothing_is_recorded(ledger: Ledger) -> None:
    """Checked in the transaction that records it: neither another's memory, nor one that was granted to it."""
    grants = book(ledger)
    tea = ledger.learn(partition=SCOUT)
    grants.give(grant(ledger))
    itself = ledger.memory("I am Scout.", partition=SCOUT).evolve(topic=Topic(type="self", target_name="self"))
    ledger.commit(create(itself))
    assert grants.memories(REMY) == (tea,)
    hidden = ledger.learn("Ann likes jazz.", partition=SCOUT, status="quarantined")
    for fields, error in (
        ({"giver": REMY.partition(), "to_agent": "third", "memory_ids": (tea.memory_id,)}, NotFoundError),
        ({"giver": REMY.partition(), "to_agent": "third", "topic": tea.topic.key}, NotFoundError),
        ({"memory_ids": (hidden.memory_id,)}, InputError),
        ({"memory_ids": (itself.memory_id,)}, InputError),
        ({"topic": "self:self"}, NotFoundError),
        ({"memory_ids": (tea.memory_id,), "layers": ("long_term",)}, InputError),
    ):
        with pytest.raises(error):
            grants.give(grant(ledger, **fields))
    with pytest.raises(NotFoundError):
        grants.revoke(REMY.partition(), grants.grants(REMY)[0].grant_id, actor="remy", reason="mine")
    assert len(grants.grants(REMY)) == 1
    assert grants.memories(THIRD) == ()


def test_what_the_giver_keeps_to_itself_shifts_no_ranking_of_what_it_grants(ledger: Ledger) -> None:
    """Counts of words in memories that may not be read would tell what they say."""
    tea = ledger.learn("Ann likes tea.", partition=SCOUT)

    def matches() -> tuple[object, ...]:
        (found,) = ledger.archive.match([SCOUT], "memory", ["tea"], [tea.memory_id])
        return tuple(found.record_ids), found.counts.tolist(), found.total, found.total_length

    before = matches()
    for number in range(5):
        ledger.learn(f"Tea and more tea, {number} times.", partition=SCOUT)
    assert matches() == before
    assert before[2] == 1
