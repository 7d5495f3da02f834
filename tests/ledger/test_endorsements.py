"""Whatever a caller forges, a commit lets no agent alone write what all of a user's agents know; on both engines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from remegraph.errors import ConflictError, ConsensusError, NotFoundError
from remegraph.ledger.archive import Archive
from remegraph.ledger.journal import KeyRing
from remegraph.models import ChangeSet, Endorsement, Link, Memory, MemoryChange, Status
from remegraph.settings import Settings, SharingPolicy
from tests.ledger.conftest import ANN, KEY, NOON, Ledger, create, following

SCOUT, WRITER = ANN.evolve(agent="scout"), ANN.evolve(agent="writer")


def word(act: str, by: str, source: Memory | None = None, proposal_id: str = "p", **fields: Any) -> Endorsement:
    """What somebody says on a proposal."""
    own = {"memory_id": source.memory_id, "version": source.version} if source else {}
    return Endorsement.model_validate({"proposal_id": proposal_id, "act": act, "by": by, "at": NOON, **own, **fields})


def proposed(source: Memory, **fields: Any) -> Memory:
    """A memory as it is proposed."""
    given = {"memory_id": "p", "partition": ANN, "status": "proposed", "block_ids": ()}
    return source.evolve(**given | fields)


def committed(
    ledger: Ledger, changes: Sequence[MemoryChange], words: Sequence[Endorsement] = (), **fields: Any
) -> None:
    """Commit a change set of somebody who does not speak for the common library."""
    made: ChangeSet = ledger.set_of(*changes).evolve(at_home=False, endorsements=tuple(words), **fields)
    ledger.archive.commit(made)


def opened(ledger: Ledger) -> tuple[Memory, Memory]:
    """Let the scout propose what it knows, and the writer know the same."""
    source = ledger.learn(partition=SCOUT)
    committed(ledger, [create(proposed(source))], [word("propose", "scout", source)])
    ledger.wait(60)
    return ledger.head(proposed(source)), ledger.learn(partition=WRITER)


def joined(proposal: Memory, mine: Memory, status: Status = "active") -> MemoryChange:
    """The proposal as the writer bears it out."""
    return following(proposal, status=status, evidence=(*proposal.evidence, *mine.evidence))


def agreed(ledger: Ledger) -> Memory:
    """Let both agree."""
    proposal, mine = opened(ledger)
    committed(ledger, [joined(proposal, mine)], [word("corroborate", "writer", mine)])
    return ledger.head(proposal)


@pytest.mark.requirement("B12")
def test_the_word_of_two_agents_makes_a_shared_memory(ledger: Ledger) -> None:
    """In the commit that records the second one: there is no time in which it is neither."""
    memory = agreed(ledger)
    assert memory.status == "active"
    assert [each.act for each in ledger.archive.endorsements([ANN])] == ["propose", "corroborate"]
    assert ledger.archive.endorsements([ANN], ["p"]) == ledger.archive.endorsements([ANN])
    assert ledger.archive.endorsements([ANN], ["q"]) == ledger.archive.endorsements([SCOUT]) == ()


@pytest.mark.requirement("B12")
def test_the_ledger_counts_the_agents_itself(ledger: Ledger) -> None:
    """Two are not three, whoever says that they are enough."""
    proposal, mine = opened(ledger)
    strict = Archive.open(
        ledger.url,
        keys=KeyRing([KEY]),
        clock=lambda: ledger.now,
        new_id=lambda: "mark",
        settings=Settings(sharing=SharingPolicy(quorum=3)),
    )
    words = (word("corroborate", "writer", mine),)
    with pytest.raises(ConsensusError, match="no agent alone"):
        strict.commit(ledger.set_of(joined(proposal, mine)).evolve(at_home=False, endorsements=words))
    strict.commit(ledger.set_of(joined(proposal, mine, "proposed")).evolve(at_home=False, endorsements=words))
    strict.close()
    assert ledger.head(proposal).status == "proposed"


_Forged = Callable[[Ledger, Memory, Memory], tuple[list[MemoryChange], list[Endorsement]]]

_FORGED: dict[str, tuple[_Forged, type[Exception], str]] = {
    "a new live memory": (
        lambda led, _p, _m: ([create(led.memory("Ann likes jazz.", partition=ANN))], []), ConsensusError, "no agent alone",
    ),
    "a new quarantined one": (
        lambda led, _p, _m: ([create(led.memory("Ann likes jazz.", partition=ANN).evolve(status="quarantined"))], []),
        ConsensusError, "no agent alone",
    ),
    "a proposal of nobody": (
        lambda _l, _p, m: ([create(proposed(m, memory_id="q"))], []), ConsensusError, "no agent alone",
    ),
    "no word": (lambda _l, p, m: ([joined(p, m)], []), ConsensusError, "no agent alone"),
    "the author twice": (lambda _l, p, m: ([joined(p, m)], [word("corroborate", "scout", m)]), NotFoundError, "scout"),
    "a stranger": (lambda _l, p, m: ([joined(p, m)], [word("corroborate", "mole", m)]), NotFoundError, "mole"),
    "no memory": (lambda _l, p, m: ([joined(p, m)], [word("corroborate", "writer")]), NotFoundError, "writer"),
    "another version": (
        lambda _l, p, m: ([joined(p, m)], [word("corroborate", "writer", m, version=7)]), ConflictError, "Changed",
    ),
    "other words": (
        lambda _l, p, m: ([joined(p.evolve(content="Ann likes gin."), m)], [word("corroborate", "writer", m)]),
        ConsensusError, "something else",
    ),
    "proposed again": (lambda _l, p, m: ([joined(p, m)], [word("propose", "writer", m)]), ConsensusError, "no agent alone"),
    "refused into life": (lambda _l, p, m: ([joined(p, m)], [word("reject", "Dana")]), ConsensusError, "no agent alone"),
    "borne out to death": (
        lambda _l, p, m: ([joined(p, m, "deleted")], [word("corroborate", "writer", m)]), ConsensusError, "no agent alone",
    ),
    "another's withdrawal": (
        lambda _l, p, _m: ([following(p, status="deleted")], [word("withdraw", "writer")]), ConsensusError, "author",
    ),
    "a proposal elsewhere": (
        lambda _l, p, m: ([joined(p, m)], [word("corroborate", "writer", m), word("approve", "Dana", proposal_id="x")]),
        NotFoundError, "no proposal x",
    ),
    "what it may not replace": (
        lambda led, p, m: (
            [following(p, status="active", supersedes=(led.learn(f"Ann likes {p.memory_id}{next(led.ids)}.").memory_id,))],
            [word("corroborate", "writer", m)],
        ),
        ConsensusError, "no agent alone",
    ),
}  # fmt: skip


@pytest.mark.requirement("B12", "X5")
@pytest.mark.parametrize("at_home", [False, True])
def test_a_forged_change_of_a_proposal_is_refused(ledger: Ledger, *, at_home: bool) -> None:
    """The kit checks at its door; the ledger trusts nobody's door. Not even who speaks for all agrees in silence."""
    proposal, mine = opened(ledger)
    for name, (forge, error, told) in _FORGED.items():
        if at_home and name.startswith("a new"):
            continue  # what a scope without an agent writes into its own library
        changes, words = forge(ledger, proposal, mine)
        before = ledger.archive.counts()
        with pytest.raises(error, match=told):
            ledger.archive.commit(ledger.set_of(*changes).evolve(at_home=at_home, endorsements=tuple(words)))
        assert (name, ledger.head(proposal), ledger.archive.counts()) == (name, proposal, before)


@pytest.mark.requirement("B12")
def test_a_word_counts_only_while_what_bears_it_out_stands(ledger: Ledger) -> None:
    """Who proposed may have changed its mind a moment before: the ledger looks under its lock."""
    proposal, mine = opened(ledger)
    source = ledger.head(proposal.evolve(memory_id=ledger.archive.endorsements([ANN])[0].memory_id, partition=SCOUT))
    ledger.commit(following(source, content="Ann likes coffee."))
    with pytest.raises(ConsensusError, match="no agent alone"):
        committed(ledger, [joined(proposal, mine)], [word("corroborate", "writer", mine)])
    with pytest.raises(ConsensusError, match="no agent alone"):
        committed(ledger, [following(proposal, status="active")], [word("approve", "Dana")])


_CHANGES: dict[str, dict[str, Any]] = {
    "deleted": {"status": "deleted"},
    "superseded": {"status": "superseded"},
    "quarantined": {"status": "quarantined"},
    "reworded": {"content": "Ann likes gin."},
    "strengthened": {"importance": 0.8},
    "pinned": {"resident": True},
    "borne out more": {"merges": 1},
    "trusted more": {"trust": 0.9},
}


@pytest.mark.requirement("B12")
def test_what_was_agreed_on_no_agent_alone_changes(ledger: Ledger) -> None:
    """Neither what it says nor how much it counts."""
    memory = agreed(ledger)
    for name, change in _CHANGES.items():
        with pytest.raises(ConsensusError, match="no agent alone"):
            committed(ledger, [following(memory, **change)])
        assert (name, ledger.head(memory)) == (name, memory)


@pytest.mark.requirement("B12")
def test_no_agent_ties_what_was_agreed_on(ledger: Ledger) -> None:
    """A link can say that it is contradicted, or that a dispute about it is settled."""
    memory = agreed(ledger)
    other = ledger.learn("Ann likes jazz.")
    with pytest.raises(ConsensusError, match="no agent alone"):
        committed(ledger, [], links=(Link(source_id=memory.memory_id, type="settled", target_id=other.memory_id),))


@pytest.mark.requirement("B12")
def test_time_and_disputes_move_what_was_agreed_on(ledger: Ledger) -> None:
    """They are no agent's word."""
    memory = agreed(ledger)
    for status in ("low_priority", "disputed", "archived", "active", "archived", "purged"):
        committed(ledger, [following(ledger.head(memory), status=status)])
        assert ledger.head(memory).status == status
