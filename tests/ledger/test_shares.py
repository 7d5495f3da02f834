"""Who shared what, as both ledgers note it."""

from __future__ import annotations

import pytest

from remegraph.models import Partition, Scope, SharedItem
from tests.ledger.conftest import Ledger

REMY = Partition(tenant="t", user="ann", agent="remy", project="p")
ZOE = Scope(tenant="t", user="ann", agent="zoe", project="p")


@pytest.mark.requirement("K7")
def test_the_ledger_tells_who_shared_exactly_this(ledger: Ledger) -> None:
    """Another agent of the user can tell a true source from a forged one; nobody else learns anything."""
    item = SharedItem(knowledge_id="k", digest="d", agent="remy", at=ledger.now)
    ledger.archive.add_shared(REMY, [item])
    ledger.wait(60)
    ledger.archive.add_shared(REMY, [item.evolve(at=ledger.now)])
    ledger.archive.add_shared(REMY.model_copy(update={"agent": "eve"}), [item.evolve(agent="eve")])
    assert ledger.archive.shared_by(ZOE, "k", "d") == "remy"
    assert ledger.archive.shared_by(ZOE, "k", "other") is None
    assert ledger.archive.shared_by(ZOE, "other", "d") is None
    for field in ("tenant", "user", "project"):
        assert ledger.archive.shared_by(ZOE.evolve(**{field: "x"}), "k", "d") is None
    assert ledger.archive.shared_by(ZOE.evolve(project=None), "k", "d") is None


def test_what_is_shared_while_the_sharer_is_erased_is_noted_where_it_is_found(ledger: Ledger) -> None:
    """Whoever comes back is a stranger; a note in the place that they left is nobody's."""
    ledger.learn(partition=REMY)
    item = SharedItem(knowledge_id="k", digest="d", agent="remy", at=ledger.now)
    ledger.lose_names(lambda: ledger.archive.add_shared(REMY, [item]))
    assert ledger.archive.shared_by(ZOE, "k", "d") == "remy"


def test_each_share_is_an_event_without_content(ledger: Ledger) -> None:
    """An audit sees who gave away what, once, and reads none of it."""
    item = SharedItem(knowledge_id="k", digest="d", agent="remy", at=ledger.now)
    ledger.archive.add_shared(REMY, [item])
    ledger.archive.add_shared(REMY, [item])
    (event,) = ledger.archive.events([REMY])
    assert (event.actor, event.action, event.record_id, event.version) == ("remy", "share", "k", 0)
    assert event.digest != "d"
    assert not [each for each in ledger.archive.events([REMY]) if each.record_id != "k"]
