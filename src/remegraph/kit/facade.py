"""What the verbs of a kit stand on that have a name of their own, such as those of `kit.skills`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from remegraph.kit.calling import library, required

if TYPE_CHECKING:
    from remegraph.kit.parts import Parts
    from remegraph.models import Scope
    from remegraph.settings import Settings

__all__ = ["Access", "Facade"]


@dataclass(frozen=True)
class Access:
    """What a kit lets its facades do with it."""

    parts: Callable[[], Parts]
    """Gives the parts, while the kit is open."""
    settings: Settings
    follow: Callable[[], tuple[str, ...]]
    """Brings the vectors up to date after a change; tells what could not be."""


class Facade:
    """Verbs of a kit under a name of their own.

    Args:
        access: To the kit.
    """

    def __init__(self, access: Access) -> None:
        self._parts = access.parts
        self._settings = access.settings
        self._follow = access.follow

    def _library(self, scope: Scope) -> Scope:
        return library(required(scope), self._settings)
