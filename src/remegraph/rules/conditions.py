"""Whether conditions hold: what makes a procedure one that can be checked."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from remegraph.models import Condition
from remegraph.models.skills import Operator

__all__ = ["Facts", "Predicate", "described", "predicates_of", "unmet"]

Facts = Mapping[str, Any]
"""What is known, as nested mappings."""

Predicate = Callable[[Facts], bool]
"""What a host checks in its own way."""

_MISSING = object()


def unmet(conditions: Iterable[Condition], facts: Facts, predicates: Mapping[str, Predicate]) -> str:
    """Return the first condition that does not hold, in words; empty where all hold.

    Args:
        conditions: The conditions.
        facts: What is known.
        predicates: What the host registered, by name.
    """
    return next((described(each) for each in conditions if not _holds(each, facts, predicates)), "")


def predicates_of(conditions: Iterable[Condition]) -> set[str]:
    """Return the names of the predicates that conditions ask for."""
    return {each.predicate for each in conditions if each.predicate}


def described(condition: Condition) -> str:
    """Return a condition in words."""
    if condition.predicate:
        return condition.predicate
    return f"{condition.field} {condition.operator} {json.dumps(condition.value, ensure_ascii=False)}"


def _holds(condition: Condition, facts: Facts, predicates: Mapping[str, Predicate]) -> bool:
    if condition.predicate:
        known = predicates.get(condition.predicate)
        return known is not None and bool(known(facts))
    found = _found(facts, condition.field)
    if condition.operator == "exists":
        return (found is not _MISSING) == bool(condition.value)
    return found is not _MISSING and _COMPARES[condition.operator](found, condition.value)


def _found(facts: Any, path: str) -> Any:
    for name in path.split("."):
        if not isinstance(facts, Mapping) or name not in facts:
            return _MISSING
        facts = facts[name]
    return facts


def _contains(found: Any, value: Any) -> bool:
    if isinstance(found, str):
        return isinstance(value, str) and value in found
    return isinstance(found, list | tuple) and value in found


def _numbers(*values: Any) -> bool:
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


_COMPARES: Mapping[Operator, Callable[[Any, Any], bool]] = {
    "equals": lambda found, value: bool(found == value),
    "differs": lambda found, value: bool(found != value),
    "contains": _contains,
    "at_least": lambda found, value: _numbers(found, value) and found >= value,
    "at_most": lambda found, value: _numbers(found, value) and found <= value,
}
