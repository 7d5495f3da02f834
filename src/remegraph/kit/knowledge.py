"""`kit.knowledge`: what agents give each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from remegraph.kit.extracting import Extracting
from remegraph.models import Recall, Scope

if TYPE_CHECKING:
    from remegraph.kit.parts import Parts

__all__ = ["Knowledge"]


class Knowledge(Extracting):
    """Makes knowledge of memories.

    Args:
        parts: Gives the parts of an open kit.
        library: The scope that an agent's memories live under.
        recall: Finds memories.
    """

    def __init__(
        self, parts: Callable[[], Parts], library: Callable[[Scope], Scope], recall: Callable[..., Recall]
    ) -> None:
        self._parts = parts
        self._library = library
        self._recall = recall
