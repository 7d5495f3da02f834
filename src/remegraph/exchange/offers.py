"""One thing that another agent, or a pack, gives, and how far it is believed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from remegraph.models import Origin
from remegraph.rules.standing import QUARANTINE_BELOW
from remegraph.rules.understanding import ItemContent

__all__ = ["Offer"]


@dataclass(frozen=True, slots=True)
class Offer:
    """An item, and what is known of where it comes from. Whoever offers it has checked that."""

    item_id: str
    title: str
    content: ItemContent
    origin: Origin
    """Names the agent only where it is proven."""
    trust: float
    """No more than the least of what the item says of itself and what its source is believed."""
    raw: Mapping[str, Any]
    """The item as it came, for the record."""
    importance: float = 0.5
    tags: tuple[str, ...] = ()
    resident: bool | None = None
    """Whether its memory is active by somebody's word; see `Memory.resident`."""
    doubt: str = ""
    """Why somebody must approve it, however far its source is believed."""
    refusal: str = ""
    """Why it is not taken at all."""
    notice: str = ""
    """What else is to be known of it."""

    @property
    def believed(self) -> bool:
        """Whether it becomes a memory without anybody's approval."""
        return self.trust >= QUARANTINE_BELOW and not self.doubt

    @property
    def agent(self) -> str:
        """The agent that gives it; empty where nothing proves which."""
        return self.origin.agents[0] if self.origin.agents else ""

    @property
    def source(self) -> str:
        """What tells it from the same item of another source."""
        return "\n".join((*self.origin.agents, self.origin.claimed, self.origin.pack_id))
