"""Exports of other memory systems: of mem0, and of LangGraph stores as LangMem fills them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from remegraph.errors import FileFormatError, MessageError, NaiveTimeError
from remegraph.exchange.times import parse_time
from remegraph.models import ForeignMemory

if TYPE_CHECKING:
    from langgraph.store.base import BaseStore

__all__ = ["Export", "read_langmem", "read_mem0", "read_values", "store_items"]

_PAGE = 1_000
"""Items asked of a store at a time."""

_MEM0 = 'Give what mem0\'s get_all() returns, as JSON: {"results": [{"id": ..., "memory": ..., "user_id": ...}]}.'
_ITEMS = 'Give items of a store, as JSON: [{"namespace": [...], "key": ..., "value": {...}}].'
_LISTS = ("results", "memories", "items")
_WORDS = ("memory", "content", "text", "data")
"""Fields that hold what a memory says, as versions of these systems call it."""


@dataclass
class Export:
    """What was read of an export."""

    memories: list[ForeignMemory] = field(default_factory=list)
    invalid: list[str] = field(default_factory=list)
    """Records that could not be read, and why."""
    relations: int = 0


def read_values(path: Path) -> Iterator[Any]:
    """Read the JSON values of a file: one, or one per line.

    Args:
        path: The file, UTF-8.

    Raises:
        FileFormatError: It cannot be read, or a line is no JSON; names file and line.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise FileFormatError(f"{path}: it cannot be read: {error.strerror}.", "Check the path.") from error
    except UnicodeDecodeError as error:
        raise FileFormatError(f"{path}: it is no UTF-8.", "Save the file as UTF-8.") from error
    try:
        yield json.loads(text)
    except RecursionError as error:
        raise FileFormatError(f"{path}: its JSON is nested too deeply.", "Export it again.") from error
    except ValueError as whole:
        lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
        if len(lines) < 2:
            raise FileFormatError(f"{path}: it is no JSON: {whole}.", "Export it again.") from whole
        for number, line in lines:
            try:
                yield json.loads(line)
            except (ValueError, RecursionError) as error:
                raise FileFormatError(f"{path}, line {number}: it is no JSON: {error}.", "Mend that line.") from error


def read_mem0(values: Iterable[Any], *, timezone: tzinfo | None, skip_invalid: bool) -> Export:
    """Read memories of mem0: lists of them, what `get_all()` returns, or one by one.

    Args:
        values: As JSON.
        timezone: Zone of times that name none.
        skip_invalid: Whether what cannot be read is left out and told, instead of refused.

    Raises:
        FileFormatError: A record cannot be read; it is named.
    """

    def memory(record: Mapping[str, Any]) -> ForeignMemory:
        return ForeignMemory(
            system="mem0",
            record_id=_name(record, "id"),
            content=_words(record),
            user=_name(record, "user_id", needed=False),
            agent=_name(record, "agent_id", needed=False),
            session=_name(record, "run_id", needed=False),
            tags=_labels(record.get("categories")),
            created_at=_time(record, "created_at", timezone),
            updated_at=_time(record, "updated_at", timezone),
            record=dict(record),
        )

    return _read(values, memory, _MEM0, skip_invalid=skip_invalid)


def read_langmem(values: Iterable[Any], *, user_at: int, timezone: tzinfo | None, skip_invalid: bool) -> Export:
    """Read items of a LangGraph store: what LangMem writes, and any other value with words in it.

    Args:
        values: As JSON: items with namespace, key, value, created_at and updated_at, or lists of them.
        user_at: The place in the namespace that names the user.
        timezone: Zone of times that name none.
        skip_invalid: Whether what cannot be read is left out and told, instead of refused.

    Raises:
        FileFormatError: An item cannot be read; it is named.
    """

    def memory(item: Mapping[str, Any]) -> ForeignMemory:
        namespace = _namespace(item)
        value = item.get("value")
        if not isinstance(value, Mapping):
            raise ValueError("its value is no object")
        return ForeignMemory(
            system="langmem",
            record_id=_name(item, "key"),
            content=_said(value),
            user=namespace[user_at] if -len(namespace) <= user_at < len(namespace) else "",
            namespace=namespace,
            created_at=_time(item, "created_at", timezone),
            updated_at=_time(item, "updated_at", timezone),
            record=dict(item),
        )

    return _read(values, memory, _ITEMS, skip_invalid=skip_invalid)


def store_items(store: BaseStore, prefix: tuple[str, ...]) -> list[dict[str, Any]]:
    """Read all items of a LangGraph store below a namespace. Their time to live is not renewed.

    Args:
        store: The store.
        prefix: The namespace.

    Raises:
        FileFormatError: The store changed meanwhile, so that items may be missing.
    """
    found: dict[tuple[tuple[str, ...], str], dict[str, Any]] = {}
    read = 0
    while page := store.search(prefix, limit=_PAGE, offset=read, refresh_ttl=False):
        read += len(page)
        for item in page:
            found[item.namespace, item.key] = {
                "namespace": list(item.namespace),
                "key": item.key,
                "value": item.value,
                "created_at": _iso(item.created_at),
                "updated_at": _iso(item.updated_at),
            }
    if len(found) != read:
        raise FileFormatError("The store changed while it was read.", "Import it while nobody writes to it.")
    return list(found.values())


def _read(
    values: Iterable[Any], memory: Callable[[Mapping[str, Any]], ForeignMemory], cure: str, *, skip_invalid: bool
) -> Export:
    export, ids = Export(), set[object]()
    for place, record in enumerate(_records(values, export, cure), 1):
        try:
            found = memory(_object(record))
            _check_new((found.namespace, found.record_id), ids)
        except ValueError as error:
            why = f"Record {place}{_called(record)}: {_told(error)}."
            if not skip_invalid:
                remedy = error.cure if isinstance(error, NaiveTimeError) else cure
                raise FileFormatError(why, f"{remedy} Or skip what is invalid.") from error
            export.invalid.append(why)
        else:
            export.memories.append(found)
    return export


def _object(record: object) -> Mapping[str, Any]:
    if not isinstance(record, Mapping):
        raise ValueError(f"it is a {type(record).__name__}, no object")
    return record


def _check_new(name: object, ids: set[object]) -> None:
    if name in ids:
        raise ValueError("its id stands twice in the export")
    ids.add(name)


def _records(values: Iterable[Any], export: Export, cure: str) -> Iterator[Any]:
    for value in values:
        name = next((each for each in _LISTS if isinstance(value, Mapping) and isinstance(value.get(each), list)), None)
        if name is not None:
            export.relations += len(value.get("relations") or ())
            yield from value[name]
        elif isinstance(value, list):
            yield from value
        elif isinstance(value, Mapping):
            yield value
        else:
            raise FileFormatError(f"A {type(value).__name__} is no export.", cure)


def _called(record: object) -> str:
    name = (
        next((record[each] for each in ("id", "key") if each in record), None) if isinstance(record, Mapping) else None
    )
    return f" ({name!s:.80})" if name else ""


def _told(error: ValueError) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False)[0]
        return f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"
    return (error.what if isinstance(error, MessageError) else str(error)).rstrip(".")


def _name(record: Mapping[str, Any], key: str, *, needed: bool = True) -> str:
    value = record.get(key)
    if value is None and not needed:
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise ValueError(f"its {key} is {value!r}")
    return str(value)


def _words(record: Mapping[str, Any]) -> str:
    for key in _WORDS:
        if isinstance(value := record.get(key), str) and value.strip():
            return value
    raise ValueError("it says nothing")


def _said(value: Mapping[str, Any]) -> str:
    """Return what a value of a store says: its words, or its fields where a schema of the host's own has several."""
    inner = value.get("content")
    if isinstance(inner, Mapping):
        return _said(inner)
    plain = [key for key in _WORDS if isinstance(value.get(key), str) and value[key].strip()]
    if len(plain) == 1 and set(value) <= {plain[0], "kind"}:
        return str(value[plain[0]])
    told = [f"{key}: {_line(each)}" for key, each in value.items() if key != "kind" and each not in (None, "", [], {})]
    if not told:
        raise ValueError("it says nothing")
    return "\n".join(told)


def _line(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _labels(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, Sequence) or isinstance(value, str) or not all(isinstance(each, str) for each in value):
        raise ValueError(f"its categories are {value!r}")
    return tuple(dict.fromkeys(value))


def _namespace(item: Mapping[str, Any]) -> tuple[str, ...]:
    value = item.get("namespace", item.get("prefix"))
    labels = value.split(".") if isinstance(value, str) else value
    if not isinstance(labels, Sequence) or not labels or not all(isinstance(each, str) and each for each in labels):
        raise ValueError(f"its namespace is {value!r}")
    return tuple(labels)


def _time(record: Mapping[str, Any], key: str, timezone: tzinfo | None) -> datetime | None:
    value = record.get(key)
    return None if value is None else parse_time(value, timezone=timezone)


def _iso(time: datetime | str) -> str:
    return time if isinstance(time, str) else time.isoformat()
