"""What the full text finds, and what it is ranked with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from remegraph.models import Partition

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "Layout",
    "TextMatch",
    "TextMatches",
]


@dataclass(frozen=True, slots=True)
class TextMatch:
    """A record that holds at least one of the words asked for."""

    record_id: str
    seq: int
    """Place in the partition (messages), else 0."""
    length: int
    """Tokens in the record."""
    counts: Mapping[str, int]
    """How often it holds each of the words asked for."""


@dataclass(frozen=True, slots=True)
class TextMatches:
    """All matches of one partition, with the partition's own statistics."""

    partition: Partition
    matches: tuple[TextMatch, ...]
    total: int
    """Records of this kind in the partition."""
    total_length: int
    """Tokens in them, in all."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The messages of a partition in order, as columns: what windows are composed from."""

    seqs: NDArray[np.int64]
    threads: NDArray[np.int64]
    """Number of the thread of each message."""
    lengths: NDArray[np.int64]
    """Tokens in each message."""
    asks: NDArray[np.bool_]
    """Whether each message ends with a question."""
    users: NDArray[np.bool_]
    """Whether a user said each message: who answers a question is another one."""
    message_ids: Sequence[str]
