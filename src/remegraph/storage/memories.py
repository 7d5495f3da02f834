"""The top layer and what hangs on it, for reading: memories, versions, links, events, tools, work."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    and_,
    bindparam,
    case,
    exists,
    func,
    not_,
    or_,
    select,
    tuple_,
)

from remegraph.models import (
    CORE,
    FORGOTTEN,
    LIVE,
    Event,
    Layer,
    Link,
    LinkType,
    Memory,
    Partition,
    Shelf,
    Status,
    Topic,
    Work,
    WorkState,
)
from remegraph.rules.tombstones import NAMELESS
from remegraph.rules.veil import MARK, silenced
from remegraph.storage import withheld
from remegraph.storage.rows import chunks, from_micros
from remegraph.storage.tables import events, links, memories, memory_sources, messages, topics, versions, work

__all__ = [
    "event_of",
    "holders",
    "read",
    "read_carried_out",
    "read_events",
    "read_forgotten",
    "read_links",
    "read_operation",
    "read_rules",
    "read_shelved",
    "read_topics",
    "read_versions",
    "read_work",
    "shown",
    "shown_versions",
]

_RECENT = 200
"""Events among which it is looked for what was forgotten since an agent last answered."""

_OUT_OF_SIGHT = f'"status": "{FORGOTTEN}"'
"""Stands in the JSON of a version that is forgotten; what a text says is escaped there."""

# Said once: building a statement costs as much as running it.
_TOPICS = select(topics).where(
    topics.c.partition_id.in_(bindparam("partition_ids", expanding=True)), topics.c.target != NAMELESS
)
_TOPICS_BY_NUMBER = select(topics).where(topics.c.id.in_(bindparam("ids", expanding=True)))
_STANDING = select(memories.c.topic_id, memories.c.memory_id).where(
    memories.c.partition_id.in_(bindparam("partition_ids", expanding=True)),
    memories.c.memory_id.in_(bindparam("ids", expanding=True)),
)


def read(
    connection: Connection,
    places: Mapping[int, Partition],
    *,
    ids: Sequence[str] | None,
    on: Sequence[Topic] | None,
    statuses: Sequence[Status] | None,
    canonical_topics: Sequence[str] | None,
    block_ids: Sequence[str] | None,
    layers: Sequence[Layer] | None,
    limit: int | None,
) -> tuple[Memory, ...]:
    """Return head versions, newest `said_at` first."""
    query = select(memories.c.id, memories.c.memory_id, memories.c.said_at, memories.c.body)
    queries = [query.where(memories.c.partition_id.in_(list(places)))]
    if statuses is not None:
        queries = [query.where(memories.c.status.in_(statuses)) for query in queries]
    if layers is not None:
        queries = [query.where(memories.c.layer.in_(layers)) for query in queries]
    if ids is not None:
        queries = [query.where(memories.c.memory_id.in_(chunk)) for query in queries for chunk in chunks(ids)]
    if on is not None:
        keys = list(dict.fromkeys((topic.type, topic.target) for topic in on))
        queries = [query.where(memories.c.topic_id.in_(_on(chunk))) for query in queries for chunk in chunks(keys)]
    if canonical_topics is not None:
        slots = memories.c.canonical_topic
        queries = [query.where(slots.in_(chunk)) for query in queries for chunk in chunks(canonical_topics)]
    if block_ids is not None:
        queries = [query.where(_from_blocks(places, chunk)) for query in queries for chunk in chunks(block_ids)]
    order = (memories.c.said_at.desc(), memories.c.id)
    found = {row.id: row for query in queries for row in connection.execute(query.order_by(*order).limit(limit))}
    newest_first = sorted(found.values(), key=lambda row: (-row.said_at, row.id))
    return tuple(shown(row.body) for row in newest_first[:limit])


def shown(body: str) -> Memory:
    """Return a memory as it is shown: of one that was forgotten, only that there is one."""
    memory = Memory.from_json(body)
    return silenced(memory) if memory.status == FORGOTTEN else memory


def _on(keys: Sequence[tuple[str, str]]) -> Select[int]:
    return select(topics.c.id).where(tuple_(topics.c.type, topics.c.target).in_(keys))


def _from_blocks(places: Mapping[int, Partition], block_ids: Sequence[str]) -> ColumnElement[bool]:
    sources = select(memory_sources.c.memory).where(
        memory_sources.c.partition_id.in_(list(places)), memory_sources.c.block_id.in_(block_ids)
    )
    return memories.c.id.in_(sources)


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
        connection: A connection.
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
    return memory if quotes == memory.evidence else memory.evolve(evidence=quotes)


def read_carried_out(connection: Connection, partition_id: int, reason: str) -> tuple[int, int]:
    """Return how many memories were forgotten as a person asked since an agent last answered, and when, in microseconds.

    Args:
        connection: A connection.
        partition_id: Where.
        reason: What the journal says of such a change.
    """
    newest = select(events).where(events.c.partition_id == partition_id).order_by(events.c.id.desc()).limit(_RECENT)
    some = newest.subquery()
    asked = (some.c.action == "delete", some.c.reason == reason)
    times = connection.execute(select(some.c.time).where(*asked)).scalars().all()
    if not times:
        return 0, 0
    answers = select(messages.c.recorded_at).where(
        messages.c.partition_id == partition_id, messages.c.role == "assistant"
    )
    answered = connection.execute(answers.order_by(messages.c.seq.desc()).limit(1)).scalar_one_or_none() or 0
    since = [time for time in times if time > answered]
    return len(since), max(since, default=0)


def read_forgotten(
    connection: Connection, places: Mapping[int, Partition], memory_id: str | None = None
) -> tuple[tuple[Memory, str], ...]:
    """Return what is forgotten, to the letter, each with the operation that forgot it.

    Args:
        connection: A connection.
        places: Where.
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
    """Return what an operation changed, to the letter: each head as it is now, with the version before the operation.

    Of what was out of sight already while a request waited, that is the version that was in sight.

    Args:
        connection: A connection.
        places: Where.
        operation_id: The operation.
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
    # Link by link: a list of the memories that live here would grow with all that they hold.
    which = [memories.c.partition_id.in_(list(places)), *([memories.c.status.in_(sorted(LIVE))] if live else [])]
    both = (exists().where(memories.c.memory_id == end, *which) for end in (links.c.source_id, links.c.target_id))
    query = select(links).where(*both)
    if types is not None:
        query = query.where(links.c.type.in_(types))
    query = query.order_by(links.c.source_id, links.c.type, links.c.target_id).limit(limit)
    if memory_ids is None:
        wanted: list[ColumnElement[bool]] = [links.c.partition_id.in_(list(places))]
    else:
        wanted = [or_(links.c.source_id.in_(some), links.c.target_id.in_(some)) for some in chunks(memory_ids)]
    found: dict[tuple[str, str, str], Link] = {}
    for ends in wanted:
        for row in connection.execute(query.where(ends)):
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


def read_shelved(
    connection: Connection, places: Mapping[int, Partition], memory_ids: Sequence[str]
) -> dict[Shelf, frozenset[str]]:
    """Return the topics that memories stand on, with those of them that stand on each. No memory is read."""
    standing: dict[int, list[str]] = defaultdict(list)
    for chunk in chunks(memory_ids):
        for topic_id, memory_id in connection.execute(_STANDING, {"partition_ids": list(places), "ids": chunk}):
            standing[topic_id].append(memory_id)
    found: dict[Shelf, frozenset[str]] = {}
    for numbers in chunks(list(standing)):
        for row in connection.execute(_TOPICS_BY_NUMBER, {"ids": numbers}):
            found[_shelf(row, places)] = frozenset(standing[row.id])
    return found


def _shelf(row: Row[Any], places: Mapping[int, Partition]) -> Shelf:
    topic = Topic(type=row.type, target_name=row.target_name, description=row.description)
    return Shelf(partition=places[row.partition_id], topic=topic)


def read_events(
    connection: Connection, places: Mapping[int, Partition], record_id: str | None, limit: int | None
) -> tuple[Event, ...]:
    """Return the journal, oldest first."""
    query = select(events).where(events.c.partition_id.in_(list(places))).order_by(events.c.id).limit(limit)
    if record_id is not None:
        query = query.where(events.c.record_id == record_id)
    return tuple(event_of(row, places[row.partition_id]) for row in connection.execute(query))


def event_of(row: Row[Any], partition: Partition) -> Event:
    """Return a row of the journal as a record."""
    return Event(
        event_id=row.id,
        partition=partition,
        time=from_micros(row.time),
        actor=row.actor,
        action=row.action,
        record_id=row.record_id,
        version=row.version,
        operation_id=row.operation_id,
        digest=row.digest,
        reason=row.reason,
        chain=row.chain,
    )


def read_work(
    connection: Connection, places: Mapping[int, Partition], states: Sequence[WorkState], recipe: str | None
) -> tuple[Work, ...]:
    """Return work in these states, by partition, block and topic."""
    query = select(work).where(work.c.partition_id.in_(list(places)), work.c.state.in_(states))
    if recipe is not None:
        query = query.where(work.c.recipe == recipe)
    order = {partition_id: rank for rank, partition_id in enumerate(places)}
    rows = sorted(
        connection.execute(query).all(),
        key=lambda row: (order[row.partition_id], _label(row.block_id), row.topic, row.recipe),
    )
    return tuple(
        Work(
            partition=places[row.partition_id],
            block_id=row.block_id,
            topic=row.topic,
            recipe=row.recipe,
            state=row.state,
            reason=json.loads(row.reason),
            attempts=row.attempts,
        )
        for row in rows
    )


def _label(block_id: str) -> tuple[str, int, str]:
    """Order labels by day and number: 20260101_100 comes after 20260101_99."""
    return block_id[:8], len(block_id), block_id
