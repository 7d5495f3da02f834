"""What a topic knows in the form of a pydantic model, read from the memories in the slots of its fields."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar, cast

from pydantic import BaseModel

from remegraph.engine.schemas import SchemaField, schema_of
from remegraph.models import LIVE, FieldValue, Memory, Partition, Profile, ProfileField, Scope, Status, Topic
from remegraph.models.identity import canonical
from remegraph.models.quotes import quoted

if TYPE_CHECKING:
    from remegraph.ledger.archive import Archive

__all__ = ["profile"]

S = TypeVar("S", bound=BaseModel)

_READ: frozenset[Status] = LIVE | {"superseded", "archived"}
"""What holds, and what did: not what waits for approval, nor what was taken back."""


def profile(archive: Archive, scope: Scope, model: type[S], topic: Topic, now: datetime) -> Profile[S]:
    """Return what a topic knows, as far as the scope may see it.

    `model` is what it is read as, with or without a schema in the settings.

    Raises:
        InputError: The model cannot be a schema.
    """
    schema = schema_of(model)
    partitions = archive.visible(scope)
    slots = {name: _slots(topic, field) for name, field in schema.fields.items()}
    held = archive.memories(
        partitions, canonical_topics=sorted({slot for some in slots.values() for slot in some}), statuses=sorted(_READ)
    )
    reader = _Reader(archive, partitions, now)
    fields = {
        name: reader.field(field, slots[name], [each for each in held if each.canonical_topic in slots[name]])
        for name, field in schema.fields.items()
    }
    filled, refused, problem = schema.fill({each.name: each.value for each in fields.values() if each.known})
    for name, why in refused.items():
        fields[name] = replace(fields[name], value=None, known=False, problem=why)
    if filled is not None:
        for name in [each.name for each in fields.values() if each.known]:
            fields[name] = replace(fields[name], value=getattr(filled, name))
    return Profile(
        topic=topic.key,
        filled=cast("S | None", filled),
        problem=problem,
        fields=fields,
        beside=_beside(archive, partitions, topic, {each.memory_id for each in held}),
    )


def _slots(topic: Topic, field: SchemaField) -> tuple[str, ...]:
    return tuple(canonical(f"{topic.target}:{name}") for name in field.attributes)


def _beside(
    archive: Archive, partitions: Sequence[Partition], topic: Topic, filling: Collection[str]
) -> tuple[Memory, ...]:
    """Return the live memories of a topic that fill no field."""
    wanted = (topic.type, topic.target)
    there = [shelf.topic for shelf in archive.topics(partitions) if (shelf.topic.type, shelf.topic.target) == wanted]
    live = archive.memories(partitions, topics=there, statuses=sorted(LIVE)) if there else ()
    return tuple(each for each in live if each.memory_id not in filling)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads fields."""

    archive: Archive
    partitions: Sequence[Partition]
    now: datetime

    def field(self, field: SchemaField, slots: Sequence[str], mine: Sequence[Memory]) -> ProfileField:
        """Return a field, by the memories in its slots.

        `slots` are its own and those of its aliases.
        """
        holding = sorted(self._holding(mine), key=lambda memory: (memory.said_at, memory.recorded_at))
        current = [self._value(field, memory) for memory in holding]
        before = [self._value(field, memory) for memory in mine if memory not in holding]
        before += [each for memory in mine if memory.version > 1 for each in self._versions(field, slots, memory)]
        good = [each for each in current if not each.problem]
        single = [each.memory for each in good] if not field.many else []
        apart = len({canonical(each.slot_value) for each in single}) > 1
        if apart and not any(each.slot_many or each.status == "disputed" for each in single):
            before += good[:-1]  # said of it under another name, and otherwise since
            current = [each for each in current if each not in good[:-1]]
            good, apart = good[-1:], False
        return ProfileField(
            name=field.name,
            slot=slots[0],
            value=_together(field, good),
            known=bool(good),
            problem=_problem(current, before),
            disputed=apart or any(each.memory.status == "disputed" for each in current),
            current=tuple(current),
            history=tuple(sorted(before, key=lambda each: (each.since, each.memory.version))),
        )

    def _holding(self, mine: Sequence[Memory]) -> list[Memory]:
        """Return the memories that say what holds now; until what replaced one begins, that is the one replaced."""
        live = [memory for memory in mine if memory.live and memory.held_at(self.now)]
        return live or [
            memory
            for memory in mine
            if memory.status == "superseded" and memory.valid_to is not None and memory.held_at(self.now)
        ]

    def _value(self, field: SchemaField, memory: Memory, until: datetime | None = None) -> FieldValue:
        try:
            value, problem = field.read(memory.slot_value), ""
        except ValueError as error:
            value, problem = None, f"{memory.slot_value!r}: {error}"
        cited = [item.message_id for item in memory.evidence]
        messages = {each.message_id: each for each in self.archive.messages(self.partitions, ids=cited)}
        words, _ = quoted(memory.evidence, messages)
        since = memory.valid_from or memory.said_at
        return FieldValue(value, problem, memory, words, since, until or memory.valid_to)

    def _versions(self, field: SchemaField, slots: Sequence[str], memory: Memory) -> Iterator[FieldValue]:
        """Yield what earlier versions of a memory said otherwise."""
        versions = self.archive.versions(self.partitions, memory.memory_id)
        for old, new in pairwise(versions):
            if old.canonical_topic in slots and canonical(old.slot_value) != canonical(new.slot_value):
                yield self._value(field, old, until=new.said_at)


def _together(field: SchemaField, good: Sequence[FieldValue]) -> Any:
    if not field.many:
        return good[-1].value if good else None
    different: list[Any] = []
    for each in good:
        if each.value not in different:
            different.append(each.value)
    return different if good else None


def _problem(current: Sequence[FieldValue], before: Sequence[FieldValue]) -> str:
    told = [each.problem for each in current if each.problem]
    if told or any(not each.problem for each in current):
        return "; ".join(told)
    return "nothing that was said holds now" if before else "nobody said it"
