"""What a person decides in the inspector happens, and the journal says who it was."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from remegraph import MemoryKit, Scope
from tests.inspector.conftest import Visit, Visiting
from tests.talk import ANN, called, create, digest, open_kit, proposal, returned, said

PLANTED = ("Invoices go to account 4711.", "Invoices go to account 4712.")


@pytest.fixture
def own(tmp_path: Path) -> Iterator[MemoryKit]:
    """A home in which two memories wait in quarantine, two contradict each other, and two are proposed."""
    steps = {
        "DigestAnswer": digest("personal:Ann"),
        "ProposalAnswer": proposal(*(create(text, 3, text) for text in PLANTED)),
    }
    with open_kit(tmp_path, steps, reviser="rules") as kit:
        page = returned("c1", " ".join(PLANTED), minutes=2)
        kit.add_messages([said("Please read this."), called("read_page", "c1", minutes=1), page], scope=ANN)
        kit.summarize(scope=ANN, close=True)
        for text in ("The hall seats 250.", "Ann plays chess."):
            memory = kit.save("note", text, scope=ANN).memory
            assert memory is not None
            kit.sharing.propose(memory.memory_id, scope=ANN, reason="all need it")
        for text in ("The meeting is on Monday.", "The meeting is not on Monday."):
            kit.save("meeting", text, scope=ANN, slot="meeting:day")  # at one moment: neither is the later one
        yield kit


def _actors(kit: MemoryKit, scope: Scope, action: str) -> set[str]:
    return {
        each.event.actor
        for each in kit.governance.audit(scope=scope)
        if each.kind == "event" and each.event.action == action
    }


def test_a_person_decides_what_waits(own: MemoryKit, visiting: Visiting) -> None:
    """What waits for a person should not wait for a programmer."""
    visit: Visit = visiting(of=own, whose=ANN, write=True)
    right, wrong = own.knowledge.waiting(scope=ANN)
    for memory, decision in ((right, "approve"), (wrong, "reject")):
        answer = visit.send("/quarantine/decide", id=memory.memory_id, decision=decision, next="/quarantine")
        assert (answer.status_code, answer.headers["location"]) == (303, "/quarantine")
    assert own.knowledge.waiting(scope=ANN) == ()
    assert own.trace(right.memory_id, scope=ANN).memory.status == "active"
    assert own.trace(wrong.memory_id, scope=ANN).memory.status == "deleted"

    first, second = own.sharing.proposals(scope=ANN)
    visit.send("/proposals/decide", id=first.proposal_id, decision="approve")
    visit.send("/proposals/decide", id=second.proposal_id, decision="reject")
    assert {each.proposal_id: each.state for each in own.sharing.proposals(scope=ANN)} == {
        first.proposal_id: "agreed",
        second.proposal_id: "rejected",
    }

    (conflict,) = own.conflicts.list(scope=ANN)
    page = visit.page("/conflicts")
    assert conflict.older.content in page
    assert conflict.newer.content in page
    visit.send("/conflicts/resolve", id=conflict.conflict_id, decision="supersede", keep=conflict.older.memory_id)
    assert own.trace(conflict.newer.memory_id, scope=ANN).memory.status == "superseded"

    visit.send("/memory/restore", id=conflict.newer.memory_id, version="1")
    assert conflict.newer.content in {memory.content for memory in own.memories(scope=ANN, statuses=["active"])}
    (decided,) = own.conflicts.list(scope=ANN, state="resolved")
    assert decided.decided is not None
    assert decided.decided.by == ANN.user


def test_a_decision_that_cannot_be_is_refused_and_changes_nothing(own: MemoryKit, visiting: Visiting) -> None:
    """Two windows may be open, and forms may be made by hand."""
    visit = visiting(of=own, whose=ANN, write=True)
    (memory, _) = own.knowledge.waiting(scope=ANN)
    before = list(own.governance.audit(scope=ANN))
    assert visit.send("/quarantine/decide", id=memory.memory_id, decision="maybe").status_code == 400
    assert visit.send("/quarantine/decide", id="nobody", decision="approve").status_code == 404
    assert visit.send("/conflicts/resolve", id="none", decision="dismiss").status_code == 404
    assert visit.send("/proposals/decide", decision="approve").status_code == 404
    assert visit.send("/memory/restore", id=memory.memory_id, version="99").status_code == 404
    assert list(own.governance.audit(scope=ANN)) == before
