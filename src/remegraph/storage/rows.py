"""What every table needs: times as integers, digests, long lists of ids in pieces."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta, timezone
from typing import TypeVar

__all__ = ["chunks", "digest", "from_micros", "micros", "offset_seconds"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_CHUNK = 500  # three lists in one statement stay far under the 32,766 variables that SQLite takes

Item = TypeVar("Item")


def micros(time: datetime) -> int:
    """Return the microseconds since the epoch; exact, unlike `timestamp()`."""
    return (time - _EPOCH) // _MICROSECOND


def offset_seconds(time: datetime) -> int:
    """Return the offset of an aware time from UTC, in seconds."""
    return round((time.utcoffset() or timedelta()).total_seconds())


def from_micros(value: int, offset: int = 0) -> datetime:
    """Return the time that `micros` and `offset_seconds` wrote.

    Args:
        value: Microseconds since the epoch.
        offset: Seconds from UTC.
    """
    zone = timezone(timedelta(seconds=offset)) if offset else UTC
    return (_EPOCH.replace(tzinfo=None) + timedelta(seconds=offset) + value * _MICROSECOND).replace(tzinfo=zone)


def digest(text: str) -> str:
    """Return the SHA-256 of a text that may hold lone surrogates, in hex."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def chunks(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    """Cut a list into pieces that fit the variables of one statement."""
    return (items[at : at + _CHUNK] for at in range(0, len(items), _CHUNK))
