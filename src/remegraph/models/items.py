"""Key-value items, which are not memories: what an agent's store keeps beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

__all__ = ["ItemChange", "StoredItem"]


@dataclass(frozen=True, slots=True)
class StoredItem:
    """An item as it is stored; its value is the reader's own copy."""

    number: int
    namespace: tuple[str, ...]
    key: str
    value: dict[str, Any]
    created_at: datetime
    updated_at: datetime
    expires: bool
    """Whether it has a time to live."""


@dataclass(frozen=True, slots=True)
class ItemChange:
    """An item to write in place of the one of its name, if any; or to delete."""

    namespace: tuple[str, ...]
    key: str
    value: Mapping[str, Any] | None
    """JSON; none: delete the item."""
    texts: tuple[str, ...] = ()
    """What vector search finds it by."""
    ttl: timedelta | None = None
    """How long it lives after it was written or read; none: for good."""
