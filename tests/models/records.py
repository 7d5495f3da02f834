"""Hypothesis strategies for any record, read off its fields."""

from __future__ import annotations

import types
from base64 import b64encode
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta, timezone
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Le, MinLen
from hypothesis import strategies as st
from pydantic import BaseModel, PlainValidator
from pydantic.fields import FieldInfo

from remegraph import models
from remegraph.models import (
    KNOWLEDGE_FORMS,
    MEMORY_FORMS,
    Brought,
    BroughtBlock,
    KnowledgeItem,
    Memory,
    MemoryChange,
    MemoryItem,
    Message,
    Record,
    Signature,
    TrustedKey,
)
from remegraph.models.base import Token

__all__ = ["ANY_TEXT", "OPEN", "RECORDS", "instances"]

RECORDS: list[type[Record]] = [
    value
    for value in vars(models).values()
    if isinstance(value, type) and issubclass(value, Record) and value is not Record
]

OPEN = [record for record in RECORDS if record.model_config.get("extra") == "allow"]
"""The contents of what agents exchange: they keep what others put there."""

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=8)
"""Any Python string: NUL and lone surrogates too."""

_TOKEN = get_args(Token)[1]
_TIMES = st.datetimes(
    datetime(1900, 1, 1),  # noqa: DTZ001 - the zone comes from the other strategy
    datetime(2200, 1, 1),  # noqa: DTZ001
    timezones=st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes))),
)
_SPAN = timedelta(days=100_000)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=6,
)
_FURTHER = st.dictionaries(st.from_regex(r"further_[a-z]{1,3}", fullmatch=True), _JSON, max_size=2)
_ITEMS: dict[type[BaseModel], tuple[str, Mapping[Any, type[Record]]]] = {
    MemoryItem: ("memory_type", MEMORY_FORMS),
    KnowledgeItem: ("source_memory_type", KNOWLEDGE_FORMS),
}
_CONTENT = ANY_TEXT | st.lists(_JSON, max_size=3)
_BOUND: dict[type[BaseModel], dict[str, st.SearchStrategy[Any]]] = {
    Memory: {"memory_class": st.just("policy"), "applies_to": st.sampled_from(["", "lang:go"])},
    MemoryChange: {"history": st.none()},
    Brought: {"messages": st.just(()), "blocks": st.just(())},
    BroughtBlock: {"message_ids": st.just(("m1", "m2"))},
    Signature: {"value": st.binary(min_size=64, max_size=64).map(lambda raw: b64encode(raw).decode())},
    TrustedKey: {"public": st.binary(min_size=32, max_size=32).map(lambda raw: b64encode(raw).decode())},
}
"""Fields that cannot be drawn by themselves: one says what another may be."""


@cache
def instances(record: type[BaseModel]) -> st.SearchStrategy[BaseModel]:
    """Return a strategy for whole records: every field is drawn."""
    fields = {name: _values(field.annotation, field.metadata) for name, field in record.model_fields.items()}
    if issubclass(record, Message):
        fields["content"] = _CONTENT
    fields |= _BOUND.get(record, {})
    if record.model_config.get("extra") == "allow":
        return st.builds(lambda known, more: record(**(more | known)), st.fixed_dictionaries(fields), _FURTHER)
    if record in _ITEMS:
        return _items(record, fields)
    return st.builds(record, **fields)


def _items(record: type[BaseModel], fields: dict[str, Any]) -> st.SearchStrategy[BaseModel]:
    """Return a strategy for items, whose type says which form their content has."""
    kind, forms = _ITEMS[record]
    rest = {name: values for name, values in fields.items() if name not in {kind, "content"}}
    return st.one_of(
        *(st.builds(record, **{kind: st.just(name)}, content=instances(form), **rest) for name, form in forms.items())
    )


def _values(annotation: Any, metadata: Iterable[Any]) -> st.SearchStrategy[Any]:
    limits = [limit for item in metadata for limit in (item.metadata if isinstance(item, FieldInfo) else [item])]
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _values(arguments[0], [*arguments[1:], *limits])
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin in (Union, types.UnionType):
        return st.one_of(*(_values(argument, limits) for argument in arguments))
    if origin is tuple:
        least = max((limit.min_length for limit in limits if isinstance(limit, MinLen)), default=0)
        several = st.lists(_values(arguments[0], ()), min_size=least, max_size=2).map(tuple)
        return several if arguments[-1] is ... else st.tuples(*(_values(each, ()) for each in arguments))
    if origin is dict:
        return st.dictionaries(_values(arguments[0], ()), _values(arguments[1], ()), max_size=2)
    return _plain(annotation, limits)


def _plain(kind: Any, limits: list[Any]) -> st.SearchStrategy[Any]:
    if kind is Any:
        return _JSON
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return instances(kind)
    low = next((limit.ge for limit in limits if isinstance(limit, Ge)), None)
    high = next((limit.le for limit in limits if isinstance(limit, Le)), None)
    known: dict[Any, st.SearchStrategy[Any]] = {
        types.NoneType: st.none(),
        bool: st.booleans(),
        int: st.integers(low, high),  # type: ignore[arg-type]
        float: st.floats(low, high, allow_nan=False, allow_infinity=False),  # type: ignore[arg-type]
        datetime: _TIMES,
        timedelta: st.timedeltas(-_SPAN, _SPAN),
        str: _text(limits),
    }
    return known[kind]


def _text(limits: list[Any]) -> st.SearchStrategy[str]:
    for limit in limits:
        if pattern := getattr(limit, "pattern", None):
            return st.from_regex(pattern, fullmatch=True, alphabet=st.characters(codec="ascii"))
    least = max((limit.min_length for limit in limits if isinstance(limit, MinLen)), default=0)
    if any(isinstance(limit, PlainValidator) for limit in limits):
        return ANY_TEXT.filter(lambda text: len(text) >= least)
    without = "\x00" if _TOKEN in limits else ""
    return st.text(st.characters(codec="utf-8", exclude_characters=without), min_size=least, max_size=8)
