"""Items at the door: what is too much is refused before it is read, and what cannot be read says where (MEK, 2.2.3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from remegraph.errors import InputError
from remegraph.models import KnowledgeItem, MemoryItem, in_english

__all__ = ["perceive", "read_item"]

Item = TypeVar("Item", KnowledgeItem, MemoryItem)

_MOST_ITEMS = 200
_DEEPEST = 24
_MOST_PARTS = 5_000
_LONGEST = 50_000


def perceive(items: Iterable[KnowledgeItem | Mapping[str, Any]]) -> list[KnowledgeItem]:
    """Return the items that were given, as records.

    Args:
        items: Items, or JSON in their form.

    Raises:
        InputError: There are too many, or one is too large, too deep, or no item; none is taken in.
    """
    if isinstance(items, str | bytes | Mapping | KnowledgeItem) or not isinstance(items, Iterable):
        raise InputError(f"The items are of type {type(items).__name__}.", "Give a list of knowledge items.")
    given = list(items)
    if len(given) > _MOST_ITEMS:
        raise InputError(f"There are {len(given)} items.", f"Give {_MOST_ITEMS} at most at once.")
    for at, item in enumerate(given):
        _check_size(item, f"items[{at}]")
    return [_item(item, KnowledgeItem, f"items[{at}]") for at, item in enumerate(given)]


def read_item(given: Item | Mapping[str, Any], form: type[Item], **unless_given: object) -> Item:
    """Return one item, as a record.

    Args:
        given: The item, or JSON in its form.
        form: What it shall be.
        unless_given: Values of fields that it may leave out.

    Raises:
        InputError: It is too large, too deep, or no such item; the field is named.
    """
    _check_size(given, "item")
    return _item(given, form, "item", **unless_given)


def _item(item: Item | Mapping[str, Any], form: type[Item], name: str, **unless_given: object) -> Item:
    if isinstance(item, form):
        return item
    if not isinstance(item, Mapping):
        wanted = f"Give a {form.__name__}, or a mapping in its form."
        raise InputError(f"{name} is of type {type(item).__name__}.", wanted)
    try:
        return form.model_validate({**unless_given, **in_english(item)})
    except ValueError as error:  # pydantic's, or that a field is given twice
        raise _refusal(error, form.__name__, name) from error


def _refusal(error: ValueError, form: str, name: str) -> InputError:
    """Return the refusal of an item, which names the first field that is wrong."""
    where, what = [name], str(error)
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        where, what = [name, *map(str, first["loc"])], first["msg"]
    return InputError(f"{'.'.join(where)} cannot be used: {what}.", f"See remegraph.models.{form}.")


def _check_size(item: object, name: str) -> None:
    """Refuse what is too large or too deep, or no JSON, without following it down by recursion."""
    inside: list[tuple[object, int]] = [(item, 1)]
    parts = length = 0
    while inside:
        value, depth = inside.pop()
        parts += 1
        length += len(value) if isinstance(value, str) else 1
        if isinstance(value, float) and not isfinite(value):
            raise InputError(f"{name} holds {value}.", "Give numbers that JSON can hold.")
        if depth > _DEEPEST:
            raise InputError(f"{name} is more than {_DEEPEST} levels deep.", "Say it more simply.")
        if parts > _MOST_PARTS or length > _LONGEST:
            raise InputError(f"{name} is too large.", f"Give at most {_LONGEST} characters and {_MOST_PARTS} values.")
        inside += [(each, depth + 1) for each in _parts(value)]


def _parts(value: object) -> Iterable[object]:
    if isinstance(value, BaseModel):
        return [*dict(value).values()]
    if isinstance(value, Mapping):
        return [*value.keys(), *value.values()]
    return value if isinstance(value, list | tuple) else ()
