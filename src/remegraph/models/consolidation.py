"""What long-term memories are abstracted from, and what a consolidation did (B6 to B8)."""

from __future__ import annotations

from typing import Any, Self

from pydantic import Field, model_validator

from remegraph.models.base import Record
from remegraph.models.memories import Memory
from remegraph.models.reports import Usage

__all__ = ["Abstraction", "Conclusion", "Consolidation"]

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
        """Leave out what was counted where no model concluded, which old memories hold."""
        counted = {"words", "claims"}
        return (
            {name: value for name, value in fields.items() if name not in counted}
            if isinstance(fields, dict)
            else fields
        )

    @classmethod
    def of(cls, memory: Memory) -> Self | None:
        """Return that of a memory; none where it was not abstracted."""
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
    """What a person concludes from memories that are alike."""

    sources: tuple[str, ...] = Field(min_length=2, description="Ids of the memories, all of one topic.")
    conclusion: str = Field(min_length=1, description="What holds beyond the single occasions.")
    conditions: tuple[str, ...] = Field(default=(), description="When it applies.")


class Consolidation(Record):
    """What a consolidation did, or would do."""

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
        """Return both together, but for the usage.

        Args:
            other: What was done next.
        """
        return Consolidation(
            dry_run=self.dry_run,
            examined=self.examined + other.examined,
            made=self.made + other.made,
            grown=self.grown + other.grown,
            proposed=self.proposed + other.proposed,
            linked=self.linked + other.linked,
            waiting=self.waiting + other.waiting,
            skipped=self.skipped + other.skipped,
            offline=self.offline + other.offline,
            degraded=self.degraded + other.degraded,
        )
