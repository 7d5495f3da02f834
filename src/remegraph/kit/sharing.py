"""`kit.sharing`: what one agent lets others know, and what all of a user's agents know in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from remegraph.kit.proposing import Proposing
from remegraph.settings import Settings

if TYPE_CHECKING:
    from remegraph.kit.parts import Parts
    from remegraph.ports import Clock, NewId

__all__ = ["Sharing"]


class Sharing(Proposing):
    """Sharing among the agents of one user, in one project.

    Args:
        parts: Gives the parts of an open kit.
        settings: Its settings.
        clock: Tells the time.
        new_id: Makes ids.
        follow: Lets the vectors follow what changed.
    """

    def __init__(
        self,
        parts: Callable[[], Parts],
        settings: Settings,
        clock: Clock,
        new_id: NewId,
        follow: Callable[[], object],
    ) -> None:
        self._parts = parts
        self._settings = settings
        self._clock = clock
        self._new_id = new_id
        self._follow = follow
