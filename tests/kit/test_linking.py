"""Links that somebody states: checked at the door, written once, and told by the journal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from remegraph import InputError, MemoryKit, NotFoundError, Scope
from remegraph.models import Link
from tests.talk import ANN, open_kit

BEN = Scope(user="ben", agent="remy")


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryKit]:
    with open_kit(tmp_path_factory.mktemp("links")) as opened:
        yield opened


def save(kit: MemoryKit, text: str, scope: Scope = ANN) -> str:
    memory = kit.save("story", text, scope=scope).memory
    assert memory is not None
    return memory.memory_id


@pytest.mark.requirement("K5")
async def test_a_link_is_written_once_and_the_journal_tells_who_did_it(kit: MemoryKit) -> None:
    """A chain of causes that nobody can trace is a rumour."""
    train, flight = save(kit, "The train came late."), save(kit, "The flight was missed.")
    link = kit.topics.link(train, "causes", flight, scope=ANN, reason="the connection")
    assert link == Link(source_id=train, type="causes", target_id=flight, reason="the connection")
    assert await kit.topics.alink(train, "causes", flight, scope=ANN, reason="another") == link

    trace = kit.trace(flight, scope=ANN)
    assert trace.links == (link,)
    events = [event for event in kit.trace(train, scope=ANN).events if event.action == "link"]
    assert [event.actor for event in events] == ["remy"]
    assert kit.admin.verify().healthy


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"type": "cuases"}, InputError, "no type of link"),
        ({"type": "supersedes"}, InputError, "save"),
        ({"target_id": "{source}"}, InputError, "two memories"),
        ({"target_id": "nowhere"}, NotFoundError, "nowhere"),
        ({"target_id": "{ben}"}, NotFoundError, "no memory"),
        ({"target_id": "{gone}"}, NotFoundError, "no memory"),
        ({"reason": 7}, InputError, "reason"),
        ({"source_id": "a\x00"}, InputError, "source_id"),
    ],
)
def test_a_link_that_cannot_be_is_refused_and_changes_nothing(
    kit: MemoryKit, change: dict[str, Any], error: type[Exception], says: str
) -> None:
    """Nobody ties another's memories, what is forgotten, or what a change alone may say."""
    named = {
        "source": save(kit, "I paint."),
        "ben": save(kit, "I sing.", BEN),
        "gone": save(kit, "I sold my old boat."),
    }
    kit.forget(named["gone"], scope=ANN)
    given: dict[str, Any] = {"source_id": "{source}", "type": "related", "target_id": "{source}", "reason": ""} | change
    given = {key: value.format(**named) if isinstance(value, str) else value for key, value in given.items()}
    before = kit.admin.stats()["links"]
    with pytest.raises(error, match=says):
        kit.topics.link(**given, scope=ANN)
    assert kit.admin.stats()["links"] == before


def test_a_contradiction_makes_both_less_sure(kit: MemoryKit) -> None:
    """What is in dispute must not read as certain, whichever of the two was found."""
    one, other = save(kit, "The shop opens at nine."), save(kit, "The shop is shut on Mondays and opens late.")
    before = {hit.record_id: hit.confidence for hit in kit.recall("When does the shop open?", scope=ANN).memories}
    kit.topics.link(one, "contradicts", other, scope=ANN)
    found = {hit.record_id: hit for hit in kit.recall("When does the shop open?", scope=ANN).memories}
    assert all(found[each].confidence < before[each] for each in (one, other))
    assert {found[one].counterpart_of, found[other].counterpart_of} in ({"", one}, {"", other})
