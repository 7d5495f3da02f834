"""Knowledge items: validation at the door (MEK, 2.2.3), their ids, digests and titles."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from hashlib import sha256
from math import isfinite
from typing import Any, TypeVar
from uuid import NAMESPACE_URL, uuid5

from pydantic import BaseModel, ValidationError

from remegraph.errors import InputError
from remegraph.models import Kind, KnowledgeItem, MemoryItem, in_english

__all__ = ["SIGNATURE", "item_digest", "knowledge_id", "perceive", "read_item", "short"]

SIGNATURE = "signature"
"""Key of the signature in the metadata of an item."""

_LONGEST_TITLE = 80


def knowledge_id(kind: Kind, content: Mapping[str, Any]) -> str:
    """Return the id of knowledge: the same content always gets the same id."""
    return str(uuid5(NAMESPACE_URL, f"remegraph:knowledge:{kind}:{_canonical(content)}"))


def item_digest(item: KnowledgeItem) -> str:
    """Return the digest of an item: of all its content except the time of sharing and the signature."""
    said = json.loads(item.to_json())
    del said["created_at"]
    said["metadata"].pop(SIGNATURE, None)
    return sha256(_canonical(said).encode()).hexdigest()


def short(text: str) -> str:
    """Return the beginning of a text as a title, in whole words where it has spaces."""
    if len(text) <= _LONGEST_TITLE:
        return text
    cut = text[: _LONGEST_TITLE - 1]
    return f"{cut[: cut.rfind(' ')] if ' ' in cut else cut}…"


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


Item = TypeVar("Item", KnowledgeItem, MemoryItem)

_MOST_ITEMS = 200
_DEEPEST = 24
_MOST_PARTS = 5_000
_LONGEST = 50_000


def perceive(items: Iterable[KnowledgeItem | Mapping[str, Any]]) -> list[KnowledgeItem]:
    """Return the items that were given, as records."""
    if isinstance(items, str | bytes | Mapping | KnowledgeItem) or not isinstance(items, Iterable):
        raise InputError(f"The items are of type {type(items).__name__}.", "Give a list of knowledge items.")
    given = list(items)
    if len(given) > _MOST_ITEMS:
        raise InputError(f"There are {len(given)} items.", f"Give {_MOST_ITEMS} at most at once.")
    for at, item in enumerate(given):
        _check_size(item, f"items[{at}]")
    return [_item(item, KnowledgeItem, f"items[{at}]") for at, item in enumerate(given)]


def read_item(given: Item | Mapping[str, Any], form: type[Item], **unless_given: object) -> Item:
    """Return one item, as a record."""
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
    """Return the error for an item; it names the first wrong field."""
    where, what = [name], str(error)
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        where, what = [name, *map(str, first["loc"])], first["msg"]
    return InputError(f"{'.'.join(where)} cannot be used: {what}.", f"See remegraph.models.{form}.")


def _check_size(item: object, name: str) -> None:
    """Refuse what is too large, too deep or no JSON, without recursion."""
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
