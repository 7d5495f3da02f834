"""A connection that breaks when a change is committed: nobody knows whether it took effect, and repeating it is safe."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from remegraph import LedgerUnavailableError, MemoryKit, OutcomeUnknownError, Settings
from remegraph.testing import InMemoryVectorIndex
from tests.reliability.proxy import Moment, Wire, wired
from tests.talk import ANN, SHARED_KEY

pytestmark = pytest.mark.requirement("X3")

MOMENTS: tuple[Moment, ...] = ("before", "after")
TOLD = {"id": "m1", "role": "user", "content": "I live in Lisbon."}


@pytest.fixture
def wire(postgres_url: str, tmp_path: Path) -> Iterator[tuple[MemoryKit, Wire]]:
    """A kit whose ledger is at the other end of a wire."""
    with wired(postgres_url) as (url, wire):
        settings = Settings(home=tmp_path, ledger_url=url, journal_key=SHARED_KEY)
        with MemoryKit.open(settings=settings, model=None, embedder=None, index=InMemoryVectorIndex()) as kit:
            kit.add_messages(["Hello."], scope=ANN)
            yield kit, wire


def texts(kit: MemoryKit) -> list[str]:
    return [message.text for message in kit.sources.retrieve_message(scope=ANN)]


@pytest.mark.parametrize("moment", MOMENTS)
def test_an_error_says_where_nobody_knows_the_outcome(wire: tuple[MemoryKit, Wire], moment: Moment) -> None:
    """Whoever reads "nothing was written" and says it again without an id has it twice."""
    kit, cut = wire
    cut.arm(moment, moment)
    with pytest.raises(OutcomeUnknownError, match=r"not known.*carries an id") as caught:
        kit.add_messages([TOLD], scope=ANN)
    assert isinstance(caught.value, LedgerUnavailableError)
    assert caught.value.retryable
    assert cut.cut == 2


@pytest.mark.parametrize("moment", MOMENTS)
def test_the_repetition_that_an_unknown_outcome_invites_works(wire: tuple[MemoryKit, Wire], moment: Moment) -> None:
    """A retryable error that makes its retry fail is a trap; the clock has moved on meanwhile."""
    kit, cut = wire
    cut.arm(moment, moment)
    with pytest.raises(OutcomeUnknownError):
        kit.add_messages([TOLD], scope=ANN)
    receipt = kit.add_messages([TOLD], scope=ANN)
    assert receipt.message_ids == ("m1",)
    assert (receipt.added, receipt.known) == ((1, 0) if moment == "before" else (0, 1))
    assert texts(kit) == ["Hello.", "I live in Lisbon."]


@pytest.mark.parametrize("moment", MOMENTS)
def test_one_lost_commit_doubles_nothing_that_has_no_id(wire: tuple[MemoryKit, Wire], moment: Moment) -> None:
    """Only the kit knows the ids that it gave, so only the kit can say it again."""
    kit, cut = wire
    cut.arm(moment)
    kit.add_messages(["I live in Lisbon.", "I like tea."], scope=ANN)
    assert cut.cut == 1
    assert texts(kit) == ["Hello.", "I live in Lisbon.", "I like tea."]


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_turn_whose_commit_was_lost_is_recorded_once(wire: tuple[MemoryKit, Wire], moment: Moment) -> None:
    """A capture is said again by itself, as its ids follow from the thread."""
    kit, cut = wire
    cut.arm(moment)
    kit.capture([TOLD, {"role": "assistant", "content": "Noted."}], scope=ANN)
    assert cut.cut == 1
    assert texts(kit) == ["Hello.", "I live in Lisbon.", "Noted."]


def test_what_fails_before_it_is_committed_is_not_said_to_be_unknown(wire: tuple[MemoryKit, Wire]) -> None:
    """Else nobody would believe it."""
    kit, _ = wire
    database = kit.context.parts().archive.database
    with pytest.raises(LedgerUnavailableError) as caught, database.write() as connection:
        connection.exec_driver_sql("SELECT pg_terminate_backend(pg_backend_pid())")
    assert not isinstance(caught.value, OutcomeUnknownError)
