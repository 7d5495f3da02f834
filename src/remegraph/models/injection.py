"""What is put before the agent at a turn: layers of memories, why the third was looked up, what there was no room for."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from remegraph.models.base import Record, Text, Token
from remegraph.models.recall import Hit, LeftOut

__all__ = ["Injected", "Injection", "InjectionLayer", "Trigger", "TriggerKind", "Workspace"]

InjectionLayer = Literal["core", "scope", "query"]
"""core: rules that always hold; scope: what applies to this project or language; query: what bears on what was said."""
TriggerKind = Literal["past", "decision", "own", "entity", "turn", "asked"]
"""past: words about earlier times; decision: something is to be chosen; own: a question about what is the person's own;
entity: memory knows a name that is not in view; turn: it is time to look again; asked: the caller wants it."""


class Workspace(Record):
    """What is worked on: the project and the programming languages of a working directory."""

    project: Token | None = Field(default=None, min_length=1, description="Name of the project, if it shows.")
    languages: tuple[str, ...] = Field(
        default=(), description="Programming languages, as in `lang:<name>`, most first."
    )


class Trigger(Record):
    """Why memory was searched for what was said."""

    kind: TriggerKind = Field(description="past, decision, own, entity, turn or asked.")
    words: Text = Field(default="", description="The words that tell, or the number of the turn.")

    @property
    def reason(self) -> str:
        """The reason as a sentence."""
        return {
            "past": f"It speaks of earlier times: {self.words!r}.",
            "decision": f"Something is to be decided: {self.words!r}.",
            "own": f"It asks about the person's own matters: {self.words!r}.",
            "entity": f"It names what memory knows and the conversation does not show: {self.words!r}.",
            "turn": f"Turn {self.words}: it is time to look again.",
            "asked": "The caller asks for it.",
        }[self.kind]


class Injected(Record):
    """One thing that is put before the agent."""

    layer: InjectionLayer = Field(description="core, scope or query.")
    hit: Hit = Field(description="The memory, or, of the query layer, also an index entry or a message.")
    shortened: bool = Field(default=False, description="Whether its summary stands for it, for want of room.")


class Injection(Record):
    """What is put before the agent at a turn, in the order of the layers. No model was called for it."""

    context: str = Field(default="", description="All of it, as data for a prompt; empty where there is nothing.")
    shown: tuple[Injected, ...] = Field(default=(), description="What the context shows, in order.")
    triggers: tuple[Trigger, ...] = Field(
        default=(), description="Why the query layer was looked up; none: it was not."
    )
    left_out: dict[str, LeftOut] = Field(default_factory=dict, description="What it leaves out, by id, and why.")
    turn: int = Field(ge=0, description="Number of the person's messages so far.")
    budget: int = Field(ge=1, description="Tokens that the context might have.")
    tokens: int = Field(ge=0, description="Tokens that it has.")
    degraded: tuple[str, ...] = Field(default=(), description="What could not be used, and why.")
    seconds: float = Field(default=0.0, ge=0, description="Time it took.")

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids of what the context shows."""
        return tuple(item.hit.record_id for item in self.shown)
