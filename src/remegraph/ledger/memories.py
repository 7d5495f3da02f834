"""Memories and what hangs on them: heads as a commit writes them; versions, links and topics as they are read."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from operator import attrgetter
from typing import Any, NamedTuple

from sqlalchemy import (
    BindParameter,
    Connection,
    Row,
    Select,
    and_,
    bindparam,
    case,
    exists,
    func,
    insert,
    not_,
    or_,
    select,
    text,
    tuple_,
)

from remegraph.ledger import withheld
from remegraph.ledger.partitions import partition_of
from remegraph.ledger.rows import chunks, digest, micros
from remegraph.ledger.schema import (
    events,
    links,
    memories,
    memory_sources,
    messages,
    partitions,
    topics,
    versions,
)
from remegraph.models import (
    CORE,
    FORGOTTEN,
    LIVE,
    Layer,
    Link,
    LinkType,
    Memory,
    Partition,
    Shelf,
    Status,
    Topic,
)
from remegraph.models.remnants import MARK, NAMELESS, silenced, unsaid
from remegraph.models.standing import always_active
from remegraph.text.scripts import folded

__all__ = [
    "Head",
    "add_topics",
    "head_columns",
    "holders",
    "indexed_words",
    "read",
    "read_attributes",
    "read_carried_out",
    "read_forgotten",
    "read_full_ids",
    "read_heads",
    "read_links",
    "read_operation",
    "read_rules",
    "read_shelved",
    "read_topics",
    "read_versions",
    "shown_versions",
    "topic_numbers",
    "words_digest",
]

_RECENT = 200
"""Events among which it is looked for what was forgotten since an agent last answered."""

_OUT_OF_SIGHT = f'"status": "{FORGOTTEN}"'
"""Stands in the JSON of a version that is forgotten; what a text says is escaped there."""

# Said once: building a statement costs as much as running it.
_TOPICS = select(topics).where(
    topics.c.partition_id.in_(bindparam("partition_ids", expanding=True)), topics.c.target != NAMELESS
)
_TOPIC_NUMBERS = select(topics.c.partition_id, topics.c.type, topics.c.target, topics.c.id).where(
    topics.c.partition_id.in_(bindparam("here", expanding=True)),
    topics.c.target.in_(bindparam("targets", expanding=True)),
)
_ADD_TOPICS = insert(topics).returning(topics.c.id, topics.c.partition_id, topics.c.type, topics.c.target)
_TOPICS_BY_NUMBER = select(topics).where(topics.c.id.in_(bindparam("ids", expanding=True)))
# Said once: building a statement costs as much as running it.
_NEWEST_EVENTS = (
    select(events)
    .where(events.c.partition_id == bindparam("here"))
    .order_by(events.c.id.desc())
    .limit(_RECENT)
    .subquery()
)
_DELETED = select(_NEWEST_EVENTS.c.time).where(
    _NEWEST_EVENTS.c.action == "delete", _NEWEST_EVENTS.c.reason == bindparam("reason")
)
_ANSWERED = (
    select(messages.c.recorded_at)
    .where(messages.c.partition_id == bindparam("here"), messages.c.role == "assistant")
    .order_by(messages.c.seq.desc())
    .limit(1)
)
_SHORT_ID = re.compile("[0-9a-f]{8}")
"""What contexts call a memory whose id the kit made: the beginning of the id."""

_BEGINNING = {  # "g" comes after all that is hexadecimal
    "sqlite": text(
        "SELECT memory_id FROM json_each(:names) AS short"
        " JOIN memories ON memory_id >= short.value AND memory_id < short.value || 'g'"
    ),
    "postgresql": text(
        "SELECT memory_id FROM jsonb_array_elements_text(CAST(:names AS jsonb)) AS short(value)"
        " JOIN memories ON memory_id >= short.value AND memory_id < short.value || 'g'"
    ),
}
_HERE: BindParameter[Any] = bindparam("here", expanding=True)
_HEADS = (
    select(memories.c.id, memories.c.partition_id, memories.c.memory_id, memories.c.said_at, memories.c.body)
    .where(memories.c.partition_id.in_(_HERE))
    .order_by(memories.c.said_at.desc(), memories.c.id)
)
_CONDITIONS = {
    "ids": memories.c.memory_id.in_(bindparam("ids", expanding=True)),
    "statuses": memories.c.status.in_(bindparam("statuses", expanding=True)),
    "layers": memories.c.layer.in_(bindparam("layers", expanding=True)),
    "topics": memories.c.topic_id.in_(
        select(topics.c.id).where(tuple_(topics.c.type, topics.c.target).in_(bindparam("topics", expanding=True)))
    ),
    "slots": memories.c.canonical_topic.in_(bindparam("slots", expanding=True)),
    "blocks": memories.c.id.in_(
        select(memory_sources.c.memory).where(
            memory_sources.c.partition_id.in_(_HERE), memory_sources.c.block_id.in_(bindparam("blocks", expanding=True))
        )
    ),
}
"""What `read` may ask for, by name."""
_STANDING = (
    select(memories.c.memory_id, *topics.c)
    .join(topics, topics.c.id == memories.c.topic_id)
    .where(
        memories.c.partition_id.in_(bindparam("partition_ids", expanding=True)),
        memories.c.memory_id.in_(bindparam("ids", expanding=True)),
    )
)


def read(
    connection: Connection,
    places: Mapping[int, Partition],
    *,
    ids: Sequence[str] | None = None,
    on: Sequence[Topic] | None = None,
    statuses: Sequence[Status] | None = None,
    canonical_topics: Sequence[str] | None = None,
    block_ids: Sequence[str] | None = None,
    layers: Sequence[Layer] | None = None,
    limit: int | None = None,
    known: dict[Hashable, _Head] | None = None,
) -> tuple[Memory, ...]:
    """Return head versions, newest `said_at` first. `known` is what this snapshot was read into by id: read once, it stays."""
    asked: dict[str, Sequence[Any] | None] = {
        "ids": ids,
        "statuses": statuses,
        "layers": layers,
        "topics": None if on is None else list(dict.fromkeys((topic.type, topic.target) for topic in on)),
        "slots": canonical_topics,
        "blocks": block_ids,
    }
    given = {name: values for name, values in asked.items() if values is not None}
    known = {} if known is None else known
    if ids is not None and block_ids is None:
        found = [head for head in _by_id(connection, places, ids, known) if _meets(head.memory, given)]
    else:
        query = _heads(tuple(given), limited=limit is not None)
        some = product(*([(name, chunk) for chunk in chunks(values)] for name, values in given.items()))
        here = {"here": list(places), "limit": limit}
        rows = {row.id: row for each in some for row in connection.execute(query, {**here, **dict(each)})}
        found = [_head(row, known) for row in rows.values()]
    return tuple(head.memory for head in sorted(found, key=attrgetter("order"))[:limit])


class _Head(NamedTuple):
    """A memory as it is shown, and what it is ordered by."""

    order: tuple[int, int]
    memory: Memory
    home: int


def _head(row: Row[Any], known: dict[Hashable, _Head]) -> _Head:
    head = known.get(row.memory_id)
    if head is None:
        known[row.memory_id] = head = _Head((-row.said_at, row.id), _shown(row.body), row.partition_id)
    return head


def _by_id(
    connection: Connection,
    places: Mapping[int, Partition],
    ids: Sequence[str],
    known: dict[Hashable, _Head],
) -> list[_Head]:
    """Return memories by id; ids are of all partitions, so that one which is known here need not be looked for there."""
    query = _heads(("ids",), limited=False)
    for chunk in chunks([name for name in dict.fromkeys(ids) if name not in known]):
        for row in connection.execute(query, {"here": list(places), "ids": chunk}):
            _head(row, known)
    heads = (known.get(name) for name in dict.fromkeys(ids))
    return [head for head in heads if head is not None and head.home in places]


def _meets(memory: Memory, given: Mapping[str, Collection[Any]]) -> bool:
    """Return whether a memory meets the conditions of `read` that its head alone decides."""
    told = {
        "statuses": memory.status,
        "layers": memory.layer,
        "topics": (memory.topic.type, memory.topic.target),
        "slots": memory.canonical_topic,
    }
    return all(told[name] in values for name, values in given.items() if name in told)


@cache
def _heads(conditions: tuple[str, ...], *, limited: bool) -> Select[Any]:
    query = _HEADS.where(*(_CONDITIONS[name] for name in conditions))
    return query.limit(bindparam("limit")) if limited else query


def read_full_ids(connection: Connection, names: Sequence[str]) -> tuple[str, ...]:
    """Return the ids of the memories that contexts call so; a full id is given back as it is."""
    found = [name for name in names if not _SHORT_ID.fullmatch(name)]
    if short := [name for name in names if _SHORT_ID.fullmatch(name)]:
        found += connection.execute(_BEGINNING[connection.dialect.name], {"names": json.dumps(short)}).scalars()
    return tuple(dict.fromkeys(found))


def _shown(body: str) -> Memory:
    """Return a memory as it is shown: of a forgotten one, only that it exists."""
    memory = Memory.from_json(body)
    return silenced(memory) if memory.status == FORGOTTEN else memory


def read_rules(
    connection: Connection,
    places: Mapping[int, Partition],
    applies_to: Sequence[str],
    *,
    core: bool,
    limit: int | None,
) -> tuple[Memory, ...]:
    """Return live rules, the most important first; see `Archive.rules`."""
    weighty = memories.c.importance >= CORE
    query = select(memories.c.id).where(
        memories.c.partition_id.in_(list(places)),
        memories.c.status.in_(sorted(LIVE)),
        weighty if core else not_(weighty),
    )
    if not core:
        query = query.where(memories.c.applies_to.in_(applies_to))
    binding = case((memories.c.memory_class == "policy", 0), else_=1)
    first = [memories.c.importance.desc()] if core else [binding, memories.c.importance.desc()]
    query = query.order_by(*first, memories.c.said_at.desc(), memories.c.id).limit(limit)
    numbers = connection.execute(query).scalars().all()  # sorted without their bodies: a project may hold many
    bodies: dict[int, str] = {}
    for chunk in chunks(numbers):
        rows = connection.execute(select(memories.c.id, memories.c.body).where(memories.c.id.in_(chunk)))
        bodies |= {row.id: row.body for row in rows}
    return tuple(Memory.from_json(bodies[number]) for number in numbers)


def holders(connection: Connection, partition_id: int, slots: Iterable[str]) -> dict[str, list[str]]:
    """Return the live memories of a partition on each of these canonical topics."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    live = (memories.c.partition_id == partition_id, memories.c.status.in_(sorted(LIVE)))
    for chunk in chunks(sorted(slots)):
        query = select(memories.c.canonical_topic, memories.c.memory_id).where(*live)
        for slot, memory_id in connection.execute(query.where(memories.c.canonical_topic.in_(chunk))):
            found[slot].append(memory_id)
    return found


def read_versions(connection: Connection, places: Mapping[int, Partition], memory_id: str) -> tuple[Memory, ...]:
    """Return all versions of a memory, oldest first, without words that are withheld."""
    rows = connection.execute(
        select(versions.c.body)
        .join(memories, memories.c.id == versions.c.memory)
        .where(memories.c.memory_id == memory_id, memories.c.partition_id.in_(list(places)))
        .order_by(versions.c.version)
    )
    return shown_versions(connection, [Memory.from_json(row.body) for row in rows])


def shown_versions(connection: Connection, every: Sequence[Memory]) -> tuple[Memory, ...]:
    """Return the versions of a memory as they are shown: what was forgotten, or is withheld, in none of them.

    Args:
        every: All versions, oldest first.
    """
    if not every or every[-1].status == FORGOTTEN:
        return tuple(map(silenced, every))
    sources = select(memory_sources.c.partition_id).join(memories, memories.c.id == memory_sources.c.memory)
    here = sources.where(memories.c.memory_id == every[-1].memory_id).distinct()
    cited = {item.message_id for version in every for item in version.evidence}
    hidden = withheld.of_messages(connection, connection.execute(here).scalars(), cited)
    return tuple(_unquoted(version, hidden) for version in every) if hidden else tuple(every)


def _unquoted(memory: Memory, hidden: Mapping[str, Any]) -> Memory:
    quotes = tuple(
        item.evolve(quote=MARK) if withheld.hides(item.quote, hidden.get(item.message_id, ())) else item
        for item in memory.evidence
    )
    if quotes == memory.evidence:
        return memory
    whole = [any(None in words for _, words in hidden.get(item.message_id, ())) for item in memory.evidence]
    return unsaid(memory, whole).evolve(evidence=quotes)


def read_carried_out(connection: Connection, partition_id: int, reason: str) -> tuple[int, int]:
    """Return how many memories were forgotten as a person asked since an agent last answered, and when, in microseconds.

    Args:
        reason: What the journal says of such a change.
    """
    here = {"here": partition_id, "reason": reason}
    times = connection.execute(_DELETED, here).scalars().all()
    if not times:
        return 0, 0
    answered = connection.execute(_ANSWERED, here).scalar_one_or_none() or 0
    since = [time for time in times if time > answered]
    return len(since), max(since, default=0)


def read_forgotten(
    connection: Connection, places: Mapping[int, Partition], memory_id: str | None = None
) -> tuple[tuple[Memory, str], ...]:
    """Return what is forgotten, unredacted, each with the operation that forgot it.

    Args:
        memory_id: Only this memory.
    """
    query = select(memories.c.body, versions.c.operation_id).join(
        versions, and_(versions.c.memory == memories.c.id, versions.c.version == memories.c.version)
    )
    query = query.where(memories.c.partition_id.in_(list(places)), memories.c.status == FORGOTTEN)
    if memory_id is not None:
        query = query.where(memories.c.memory_id == memory_id)
    return tuple((Memory.from_json(row.body), row.operation_id) for row in connection.execute(query))


def read_operation(
    connection: Connection, places: Mapping[int, Partition], operation_id: str
) -> tuple[tuple[Memory, Memory], ...]:
    """Return what an operation changed, unredacted: each head as it is now, with the version before the operation.

    Of what was out of sight already while a request waited, that is the version that was in sight.
    """
    heads = memories.alias()
    before = versions.alias()
    seen = versions.alias()
    in_sight = (
        select(func.max(seen.c.version))
        .where(
            seen.c.memory == versions.c.memory,
            seen.c.version < versions.c.version,
            not_(seen.c.body.contains(_OUT_OF_SIGHT)),
        )
        .correlate(versions)
        .scalar_subquery()
    )
    query = (
        select(heads.c.body, before.c.body.label("before"))
        .join(versions, versions.c.memory == heads.c.id)
        .join(
            before,
            and_(before.c.memory == heads.c.id, before.c.version == func.coalesce(in_sight, versions.c.version - 1)),
        )
        .where(heads.c.partition_id.in_(list(places)), versions.c.operation_id == operation_id)
        .order_by(heads.c.id)
    )
    return tuple((Memory.from_json(row.body), Memory.from_json(row.before)) for row in connection.execute(query))


@cache
def _linked(*, live: bool, types: tuple[LinkType, ...] | None, named: bool) -> Select[Any]:
    """Return the query for links whose both ends live somewhere, of all or of those that are named.

    Link by link: a list of the memories that live there would grow with all that they hold.
    """
    here: BindParameter[Any] = bindparam("here", expanding=True)
    ids: BindParameter[Any] = bindparam("ids", expanding=True)
    which = [memories.c.partition_id.in_(here), *([memories.c.status.in_(sorted(LIVE))] if live else [])]
    ends = links.c.source_id, links.c.target_id
    query = select(links).where(*(exists().where(memories.c.memory_id == end, *which) for end in ends))
    if types is not None:
        query = query.where(links.c.type.in_(types))
    query = query.where(or_(*(end.in_(ids) for end in ends)) if named else links.c.partition_id.in_(here))
    return query.order_by(links.c.source_id, links.c.type, links.c.target_id)


def read_links(
    connection: Connection,
    places: Mapping[int, Partition],
    memory_ids: Sequence[str] | None,
    *,
    types: Sequence[LinkType] | None = None,
    live: bool = False,
    limit: int | None = None,
) -> tuple[Link, ...]:
    """Return the links from or to these memories whose both ends live in the partitions; see `Archive.links`."""
    query = _linked(live=live, types=None if types is None else tuple(types), named=memory_ids is not None)
    query = query if limit is None else query.limit(limit)
    here = {"here": list(places)}
    some = [here] if memory_ids is None else [{**here, "ids": chunk} for chunk in chunks(memory_ids)]
    found: dict[tuple[str, str, str], Link] = {}
    for asked in some:
        for row in connection.execute(query, asked):
            link = Link(source_id=row.source_id, type=row.type, target_id=row.target_id, reason=row.reason)
            found[row.source_id, row.type, row.target_id] = link
    return tuple(found[key] for key in sorted(found))[:limit]


def read_topics(connection: Connection, places: Mapping[int, Partition]) -> tuple[Shelf, ...]:
    """Return the topic index, by partition, type and name."""
    order = {partition_id: rank for rank, partition_id in enumerate(places)}
    rows = connection.execute(_TOPICS, {"partition_ids": list(places)}).all()
    return tuple(
        _shelf(row, places)
        for row in sorted(rows, key=lambda row: (order[row.partition_id], row.type, row.target_name))
    )


def read_attributes(connection: Connection, places: Mapping[int, Partition]) -> dict[Shelf, tuple[str, ...]]:
    """Return what the live memories of each topic say something of, the most frequent first; see `Archive.attributes`."""
    query = (
        select(memories.c.topic_id, memories.c.canonical_topic)
        .where(
            memories.c.partition_id.in_(list(places)),
            memories.c.status.in_(sorted(LIVE)),
            memories.c.canonical_topic != "",
        )
        .group_by(memories.c.topic_id, memories.c.canonical_topic)
        .order_by(func.count().desc(), memories.c.canonical_topic)
    )
    found: dict[int, list[str]] = defaultdict(list)
    for topic_id, slot in connection.execute(query):
        found[topic_id].append(slot)
    return {
        _shelf(row, places): tuple(found[row.id])
        for numbers in chunks(list(found))
        for row in connection.execute(_TOPICS_BY_NUMBER, {"ids": numbers})
    }


def read_shelved(
    connection: Connection, places: Mapping[int, Partition], memory_ids: Sequence[str]
) -> dict[Shelf, frozenset[str]]:
    """Return the topics of memories, each with its memories. No memory is read."""
    standing: dict[int, list[str]] = defaultdict(list)
    shelves: dict[int, Shelf] = {}
    for chunk in chunks(memory_ids):
        for row in connection.execute(_STANDING, {"partition_ids": list(places), "ids": chunk}):
            standing[row.id].append(row.memory_id)
            if row.id not in shelves:
                shelves[row.id] = _shelf(row, places)
    return {shelves[number]: frozenset(ids) for number, ids in standing.items()}


Place = tuple[int, str, str]
"""Names a topic: partition, type and target."""


def topic_numbers(connection: Connection, wanted: Collection[Place]) -> dict[Place, int]:
    """Return the numbers of those topics that are there."""
    found: dict[Place, int] = {}
    for chunk in chunks(list({target for _, _, target in wanted})):
        rows = connection.execute(_TOPIC_NUMBERS, {"here": list({number for number, _, _ in wanted}), "targets": chunk})
        found |= {(row.partition_id, row.type, row.target): row.id for row in rows}
    return found


def add_topics(connection: Connection, new: Mapping[Place, Topic]) -> dict[Place, int]:
    """Record topics; return their numbers."""
    rows = [
        {"partition_id": number, "type": kind, "target": target}
        | {"target_name": topic.target_name, "description": topic.description}
        for (number, kind, target), topic in new.items()
    ]
    added = connection.execute(_ADD_TOPICS, rows).all() if rows else ()
    numbers = {(row.partition_id, row.type, row.target): row.id for row in added}
    return {place: numbers[place] for place in new}


def _shelf(row: Row[Any], places: Mapping[int, Partition]) -> Shelf:
    topic = Topic(type=row.type, target_name=row.target_name, description=row.description)
    return Shelf(partition=places[row.partition_id], topic=topic)


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a memory, as a commit finds it."""

    number: int
    partition_id: int
    partition: Partition
    version: int
    status: Status
    body: str


def words_digest(memory: Memory) -> str:
    """Return a digest that two memories share if they say the same, case, spaces and final stop aside."""
    return digest(folded(memory.content))


def indexed_words(memory: Memory) -> str:
    """Return the words that full text finds a memory by."""
    return " ".join((memory.content, memory.when_to_use, *memory.tags))


def head_columns(memory: Memory, topic_id: int) -> dict[str, Any]:
    """Return the columns of a head, as the table `memories` has them.

    Args:
        topic_id: Number of its topic.
    """
    return {
        "topic_id": topic_id,
        "version": memory.version,
        "status": memory.status,
        "layer": memory.layer,
        "kind": memory.kind,
        "canonical_topic": memory.canonical_topic,
        "importance": memory.importance,
        "applies_to": memory.applies_to,
        "memory_class": memory.memory_class,
        "words": words_digest(memory),
        "said_at": micros(memory.said_at),
        "recorded_at": micros(memory.recorded_at),
        "resident": always_active(memory),
        "body": memory.to_json(),
    }


def read_heads(connection: Connection, memory_ids: Iterable[str]) -> dict[str, Head]:
    """Return the heads of memories by id, of any partition; none for unknown ids."""
    found: dict[str, Head] = {}
    query = select(memories, partitions.c.tenant, partitions.c.user, partitions.c.agent, partitions.c.project)
    query = query.join(partitions, partitions.c.id == memories.c.partition_id)
    for chunk in chunks(list(dict.fromkeys(memory_ids))):
        for row in connection.execute(query.where(memories.c.memory_id.in_(chunk))):
            found[row.memory_id] = Head(row.id, row.partition_id, partition_of(row), row.version, row.status, row.body)
    return found
