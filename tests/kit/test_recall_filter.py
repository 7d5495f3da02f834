"""Recall within bounds: by type, tag, status and trust, and as of another time."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import ValidationError

from remegraph import (
    AgentMemorySettings,
    InputError,
    MemoryKit,
    RecallFilter,
    RetrievalPolicy,
    Scope,
    Settings,
)
from remegraph.kit import OpenOptions
from remegraph.testing import FrozenClock, InMemoryVectorIndex, SequentialIds
from tests.talk import ANN, NOON, replaced, replied, returned, said

DAY = timedelta(days=1)


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryKit]:
    """Ann says that she lives in Oslo, and tells it on the next day; ten days later, Rome, which a person says replaced it."""
    clock = FrozenClock(NOON + DAY)
    settings = Settings(home=tmp_path_factory.mktemp("filter"))
    ids, index = SequentialIds(), InMemoryVectorIndex()
    with MemoryKit.open(
        settings=settings, model=None, embedder=None, index=index, clock=clock, options=OpenOptions(new_id=ids)
    ) as opened:
        opened.add_messages([said("I live in Oslo.")], scope=ANN)
        opened.summarize(scope=ANN, close=True)
        clock.move(10 * DAY)
        later = 10 * 24 * 60
        answer = replied("You live in Rome, then.", minutes=later + 1)
        opened.add_messages([said("I live in Rome now.", minutes=later), answer], scope=ANN)
        opened.summarize(scope=ANN, close=True)
        replaced(opened, "in Oslo", "in Rome")
        opened.save("Where to live", "Living in Rome is dear.", scope=ANN, tags=["money"], topic="task:rents")
        yield opened


def found(kit: MemoryKit, only: RecallFilter | None, query: str = "Where does Ann live?") -> set[str]:
    recall = kit.recall(query, scope=ANN, depth="messages", only=only)
    return {hit.text.removeprefix("Ann: ") for hit in recall.memories}


OSLO, ROME, DEAR = "I live in Oslo.", "I live in Rome now.", "Living in Rome is dear."


@pytest.mark.requirement("X4")
@pytest.mark.parametrize(
    ("only", "expected"),
    [
        (RecallFilter(true_at=NOON + 5 * DAY), {OSLO}),
        (RecallFilter(true_at=NOON - DAY), set()),
        (RecallFilter(true_at=NOON + 12 * DAY), {ROME, DEAR}),
        (RecallFilter(known_at=NOON), set()),
        (RecallFilter(known_at=NOON + 5 * DAY), {OSLO}),
        (RecallFilter(known_at=NOON + 12 * DAY), {ROME, DEAR}),
        (RecallFilter(known_at=NOON + 5 * DAY, true_at=NOON + 20 * DAY), {OSLO}),
    ],
)
def test_recall_answers_as_of_another_time(kit: MemoryKit, only: RecallFilter, expected: set[str]) -> None:
    """What was true in March, and what was known in March, are two questions; audits ask both."""
    assert found(kit, only) == expected


@pytest.mark.requirement("X4")
def test_what_was_recorded_later_was_not_known_then(kit: MemoryKit) -> None:
    """The version of then has the status of then, and later messages stay out of it."""
    recall = kit.recall("Where does Ann live?", scope=ANN, depth="messages", only=RecallFilter(known_at=NOON + 5 * DAY))
    assert [(hit.text, hit.status) for hit in recall.memories] == [(f"Ann: {OSLO}", "active")]
    assert [hit.text for hit in recall.messages] == [f"Ann: {OSLO}"]


@pytest.mark.parametrize(
    ("only", "expected"),
    [
        (None, {ROME, DEAR}),
        (RecallFilter(types=("personal",)), {ROME}),
        (RecallFilter(tags=("money", "other")), {DEAR}),
        (RecallFilter(statuses=("superseded",)), {OSLO}),
        (RecallFilter(statuses=("superseded", "active"), types=("personal",)), {OSLO, ROME}),
        (RecallFilter(types=("tool",)), set()),
    ],
)
def test_a_filter_bounds_what_comes_back(kit: MemoryKit, only: RecallFilter | None, expected: set[str]) -> None:
    """Whoever asks for one kind of memory gets that kind, and never nothing because others fit better."""
    assert found(kit, only) == expected


def test_only_what_is_trusted_so_far_comes_back(kit: MemoryKit) -> None:
    """Careful callers leave out what only a tool or a document said: memories and messages alike."""
    asked = "Where does Ann live?"
    trusting, careful = (
        kit.recall(asked, scope=ANN, depth="messages", only=RecallFilter(min_trust=trust)) for trust in (0.5, 1.0)
    )
    assert all(hit.trust == 1.0 for hit in (*careful.memories, *careful.messages))
    assert len(careful.messages) < len(trusting.messages)


def test_an_agent_that_trusts_its_tools_recalls_what_they_returned(tmp_path: Path) -> None:
    """An agent that lives by tools of its own must find their results; one that reads the web must not, unasked."""
    trusting = AgentMemorySettings(retrieval=RetrievalPolicy(min_trust=0))
    settings = Settings(home=tmp_path, agents={"remy": trusting, "scout": AgentMemorySettings()})
    order = returned("1", "Order 4711 is on its way.")
    with MemoryKit.open(settings=settings, model=None, embedder=None, index=InMemoryVectorIndex()) as kit:
        for agent, expected in (("remy", [f"tool: {order.text}"]), ("scout", [])):
            scope = Scope(user="ann", agent=agent)
            kit.add_messages([order], scope=scope)
            found = kit.recall("Which order is on its way?", scope=scope, depth="messages")
            assert [hit.text for hit in found.messages] == expected
            asked = RecallFilter(min_trust=0.5)
            assert not kit.recall("Which order?", scope=scope, depth="messages", only=asked).messages


def test_a_bad_filter_is_refused_at_the_door(kit: MemoryKit) -> None:
    """A filter that says nothing sensible must not silently let everything pass."""
    with pytest.raises(InputError, match="RecallFilter"):
        kit.recall("Ann", scope=ANN, only={"types": ["personal"]})  # type: ignore[arg-type]
    with pytest.raises(ValidationError, match="time zone"):
        RecallFilter(true_at=NOON.replace(tzinfo=None))
    with pytest.raises(ValidationError):
        RecallFilter(min_trust=1.5)


async def test_the_async_twin_filters_alike(kit: MemoryKit) -> None:
    """One body for both."""
    recall = await kit.arecall("Where does Ann live?", scope=ANN, only=RecallFilter(statuses=("superseded",)))
    assert [hit.text for hit in recall.memories] == [f"Ann: {OSLO}"]
