"""LangGraph's filters over values, and its patterns over namespaces: the ledger, which holds items, knows neither."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langgraph.store.base import MatchCondition

from remegraph.errors import InputError

__all__ = ["check_filter", "fits", "matches"]

_ANY = "*"
_EQUAL: dict[str, Callable[[Any, Any], bool]] = {"$eq": operator.eq, "$ne": operator.ne}
_ORDER: dict[str, Callable[[float, float], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


def check_filter(wanted: object) -> None:
    """Refuse operators that there are not, at any depth.

    Raises:
        InputError: There is one.
    """
    if isinstance(wanted, Mapping):
        known = _EQUAL | _ORDER
        if _has_operators(wanted):
            unknown = [name for name in wanted if name not in known]
            if unknown:
                raise InputError(f"There is no filter operator {unknown[0]!r}.", f"Use {', '.join(known)}.")
        else:
            for inner in wanted.values():
                check_filter(inner)
    elif isinstance(wanted, list | tuple):
        for inner in wanted:
            check_filter(inner)


def matches(value: Any, wanted: Any) -> bool:
    """Return whether a JSON value meets a filter.

    A mapping with operators is met where all of them are; any other mapping where its fields are met, whatever else
    the value holds; a list item by item; anything else by being equal. Orders compare numbers, and texts that are
    numbers; what is none is in no order.

    Args:
        value: The value, none where there is none.
        wanted: The filter; see `check_filter`.
    """
    if isinstance(wanted, Mapping):
        if _has_operators(wanted):
            return all(_holds(value, name, operand) for name, operand in wanted.items())
        return isinstance(value, Mapping) and all(matches(value.get(name), inner) for name, inner in wanted.items())
    if isinstance(wanted, list | tuple):
        return (
            isinstance(value, list)
            and len(value) == len(wanted)
            and all(matches(one, inner) for one, inner in zip(value, wanted, strict=True))
        )
    return bool(value == wanted)


def fits(namespace: Sequence[str], condition: MatchCondition) -> bool:
    """Return whether a namespace begins, or ends, with a pattern; `*` stands for any one label.

    Args:
        namespace: Its labels.
        condition: The pattern, and which end it is for.

    Raises:
        InputError: It is for neither end.
    """
    pattern = condition.path
    if condition.match_type not in {"prefix", "suffix"}:
        raise InputError(f"A namespace cannot be matched by {condition.match_type!r}.", "Use prefix or suffix.")
    if len(namespace) < len(pattern):
        return False
    labels = namespace[: len(pattern)] if condition.match_type == "prefix" else namespace[-len(pattern) :]
    return all(wanted in (_ANY, label) for wanted, label in zip(pattern, labels, strict=False))


def _has_operators(wanted: Mapping[str, Any]) -> bool:
    return any(name.startswith("$") for name in wanted)


def _holds(value: Any, name: str, operand: Any) -> bool:
    if name in _EQUAL:
        return bool(_EQUAL[name](value, operand))
    try:
        return bool(_ORDER[name](float(value), float(operand)))
    except (TypeError, ValueError):
        return False
