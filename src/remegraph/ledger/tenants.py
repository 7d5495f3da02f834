"""Tenants as their operator sees them: how much each holds, what it uses, and the limits on that.

What is used is counted where it is written anyway: messages and bytes in the row of their partition, calls of models once
for each block. So a limit costs one indexed read, and none where none is set.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from functools import cache
from threading import Lock, Timer
from typing import Any

from sqlalchemy import Connection, Select, Subquery, Table, bindparam, func, select

from remegraph.errors import LimitError, RateLimitError
from remegraph.ledger import partitions as partition_rows
from remegraph.ledger.database import Database
from remegraph.ledger.rows import chunks, day_of, from_micros, micros, minute_of, upsert
from remegraph.ledger.schema import attachments, memories, messages, partitions, threads, usage
from remegraph.models import (
    LIVE,
    AgentHoldings,
    CallRecord,
    Partition,
    Scope,
    TenantHoldings,
    TenantUsage,
    ThreadHoldings,
    UserHoldings,
    UserUsage,
)
from remegraph.ports import Clock
from remegraph.settings import LimitPolicy
from remegraph.telemetry import Telemetry

__all__ = ["Holder", "Tenants"]

_MINUTE, _DAY = 60_000_000, 86_400_000_000
_AT_THE_DOOR, _BEFORE_CALLS = ("messages_per_minute", "stored_bytes"), ("tokens_per_day",)
_UNITS: Mapping[str, str] = {
    "messages_per_minute": "messages a minute",
    "tokens_per_day": "model tokens a day",
    "stored_bytes": "stored bytes",
}

Holder = Scope | Partition
"""Names a tenant and a user."""

_SOON = 1.0
"""Seconds after which a refusal is in the ledger, with all that came meanwhile."""

_Limit = tuple[str, str]
"""Whose limit it is, `tenant` or `user`, and its name in the settings."""


class Tenants:
    """What tenants and users hold and use, and what the limits leave them. Safe to use from any thread.

    A limit that was found used up is remembered until the minute is over: repeated calls cost nothing.

    Args:
        limits: How much may be used.
        telemetry: Told of each call that is refused.
    """

    def __init__(self, database: Database, limits: LimitPolicy, clock: Clock, telemetry: Telemetry) -> None:
        self._database = database
        self._limits = limits
        self._clock = clock
        self._telemetry = telemetry
        self._lock = Lock()
        self._refusals: Counter[tuple[Partition, int]] = Counter()
        self._write: Callable[[], None] = self.flush
        self._writer: Timer | None = None
        self._writing = Lock()
        self._minute = 0
        self._used_up: set[tuple[str, str | None, str]] = set()

    # -------------------------------------------------------------------------------------------- limits

    def admit(self, holder: Holder) -> None:
        """Return if more may be recorded.

        Raises:
            RateLimitError: The messages of this minute are used up.
            LimitError: As many bytes are stored as may be.
        """
        self._admit(holder, _AT_THE_DOOR)

    def admit_calls(self, holder: Holder) -> None:
        """Return if chat models may be called.

        Raises:
            RateLimitError: The tokens of this day are used up.
        """
        self._admit(holder, _BEFORE_CALLS)

    def allows_calls(self, holder: Holder) -> bool:
        """Return whether chat models may be called. Unlike a call, the question is not counted as refused."""
        limits = self._of(holder, _BEFORE_CALLS)
        return self._used_up_of(holder, limits, micros(self._clock())) is None

    def _admit(self, holder: Holder, names: Sequence[str]) -> None:
        limits, now = self._of(holder, names), micros(self._clock())
        if (used_up := self._used_up_of(holder, limits, now)) is None:
            return
        place = holder if isinstance(holder, Partition) else holder.partition()
        whose, name = used_up
        with self._lock:
            self._used_up.add(_key(holder, used_up))
            self._refusals[place, day_of(now)] += 1
            if self._writer is None:
                self._writer = Timer(_SOON, self._write)
                self._writer.daemon = True
                self._writer.start()
        self._telemetry.count("remegraph.refused", 1, limit=name, whose=whose)
        raise _error(whose, name, limits[used_up], now)

    def _used_up_of(self, holder: Holder, limits: Mapping[_Limit, int], now: int) -> _Limit | None:
        """Return the limit that is used up; none: none is."""
        if not limits:
            return None
        return self._known(holder, limits, now) or self._looked_up(holder, limits, now)

    def _known(self, holder: Holder, limits: Iterable[_Limit], now: int) -> _Limit | None:
        """Return the limit that was found used up in this minute; none: none was."""
        with self._lock:
            if self._minute != minute_of(now):
                self._minute, self._used_up = minute_of(now), set()
            return next((each for each in limits if _key(holder, each) in self._used_up), None)

    def _looked_up(self, holder: Holder, limits: Mapping[_Limit, int], now: int) -> _Limit | None:
        """Return the limit that is used up as the ledger says; none: none is."""
        here = {"tenant": holder.tenant, "user": holder.user, "minute": minute_of(now), "day": day_of(now)}
        with self._database.read() as connection:
            used = connection.execute(_used(tuple(limits)), here).one()
        return next((each for each, count in zip(limits, used, strict=True) if count >= limits[each]), None)

    def _of(self, holder: Holder, names: Sequence[str]) -> dict[_Limit, int]:
        """Return the limits that apply to a holder."""
        found = {"tenant": self._limits.tenants.get(holder.tenant, self._limits.tenant), "user": self._limits.user}
        return {
            (whose, name): most
            for whose, limits in found.items()
            for name in names
            if (most := getattr(limits, name)) is not None and (whose == "tenant" or holder.user is not None)
        }

    # --------------------------------------------------------------------------------------------- usage

    def book(self, place: Partition, calls: Sequence[CallRecord]) -> None:
        """Add calls of chat models to what has been used today."""
        if not calls:
            return
        spent = {
            "calls": len(calls),
            "input_tokens": sum(call.input_tokens for call in calls),
            "output_tokens": sum(call.output_tokens for call in calls),
        }
        self._add({(place, day_of(micros(self._clock()))): {**spent, "refused": 0}})

    def written_by(self, write: Callable[[], None]) -> None:
        """Set what is called in the background to write refusals down: `flush`, and what reports its failures."""
        self._write = write

    def flush(self) -> None:
        """Write down how often callers were refused, once another write of it is over. If that fails, it stays noted."""
        none = dict.fromkeys(("calls", "input_tokens", "output_tokens"), 0)
        with self._writing:
            with self._lock:
                refusals, self._refusals = self._refusals, Counter()
                writer, self._writer = self._writer, None
            if writer is not None:
                writer.cancel()
            try:
                self._add({key: {**none, "refused": count} for key, count in refusals.items()})
            except BaseException:
                with self._lock:
                    self._refusals.update(refusals)
                raise

    def _add(self, used: Mapping[tuple[Partition, int], Mapping[str, int]]) -> None:
        """Add what was used of partitions on days."""
        if not used:
            return
        with self._database.write(derived=True) as connection:
            numbers = _counted_at(connection, {place for place, _ in used})
            sums = defaultdict[tuple[int, int], Counter[str]](Counter)
            for (place, day), counts in used.items():
                if place in numbers:
                    sums[numbers[place], day].update(counts)
            rows = [{"partition_id": number, "day": day, **sums[number, day]} for number, day in sorted(sums)]
            if rows:
                statement = upsert(connection.dialect.name, usage)
                more = {
                    column.name: column + statement.excluded[column.name]
                    for column in usage.c
                    if not column.primary_key
                }
                connection.execute(
                    statement.on_conflict_do_update(index_elements=["partition_id", "day"], set_=more), rows
                )

    def usage(self, tenant: str, since: datetime) -> TenantUsage:
        """Return what a tenant has used since some time, by user."""
        self.flush()
        here = {"tenant": tenant, "since": micros(since), "day": day_of(micros(since))}
        with self._database.read() as connection:
            rows = connection.execute(_usage(), here).all()
        return TenantUsage(tenant=tenant, since=since, users=tuple(UserUsage(**row._asdict()) for row in rows))

    # ------------------------------------------------------------------------------------------ holdings

    def tenants(self) -> tuple[TenantHoldings, ...]:
        """Return how much each tenant holds, by name."""
        return tuple(TenantHoldings(**row) for row in self._held("tenant", "users", "agents"))

    def users(self, tenant: str) -> tuple[UserHoldings, ...]:
        """Return how much each user of a tenant holds, by name."""
        return tuple(UserHoldings(**row) for row in self._held("user", "agents", tenant=tenant))

    def agents(self, tenant: str) -> tuple[AgentHoldings, ...]:
        """Return how much each agent of a tenant holds, by name."""
        return tuple(AgentHoldings(**row) for row in self._held("agent", "users", tenant=tenant))

    def threads(self, tenant: str, user: str) -> tuple[ThreadHoldings, ...]:
        """Return how much each conversation of a user holds, the newest first."""
        last = func.max(messages.c.recorded_at)
        query = (
            select(
                messages.c.thread,
                partitions.c.agent,
                partitions.c.project,
                func.count().label("messages"),
                last.label("last"),
            )
            .join_from(partitions, messages, messages.c.partition_id == partitions.c.id)
            .where(partitions.c.tenant == tenant, partitions.c.user == user)
            .group_by(partitions.c.id, messages.c.thread)
            .order_by(last.desc(), messages.c.thread)
        )
        with self._database.read() as connection:
            rows = [row._asdict() for row in connection.execute(query)]
        return tuple(ThreadHoldings(last_at=from_micros(row.pop("last")), **row) for row in rows)

    def _held(self, by: str, *distinct: str, tenant: str | None = None) -> list[dict[str, Any]]:
        held = _holdings(tenant)
        query = (
            select(
                held.c[by],
                *(func.count(held.c[name.removesuffix("s")].distinct()).label(name) for name in distinct),
                *(func.sum(held.c[name]).label(name) for name in ("threads", "messages", "memories", "stored_bytes")),
            )
            .group_by(held.c[by])
            .order_by(held.c[by])
        )
        with self._database.read() as connection:
            return [row._asdict() for row in connection.execute(query)]


def _counted_at(connection: Connection, places: AbstractSet[Partition]) -> dict[Partition, int]:
    """Return by which partition each is counted: itself; else another of its user; else that of the tenant as a whole.

    Nothing is counted of a tenant that is not there. Only the last is created where it is missing, one for each tenant:
    who is refused may have made their name up, and a row for each would fill the ledger.
    """
    known = partition_rows.known(connection, places, fresh=True)
    found = {place: number for number, place in known.items()}
    left = defaultdict[str, set[Partition]](set)
    for place in places - found.keys():
        left[place.tenant].add(place)
    for tenant, those in left.items():
        own = _first_of_users(connection, tenant, {place.user for place in those if place.user is not None})
        found |= {place: own[place.user] for place in those if place.user in own}
        strangers, there = those - found.keys(), select(partitions.c.id).where(partitions.c.tenant == tenant).limit(1)
        if strangers and connection.execute(there).first():
            whole = Partition(tenant=tenant)
            found |= dict.fromkeys(strangers, partition_rows.ensure(connection, [whole])[whole])
    return found


def _first_of_users(connection: Connection, tenant: str, users: Collection[str]) -> dict[str | None, int]:
    """Return the first partition of each user of a tenant that has one."""
    found: dict[str | None, int] = {}
    for some in chunks(sorted(users)):
        here = (partitions.c.tenant == tenant, partitions.c.user.in_(some))
        query = (
            select(partitions.c.user, func.min(partitions.c.id).label("first")).where(*here).group_by(partitions.c.user)
        )
        found |= {row.user: row.first for row in connection.execute(query)}
    return found


def _holdings(tenant: str | None) -> Subquery:
    """Return what each partition holds; of one tenant, or of all."""
    live = memories.c.status.in_(sorted(LIVE))
    query = select(
        *(partitions.c[name] for name in Partition.model_fields),
        partitions.c.stored.label("stored_bytes"),
        _count(threads).label("threads"),
        _count(messages).label("messages"),
        _count(memories, live).label("memories"),
    ).where(partition_rows.named())
    return (query if tenant is None else query.where(partitions.c.tenant == tenant)).subquery()


def _count(table: Table, *where: Any) -> Any:
    return select(func.count()).where(table.c.partition_id == partitions.c.id, *where).scalar_subquery()


@cache
def _used(limits: tuple[_Limit, ...]) -> Select[Any]:
    """Return the query for what is used of some limits, in their order."""
    same = {"minute": partitions.c.minute == bindparam("minute"), "day": usage.c.day == bindparam("day")}
    of = {
        "messages_per_minute": select(func.sum(partitions.c.in_minute)).where(same["minute"]),
        "stored_bytes": select(func.sum(partitions.c.stored)),
        "tokens_per_day": select(func.sum(usage.c.input_tokens + usage.c.output_tokens))
        .join_from(partitions, usage, usage.c.partition_id == partitions.c.id)
        .where(same["day"]),
    }
    tenant, user = partitions.c.tenant == bindparam("tenant"), partitions.c.user == bindparam("user")
    whose = {"tenant": (tenant,), "user": (tenant, user)}
    return select(*(func.coalesce(of[name].where(*whose[who]).scalar_subquery(), 0) for who, name in limits))


@cache
def _usage() -> Select[Any]:
    """Return the query for what the users of a tenant have used."""
    new = (messages.c.partition_id == partitions.c.id, messages.c.recorded_at >= bindparam("since"))
    held = (attachments.c.partition_id == partitions.c.id, attachments.c.message_id == messages.c.message_id)
    today = (usage.c.partition_id == partitions.c.id, usage.c.day >= bindparam("day"))
    bodies = select(func.sum(func.length(messages.c.body))).where(*new).scalar_subquery()
    files = (
        select(func.sum(attachments.c.size))
        .join_from(attachments, messages, held[1])
        .where(held[0], *new)
        .scalar_subquery()
    )
    each = select(
        partitions.c.user,
        _count(messages, new[1]).label("messages"),
        (func.coalesce(bodies, 0) + func.coalesce(files, 0)).label("message_bytes"),
        *(
            select(func.coalesce(func.sum(column), 0)).where(*today).scalar_subquery().label(column.name)
            for column in usage.c
            if not column.primary_key
        ),
    ).where(partitions.c.tenant == bindparam("tenant"))
    found = each.subquery()
    sums = (func.sum(column).label(column.name) for column in found.c if column.name != "user")
    return select(found.c.user, *sums).group_by(found.c.user).order_by(found.c.user)


def _key(holder: Holder, limit: _Limit) -> tuple[str, str | None, str]:
    whose, name = limit
    return holder.tenant, holder.user if whose == "user" else None, name


def _error(whose: str, name: str, most: int, now: int) -> LimitError:
    what = f"This {whose} has used up its {most:,} {_UNITS[name]}."
    if name == "stored_bytes":
        return LimitError(whose, name, what)
    span = _MINUTE if name == "messages_per_minute" else _DAY
    return RateLimitError(whose, name, what, from_micros((now // span + 1) * span))
