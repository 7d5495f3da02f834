"""How memories fade (B14, F5), what long-term ones are abstracted from (B6 to B8), and what maintenance did."""

from __future__ import annotations

from typing import Any, Self

from pydantic import Field, model_validator

from remegraph.models.base import AwareTime, Record
from remegraph.models.memories import Layer, Memory, Status, Tier
from remegraph.models.recall import Trace
from remegraph.models.reports import Usage
from remegraph.models.skills import SkillFigures

__all__ = [
    "Abstraction",
    "Conclusion",
    "Consolidation",
    "Explanation",
    "Fading",
    "Maintenance",
    "Merge",
    "StatusMove",
    "Weight",
]

_KEY = "abstraction"


class Abstraction(Record):
    """Beside its conclusion, which is the content: when it applies, and how sure it is. A model or a person concludes."""

    conditions: tuple[str, ...] = Field(description="When the conclusion applies.")
    confidence: float = Field(ge=0, le=1, description="How sure it is: by trust, corroborations and contradictions.")
    corroborations: int = Field(ge=1, description="How often its sources said so.")
    contradictions: int = Field(default=0, ge=0, description="Memories that say the contrary.")
    terms: tuple[str, ...] = Field(description="The words that recur in its sources, as words are compared.")

    @model_validator(mode="before")
    @classmethod
    def _as_written_before(cls, fields: Any) -> Any:
        """Drop counts without a model's conclusion, which old memories hold."""
        counted = {"words", "claims"}
        return (
            {name: value for name, value in fields.items() if name not in counted}
            if isinstance(fields, dict)
            else fields
        )

    @classmethod
    def of(cls, memory: Memory) -> Self | None:
        """Return the abstraction of a memory; None if it was not abstracted."""
        payload = memory.payload
        return cls.model_validate(payload[_KEY]) if isinstance(payload, dict) and _KEY in payload else None

    def within(self, payload: object) -> dict[str, object]:
        """Return a payload with this abstraction in it.

        Args:
            payload: What the payload held before.
        """
        kept = payload if isinstance(payload, dict) else {}
        return {**kept, _KEY: self.model_dump(mode="json")}


class Conclusion(Record):
    """A person's conclusion from memories that are alike."""

    sources: tuple[str, ...] = Field(min_length=2, description="Ids of the memories, all of one topic.")
    conclusion: str = Field(min_length=1, description="What holds beyond the single occasions.")
    conditions: tuple[str, ...] = Field(default=(), description="When it applies.")


class Consolidation(Record):
    """Result or preview of a consolidation."""

    dry_run: bool = Field(description="True: nothing was changed, and no model was asked.")
    examined: int = Field(ge=0, description="Live memories that were looked at.")
    made: tuple[Memory, ...] = Field(default=(), description="New long-term memories.")
    grown: tuple[Memory, ...] = Field(
        default=(), description="Long-term memories that gained sources or contradictions, as they are now."
    )
    proposed: tuple[tuple[str, ...], ...] = Field(
        default=(),
        description="Groups of similar memories, by id, that a model or a person may conclude from; nothing"
        " was made of them.",
    )
    lines: tuple[str, ...] = Field(
        default=(), description="One line for each group: what was put together, or may be, and why."
    )
    linked: int = Field(default=0, ge=0, description="New links between memories; where one came from is not counted.")
    waiting: tuple[str, ...] = Field(
        default=(), description="Long-term memories, or sources of one, that nothing can be linked with yet."
    )
    skipped: tuple[str, ...] = Field(
        default=(), description="Memories that others changed meanwhile; the next run looks at them again."
    )
    offline: tuple[str, ...] = Field(
        default=(), description="The first of each group whose conclusion the model failed to write."
    )
    degraded: tuple[str, ...] = Field(default=(), description="What could not be brought up to date, and why.")
    usage: Usage = Field(default_factory=Usage, description="Calls and tokens.")

    def plus(self, other: Consolidation) -> Consolidation:
        """Return both combined, except the usage.

        Args:
            other: What was done next.
        """
        return Consolidation(
            dry_run=self.dry_run,
            examined=self.examined + other.examined,
            made=self.made + other.made,
            grown=self.grown + other.grown,
            proposed=self.proposed + other.proposed,
            lines=self.lines + other.lines,
            linked=self.linked + other.linked,
            waiting=self.waiting + other.waiting,
            skipped=self.skipped + other.skipped,
            offline=self.offline + other.offline,
            degraded=self.degraded + other.degraded,
        )


class Weight(Record):
    """How much of a memory is left at one time, and why."""

    policy: str = Field(description="curve, priority or health; kept: it does not fade.")
    value: float = Field(ge=0, le=1, description="1: all of it.")
    formula: str = Field(description="What it was computed with; where it is kept, why.")
    numbers: dict[str, float] = Field(default_factory=dict, description="What the formula was given, by name.")

    @property
    def reason(self) -> str:
        """Formula and numbers in one line."""
        given = ", ".join(f"{name} {value:.6g}" for name, value in self.numbers.items())
        return f"weight {self.value:.4f} = {self.formula}" + (f" with {given}" if given else "")


class Explanation(Record):
    """An explanation of a memory: its tier, when it will be forgotten, its sources, and its history."""

    memory: Memory = Field(description="The memory, in its head version.")
    layer: Layer = Field(description="The layer that it is in.")
    tier: Tier = Field(description="The tier that it is in now.")
    status: Status = Field(description="Its status.")
    weight: Weight = Field(description="How much of it is left, with formula and numbers.")
    forget_at: AwareTime | None = Field(
        description="When its weight falls under the threshold unless it is reviewed before: from then on maintenance "
        "archives it. In the past where that is due. None: never."
    )
    reviews: tuple[AwareTime, ...] = Field(default=(), description="Each time that it came back, oldest first.")
    uses: tuple[AwareTime, ...] = Field(default=(), description="Those of them where an answer drew on it.")
    skill: SkillFigures | None = Field(default=None, description="How it has gone so far, where it is a skill.")
    trace: Trace = Field(description="The words that it came from, its versions, links and every event.")


class Fading(Record):
    """A memory that will be forgotten, and when."""

    memory: Memory = Field(description="The memory.")
    weight: float = Field(ge=0, le=1, description="What is left of it now.")
    forget_at: AwareTime = Field(description="From then on maintenance archives it, unless it is reviewed before.")


class StatusMove(Record):
    """A memory that maintenance moves from one status to another."""

    memory: Memory = Field(description="The memory, as it was before.")
    to: Status = Field(description="Its new status: low_priority, archived, purged, or active again.")
    action: str = Field(description="As in the journal: fade, archive, archive_surplus, revive, purge.")
    reason: str = Field(description="As in the journal: weight, formula and numbers.")


class Merge(Record):
    """Memories that maintenance makes one of."""

    kept: Memory = Field(description="The one that stays, as it was before.")
    merged: tuple[Memory, ...] = Field(description="Those that it replaces now, as they were.")


class Maintenance(Record):
    """Result or preview of a maintenance run."""

    dry_run: bool = Field(description="True: nothing was changed.")
    examined: int = Field(default=0, ge=0, description="Live memories that were looked at.")
    moves: tuple[StatusMove, ...] = Field(default=(), description="What was moved, or would be.")
    merges: tuple[Merge, ...] = Field(default=(), description="What was merged, or would be.")
    abstracted: tuple[Memory, ...] = Field(
        default=(), description="Long-term memories that were made of episodes, or grew, or would."
    )
    lines: tuple[str, ...] = Field(
        default=(), description="One line each: what was merged or put together, or may be, and why."
    )
    guidelines: tuple[Memory, ...] = Field(default=(), description="Guidelines of tools that were written.")
    skipped: tuple[str, ...] = Field(
        default=(), description="Memories that others changed meanwhile; the next run looks at them again."
    )
    degraded: tuple[str, ...] = Field(default=(), description="What could not be done or brought up to date, and why.")
    usage: Usage = Field(default_factory=Usage, description="Calls and tokens.")

    @property
    def changed(self) -> bool:
        """Whether anything changed, or would change."""
        return bool(self.moves or self.merges or self.abstracted or self.guidelines)

    def plus(self, other: Maintenance) -> Maintenance:
        """Return both combined, except the usage.

        Args:
            other: What was done next.
        """
        return Maintenance(
            dry_run=self.dry_run,
            examined=self.examined + other.examined,
            moves=self.moves + other.moves,
            merges=self.merges + other.merges,
            abstracted=self.abstracted + other.abstracted,
            lines=self.lines + other.lines,
            guidelines=self.guidelines + other.guidelines,
            skipped=self.skipped + other.skipped,
            degraded=self.degraded + other.degraded,
        )
