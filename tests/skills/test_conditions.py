"""What conditions mean, one by one."""

from __future__ import annotations

from typing import Any

import pytest

from remegraph.models import Condition
from remegraph.skills.choice import described, unmet

FACTS = {"build": {"ok": True, "log": "all green", "tests": 12, "tags": ["a"]}, "none": None}


@pytest.mark.requirement("B9")
@pytest.mark.parametrize(
    ("field", "operator", "value", "holds"),
    [
        ("build.ok", "equals", True, True),
        ("build.ok", "differs", True, False),
        ("build.tests", "equals", 13, False),
        ("build.tests", "at_least", 12, True),
        ("build.tests", "at_most", 11.5, False),
        ("build.tests", "at_least", "12", False),
        ("build.ok", "at_least", 0, False),
        ("build.log", "contains", "green", True),
        ("build.log", "contains", 7, False),
        ("build.tags", "contains", "a", True),
        ("build.tests", "contains", 1, False),
        ("none", "exists", True, True),
        ("push.ok", "exists", True, False),
        ("push.ok", "exists", False, True),
        ("push.ok", "differs", True, False),
        ("build.ok.deeper", "equals", True, False),
    ],
)
def test_a_condition_holds_or_not(field: str, operator: Any, value: Any, holds: bool) -> None:
    """What is not known does not hold, and what cannot be compared is no error in the middle of a run."""
    condition = Condition(field=field, operator=operator, value=value)
    assert unmet([condition], FACTS, {}) == ("" if holds else described(condition))


def test_a_predicate_is_the_hosts_and_an_unknown_one_does_not_hold() -> None:
    """Code of the host decides what no comparison can."""
    condition = Condition(predicate="healthy")
    assert unmet([condition], FACTS, {"healthy": lambda facts: bool(facts["build"]["ok"])}) == ""
    assert unmet([condition], FACTS, {}) == "healthy"
