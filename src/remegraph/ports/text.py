"""What the full text finds, and what it is ranked with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from remegraph.models import Partition

if TYPE_CHECKING:
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


@dataclass(frozen=True, slots=True, eq=False)
class TextMatches:
    """All matches of one partition as columns, with the partition's own statistics."""

    partition: Partition
    tokens: Sequence[str]
    record_ids: Sequence[str]
    seqs: NDArray[np.int64]
    lengths: NDArray[np.int64]
    counts: NDArray[np.int64]
    """How often each record holds each of `tokens`, shape (records, tokens)."""
    total: int
    """Records of this kind in the partition."""
    total_length: int
    """Tokens in them, in all."""

    @classmethod
    def of(cls, partition: Partition, matches: Sequence[TextMatch], total: int, total_length: int) -> Self:
        """Return what a few matches are as columns.

        Args:
            partition: Where they are.
            matches: All that were found.
            total: Records in the partition.
            total_length: Tokens in them, in all.
        """
        tokens = tuple(dict.fromkeys(token for match in matches for token in match.counts))
        counts = [[match.counts.get(token, 0) for token in tokens] for match in matches]
        return cls(
            partition,
            tokens,
            tuple(match.record_id for match in matches),
            np.array([match.seq for match in matches], dtype=np.int64),
            np.array([match.length for match in matches], dtype=np.int64),
            np.array(counts, dtype=np.int64).reshape(len(matches), len(tokens)),
            total,
            total_length,
        )


@dataclass(frozen=True, slots=True)
class Layout:
    """The messages of a partition in order, as columns: what windows are composed from."""

    seqs: NDArray[np.int32]
    threads: NDArray[np.int32]
    """Number of the thread of each message."""
    lengths: NDArray[np.int32]
    """Tokens in each message."""
    asks: NDArray[np.bool_]
    """Whether each message ends with a question."""
    users: NDArray[np.bool_]
    """Whether a user said each message: who answers a question is another one."""
