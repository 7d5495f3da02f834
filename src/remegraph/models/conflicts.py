"""What two memories have against each other, and what was decided about it (K4, G7)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from remegraph.models.base import AwareTime, Record, Text
from remegraph.models.memories import Memory

__all__ = ["Conflict", "ConflictKind", "ConflictState", "Decided", "Decision"]

ConflictKind = Literal["redundancy", "superset", "subset", "contradiction"]
ConflictState = Literal["open", "resolved"]
Decision = Literal["add", "supersede", "merge", "keep_both", "dismiss"]


class Decided(Record):
    """What was decided about a conflict; the journal holds it."""

    decision: Decision = Field(description="add, supersede, merge, keep_both or dismiss.")
    by: str = Field(description="Who decided.")
    at: AwareTime = Field(description="When.")
    note: Text = Field(default="", description="Why, if a reason was given.")


class Conflict(Record):
    """Two memories that a person should look at."""

    conflict_id: str = Field(description="Names the two and what they say: of other words, it is another conflict.")
    kind: ConflictKind = Field(description="contradiction; superset: the newer says all that the older says; subset.")
    older: Memory = Field(description="What was known.")
    newer: Memory = Field(description="What came after it.")
    certain: bool = Field(description="False where they only may contradict each other: then neither is disputed.")
    reason: Text = Field(default="", description="In what they differ.")
    state: ConflictState = Field(description="open, or resolved: decided, or one of them is gone.")
    decided: Decided | None = Field(default=None, description="What was decided, if somebody decided it.")
