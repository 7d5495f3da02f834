"""What became of what another agent, or a pack, gave (K8)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from remegraph.models.base import Record, Text, Token

__all__ = ["Absorbed", "Absorption"]


class Absorbed(Record):
    """What became of one item."""

    item_id: Token = Field(description="The item.")
    outcome: Literal["created", "corroborated", "quarantined", "known", "refused"] = Field(
        description="created: a new memory; corroborated: it bears out a memory that was there; quarantined: a new "
        "memory that waits for approval; known: nothing changed, as it is there already; refused: see `reason`."
    )
    memory_id: str = Field(default="", description="The memory that holds it; empty where it was refused.")
    reason: Text = Field(default="", description="Why it was not simply created.")
    source: Token = Field(default="", description="The agent that gave it; empty where nothing proves which.")
    trust: float = Field(default=0.0, ge=0, le=1, description="How far it is believed.")
    contradicts: tuple[str, ...] = Field(default=(), description="Memories that it contradicts: both are in dispute.")
    may_contradict: tuple[str, ...] = Field(default=(), description="Memories that it may contradict.")
    more_than: tuple[str, ...] = Field(default=(), description="Memories of which it says all, and more.")
    less_than: tuple[str, ...] = Field(default=(), description="Memories that say all that it says, and more.")


class Absorption(Record):
    """What `absorb` did."""

    items: tuple[Absorbed, ...] = Field(default=(), description="What became of each item, in the order given.")
    degraded: tuple[str, ...] = Field(default=(), description="What could not be brought up to date, and why.")

    @property
    def memory_ids(self) -> tuple[str, ...]:
        """The memories that are new or have a new version, each once, in the order of the items."""
        done = (item.memory_id for item in self.items if item.outcome in {"created", "corroborated", "quarantined"})
        return tuple(dict.fromkeys(done))
