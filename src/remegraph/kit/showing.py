"""What agents were shown: noted when it is shown, written down later (docs/invariants.md, 8)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from remegraph.kit.health import Health
from remegraph.kit.noting import Notes
from remegraph.models import Shown

if TYPE_CHECKING:
    from remegraph.ports import AuditTrail

__all__ = ["ShownBuffer"]

_MANY = 256
"""After each so many, they should be written down soon."""


class ShownBuffer(Notes[Shown]):
    """Records of what was shown that are not written yet.

    Args:
        trail: Where they are written.
        health: Told of records that cannot be written.
    """

    def __init__(self, trail: AuditTrail, health: Health) -> None:
        super().__init__(_MANY, health)
        self._trail = trail

    def _write(self, taken: Sequence[Shown]) -> None:
        self._trail.add_shown(taken)
