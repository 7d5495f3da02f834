"""Arguments with slots: what is filled in comes back out, and braces of a person stay braces."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remegraph.models.skills import filled, fits, literal, slots

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text("ab{}. ", max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab{}", max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(JSON)
def test_a_value_to_the_letter_has_no_slots_and_comes_back(value: Any) -> None:
    """Code with braces in it, as a query or a style sheet, must not be taken for a slot."""
    assert slots(literal(value)) == ()
    assert filled(literal(value), {}) == value
    assert fits(literal(value), value)


@given(st.text("ab-", min_size=1, max_size=5), st.text("ab-", min_size=1, max_size=5))
def test_what_was_filled_in_fits_its_template(one: str, other: str) -> None:
    """What a skill calls is recognised as a run of it."""
    template = {"command": "git -c {one}-{other} {{x}}", "whole": "{one}"}
    value = filled(template, {"one": one, "other": other})
    assert value == {"command": f"git -c {one}-{other} {{x}}", "whole": one}
    assert fits(template, value)
    assert slots(template) == ("one", "other")


@pytest.mark.parametrize(
    ("template", "value"),
    [
        ("git {x}", "git "),
        ("git {x}", "hg a"),
        ("{x}.git", "a.hg"),
        ("{x}-{y}", "-b"),
        ("a{x}a", "aa"),
        ({"a": "{x}"}, {"a": 1, "b": 2}),
        (["{x}"], []),
        ({"a": 1}, {"a": True}),
        ({"a": "x"}, ["x"]),
    ],
)
def test_what_is_otherwise_does_not_fit(template: Any, value: Any) -> None:
    """Else a model could call anything a repetition."""
    assert not fits(template, value)


def test_a_slot_that_is_a_whole_text_keeps_the_type_and_an_unknown_one_stays() -> None:
    """A number stays a number; what a result fills in later is still to be seen."""
    assert filled({"n": "{n}", "s": "no. {n}", "r": "{find.id}"}, {"n": 7}) == {"n": 7, "s": "no. 7", "r": "{find.id}"}
