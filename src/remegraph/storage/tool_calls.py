"""The rows of tool calls, and what is counted over them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import compress, groupby
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, case, delete, func, insert, select

from remegraph.errors import NotFoundError
from remegraph.models import Partition, ToolRecord, ToolStats, ToolWindow
from remegraph.rules.tool_records import joined, twin
from remegraph.rules.tool_windows import window
from remegraph.storage.block_notes import require_block
from remegraph.storage.rows import chunks, from_micros, micros
from remegraph.storage.tables import messages, tool_calls
from remegraph.storage.tombstones import Tombstones

__all__ = ["read", "record", "stats", "without_late"]


def without_late(connection: Connection, tombstones: Tombstones, calls: Sequence[ToolRecord]) -> tuple[ToolRecord, ...]:
    """Leave out what was only heard, and erased before it was written: with its message, or with the person.

    Args:
        connection: A connection.
        tombstones: What was erased.
        calls: The calls, heard or read.
    """
    heard = [call for call in calls if not call.message_id]
    late = tombstones.late(connection, "call", [(call.partition, call.call_id, call.time) for call in heard])
    gone = list(compress(heard, late))
    return tuple(call for call in calls if call not in gone)


def record(connection: Connection, numbers: Mapping[Partition, int], calls: Iterable[ToolRecord]) -> None:
    """Write how tool calls went. What is known of a call already is joined with what is new, and counts once.

    Args:
        connection: A write transaction that holds the locks of the partitions.
        numbers: The numbers of partitions.
        calls: The calls, heard or read.

    Raises:
        NotFoundError: There is no such block or message.
    """
    for call in calls:
        partition_id = numbers[call.partition]
        if call.message_id:
            require_block(connection, partition_id, call.block_id)
            here = (messages.c.partition_id == partition_id, messages.c.message_id == call.message_id)
            if connection.execute(select(messages.c.id).where(*here)).first() is None:
                raise NotFoundError(f"There is no message {call.message_id} here.")
        same_id = (tool_calls.c.partition_id == partition_id, tool_calls.c.call == json.dumps(call.call_id))
        found = connection.execute(select(tool_calls.c.body).where(*same_id)).scalars()
        known = twin((ToolRecord.from_json(body) for body in found), call)
        if known is not None:
            key = (tool_calls.c.message_id == known.message_id, tool_calls.c.digest == known.digest)
            connection.execute(delete(tool_calls).where(*same_id, *key))
            call = joined(known, call)  # noqa: PLW2901 - what is written is both in one
        connection.execute(insert(tool_calls).values(_row(partition_id, call)))


def _row(partition_id: int, call: ToolRecord) -> dict[str, Any]:
    return {
        "partition_id": partition_id,
        "message_id": call.message_id,
        "call": json.dumps(call.call_id),
        "digest": call.digest,
        "tool": json.dumps(call.tool),
        "ok": call.ok,
        "seconds": call.seconds,
        "input_tokens": call.input_tokens,
        "output_tokens": call.output_tokens,
        "time": micros(call.time),
        "body": call.to_json(),
    }


def read(
    connection: Connection,
    places: Mapping[int, Partition],
    tools: Sequence[str] | None,
    last: int,
    digest: str | None = None,
) -> tuple[ToolRecord, ...]:
    """Return the newest calls of each tool, by tool, the newest first."""
    order = (tool_calls.c.time.desc(), tool_calls.c.message_id.desc(), tool_calls.c.call.desc())
    rank = func.row_number().over(partition_by=tool_calls.c.tool, order_by=order).label("rank")
    alike = [] if digest is None else [tool_calls.c.digest == digest]
    found: list[Row[Any]] = []
    for here in _pieces(places, tools):
        ranked = select(tool_calls.c.tool, tool_calls.c.body, rank).where(*here, *alike).subquery()
        query = select(ranked.c.body).where(ranked.c.rank <= last)
        found += connection.execute(query.order_by(ranked.c.tool, ranked.c.rank)).all()
    return tuple(ToolRecord.from_json(row.body) for row in found)


def stats(
    connection: Connection, places: Mapping[int, Partition], tools: Sequence[str] | None, last: int
) -> tuple[ToolStats, ...]:
    """Return the statistics of the tools, by name: all calls are counted in SQL, the last ones looked at closely."""
    newest = read(connection, places, tools, last) if last else ()
    recent = {tool: window(list(calls)) for tool, calls in groupby(newest, lambda call: call.tool)}
    counted: list[Row[Any]] = []
    errors: dict[str, str] = {}
    for here in _pieces(places, tools):
        counted += connection.execute(_count(here)).all()
        errors |= {row.tool: json.loads(row.body)["error"] for row in connection.execute(_newest_errors(here))}
    found = [
        ToolStats(
            tool=json.loads(row.tool),
            calls=row.calls,
            distinct=row.distinct,
            succeeded=row.succeeded,
            failed=row.failed,
            mean_seconds=row.mean_seconds,
            mean_input_tokens=row.mean_input_tokens,
            mean_output_tokens=row.mean_output_tokens,
            last_error=errors.get(row.tool, ""),
            last_called=from_micros(row.last_called),
            recent=recent.get(json.loads(row.tool), ToolWindow()),
        )
        for row in counted
    ]
    return tuple(sorted(found, key=lambda one: one.tool))


def _pieces(places: Mapping[int, Partition], tools: Sequence[str] | None) -> list[list[ColumnElement[bool]]]:
    """Return what rows of these partitions and tools meet, in pieces that fit one statement."""
    here = tool_calls.c.partition_id.in_(list(places))
    if tools is None:
        return [[here]]
    names = [json.dumps(tool) for tool in dict.fromkeys(tools)]
    return [[here, tool_calls.c.tool.in_(chunk)] for chunk in chunks(names)]


def _count(here: Sequence[ColumnElement[bool]]) -> Select[Any]:
    return (
        select(
            tool_calls.c.tool,
            func.count().label("calls"),
            func.count(tool_calls.c.digest.distinct()).label("distinct"),
            func.count(case((tool_calls.c.ok.is_(True), 1))).label("succeeded"),
            func.count(case((tool_calls.c.ok.is_(False), 1))).label("failed"),
            func.avg(tool_calls.c.seconds).label("mean_seconds"),
            func.avg(tool_calls.c.input_tokens).label("mean_input_tokens"),
            func.avg(tool_calls.c.output_tokens).label("mean_output_tokens"),
            func.max(tool_calls.c.time).label("last_called"),
        )
        .where(*here)
        .group_by(tool_calls.c.tool)
    )


def _newest_errors(here: Sequence[ColumnElement[bool]]) -> Select[Any]:
    rank = func.row_number().over(partition_by=tool_calls.c.tool, order_by=tool_calls.c.time.desc()).label("rank")
    failed = select(tool_calls.c.tool, tool_calls.c.body, rank).where(*here, tool_calls.c.ok.is_(False)).subquery()
    return select(failed.c.tool, failed.c.body).where(failed.c.rank == 1)
