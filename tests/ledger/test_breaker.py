"""Nobody is held up by an index that hangs: calls are given up in time, and what follows a write is not waited for."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from threading import Event, Timer

import pytest

from remegraph.deadlines import Patience
from remegraph.errors import LedgerUnavailableError, VectorIndexError
from remegraph.ledger.index.breaker import Background, TimedCalls

PATIENCE = 60
"""Seconds that a test waits for a thread before it fails; none waits so long where all is well."""


class Server:
    """Something that is asked, and answers when it is let."""

    def __init__(self) -> None:
        self.asked = 0
        self.free = Event()
        self.free.set()

    def __call__(self) -> str:
        self.asked += 1
        assert self.free.wait(PATIENCE)
        return "answer"


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.free.set()


def until(true: Callable[[], bool]) -> None:
    end, pause = time.monotonic() + PATIENCE, Event()
    while not true():
        assert time.monotonic() < end
        pause.wait(0.005)


def answers(calls: TimedCalls, server: Server) -> bool:
    try:
        return calls.ask(server, Patience(0.1)) == "answer"
    except VectorIndexError:
        return False


def test_one_call_waits_for_an_index_that_hangs_and_then_nobody_does_until_it_answers_in_time(server: Server) -> None:
    """Every recall would wait for the same silence; and nobody has to do anything for it to be used again."""
    calls = TimedCalls(0.1, rest=0)
    assert answers(calls, server)
    server.free.clear()
    with pytest.raises(VectorIndexError, match="did not answer in time"):
        calls.ask(server, Patience(0.1))
    asked = server.asked
    began = time.monotonic()
    for _ in range(1_000):
        with pytest.raises(VectorIndexError, match="in time"):
            calls.ask(server, Patience(0.1))
    assert time.monotonic() - began < 10, "a hundred seconds, had they waited"
    until(lambda: not answers(calls, server) and server.asked == asked + 1)  # one looks, in the background
    server.free.set()
    until(lambda: answers(calls, server))


def test_an_index_that_answers_late_each_time_is_not_waited_for_again(server: Server) -> None:
    """Slow is no better than silent for whoever waits: only an answer in time counts."""
    calls = TimedCalls(0.05, rest=0)

    def late() -> str:
        Event().wait(0.2)
        return server()

    with pytest.raises(VectorIndexError):
        calls.ask(late, Patience(0.05))
    until(lambda: server.asked == 1)
    for _ in range(3):
        before = server.asked
        until(lambda: not _asked(calls, late) and server.asked > before)  # noqa: B023
    assert not _asked(calls, late)


def _asked(calls: TimedCalls, call: Callable[[], str]) -> bool:
    try:
        return bool(calls.ask(call, Patience(0.05)))
    except VectorIndexError:
        return False


def test_searches_of_one_question_share_its_patience(server: Server) -> None:
    """Five searches that take nearly as long as one may would take five times that."""
    patience, calls = Patience(0.3), TimedCalls(0.3)

    def slow() -> None:
        Event().wait(0.2)

    calls.ask(slow, patience)
    with pytest.raises(VectorIndexError):
        calls.ask(slow, patience)
    patience.left = 0.0
    with pytest.raises(VectorIndexError):
        TimedCalls(0.3).ask(server, patience)
    assert server.asked == 0


def test_who_is_in_more_of_a_hurry_than_others_does_not_decide_for_them(server: Server) -> None:
    """A write gives up sooner than a recall: that is no sign of anything."""
    calls = TimedCalls(60)
    server.free.clear()
    with pytest.raises(VectorIndexError):
        calls.ask(server, Patience(0.06))
    server.free.set()
    assert calls.ask(server, Patience(60)) == "answer"


def test_how_a_call_fails_is_told_as_it_is() -> None:
    """A server that refuses at once is not late."""

    def fail() -> None:
        raise VectorIndexError("refused")

    calls = TimedCalls(60)
    for _ in range(2):
        with pytest.raises(VectorIndexError, match="refused"):
            calls.ask(fail, Patience(60))


def test_what_follows_a_write_is_looked_on_for_a_moment_and_done_in_the_end(server: Server) -> None:
    """A save returns when its words are durable; that the index lags behind harms nobody."""
    following = Background(server, 0.05)
    following.ask()
    assert server.asked == 1
    server.free.clear()
    for _ in range(3):
        following.ask()
    assert not following.settle(0)
    server.free.set()
    assert following.settle(PATIENCE)
    assert server.asked == 3, "what was asked for meanwhile is done together, afterwards"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_fork_waits_for_what_is_under_way(server: Server) -> None:
    """A child has no such thread, and its locks stay locked: one that came in the middle of an import hung for ever."""
    following = Background(server, 0)
    server.free.clear()
    following.ask()
    until(lambda: server.asked == 1)
    Timer(0.2, server.free.set).start()
    child = os.fork()
    if not child:
        os._exit(0 if following.settle(0) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_how_it_failed_is_told_at_once_or_by_the_next_that_asks() -> None:
    """Nobody is there when it fails in the background; a failure that nobody hears of lasts for ever."""
    outcomes = [VectorIndexError("first"), None, VectorIndexError("third")]

    def do() -> None:
        if (outcome := outcomes.pop(0)) is not None:
            raise outcome

    following = Background(do, PATIENCE)
    with pytest.raises(VectorIndexError, match="first"):
        following.ask()
    following.ask()
    following.start()
    assert following.settle(PATIENCE)
    gate = Event()
    outcomes.append(None)
    following._do = lambda: gate.wait(PATIENCE)
    following.hurry()
    with pytest.raises(VectorIndexError, match="third"):
        following.ask()
    gate.set()
    assert following.settle(PATIENCE)


def test_that_the_ledger_was_away_is_not_told_to_those_who_have_used_it_since() -> None:
    """After an outage each job had failed once more, by what the index could not do while it lasted."""

    def away() -> None:
        raise LedgerUnavailableError("It is away.")

    following, gate = Background(away, PATIENCE), Event()
    with pytest.raises(LedgerUnavailableError):
        following.ask()
    following._do = lambda: gate.wait(PATIENCE)
    following.hurry()
    following.ask()
    gate.set()
    assert following.settle(PATIENCE)
