"""Records to rows and back: times, digests, partitions by number."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta, timezone
from itertools import batched
from typing import TypeVar

__all__ = ["chunks", "decode", "digest", "encode", "from_micros", "micros", "offset_seconds", "scope_key"]
