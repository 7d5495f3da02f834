"""Raw messages: stored and read verbatim."""

from __future__ import annotations

import json
import string
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    Insert,
    Row,
    Select,
    and_,
    bindparam,
    case,
    exists,
    outerjoin,
    select,
    update,
)

from remegraph.errors import MessageChangedError, MessageError
from remegraph.ledger import attachments, withheld
from remegraph.ledger.index import fulltext
from remegraph.ledger.journal import HEAD, Heads, heads_of
from remegraph.ledger.rows import chunks, digest, from_micros, insert_rows, micros, minute_of, upsert
from remegraph.ledger.schema import messages, partitions, threads
from remegraph.ledger.withheld import ANY
from remegraph.models import REVISES, Message, Partition, Reading, StoredMessage
from remegraph.models.messages import Blob, WithheldReason, revised
from remegraph.models.remnants import veiled, without
from remegraph.ports import Recorded
from remegraph.text.sentences import asks
from remegraph.text.tokens import token_counts

__all__ = ["Known", "MessageFilter", "add", "course", "ids_between", "known", "read", "recorded", "revisions", "stored"]

_ASCII_FOLD = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_LONGEST_PATTERN = 1000  # SQLite refuses LIKE patterns over 50,000 bytes

# Said once: building a statement costs as much as running it.
_others = messages.alias()
_ASKED_FOR = and_(
    messages.c.partition_id == partitions.c.id, messages.c.message_id.in_(bindparam("ids", expanding=True))
)
_KNOWN = (  # a row that names no message is about the partition alone
    select(
        partitions.c.last_seq,
        *HEAD,
        ANY,
        exists().where(_others.c.partition_id == partitions.c.id, _others.c.withheld.is_not(None)).label("screens"),
        messages.c.message_id,
        messages.c.digest,
    )
    .select_from(outerjoin(partitions, messages, _ASKED_FOR))
    .where(partitions.c.id == bindparam("here"), partitions.c.key == bindparam("key"))
)
_TO_THE_LETTER = select(
    messages.c.message_id, messages.c.seq, messages.c.recorded_at, messages.c.body, messages.c.withheld
).where(messages.c.partition_id == bindparam("here"))
_RECORDED = _TO_THE_LETTER.where(messages.c.message_id.in_(bindparam("ids", expanding=True)))
_OF_PARTITION = select(messages).where(messages.c.partition_id == bindparam("here"))
_BY_SEQ = _OF_PARTITION.where(messages.c.seq.in_(bindparam("named", expanding=True)))
_BY_ID = _OF_PARTITION.where(messages.c.message_id.in_(bindparam("named", expanding=True)))
_IDS_BETWEEN = select(messages.c.message_id).where(
    messages.c.partition_id == bindparam("here"),
    messages.c.thread == bindparam("thread"),
    messages.c.seq.between(bindparam("first"), bindparam("last")),
)
_SAME_MINUTE = partitions.c.minute == bindparam("now")
_MOVE_PARTITION = (
    update(partitions)
    .where(partitions.c.id == bindparam("here"))
    .values(
        last_seq=partitions.c.last_seq + bindparam("added"),
        stored=partitions.c.stored + bindparam("size"),
        minute=bindparam("now"),
        in_minute=case((_SAME_MINUTE, partitions.c.in_minute), else_=0) + bindparam("added"),
    )
)


class Known(NamedTuple):
    """What a partition holds of some messages that are to be recorded."""

    last_seq: int
    screens: bool
    """Whether words of any message are withheld there."""
    graves: bool
    """Whether anything was erased, or said off the record, anywhere."""
    heads: Heads
    """Where its journal continues."""
    digests: dict[str, str]
    """Of those that are recorded, by id."""


def known(connection: Connection, partition_id: int, key: str, ids: Sequence[str]) -> Known | None:
    """Return what a partition holds of these messages; none where no partition of this number has the key any more."""
    found: Known | None = None
    for chunk in chunks(ids):
        for row in connection.execute(_KNOWN, {"here": partition_id, "key": key, "ids": chunk}):
            found = found or Known(row.last_seq, row.screens, row.graves, heads_of([row]), {})
            if row.message_id is not None:
                found.digests[row.message_id] = row.digest
    return found


def add(
    connection: Connection,
    partition_id: int,
    given: Sequence[Message],
    recorded_at: datetime,
    blobs: Mapping[str, Blob],
    *,
    there: Known,
    untimed: Collection[str] = (),
    cut: bool = False,
) -> int:
    """Record messages under the partition's lock; return how many were new.

    Args:
        blobs: The bytes of attachments that came with them, by SHA-256.
        there: What the partition holds of them.
        untimed: Ids of those whose time no one said: they are the same at any time.
        cut: Whether a block that ends with them is recorded along.

    Raises:
        MessageError: A message without an id.
        MessageChangedError: An id is recorded with other content.
    """
    rows = _new(connection, partition_id, given, there.digests, untimed)
    if not rows:
        return 0
    recorded, placed = micros(recorded_at), list(enumerate(rows, there.last_seq + 1))
    insert_rows(
        connection,
        messages,
        [
            {
                "partition_id": partition_id,
                "seq": seq,
                "message_id": message.message_id,
                "thread": message.thread,
                "role": message.role,
                "time": micros(message.time),
                "recorded_at": recorded,
                "digest": signature,
                "body": body,
            }
            for seq, (message, body, signature) in placed
        ],
    )
    shelf = fulltext.TextShelf(partition_id, "message")
    told = [
        fulltext.TextEntry(message.message_id, token_counts(attachments.words(message, blobs)), seq, asks(message.text))
        for seq, (message, _, _) in placed
    ]
    fulltext.put(connection, {shelf: told})
    size = sum(len(body) for _, body, _ in rows)
    if blobs:
        added = [message for message, _, _ in rows]
        attachments.add(connection, partition_id, added, blobs)
        size += attachments.size(added, blobs)
    ends = {message.thread: seq for seq, (message, _, _) in placed}
    connection.execute(
        _move_threads(connection.dialect.name, cut=cut),
        [
            {"partition_id": partition_id, "thread": thread, "last_seq": seq, "block_seq": seq if cut else 0}
            for thread, seq in ends.items()
        ],
    )
    moved = {"here": partition_id, "added": len(rows), "size": size, "now": minute_of(recorded)}
    connection.execute(_MOVE_PARTITION, moved)
    return len(rows)


def _new(
    connection: Connection,
    partition_id: int,
    given: Sequence[Message],
    recorded: Mapping[str, str],
    untimed: Collection[str],
) -> list[tuple[Message, str, str]]:
    """Return the messages that are not recorded yet, each once, with body and digest."""
    known = dict(recorded)
    new: dict[str, tuple[Message, str, str]] = {}
    for message in given:
        name = message.message_id
        if not name:
            raise MessageError("A message has no id.", "Give each message a message_id.")
        body = _body(message)
        signature = digest(body)
        if name not in known:
            known[name] = signature
            new[name] = (message, body, signature)
        elif known[name] != signature:
            before = new[name][1] if name in new else _recorded(connection, partition_id, name)
            if name not in untimed or _timeless(before) != _timeless(body):
                raise MessageChangedError(f"Message {name} is already recorded with other content.")
    return list(new.values())


def _recorded(connection: Connection, partition_id: int, name: str) -> str:
    row = connection.execute(_RECORDED, {"here": partition_id, "ids": [name]}).one()
    return str(row.body)


def _timeless(body: str) -> Any:
    return {**json.loads(body), "time": None}


def _body(message: Message) -> str:
    if type(message) is Message:
        return message.to_json()
    return Message(**{name: getattr(message, name) for name in Message.model_fields}).to_json()


@cache
def _move_threads(dialect: str, *, cut: bool) -> Insert:
    statement = upsert(dialect, threads)
    ends = ("last_seq", "block_seq") if cut else ("last_seq",)
    return statement.on_conflict_do_update(
        index_elements=["partition_id", "thread"], set_={name: statement.excluded[name] for name in ends}
    )


@dataclass(frozen=True, slots=True)
class MessageFilter:
    """Conditions on messages; see `Archive.messages`."""

    thread: str | None = None
    first_seq: int | None = None
    last_seq: int | None = None
    time_start: datetime | None = None
    time_end: datetime | None = None
    key_word: str | None = None
    newest: bool = False
    """Whether a limit keeps the newest."""

    def conditions(self) -> Iterator[ColumnElement[bool]]:
        """Say it in SQL; the key word only as far as SQL can, `holds` is exact."""
        if self.thread is not None:
            yield messages.c.thread == self.thread
        if self.first_seq is not None:
            yield messages.c.seq >= self.first_seq
        if self.last_seq is not None:
            yield messages.c.seq <= self.last_seq
        if self.time_start is not None:
            yield messages.c.time >= micros(self.time_start)
        if self.time_end is not None:
            yield messages.c.time <= micros(self.time_end)
        # The body escapes each character by itself, so the escaped words are a part of the escaped text. Line ends
        # may be those between content blocks, which no body holds.
        for line in (self.key_word or "").split("\n"):
            if line:
                yield messages.c.body.icontains(json.dumps(line)[1:-1][:_LONGEST_PATTERN], autoescape=True)

    def holds(self, message: StoredMessage) -> bool:
        """Return whether the text holds the key word, ASCII case aside."""
        return self.key_word is None or _fold(self.key_word) in _fold(message.text)


def _fold(value: str) -> str:
    return value.translate(_ASCII_FOLD)


def stored(
    partition: Partition, row: Row[Any], readings: Sequence[Reading] = (), *, shown: Collection[WithheldReason] = ()
) -> StoredMessage:
    """Return the message of a row of the table `messages`, with what is in its attachments, as far as it is shown."""
    body = json.loads(row.body)
    if row.withheld is not None:
        phrases = withheld.phrases(row.withheld, shown)
        body = veiled(body, phrases) | {"withheld": withheld.public(row.withheld)}
        some = [phrase for phrase in phrases if phrase is not None]
        readings = () if None in phrases else [each.evolve(text=without(each.text, some)) for each in readings]
    return StoredMessage.model_validate(
        {
            **body,
            "partition": partition,
            "seq": row.seq,
            "recorded_at": from_micros(row.recorded_at),
            "readings": readings,
        }
    )


def read(
    connection: Connection,
    places: Mapping[int, Partition],
    wanted: MessageFilter,
    *,
    ids: Sequence[str] | None,
    seqs: Sequence[int] | None,
    limit: int | None,
    shown: Collection[WithheldReason] = (),
) -> Iterable[StoredMessage]:
    """Yield messages by partition and seq, at most `limit`."""
    left = limit
    conditions = [*wanted.conditions()]
    query = _BY_SEQ if seqs is not None else _OF_PARTITION if ids is None else _BY_ID
    query = query.where(*conditions) if conditions else query
    names = ids if seqs is None else seqs
    for partition_id, partition in places.items():
        if names is None:
            most = left if wanted.key_word is None else None
            rows = _in_order(connection, query, partition_id, most, latest_first=wanted.newest)
        else:
            rows = _named(connection, query, partition_id, names)
        for row in rows:
            if left is not None and left <= 0:
                return
            read = attachments.mentions(row.body)
            message = stored(
                partition,
                row,
                attachments.readings(connection, partition_id, row.message_id) if read else (),
                shown=shown,
            )
            if wanted.holds(message):
                yield message
                left = left if left is None else left - 1


def ids_between(connection: Connection, partition_id: int, thread: str, first_seq: int, last_seq: int) -> list[str]:
    """Return the ids of the messages of a thread from one place to another."""
    here = {"here": partition_id, "thread": thread, "first": first_seq, "last": last_seq}
    return list(connection.execute(_IDS_BETWEEN, here).scalars())


def asked(connection: Connection, places: Mapping[int, Partition]) -> Iterable[StoredMessage]:
    """Yield the messages that wait for a decision, with the words that it is about."""
    query = select(messages).where(
        messages.c.partition_id.in_(list(places)), messages.c.withheld.contains('"reason": "asked"')
    )
    for row in connection.execute(query.order_by(messages.c.partition_id, messages.c.seq)):
        yield stored(places[row.partition_id], row, shown=["asked"])


def recorded(connection: Connection, partition_id: int, ids: Sequence[str]) -> dict[str, Recorded]:
    """Return messages exactly as recorded, by id."""
    rows = (row for chunk in chunks(ids) for row in connection.execute(_RECORDED, {"here": partition_id, "ids": chunk}))
    return _to_the_letter(rows)


def revisions(connection: Connection, partition_id: int, ids: Collection[str]) -> dict[str, Recorded]:
    """Return, exactly as recorded, what hosts put in the place of messages."""
    query = _TO_THE_LETTER.where(messages.c.body.contains(json.dumps(REVISES))).order_by(messages.c.seq)
    found = _to_the_letter(connection.execute(query, {"here": partition_id})) if ids else {}
    return {name: each for name, each in found.items() if revised(each.body) in ids}


def course(
    connection: Connection, partition_id: int, thread: str | None, after: int, *, dropped: bool | None
) -> dict[str, Recorded]:
    """Return messages exactly as recorded, by place; see `Archive.recorded`."""
    query = _TO_THE_LETTER.where(messages.c.seq > after).order_by(messages.c.seq)
    if thread is not None:
        query = query.where(messages.c.thread == thread)
    if dropped:
        query = query.where(messages.c.withheld.is_not(None))
    found = _to_the_letter(connection.execute(query, {"here": partition_id}))
    return {name: each for name, each in found.items() if dropped in {None, bool(each.dropped)}}


def _to_the_letter(rows: Iterable[Any]) -> dict[str, Recorded]:
    return {
        row.message_id: Recorded(
            json.loads(row.body), row.seq, from_micros(row.recorded_at), withheld.dropped(row.withheld)
        )
        for row in rows
    }


def _in_order(
    connection: Connection, query: Select[Any], partition_id: int, limit: int | None, *, latest_first: bool
) -> Iterable[Row[Any]]:
    order = messages.c.seq.desc() if latest_first else messages.c.seq
    found = connection.execute(query.order_by(order).limit(limit), {"here": partition_id})
    return reversed(found.all()) if latest_first else found


def _named(connection: Connection, query: Select[Any], partition_id: int, names: Sequence[Any]) -> Sequence[Row[Any]]:
    """Return messages that are named; in SQL's own order, SQLite would go through all of a partition for a few."""
    rows = [
        row
        for chunk in chunks(list(dict.fromkeys(names)))
        for row in connection.execute(query, {"here": partition_id, "named": chunk})
    ]
    return sorted(rows, key=lambda row: int(row.seq))
