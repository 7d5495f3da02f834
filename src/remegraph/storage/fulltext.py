"""Full text: the engine finds the rows that hold a token, stored counts say how often.

Tokens are turned into plain terms of ASCII letters and digits, so that nothing a person writes is ever read as a query.
The place (partition and kind) is one more term of each row, with an underscore that no token can have; whatever the
index finds is read back through `texts`, by partition, kind and the exact tokens.
"""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np
from sqlalchemy import Connection, Insert, TextClause, bindparam, delete, func, select, text

from remegraph.models import HitKind, Partition
from remegraph.ports import TextMatches
from remegraph.storage.database import insert_rows, upsert
from remegraph.storage.rows import chunks
from remegraph.storage.tables import texts, totals

__all__ = ["MOST_TERMS", "TextEntry", "TextShelf", "match", "put", "remove"]

_LONGEST_TOKEN = 24
_LONGEST_HEX = 12  # in bytes of UTF-8
MOST_TERMS = 40_000
"""Terms of one text: a tsvector holds 1 MiB of them, ours are 25 letters long at most."""

_OVERFLOW = "_more"  # stands for the terms beyond that: such a row is always looked at

_PG_INSERT = text(
    "INSERT INTO texts (partition_id, kind, record_id, seq, length, counts, asks, terms) VALUES"
    " (:partition_id, :kind, :record_id, :seq, :length, :counts, :asks, array_to_tsvector(CAST(:terms AS text[])))"
)
_TOTAL = select(totals.c.records, totals.c.tokens).where(
    totals.c.partition_id == bindparam("partition_id"), totals.c.kind == bindparam("kind")
)
_TOTAL_OF = select(func.count().label("records"), func.coalesce(func.sum(texts.c.length), 0).label("tokens")).where(
    texts.c.partition_id == bindparam("partition_id"),
    texts.c.kind == bindparam("kind"),
    texts.c.record_id.in_(bindparam("record_ids", expanding=True)),
)
_NEWEST = select(func.coalesce(func.max(texts.c.id), 0))
_FTS_INSERT = "INSERT INTO texts_fts (rowid, terms) VALUES (?, ?)"
_FTS_DELETE = text("INSERT INTO texts_fts (texts_fts, rowid, terms) VALUES ('delete', :id, :terms)")

# CROSS JOIN: first the index, then its rows; SQLite's planner would ask the index about each row of the shelf.
_FTS_MATCH = text(
    "SELECT record_id, seq, length, counts FROM texts_fts CROSS JOIN texts ON texts.id = texts_fts.rowid"
    " WHERE texts_fts MATCH :query AND partition_id = :partition_id AND kind = :kind"
)
_PG_MATCH = text(
    "SELECT record_id, seq, length, counts FROM texts"
    " WHERE terms @@ CAST(:query AS tsquery) AND partition_id = :partition_id AND kind = :kind"
)


@dataclass(frozen=True, slots=True)
class TextShelf:
    """Where texts are: the records of one kind in one partition."""

    partition_id: int
    kind: HitKind

    @property
    def values(self) -> dict[str, int | str]:
        """As parameters of a statement."""
        return {"partition_id": self.partition_id, "kind": self.kind}


@dataclass(frozen=True, slots=True)
class TextEntry:
    """The tokens of one record."""

    record_id: str
    counts: Mapping[str, int]
    seq: int = 0
    asks: bool = False
    """Whether it ends with a question."""


def put(connection: Connection, shelf: TextShelf, entries: Sequence[TextEntry]) -> None:
    """Index records that are not indexed yet."""
    if not entries:
        return
    where, lengths = shelf.values, [sum(entry.counts.values()) for entry in entries]
    rows = [
        where
        | {
            "record_id": entry.record_id,
            "seq": entry.seq,
            "length": length,
            "counts": json.dumps(entry.counts),
            "asks": entry.asks,
        }
        for entry, length in zip(entries, lengths, strict=True)
    ]
    terms = [_terms(shelf, entry.counts) for entry in entries]
    if connection.dialect.name == "sqlite":
        newest = connection.execute(_NEWEST).scalar_one()
        numbers = range(newest + 1, newest + 1 + len(rows))
        insert_rows(connection, texts, [row | {"id": number} for row, number in zip(rows, numbers, strict=True)])
        connection.exec_driver_sql(_FTS_INSERT, list(zip(numbers, map(" ".join, terms), strict=True)))
    else:
        connection.execute(_PG_INSERT, [row | {"terms": words} for row, words in zip(rows, terms, strict=True)])
    _count(connection, shelf, len(rows), sum(lengths))


def remove(connection: Connection, shelf: TextShelf, record_ids: Sequence[str]) -> None:
    """Take records out of the index; those that are not in it are no error."""
    for chunk in chunks(record_ids):
        here = (
            texts.c.partition_id == shelf.partition_id,
            texts.c.kind == shelf.kind,
            texts.c.record_id.in_(chunk),
        )
        rows = connection.execute(select(texts.c.id, texts.c.length, texts.c.counts).where(*here)).all()
        if not rows:
            continue
        if connection.dialect.name == "sqlite":  # a contentless table must be told what it holds
            gone = [{"id": row.id, "terms": " ".join(_terms(shelf, json.loads(row.counts)))} for row in rows]
            connection.execute(_FTS_DELETE, gone)
        connection.execute(delete(texts).where(*here))
        _count(connection, shelf, -len(rows), -sum(row.length for row in rows))


def match(
    connection: Connection,
    partition: Partition,
    shelf: TextShelf,
    tokens: Sequence[str],
    allowed: Collection[str] | None = None,
) -> TextMatches:
    """Return the records that hold at least one token, and how many records and tokens the shelf holds in all.

    Args:
        connection: A connection.
        partition: That of the shelf.
        shelf: Where to look.
        tokens: The tokens; repeats count once.
        allowed: Only these records, as if the shelf held no others.
    """
    wanted, among = tuple(dict.fromkeys(tokens)), None if allowed is None else frozenset(allowed)
    keys = [f"{json.dumps(token)}: " for token in wanted]
    record_ids: list[str] = []
    seqs, lengths, counts = array("q"), array("q"), array("q")  # an object per match would keep the collector busy
    if wanted:
        query, statement = _query(connection, shelf, wanted)
        for record_id, seq, length, stored in connection.execute(statement, {"query": query, **shelf.values}):
            held = _counts(stored, keys) if among is None or record_id in among else ()
            if any(held):
                record_ids.append(record_id)
                seqs.append(seq)
                lengths.append(length)
                counts.extend(held)
    records, in_all = _totals(connection, shelf, among)
    return TextMatches(
        partition,
        wanted,
        record_ids,
        np.array(seqs, dtype=np.int64),
        np.array(lengths, dtype=np.int64),
        np.array(counts, dtype=np.int64).reshape(len(record_ids), len(wanted)),
        records,
        in_all,
    )


def _totals(connection: Connection, shelf: TextShelf, allowed: Collection[str] | None) -> tuple[int, int]:
    """Return how many records and tokens there are, of all or of those allowed: what others hold shifts no ranking."""
    if allowed is None:
        found = connection.execute(_TOTAL, shelf.values).one_or_none()
        return (found.records, found.tokens) if found else (0, 0)
    records = tokens = 0
    for some in chunks(list(allowed)):
        counted = connection.execute(_TOTAL_OF, {**shelf.values, "record_ids": some}).one()
        records, tokens = records + counted.records, tokens + int(counted.tokens)
    return records, tokens


def _query(connection: Connection, shelf: TextShelf, tokens: Sequence[str]) -> tuple[str, TextClause]:
    terms = [*dict.fromkeys(map(_term, tokens)), _OVERFLOW]
    if connection.dialect.name == "sqlite":
        alternatives = " OR ".join(f'"{term}"' for term in terms)
        return f'"{_place(shelf)}" AND ({alternatives})', _FTS_MATCH
    alternatives = " | ".join(f"'{term}'" for term in terms)
    return f"'{_place(shelf)}' & ({alternatives})", _PG_MATCH


def _counts(stored: str, keys: Sequence[str]) -> list[int]:
    """Return how often each token is counted: looked for, as reading all of the JSON takes ten times as long.

    Args:
        stored: Counts as `put` writes them. No token holds a quote, so what looks like a key is one.
        keys: The tokens, as they stand there.
    """
    counts = [0] * len(keys)
    for place, key in enumerate(keys):
        if (at := stored.find(key)) >= 0:
            begins = at + len(key)
            ends = stored.find(",", begins)
            counts[place] = int(stored[begins : ends if ends >= 0 else -1])
    return counts


def _count(connection: Connection, shelf: TextShelf, records: int, tokens: int) -> None:
    connection.execute(_add_to_totals(connection.dialect.name), {**shelf.values, "records": records, "tokens": tokens})


@cache
def _add_to_totals(dialect: str) -> Insert:
    statement = upsert(dialect, totals)
    added = statement.excluded
    return statement.on_conflict_do_update(
        index_elements=["partition_id", "kind"],
        set_={"records": totals.c.records + added.records, "tokens": totals.c.tokens + added.tokens},
    )


def _place(shelf: TextShelf) -> str:
    return f"_{shelf.partition_id}_{shelf.kind}"


def _terms(shelf: TextShelf, counts: Mapping[str, int]) -> list[str]:
    terms = sorted(set(map(_term, counts)))
    overflow = [_OVERFLOW] if len(terms) > MOST_TERMS else []
    return [_place(shelf), *overflow, *terms[:MOST_TERMS]]


@lru_cache(maxsize=1 << 12)
def _term(token: str) -> str:
    """Return a token as ASCII letters and digits; two tokens may share a term, their counts tell them apart."""
    if len(token) <= _LONGEST_TOKEN and token.isascii() and token.isalnum():
        return token.lower()
    data = token.encode("utf-8", "surrogatepass")
    return f"x{data.hex()}" if len(data) <= _LONGEST_HEX else f"h{hashlib.blake2b(data, digest_size=8).hexdigest()}"
