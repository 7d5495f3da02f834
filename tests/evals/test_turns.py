"""What memory costs an agent: whoever makes it cheaper, or dearer, must see it here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from threading import Lock
from typing import Any

import pytest
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import HumanMessage

from evals import placement, turns
from evals._timing import loaded
from evals.turns import Meter, Prompt, beyond, delays, notes, prompt, ratios, session
from remegraph import MemoryKit, Scope
from remegraph.adapters import MemoryMiddleware
from remegraph.testing import FrozenClock

NOTE = "You may remember that Ann keeps {0} kites in the hall, since she told you so some time ago. " * 10


class Forgetful(AgentMiddleware[Any, Any, Any]):
    """Remembers nothing."""

    def __init__(self, kit: MemoryKit, scope: Scope) -> None:  # noqa: ARG002 - made as ours is
        super().__init__()


class Steady(Forgetful):
    """Adds a note of each turn to the conversation, where it stays."""

    def before_agent(self, state: Any, runtime: Any) -> dict[str, Any]:  # noqa: ARG002 - the base class names it
        return {"messages": [HumanMessage(NOTE.format(len(state["messages"])))]}


class Moving(Forgetful):
    """Shows its note before the newest words, and nowhere on the next turn."""

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        people = [at for at, message in enumerate(request.messages) if message.type == "human"]
        before, after = request.messages[: people[-1]], request.messages[people[-1] :]
        return handler(request.override(messages=[*before, HumanMessage(NOTE.format(len(people))), *after]))


def billed(*texts: str, pause: timedelta = timedelta(minutes=1)) -> Meter:
    """Bill these prompts, one after the other."""
    clock = FrozenClock()
    meter = Meter(clock)
    for text in texts:
        meter.sent.append((clock(), text))
        clock.move(pause)
    return meter


def test_a_prefix_is_cached_where_it_is_long_and_young_enough() -> None:
    """Providers serve the beginning of a prompt, from 1,024 tokens on, for five minutes; nothing behind a change."""
    long, short = "x" * 4 * 1024, "x" * 4 * 1000
    assert billed(long + "a", long + "b").cached == 1024
    assert billed(long + "a", long + "b").tokens == 2048
    assert billed(short + "a", short + "b").cached == 0
    assert billed("a" + long, "b" + long).cached == 0
    assert billed(long, long, pause=timedelta(minutes=6)).cached == 0
    assert billed(long, "other", long).cached == 1024


@pytest.fixture(scope="module")
def bare() -> Prompt:
    """An agent without memory."""
    return prompt(None, turns=3, known=0)


@pytest.mark.parametrize(("middleware", "costs"), [(Forgetful, False), (Steady, False), (Moving, True)])
def test_a_note_that_moves_costs_more_than_itself(middleware: Any, costs: bool, bare: Prompt) -> None:
    """A note that stays where it was is paid once; one that is gone on the next turn breaks the cache behind it."""
    remembering = prompt(middleware, turns=3, known=0)
    assert len(notes(bare, remembering)) == (0 if middleware is Forgetful else 3)
    assert (beyond(bare, remembering) > 1000) is costs
    assert (beyond(bare, remembering) > 0) is costs


def test_the_default_middleware_costs_its_notes_and_tools_once(bare: Prompt) -> None:
    """Whatever stands in a prompt on later turns must stand where it stood."""
    for waits in (True, False):
        assert beyond(bare, prompt(MemoryMiddleware, turns=3, known=0, waits=waits)) <= 0


@pytest.mark.parametrize(("way", "dear"), [("kept", False), ("end", True), ("system", True)])
def test_where_a_host_marks_what_to_cache_a_note_that_moves_costs_more(way: str, dear: bool, bare: Prompt) -> None:
    """A mark on a note that is gone at the next call is good for nothing."""
    found = prompt(placement.WAYS[way], turns=3)
    assert (placement.marked(found) > 2 * placement.marked(bare)) is dear


def test_a_mark_is_found_by_the_calls_that_go_on_from_it() -> None:
    """At the end of a system prompt of 1,024 tokens, or of a whole call, at most twenty messages back."""
    system, long = "s" * 4 * 1024, "x" * 4 * 100
    calls = ((system, long), (system, long, long), (system, "other"), (system, *[long] * 30))
    assert placement.marked(Prompt(0, 0, 0, calls)) == (1024 + 100) + 100 + 1 + 30 * 100


def test_a_note_within_other_words_is_one_too() -> None:
    """Whoever writes memory into the system prompt adds it to the bill all the same."""
    before, after = (Prompt(0, 0, 0, ((f"Be kind.{more}", "Hello"),)) for more in ("", " Ann loves tea."))
    assert notes(before, after) == [" Ann loves tea."]


def test_what_is_not_learned_is_not_cheap() -> None:
    """A middleware that never asks a model has a figure that says what it is worth."""
    cheap = session(1, 0, turns=3, middleware=Forgetful)
    assert (cheap.calls, cheap.learned) == (0, 0)
    paid = session(1, 5, turns=3)
    assert paid.calls > 0
    assert paid.learned == 1
    assert paid.sent > paid.cached
    assert paid.sent > paid.written > 0


@pytest.mark.requirement("X20")
@pytest.mark.slow
@pytest.mark.parametrize(("sessions", "most"), [(1, 15), (10, 25)])
def test_a_hundred_messages_cost_few_calls_and_all_that_they_tell_is_learned(sessions: int, most: int) -> None:
    """Through the middleware as it comes, in one long session or ten short ones, with two hundred memories known."""
    cost = session(sessions, 200)
    assert 0 < cost.calls <= most
    assert cost.sent / 100 <= {1: 350, 10: 600}[sessions]
    assert cost.learned == 1


@pytest.mark.parametrize(("parallel", "late"), [(True, False), (False, True)])
def test_a_writer_that_takes_one_after_the_other_is_late(parallel: bool, late: bool) -> None:
    """Twenty users must not wait for each other."""
    looks: dict[int, int] = {}

    def learned(user: int) -> bool:
        looks[user] = looks.get(user, 0) + 1
        return looks[user] > (1 if parallel else 1 + user)

    one, many = (max(delays(users, lambda _: None, learned)) for users in (1, 12))
    assert (many / one > 4) is late


def test_under_load_all_ask_at_once_and_each_call_is_timed() -> None:
    """A figure under load that ran one by one is the figure of an idle machine."""
    asked: list[int] = []
    lock, opened = Lock(), []

    @contextmanager
    def asking() -> Iterator[Callable[[int], object]]:
        opened.append(1)

        def ask(number: int) -> None:
            with lock:
                asked.append(number)

        yield ask

    taken = loaded(4, 5, asking)
    assert (len(opened), len(taken)) == (4, 20)
    assert set(asked) == set(range(20))


def test_recall_slower_than_three_times_its_queries_is_red() -> None:
    """The ratio of one run is what holds on a busy machine, too."""
    raw = {1: [1.0, 1.0], 16: [10.0, 10.0]}
    found = {figure.name: figure.verdict for figure in ratios({1: [2.0, 2.0], 16: [31.0, 31.0]}, raw)}
    assert found == {
        "recall, one user alone, p50 / raw queries": "PASS",
        "recall, one user alone, p95 / raw queries": "PASS",
        "recall, 16 users at once, p50 / raw queries": "FAIL",
        "recall, 16 users at once, p95 / raw queries": "FAIL",
    }


@pytest.mark.slow
def test_the_whole_command_runs_on_little(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Every figure has its place on the page."""
    places = (
        "turns how",
        "turns calls",
        "turns prompt",
        "turns waiting",
        "turns learned",
        "turns fair",
        "turns recall",
    )
    page = tmp_path / "page.md"
    page.write_text("".join(f"<!-- begin: {name} -->\n<!-- end: {name} -->\n" for name in places), encoding="utf-8")
    small = ["--turns", "5", "--latency", "0.01", "--messages", "200", "--users", "4"]
    with pytest.raises(SystemExit):
        turns.main([*small, "--page", str(page)])
    printed = capsys.readouterr().out
    written = page.read_text(encoding="utf-8")
    assert all(line.split("  ")[0] in written for line in printed.splitlines()[:-1])
    assert "-->\n<!-- end" not in written
