"""`MemoryStore`: a LangGraph store over a kit, for `create_agent(store=...)`, LangMem's tools, deepagents and others.

It behaves as LangGraph's `InMemoryStore` does, order and scores included, except that

- an item is found by its current value only: there, texts of earlier values are still found;
- two items of one batch may have the same text: there, that is an error;
- a namespace is there while it holds items: there, reading from it makes it, and deleting leaves it;
- values are JSON and copied: there, an item shares its value with the store, and tuples stay tuples;
- a key is text: there, one that is given to `batch` is kept as it is;
- `created_at` is the time of the first write: there, of the last;
- an order (`$gt` and the like) does not hold for what is no number: there, that is an error;
- an unknown filter operator, a negative `limit`, `offset` or `max_depth` is an error: there, not always;
- `index=["$"]` in `put` means the whole value, as it does in the configuration: there, nothing;
- items have a time to live: there, they have none.

Items are not memories: nothing is extracted from them, and `recall` does not find them.
"""

from __future__ import annotations

import asyncio
import json
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
    get_text_at_path,
    validate_op_namespace,
)

from remegraph.adapters.scopes import check_surface
from remegraph.errors import InputError
from remegraph.kit.validation import required
from remegraph.ports import ItemChange, StoredItem

if TYPE_CHECKING:
    from remegraph.kit import MemoryKit
    from remegraph.models import Scope

__all__ = ["MemoryStore", "decode_label", "encode_label"]

_EMPTY = "~"
_RESERVED_WORD = "langgraph"
_RESERVED = re.compile(r"[^A-Za-z0-9_@+:-]")
_ESCAPED = re.compile(r"(?:~[0-9A-F]{2})+")


def encode_label(text: str) -> str:
    """Return a text as a label that LangGraph takes; different texts give different labels.

    LangGraph refuses labels that are empty or hold a period or NUL, and `langgraph` as the first one; `*` in a pattern
    means any label; deepagents takes little but letters, digits and `@`. So letters and digits of ASCII and `-_@+:` stay
    as they are, and all else is written as in URLs, with `~` for `%`: `ann@example.org` becomes `ann@example~2Eorg`.

    Args:
        text: Any text.
    """
    if not text:
        return _EMPTY
    if text == _RESERVED_WORD:
        return _escaped(text[0]) + text[1:]
    return _RESERVED.sub(lambda found: _escaped(found[0]), text)


def decode_label(label: str) -> str:
    """Return the text that `encode_label` made a label of.

    Args:
        label: The label.

    Raises:
        InputError: `encode_label` did not make it.
    """
    try:
        text = "" if label == _EMPTY else _ESCAPED.sub(lambda found: _unescaped(found[0]), label)
    except UnicodeDecodeError:
        text = None
    if text is None or encode_label(text) != label:
        raise InputError(f"{label!r} is no encoded label.", "Give what encode_label returned.")
    return text


def _escaped(text: str) -> str:
    return "".join(f"~{byte:02X}" for byte in text.encode("utf-8", "surrogatepass"))


def _unescaped(digits: str) -> str:
    return bytes.fromhex(digits.replace("~", "")).decode("utf-8", "surrogatepass")


_ANY = "*"
_EQUAL: dict[str, Callable[[Any, Any], bool]] = {"$eq": operator.eq, "$ne": operator.ne}
_ORDER: dict[str, Callable[[float, float], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


def _check_filter(wanted: object) -> None:
    """Refuse unknown operators, at any depth.

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
                _check_filter(inner)
    elif isinstance(wanted, list | tuple):
        for inner in wanted:
            _check_filter(inner)


def _matches(value: Any, wanted: Any) -> bool:
    """Return whether a JSON value meets a filter.

    A mapping with operators is met where all of them are; any other mapping where its fields are met, whatever else
    the value holds; a list item by item; anything else by being equal. Orders compare numbers, and texts that are
    numbers; what is none is in no order.

    Args:
        value: The value, none where there is none.
        wanted: The filter; see `_check_filter`.
    """
    if isinstance(wanted, Mapping):
        if _has_operators(wanted):
            return all(_holds(value, name, operand) for name, operand in wanted.items())
        return isinstance(value, Mapping) and all(_matches(value.get(name), inner) for name, inner in wanted.items())
    if isinstance(wanted, list | tuple):
        return (
            isinstance(value, list)
            and len(value) == len(wanted)
            and all(_matches(one, inner) for one, inner in zip(value, wanted, strict=True))
        )
    return bool(value == wanted)


def _fits(namespace: Sequence[str], condition: MatchCondition) -> bool:
    """Return whether a namespace begins, or ends, with a pattern; `*` matches any one label.

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


_WHOLE = ("$",)
_CENTURIES = timedelta(days=365_000)


class MemoryStore(BaseStore):
    """A LangGraph store whose items belong to one scope, in the ledger of a kit.

    Safe to share between threads and event loops. The operations of one batch see the items as they were before it;
    its writes are made together, or none of them.

    Args:
        kit: The kit; its opener closes it. Its embedder embeds items.
        scope: Whose items; those of other scopes are out of reach, whatever the namespace.
        index: What items are found by, unless `put` says otherwise: JSON paths into the value, as `fields` of
            LangGraph's `IndexConfig`; the whole value unless given; False: no search by query.
        ttl: `default_ttl` in minutes and `refresh_on_read`. Expired items are never returned, and deleted at a later
            write, or by `sweep_ttl`: no thread does so, whatever `sweep_interval_minutes` says.
    """

    supports_ttl = True

    def __init__(
        self,
        kit: MemoryKit,
        *,
        scope: Scope,
        index: Sequence[str] | Literal[False] | None = None,
        ttl: TTLConfig | None = None,
    ) -> None:
        check_surface(kit)
        self.ttl_config = ttl
        self._kit = kit
        self._scope = required(scope)
        self._index = _WHOLE if index is None else index

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations; see `BaseStore`, whose other methods all come here.

        Args:
            ops: The operations.

        Raises:
            InvalidNamespaceError: A label is empty, no text, or holds a period or NUL. Nothing was written.
            InputError: A value is no JSON, or a filter, a limit or a time to live cannot be used, in the same way.
        """
        asked = list(ops)
        changes: dict[tuple[tuple[str, ...], str], ItemChange] = {}
        for op in asked:
            _check(op)
            if isinstance(op, PutOp):
                change = self._change(op)
                changes[change.namespace, change.key] = change  # of two, the later one counts
        results = [self._read(op) for op in asked]
        if changes:
            self._kit.items.write(list(changes.values()), scope=self._scope)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations in a thread; see `batch`.

        Args:
            ops: The operations.
        """
        return await asyncio.to_thread(self.batch, list(ops))

    def sweep_ttl(self) -> int:
        """Delete the items that have expired; return how many."""
        return self._kit.items.write((), scope=self._scope)

    async def asweep_ttl(self) -> int:
        """Delete the items that have expired, in a thread; return how many."""
        return await asyncio.to_thread(self.sweep_ttl)

    # -------------------------------------------------------------------------------------------- write

    def _change(self, op: PutOp) -> ItemChange:
        name = (tuple(op.namespace), str(op.key))
        if op.value is None:
            return ItemChange(*name, None)
        value = _json(op.value)
        return ItemChange(*name, value, self._texts(value, op.index), _time_to_live(op.ttl))

    def _texts(self, value: Mapping[str, Any], index: Sequence[str] | Literal[False] | None) -> tuple[str, ...]:
        if self._index is False or index is False:
            return ()
        paths = self._index if index is None else index
        return tuple(text for path in paths for text in get_text_at_path(value, path))

    # --------------------------------------------------------------------------------------------- read

    def _read(self, op: Op) -> Result:
        if isinstance(op, GetOp):
            found = self._kit.items.get(tuple(op.namespace), str(op.key), scope=self._scope, refresh=op.refresh_ttl)
            return None if found is None else Item(**_fields(found))
        if isinstance(op, SearchOp):
            return self._search(op)
        if isinstance(op, ListNamespacesOp):
            return self._list_namespaces(op)
        return None

    def _search(self, op: SearchOp) -> list[SearchItem]:
        wanted = self._kit.context.parts().redactor.json(op.filter or {})  # items are kept so
        found = self._kit.items.search(
            tuple(op.namespace_prefix),
            scope=self._scope,
            query="" if self._index is False else op.query or "",
            where=(lambda value: all(_matches(value.get(name), inner) for name, inner in wanted.items()))
            if wanted
            else None,
            limit=op.limit,
            offset=op.offset,
            refresh=op.refresh_ttl,
        )
        return [SearchItem(**_fields(item), score=score) for item, score in found]

    def _list_namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        found = [
            namespace
            for namespace in self._kit.items.namespaces(scope=self._scope)
            if all(_fits(namespace, condition) for condition in op.match_conditions or ())
        ]
        if op.max_depth is not None:
            found = sorted({namespace[: op.max_depth] for namespace in found})
        return found[op.offset : op.offset + op.limit]


def _check(op: Op) -> None:
    """Refuse an operation before any of its batch is run."""
    if not isinstance(op, GetOp | ListNamespacesOp | PutOp | SearchOp):
        raise InputError(
            f"{type(op).__name__} is no operation of a store.", "Give GetOp, PutOp, SearchOp and the like."
        )
    validate_op_namespace(op)
    if isinstance(op, SearchOp):
        for wanted in (op.filter or {}).values():
            _check_filter(wanted)
    if isinstance(op, ListNamespacesOp | SearchOp):
        _check_counts(limit=op.limit, offset=op.offset)
    if isinstance(op, ListNamespacesOp) and op.max_depth is not None:
        _check_counts(max_depth=op.max_depth)


def _check_counts(**counts: int) -> None:
    for name, count in counts.items():
        if count < 0:
            raise InputError(f"{name} is {count}.", "Give 0 or more.")


def _json(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of a value that shares nothing with the caller's."""
    try:
        copied: dict[str, Any] = json.loads(json.dumps(dict(value), allow_nan=False))
    except (RecursionError, TypeError, ValueError) as error:
        raise InputError(
            f"The value of an item is no JSON: {error}.", "Give text, numbers, lists and dicts."
        ) from error
    return copied


def _time_to_live(minutes: float | None) -> timedelta | None:
    """Return how long an item lives after it was written or read."""
    if minutes is None:
        return None
    if not 0 <= minutes * 60 <= _CENTURIES.total_seconds():
        raise InputError(f"An item cannot live for {minutes} minutes.", "Give 0 or more, or None: it stays for good.")
    return timedelta(minutes=minutes)


def _fields(item: StoredItem) -> dict[str, Any]:
    return {
        "namespace": item.namespace,
        "key": item.key,
        "value": item.value,
        "created_at": item.created_at,
        "updated_at": item.updated_at,
    }
