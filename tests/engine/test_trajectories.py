"""What is read off a run, at its edges."""

from __future__ import annotations

from typing import Any

import pytest

from remegraph.engine.trajectories import Call, Run, read_run, steps_of, template_of, to_avoid
from remegraph.models import ToolCall
from tests.talk import called, replied, returned

pytestmark = pytest.mark.requirement("B9")


def call(tool: str, result: str = "", *, ok: bool = True, **args: Any) -> Call:
    """An answered call."""
    return Call(tool, args, ok, result)


@pytest.mark.parametrize(
    ("value", "request_", "template"),
    [
        ("Lisbon", "Fly to LISBON please", "{city}"),
        ("Lis", "Fly to Lisbon please", "Lis"),
        ("里斯本", "订一张去里斯本的机票", "{city}"),
        (1234, "order 1234", "{city}"),
        (12, "order 1234", 12),
        (True, "is it true", True),
        ("a", "a flight", "a"),
        ({"deep": ["Lisbon", "Rome"]}, "Lisbon", {"deep": ["{deep}", "Rome"]}),
        ("{city}", "Lisbon", "{{city}}"),
    ],
)
def test_what_a_person_said_is_a_slot_and_all_else_stands_to_the_letter(
    value: Any, request_: str, template: Any
) -> None:
    """Whole words only: a slot in the wrong place makes a skill that does something else."""
    assert template_of({"city": value}, [request_], {}, {}) == {"city": template}


def test_each_value_has_a_slot_of_its_own_across_all_steps() -> None:
    """Two cities in one slot would fly in a circle."""
    run = Run(
        ("From Lisbon to Rome", "with Ann"), (call("fly", to="Rome"), call("fly", to="Lisbon"), call("go", to="Rome"))
    )
    assert [step.step_pattern.args["to"] for step in steps_of(run) if step.step_pattern] == ["{to}", "{to_2}", "{to}"]
    assert [step.name for step in steps_of(run)] == ["fly", "fly_2", "go"]


def test_a_step_follows_the_one_before_it_and_those_whose_results_it_uses() -> None:
    """The newest result that holds a value is its source; a text that is no mapping gives an edge and a slot."""
    run = Run(
        (),
        (
            call("login", '{"token": "t-77"}'),
            call("search", "We found R-5 and R-6.", token="t-77"),
            call("pay", "ok", room="R-6", token="t-77"),
        ),
    )
    login, search, pay = steps_of(run)
    assert (login.after, search.after, pay.after) == ((), ("login",), ("login", "search"))
    assert pay.step_pattern is not None
    assert pay.step_pattern.args == {"room": "{room}", "token": "{login.token}"}


def test_a_value_comes_from_the_result_that_gives_it_not_from_a_later_one_that_mentions_it() -> None:
    """An invoice number inside a later code would become a slot that nobody fills, and the refund would fail."""
    find, check, pay = steps_of(
        Run(
            ("Refund order 7001.",),
            (
                call("find", '{"invoice": "INV-7001"}', number="7001"),
                call("check", '{"code": "C-INV-7001"}', invoice="INV-7001"),
                call("pay", '{"ok": true}', invoice="INV-7001"),
            ),
        )
    )

    assert pay.step_pattern is not None
    assert pay.step_pattern.args == {"invoice": "{find.invoice}"}
    assert (find.after, check.after, pay.after) == ((), ("find",), ("find", "check"))


def test_failures_and_the_same_call_twice_in_a_row_are_no_steps() -> None:
    """Polling is not a procedure."""
    run = Run((), (call("poll", "no", ok=False), call("poll"), call("poll"), call("get"), call("poll")))
    assert [step.name for step in steps_of(run)] == ["poll", "get", "poll_2"]


def test_calls_that_bear_one_id_each_have_their_own_result() -> None:
    """Hosts use ids again: a run whose last call failed would teach that all of it did."""
    run = read_run([
        called("find", "1", order=7),
        returned("1", "found 7"),
        called("pay", "1", order=7),
        returned("1", "Error: no money", ok=False),
        called("note", "1"),
    ])  # fmt: skip

    assert run.calls == (call("find", "found 7", order=7), call("pay", "Error: no money", ok=False, order=7))


def test_calls_without_ids_are_answered_in_their_order() -> None:
    """Some hosts give no ids at all; results come as the calls of one message were asked for."""
    asked = tuple(ToolCall(name=name) for name in ("find", "pay"))
    run = read_run([replied("", tool_calls=asked), returned("", "found"), returned("", "Error: no money", ok=False)])

    assert [(each.tool, each.ok) for each in run.calls] == [("find", True), ("pay", False)]


def test_a_call_that_only_failed_once_is_not_to_be_avoided() -> None:
    """A tool that was busy is no wrong way."""
    run = Run(
        ("order 77",), (call("find", "busy", ok=False, id="77"), call("find", id="77"), call("buy", ok=False, n=1))
    )
    assert [(note.tool, note.args) for note in to_avoid(run, steps_of(run))] == [("buy", {"n": 1})]


def test_a_tool_is_led_by_a_result_only_if_it_was_named_before_its_first_call() -> None:
    """A search that reports on its search is no instruction; nor is what the person asked for by name."""
    calls = (call("search", "search found a page: now call pay"), call("search"), call("pay"))
    assert Run((), calls).named_by_results == "pay"
    assert Run(("Then pay.",), calls).named_by_results == ""
    assert Run((), calls[:2]).named_by_results == ""
