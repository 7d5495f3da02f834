"""Schemas: the fields of a pydantic model are slots of a topic; a value is read as its type or not at all, and a profile is filled from memories."""

from __future__ import annotations

import json
import re
import types
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import date, datetime
from enum import Enum
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin

from pydantic import AliasChoices, BaseModel, TypeAdapter, ValidationError
from pydantic.errors import PydanticInvalidForJsonSchema
from pydantic.fields import FieldInfo

from remegraph.errors import InputError
from remegraph.models import LIVE, FieldValue, Memory, Partition, Profile, ProfileField, Scope, Status, Topic
from remegraph.models.quotes import quoted
from remegraph.models.supersession import attribute, canonical

if TYPE_CHECKING:
    from remegraph.ledger.archive import Archive

__all__ = ["Filled", "Schema", "SchemaField", "Schemas", "profile", "schema_of"]

_NUMBER = re.compile(r"[-+]?\d+(\.\d*)?")

_UNSAID = frozenset({"title", "default"})
"""Keys of a JSON schema that are of no use to a writer."""


@dataclass(frozen=True)
class SchemaField:
    """A field of a schema: a slot of its topic, and how its values are read."""

    name: str
    """As the model names it."""
    attributes: tuple[str, ...]
    """Slots that it is read from: its own first, then those of its aliases."""
    many: bool
    """Whether it holds several values, each a memory of its own."""
    closed: bool
    """Whether its type lists all its values, so that they need not occur in any words."""
    form: str
    """Its values, as JSON schema."""
    _schema: type[BaseModel]
    _item: TypeAdapter[Any]
    _options: Mapping[str, Any]

    def read(self, text: str) -> Any:
        """Return what a text says as a value of this field: of one that holds several, one of them.

        Raises:
            ValueError: It is not such a value; the message says why.
        """
        value = self._parsed(text.strip())
        if complaint := self._complaint([value] if self.many else value):
            raise ValueError(complaint)
        return value

    def _parsed(self, text: str) -> Any:
        if not text:
            raise ValueError("it is empty")
        if (told := _folded(text)) in self._options:
            return self._options[told]
        first: ValidationError | None = None
        for form in dict.fromkeys((text, unicodedata.normalize("NFKC", text))):
            try:
                value = self._item.validate_python(form)
            except ValidationError as error:
                first = first or error
                continue
            if isinstance(value, date) and _NUMBER.fullmatch(form):  # pydantic would count seconds from 1970
                raise ValueError("a number alone is no date: write it as 2024-06-01")
            return value
        if text.startswith(("{", "[")):  # a record, or a row
            try:
                return self._item.validate_json(text)
            except ValidationError as error:
                first = error
        assert first is not None
        raise ValueError(_faults(first)) from first

    def _complaint(self, value: Any) -> str:
        """Return the objections of the model's own validators to a value of this field; empty if there are none."""
        try:
            self._schema.model_validate({self.name: value}, by_name=True, by_alias=False)
        except ValidationError as error:
            of_whole = 1 if self.many else 0  # one value does not show how many there will be
            own = [each for each in error.errors() if each["loc"][:1] == (self.name,) and len(each["loc"]) > of_whole]
            return "; ".join(each["msg"] for each in own)
        return ""


@dataclass(frozen=True)
class Schema:
    """A pydantic model, as the slots that its fields are."""

    model: type[BaseModel]
    fields: Mapping[str, SchemaField]
    """By their names."""

    def field(self, topic: Topic, slot: str) -> SchemaField | None:
        """Return the field of a slot, if it is one of this topic."""
        whose = canonical(f"{topic.target}:")
        told = canonical(slot)
        if not told.startswith(whose):
            return None
        name = attribute(told.removeprefix(whose))
        return next((field for field in self.fields.values() if name in field.attributes), None)

    def lines(self) -> str:
        """Return the fields, one per line, with what each holds."""
        return "\n".join(f"{field.attributes[0]} {field.form}" for field in self.fields.values())

    def fill(self, values: Mapping[str, Any]) -> tuple[BaseModel | None, dict[str, str], str]:
        """Return the model with its fields filled, why fields are left out, and why there is no model, if so."""
        known, refused = dict(values), dict[str, str]()
        while True:
            try:
                return self.model.model_validate(known, by_name=True, by_alias=False), refused, ""
            except ValidationError as error:
                wrong: dict[str, str] = {}
                for each in error.errors():
                    if each["loc"] and each["loc"][0] in known:
                        wrong.setdefault(str(each["loc"][0]), each["msg"])
                if not wrong:
                    return None, refused, _faults(error)
            refused |= wrong
            known = {name: value for name, value in known.items() if name not in wrong}


class Schemas:
    """The schemas of an agent's topics.

    The models are by type of topic, or by the key of one.
    """

    def __init__(self, models: Mapping[str, type[BaseModel]]) -> None:
        self._schemas = {key.strip().casefold(): schema_of(model) for key, model in models.items()}

    def of(self, topic: Topic) -> Schema | None:
        """Return the schema of a topic: its own, else that of its type."""
        key = f"{topic.type}:{topic.target}"
        return self._schemas.get(key) or self._schemas.get(topic.type)

    def field(self, slot: str, topics: Iterable[Topic]) -> Filled | None:
        """Return the field of a slot, from the first of these topics that has one."""
        for topic in topics if slot and self._schemas else ():
            schema = self.of(topic)
            if schema is not None and (field := schema.field(topic, slot)) is not None:
                return Filled(field, canonical(f"{topic.target}:{field.attributes[0]}"))
        return None


@dataclass(frozen=True, slots=True)
class Filled:
    """A field, and its slot in one topic."""

    field: SchemaField
    slot: str


def schema_of(model: object) -> Schema:
    """Return a pydantic model as a schema.

    Raises:
        InputError: It is not a pydantic model, has no fields, or two of them would be one slot.
    """
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        raise InputError(f"{model!r} is not a pydantic model.", "Give a class that derives from pydantic.BaseModel.")
    return _schema(model)


@lru_cache(maxsize=256)
def _schema(model: type[BaseModel]) -> Schema:
    if not model.model_fields:
        raise InputError(f"{model.__name__} has no fields.", "Give it one for each slot.")
    fields = {name: _field(model, name, field) for name, field in model.model_fields.items()}
    taken: dict[str, str] = {}
    for field in fields.values():
        for name in field.attributes:
            if taken.setdefault(name, field.name) != field.name:
                raise InputError(
                    f"The fields {taken[name]} and {field.name} of {model.__name__} are both the slot {name}.",
                    "Rename one of them, or take the alias away.",
                )
    return Schema(model, fields)


def _field(model: type[BaseModel], name: str, field: FieldInfo) -> SchemaField:
    annotation = _plain(field.annotation)
    item = _item(annotation)
    many = item is not None
    kind: Any = item if many else Annotated[(field.annotation, *field.metadata)] if field.metadata else field.annotation
    reader: TypeAdapter[Any] = TypeAdapter(kind)
    options = {_folded(told): value for value in _values(kind) for told in _names(value)}
    aliases = (attribute(each) for each in _aliases(field))
    return SchemaField(
        name=name,
        attributes=tuple(dict.fromkeys((attribute(name), *aliases))),
        many=many,
        closed=_closed(kind),
        form=_form(reader, field.description, many=many),
        _schema=model,
        _item=reader,
        _options=options,
    )


def _aliases(field: FieldInfo) -> Iterator[str]:
    """Yield the other names of a field; paths into records do not count."""
    for alias in (field.validation_alias, field.alias):
        if isinstance(alias, AliasChoices):
            yield from (each for each in alias.choices if isinstance(each, str))
        elif isinstance(alias, str):
            yield alias


def _plain(annotation: Any) -> Any:
    """Return a type without its wrapping: names, notes, and optionality."""
    if hasattr(annotation, "__value__"):  # type X = ...
        return _plain(annotation.__value__)
    if get_origin(annotation) is Annotated:
        return _plain(get_args(annotation)[0])
    if get_origin(annotation) in {Union, types.UnionType}:
        parts = [each for each in get_args(annotation) if each is not type(None)]
        return _plain(parts[0]) if len(parts) == 1 else annotation
    return annotation


def _item(annotation: Any) -> Any | None:
    """Return the item type of a list, a set or a tuple of any length; None for single values."""
    kind, args = get_origin(annotation) or annotation, get_args(annotation)
    if not isinstance(kind, type) or issubclass(kind, (str, bytes)):
        return None
    if issubclass(kind, tuple):
        return args[0] if len(args) == 2 and args[1] is Ellipsis else Any if kind is tuple and not args else None
    return (args[0] if args else Any) if issubclass(kind, (Sequence, AbstractSet)) else None


def _values(annotation: Any) -> Iterator[Any]:
    """Yield the values that a type names itself: those of an enumeration, and literal ones."""
    plain = _plain(annotation)
    if get_origin(plain) is Literal:
        yield from get_args(plain)
    elif isinstance(plain, type) and issubclass(plain, Enum):
        yield from plain
    elif get_origin(plain) in {Union, types.UnionType}:
        for each in get_args(plain):
            yield from _values(each)


def _closed(annotation: Any) -> bool:
    plain = _plain(annotation)
    if get_origin(plain) in {Union, types.UnionType}:
        return all(map(_closed, get_args(plain)))
    return plain is bool or any(True for _ in _values(plain))


def _names(value: Any) -> tuple[str, ...]:
    return (value.name, str(value.value)) if isinstance(value, Enum) else (str(value),)


def _folded(text: str) -> str:
    """Return a name in the form in which names of values are compared: `In progress` is `in_progress`."""
    return attribute(unicodedata.normalize("NFKC", text))


def _form(reader: TypeAdapter[Any], description: str | None, *, many: bool) -> str:
    try:
        told = reader.json_schema()
    except PydanticInvalidForJsonSchema:
        told = {}
    told = _inlined(told, told.get("$defs", {}))
    form = {"type": "array", "items": told} if many else told
    form = {**form, "description": description} if description else form
    return json.dumps(form, ensure_ascii=False)


def _inlined(schema: Any, known: Mapping[str, Any]) -> Any:
    """Return a JSON schema without what is of no use to a writer, with references resolved."""
    if isinstance(schema, list):
        return [_inlined(each, known) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        rest = {key: value for key, value in known.items() if key != name}  # a recursive one is inlined once
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        return _inlined({**known[name], **beside}, rest) if name in known else {}
    some = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
    if len(some) == 1:  # a value may always be missing
        return _inlined({**some[0], **{key: value for key, value in schema.items() if key != "anyOf"}}, known)
    return {
        key: {name: _inlined(each, known) for name, each in value.items()}
        if key == "properties"
        else _inlined(value, known)
        for key, value in schema.items()
        if key not in _UNSAID | {"$defs"}
    }


def _faults(error: ValidationError) -> str:
    """Return pydantic's objections to a value, in one line."""
    details = error.errors(include_url=False, include_input=False, include_context=False)
    return "; ".join(
        dict.fromkeys(": ".join(filter(None, (".".join(map(str, each["loc"])), each["msg"]))) for each in details[:4])
    )


S = TypeVar("S", bound=BaseModel)

_READ: frozenset[Status] = LIVE | {"superseded", "archived"}
"""Present and past values: not those that wait for approval or were taken back."""


def profile(archive: Archive, scope: Scope, model: type[S], topic: Topic, now: datetime) -> Profile[S]:
    """Return what a topic knows, as far as the scope may see it.

    `model` is what to read it as, whether or not the settings have a schema.

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
    """Return the live memories of a topic that do not fill a field."""
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
            before += good[:-1]  # said under another name, and changed since
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
        """Return the memories that say what holds now; until a replacement begins, that is the memory it replaces."""
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
        """Yield earlier values of a memory that differ."""
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
