"""What a client of the server may do: three levels, each with all of the one before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

__all__ = ["Rights", "allows"]

Rights = Literal["read", "save", "write"]
"""Look things up; state new memories, too; take memories back and decide conflicts, too."""


def allows(rights: Rights, needed: Rights) -> bool:
    """Return whether some rights are enough.

    Args:
        rights: What a caller may do.
        needed: What something takes.
    """
    levels: Sequence[Rights] = get_args(Rights)
    return levels.index(needed) <= levels.index(rights)
