"""Chains of versions: what holds is what is found, and how it came about can be dug out, undone and compared."""

from __future__ import annotations

from typing import get_args

import pytest

from remegraph import ConflictError, InputError, NotFoundError, RecallFilter, Scope
from remegraph.errors import NaiveTimeError
from remegraph.models import ChangeSet, Memory, MemoryChange, RecallMode, Status
from tests.governance.conftest import DAY, Office
from tests.talk import NOON

pytestmark = pytest.mark.requirement("G6")


@pytest.mark.parametrize("mode", [mode for mode in get_args(RecallMode) if mode != "exact"])
def test_the_end_of_the_chain_stands_in_for_what_the_query_matches_better(office: Office, mode: RecallMode) -> None:
    """Whoever asks by the old words must hear what holds now, in every way of asking."""
    paris, porto, lisbon = office.moved("Paris", "Porto", "Lisbon")
    hits = office.kit.recall("Ann lives in Paris.", scope=office.ann, mode=mode).memories
    assert hits[0].record_id == lisbon.memory_id
    assert {paris.memory_id, porto.memory_id}.isdisjoint(hit.record_id for hit in hits)
    assert office.kit.recall("Ann lives in Paris.", scope=office.ann, mode="exact").memories == ()


@pytest.mark.parametrize(("mode", "sign"), [("associative", "link"), ("temporal", "effect")])
def test_a_link_to_what_was_replaced_leads_to_what_replaced_it(office: Office, mode: RecallMode, sign: str) -> None:
    """A link outlives the words that it was made for."""
    storm = office.kit.save("note", "A storm broke the window.", scope=office.ann, topic="task:storms").memory
    assert storm is not None
    paris = office.saved("Ann lives in Paris.")
    office.kit.topics.link(storm.memory_id, "causes", paris.memory_id, scope=office.ann)
    office.saved("Ann lives in Porto.")
    lisbon = office.saved("Ann lives in Lisbon.")
    found = office.kit.recall("storm window", scope=office.ann, mode=mode, topics=["task:storms"])
    first, second = found.memories
    assert (first.record_id, second.record_id) == (storm.memory_id, lisbon.memory_id)
    assert sign in second.contributions


@pytest.mark.requirement("X4")
def test_archaeology_walks_the_chain_both_ways_with_times_actors_reasons_and_words(office: Office) -> None:
    """Which version holds, who changed it, when, and on whose word: one call answers."""
    paris, porto, lisbon = office.moved("Paris", "Porto", "Lisbon")
    found = office.kit.governance.archaeology(porto.memory_id, scope=office.ann)
    assert [find.head for find in found.finds] == [porto, paris, lisbon]
    assert (found.memory.replaced, found.memory.replaced_by) == ((paris.memory_id,), (lisbon.memory_id,))
    assert found.beyond(found.memory, older=True) == found.finds[1:2]
    assert found.beyond(found.memory, older=False) == found.finds[2:]
    assert found.held == (lisbon,)
    made, replaced = found.memory.versions
    assert [(note.actor, note.action) for note in (made, replaced)] == [("remy", "create"), ("remy", "supersede")]
    assert made.quotes[0].words == "Ann lives in Porto."
    assert made.memory.said_at == made.memory.recorded_at == porto.said_at
    assert replaced.memory.valid_to == lisbon.said_at
    top = office.kit.governance.archaeology(lisbon.memory_id, scope=office.ann)
    assert [find.head for find in top.finds] == [lisbon, porto, paris]
    assert [find.replaced_by for find in top.finds] == [(), (lisbon.memory_id,), (porto.memory_id,)]


@pytest.mark.requirement("X4")
def test_the_chain_can_be_seen_as_of_another_time(office: Office) -> None:
    """What was true and what was known are two questions: the first is about the world, the second about us."""
    paris, porto, lisbon = office.moved("Paris", "Porto", "Lisbon")
    dig, ann = office.kit.governance.archaeology, office.ann
    then = dig(porto.memory_id, scope=ann, known_at=porto.recorded_at - DAY / 2)
    assert then.held == (porto.evolve(version=1, status="active", valid_to=None, recorded_at=porto.said_at),)
    assert then.memory.replaced_by == ()
    was = dig(lisbon.memory_id, scope=ann, true_at=paris.said_at + DAY / 2)
    assert was.held == (paris,)
    assert dig(lisbon.memory_id, scope=ann, known_at=lisbon.recorded_at, true_at=porto.said_at).held == (porto,)
    with pytest.raises(NotFoundError):
        dig(lisbon.memory_id, scope=ann, known_at=paris.said_at)
    with pytest.raises(NaiveTimeError):
        dig(lisbon.memory_id, scope=ann, true_at=paris.said_at.replace(tzinfo=None))


@pytest.mark.requirement("X4")
def test_a_memory_explains_itself_as_of_another_time(office: Office) -> None:
    """Why did the agent say Paris last week? Because it held then, by what was known then."""
    paris, porto = office.moved("Paris", "Porto")
    explain, ann = office.kit.explain, office.ann
    then = explain(paris.memory_id, scope=ann, known_at=paris.said_at)
    assert (then.status, then.memory.version, len(then.trace.versions), len(then.trace.events)) == ("active", 1, 1, 1)
    assert then.weight == explain(paris.memory_id, scope=ann, known_at=paris.said_at, at=paris.said_at).weight
    assert explain(paris.memory_id, scope=ann, true_at=paris.said_at).status == "superseded"
    for times in ({"true_at": porto.said_at}, {"known_at": paris.said_at - DAY}):
        with pytest.raises(NotFoundError):
            explain(paris.memory_id, scope=ann, **times)


def test_restoring_a_version_of_what_holds_is_a_new_version(office: Office) -> None:
    """A merge that spoilt a text is undone, and stays on record."""
    first = office.saved("Ann likes tea.")
    merged = office.kit.save("note", "Ann likes tea", scope=office.ann).memory
    assert merged is not None
    office.clock.move(DAY)
    again = office.kit.restore(first.memory_id, version=1, scope=office.ann)
    assert (again.memory_id, again.version, again.content) == (first.memory_id, 3, first.content)
    assert (again.merges, again.recorded_at) == (0, office.clock())
    event = office.kit.trace(first.memory_id, scope=office.ann).events[-1]
    assert (event.action, event.reason, event.actor, event.version) == ("restore", "version 1", "remy", 3)
    assert office.kit.restore(first.memory_id, version=3, scope=office.ann) == again, "it holds already"
    assert len(office.kit.trace(first.memory_id, scope=office.ann).versions) == 3


async def test_restoring_what_was_replaced_replaces_the_end_of_the_chain(office: Office) -> None:
    """Back to Paris, without a second truth beside it."""
    paris, porto, lisbon = office.moved("Paris", "Porto", "Lisbon")
    office.clock.move(DAY)
    again = await office.kit.arestore(paris.memory_id, version=1, scope=office.ann)
    assert (again.content, again.status, again.version) == (paris.content, "active", 1)
    assert again.supersedes == (lisbon.memory_id,)
    assert again.evidence == paris.evidence
    assert office.head(lisbon).status == office.head(paris).status == "superseded"
    found = await office.kit.governance.aarchaeology(paris.memory_id, scope=office.ann)
    assert found.held == (again,)
    assert [find.memory_id for find in found.finds] == [
        paris.memory_id,
        porto.memory_id,
        lisbon.memory_id,
        again.memory_id,
    ]
    assert found.finds[-1].versions[0].reason == f"version 1 of {paris.memory_id}"
    assert [hit.record_id for hit in office.kit.recall("Where does Ann live?", scope=office.ann, k=1).memories] == [
        again.memory_id
    ]
    for time, held in ((paris.said_at, paris), (lisbon.said_at, lisbon), (office.clock(), again)):
        was = await office.kit.governance.aarchaeology(again.memory_id, scope=office.ann, true_at=time)
        assert [memory.memory_id for memory in was.held] == [held.memory_id]


@pytest.mark.parametrize("put_away", ["archived", "deleted"])
def test_restoring_works_where_the_end_was_put_away(office: Office, put_away: Status) -> None:
    """Then nothing held, and now one thing does."""
    paris, porto = office.moved("Paris", "Porto")
    _move(office, porto, put_away)
    again = office.kit.restore(paris.memory_id, version=1, scope=office.ann)
    assert office.kit.governance.archaeology(porto.memory_id, scope=office.ann).held == (again,)


def _move(office: Office, memory: Memory, status: Status) -> None:
    head = office.head(memory)
    change = MemoryChange(memory=head.evolve(status=status), expected_version=head.version, action="move")
    office.kit.context.parts().archive.commit(
        ChangeSet(operation_id=f"move {head.memory_id}", actor="test", recorded_at=office.clock(), changes=(change,))
    )


def test_what_cannot_hold_is_not_restored(office: Office) -> None:
    """Neither what never held, nor what is somebody else's, nor a twin."""
    paris, _ = office.moved("Paris", "Porto")
    restore, bob = office.kit.restore, Scope(user="bob", agent="remy")
    with pytest.raises(InputError, match="was superseded"):
        restore(paris.memory_id, version=2, scope=office.ann)
    with pytest.raises(NotFoundError, match="no version 9"):
        restore(paris.memory_id, version=9, scope=office.ann)
    for memory_id, scope in ((paris.memory_id, bob), ("unknown", office.ann)):
        with pytest.raises(NotFoundError):
            restore(memory_id, version=1, scope=scope)
    tea = office.saved("Ann likes tea.")
    office.kit.forget(tea.memory_id, scope=office.ann)
    office.saved("Ann likes tea.")
    with pytest.raises(ConflictError):
        restore(tea.memory_id, version=1, scope=office.ann)
    _move(office, office.saved("Ann has a dog."), "quarantined")
    (dog,) = [memory for memory in office.kit.memories(scope=office.ann) if "dog" in memory.content]
    with pytest.raises(InputError, match="quarantined"):
        restore(dog.memory_id, version=1, scope=office.ann)


async def test_two_versions_differ_field_by_field_and_word_by_word(office: Office) -> None:
    """A person sees at a glance what changed."""
    first = office.saved("Ann likes green tea in the morning.")
    head = office.head(first)
    longer = head.evolve(content="Ann likes black tea in the morning, 早上喝红茶。", importance=0.7)
    change = MemoryChange(memory=longer, expected_version=1, action="refine")
    office.kit.context.parts().archive.commit(
        ChangeSet(operation_id=f"refine {head.memory_id}", actor="test", recorded_at=NOON, changes=(change,))
    )
    found = office.kit.governance.diff(first.memory_id, 1, 2, scope=office.ann)
    assert [(field.name, field.before, field.after) for field in found.fields] == [
        ("content", first.content, longer.content),
        ("importance", "0.5", "0.7"),
    ]
    assert [(run.change, run.words) for run in found.words] == [
        ("same", "Ann likes "),
        ("removed", "green "),
        ("added", "black "),
        ("same", "tea in the morning"),
        ("removed", "."),
        ("added", ", 早上喝红茶。"),
    ]
    assert found == await office.kit.governance.adiff(first.memory_id, 1, 2, scope=office.ann)
    assert office.kit.governance.diff(first.memory_id, 2, 2, scope=office.ann).fields == ()
    for numbers in ((1, 3), (0, 1)):
        with pytest.raises(NotFoundError, match="It has 1 to 2"):
            office.kit.governance.diff(first.memory_id, *numbers, scope=office.ann)
    with pytest.raises(NotFoundError):
        office.kit.governance.diff(first.memory_id, 1, 2, scope=Scope(user="bob"))


@pytest.mark.requirement("X4")
def test_what_was_said_later_than_it_was_true_is_found_by_each_time(office: Office) -> None:
    """True, said and recorded are three times of one memory."""
    paris, porto = office.moved("Paris", "Porto")
    at = paris.said_at + DAY / 2
    for only, expected in (
        (RecallFilter(true_at=at), paris),
        (RecallFilter(known_at=at), paris),
        (RecallFilter(true_at=porto.said_at), porto),
        (RecallFilter(known_at=porto.recorded_at), porto),
    ):
        hits = office.kit.recall("Where does Ann live?", scope=office.ann, only=only).memories
        assert [hit.record_id for hit in hits] == [expected.memory_id]
