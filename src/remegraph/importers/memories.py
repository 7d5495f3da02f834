"""Memories of other systems: exports of mem0 and of LangGraph stores, imported with their words as evidence."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from remegraph.errors import FileFormatError, MessageError, NaiveTimeError
from remegraph.importers.messages import parse_time
from remegraph.models import (
    LIVE,
    BlockSummary,
    BroughtBlock,
    ChangeSet,
    Evidence,
    ForeignMemory,
    Memory,
    MemoryChange,
    Message,
    Partition,
    Topic,
)
from remegraph.models.base import operation_id
from remegraph.text.scripts import folded, language_of

if TYPE_CHECKING:
    from langgraph.store.base import BaseStore

    from remegraph.ledger.archive import Archive

__all__ = ["Export", "Importing", "read_langmem", "read_mem0", "read_values", "store_items"]

_PAGE = 1_000
"""Items requested from a store at a time."""

_MEM0 = 'Give what mem0\'s get_all() returns, as JSON: {"results": [{"id": ..., "memory": ..., "user_id": ...}]}.'
_ITEMS = 'Give items of a store, as JSON: [{"namespace": [...], "key": ..., "value": {...}}].'
_LISTS = ("results", "memories", "items")
_WORDS = ("memory", "content", "text", "data")
"""Names of the field with the words of a memory, in versions of these systems."""


@dataclass
class Export:
    """The records of an export."""

    memories: list[ForeignMemory] = field(default_factory=list)
    invalid: list[str] = field(default_factory=list)
    """Records that could not be read, and why."""
    relations: int = 0


def read_values(path: Path) -> Iterator[Any]:
    """Read the JSON values of a file: one, or one per line."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise FileFormatError(f"{path}: it cannot be read: {error.strerror}.", "Check the path.") from error
    except UnicodeDecodeError as error:
        raise FileFormatError(f"{path}: it is not UTF-8.", "Save the file as UTF-8.") from error
    try:
        yield json.loads(text)
    except RecursionError as error:
        raise FileFormatError(f"{path}: its JSON is nested too deeply.", "Export it again.") from error
    except ValueError as whole:
        lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
        if len(lines) < 2:
            raise FileFormatError(f"{path}: it is not JSON: {whole}.", "Export it again.") from whole
        for number, line in lines:
            try:
                yield json.loads(line)
            except (ValueError, RecursionError) as error:
                raise FileFormatError(f"{path}, line {number}: it is not JSON: {error}.", "Mend that line.") from error


def read_mem0(values: Iterable[Any], *, timezone: tzinfo | None, skip_invalid: bool) -> Export:
    """Read memories of mem0: lists of them, what `get_all()` returns, or one by one."""

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
    """Read items of a LangGraph store: what LangMem writes, and any other value with words in it."""

    def memory(item: Mapping[str, Any]) -> ForeignMemory:
        namespace = _namespace(item)
        value = item.get("value")
        if not isinstance(value, Mapping):
            raise ValueError("its value is not an object")
        return ForeignMemory(
            system="langmem",
            record_id=_name(item, "key"),
            content=_content(value),
            user=namespace[user_at] if -len(namespace) <= user_at < len(namespace) else "",
            namespace=namespace,
            created_at=_time(item, "created_at", timezone),
            updated_at=_time(item, "updated_at", timezone),
            record=dict(item),
        )

    return _read(values, memory, _ITEMS, skip_invalid=skip_invalid)


def store_items(store: BaseStore, prefix: tuple[str, ...]) -> list[dict[str, Any]]:
    """Read all items of a LangGraph store below a namespace. Their time to live is not renewed."""
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
        raise FileFormatError("The store changed while it was read.", "Import it while nothing writes to it.")
    return list(found.values())


def _read(
    values: Iterable[Any], memory: Callable[[Mapping[str, Any]], ForeignMemory], cure: str, *, skip_invalid: bool
) -> Export:
    export, ids = Export(), set[object]()
    for place, record in enumerate(_records(values, export, cure), 1):
        try:
            found = _new(record, memory, ids)
        except ValueError as error:
            given = (record.get("id", record.get("key"))) if isinstance(record, Mapping) else None
            why = f"Record {place}{f' ({given!s:.80})' if given else ''}: {_reason(error)}."
            if not skip_invalid:
                remedy = error.cure if isinstance(error, NaiveTimeError) else cure
                raise FileFormatError(why, f"{remedy} Or skip what is invalid.") from error
            export.invalid.append(why)
        else:
            export.memories.append(found)
    return export


def _new(record: object, memory: Callable[[Mapping[str, Any]], ForeignMemory], ids: set[object]) -> ForeignMemory:
    if not isinstance(record, Mapping):
        raise ValueError(f"it is a {type(record).__name__}, not an object")
    found = memory(record)
    if (name := (found.namespace, found.record_id)) in ids:
        raise ValueError("its id is in the export twice")
    ids.add(name)
    return found


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
            raise FileFormatError(f"A {type(value).__name__} is not an export.", cure)


def _reason(error: ValueError) -> str:
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


def _content(value: Mapping[str, Any]) -> str:
    """Return the words of a store's value, or its fields if a schema of the host has several."""
    inner = value.get("content")
    if isinstance(inner, Mapping):
        return _content(inner)
    plain = [key for key in _WORDS if isinstance(value.get(key), str) and value[key].strip()]
    if len(plain) == 1 and set(value) <= {plain[0], "kind"}:
        return str(value[plain[0]])
    lines = [
        f"{key}: {each if isinstance(each, str) else json.dumps(each, ensure_ascii=False)}"
        for key, each in value.items()
        if key != "kind" and each not in (None, "", [], {})
    ]
    if not lines:
        raise ValueError("it says nothing")
    return "\n".join(lines)


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


@dataclass
class Importing:
    """Import the records of one user, batch by batch."""

    archive: Archive
    user: str
    said_in: Partition
    lives_in: Partition
    actor: str
    recipe: str
    at_home: bool
    created: int = 0
    corroborated: int = 0
    known: int = 0
    erased: int = 0
    changed: list[str] = field(default_factory=list)

    def news(self, records: Sequence[ForeignMemory]) -> list[ForeignMemory]:
        """Return the records that were not imported before; count the others."""
        ids = [self._message_id(each) for each in records]
        here = {each.message_id: each.text for each in self.archive.messages([self.said_in], ids=ids)}
        self.known += len(here)
        said = {each.record_id: here.get(name) for each, name in zip(records, ids, strict=True)}
        self.changed += [each.record_id for each in records if said[each.record_id] not in (None, each.content)]
        return [each for each in records if said[each.record_id] is None]

    def change(self, records: Sequence[ForeignMemory], now: datetime) -> ChangeSet:
        """Return one change that imports all new records.

        A record with the words of a known memory, or of an earlier record, corroborates it: it gets both as evidence.
        """
        messages = [self._message(each, now) for each in records]
        raw = self.archive.in_blocks(self.said_in, messages)
        topic = Topic(type="personal", target_name=self.user)
        here = (shelf.topic for shelf in self.archive.topics([self.lives_in]))
        topic = next((each for each in here if (each.type, each.target) == ("personal", topic.target)), topic)
        heads = {
            folded(each.content): each
            for each in self.archive.memories([self.lives_in], topics=[topic], statuses=sorted(LIVE))
        }
        changes: dict[str, MemoryChange] = {}
        for each, message, block in zip(records, messages, raw.blocks, strict=True):
            words = folded(each.content)
            old, before, version = heads.get(words), changes.get(words), 0
            if old is None:
                memory = self._memory(each, message, block, topic, now)
            else:
                version = before.expected_version if before else old.version
                memory = self._corroborated(old, each, message, block).evolve(version=version + 1)
            action = before.action if before else "corroborate" if old else "create"
            reason = f"from {each.system}"
            changes[words] = MemoryChange(memory=memory, expected_version=version, action=action, reason=reason)
            heads[words] = memory
        return ChangeSet(
            operation_id=operation_id("import", self.lives_in.to_json(), *(message.message_id for message in messages)),
            actor=self.actor,
            recorded_at=now,
            at_home=self.at_home,
            changes=tuple(changes.values()),
            summaries=tuple(self._entry(message, block) for message, block in zip(messages, raw.blocks, strict=True)),
            work=tuple(block.done(self.said_in, self.recipe) for block in raw.blocks),
            brought=raw,
        )

    def _message_id(self, each: ForeignMemory) -> str:
        return operation_id("import", each.system, *each.namespace, each.record_id)

    def _message(self, each: ForeignMemory, now: datetime) -> Message:
        name = self._message_id(each)
        return Message(
            message_id=name,
            thread=f"imported:{each.system}:{name}",
            role="system",
            name=each.system,
            content=each.content,
            time=each.updated_at or each.created_at or now,
            extra={"imported": each.system, "record": each.record},
        )

    def _entry(self, message: Message, block: BroughtBlock) -> BlockSummary:
        return BlockSummary(
            block_id=block.block_id,
            partition=self.said_in,
            start_time=message.time,
            end_time=message.time,
            summary=message.text,
            language=language_of(message.text),
        )

    def _memory(
        self, each: ForeignMemory, message: Message, block: BroughtBlock, topic: Topic, now: datetime
    ) -> Memory:
        return Memory(
            memory_id=operation_id("import", self.lives_in.to_json(), message.message_id),
            partition=self.lives_in,
            topic=topic,
            content=each.content,
            kind="profile",
            payload=_provenance(each),
            evidence=(_evidence(message, block),),
            block_ids=(block.block_id,),
            layer="long_term",
            tags=each.tags,
            language=language_of(each.content),
            trust=message.trust,
            source="factual",
            extractor=each.system,
            said_at=message.time,
            recorded_at=now,
        )

    def _corroborated(self, old: Memory, each: ForeignMemory, message: Message, block: BroughtBlock) -> Memory:
        return old.evolve(
            evidence=(*old.evidence, _evidence(message, block)),
            block_ids=tuple(dict.fromkeys((*old.block_ids, block.block_id))),
            tags=tuple(dict.fromkeys((*old.tags, *each.tags))),
            merges=old.merges + 1,
            said_at=max(old.said_at, message.time),
        )


def _provenance(each: ForeignMemory) -> Mapping[str, object]:
    """Return the origin of a memory for its payload; the session under its usual name."""
    times = {"created_at": each.created_at, "updated_at": each.updated_at}
    source = {"system": each.system, "id": each.record_id, "namespace": list(each.namespace), "agent": each.agent}
    source |= {name: time.isoformat() for name, time in times.items() if time}
    imported = {name: value for name, value in source.items() if value}
    return {"imported": imported} | ({"session": each.session} if each.session else {})


def _evidence(message: Message, block: BroughtBlock) -> Evidence:
    return Evidence(message_id=message.message_id, quote=message.text, block_id=block.block_id)
