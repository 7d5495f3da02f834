"""What a chat model is asked to fill in. Short, so that the instructions stay cheap; checked by code."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

__all__ = [
    "ConclusionAnswer",
    "DescribeAnswer",
    "DescriptionAnswer",
    "DigestAnswer",
    "FieldAnswer",
    "GeneralAnswer",
    "KnowledgeAnswer",
    "NamesAnswer",
    "ObjectionAnswer",
    "OperationAnswer",
    "ProposalAnswer",
    "QuoteAnswer",
    "SkillAnswer",
    "StepAnswer",
    "VerdictAnswer",
]


def _no_nul(value: str) -> str:
    if "\x00" in value:
        raise ValueError("must not contain NUL")
    return value


_Words = Annotated[str, AfterValidator(_no_nul)]
"""What a model says in words of its own; a quote is checked against its message instead."""


class _Answer(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class DigestAnswer(_Answer):
    """Summary and routing of a block."""

    summary: _Words = Field(min_length=1, max_length=2000, description="What happened, 1-2 sentences.")
    entities: list[_Words] = Field(default_factory=list, max_length=50)
    topics: list[_Words] = Field(
        default_factory=list, max_length=50, description="Keys type:name; empty: nothing to remember."
    )


class DescriptionAnswer(_Answer):
    """What is in one attachment."""

    n: int = Field(description="Attachment number.")
    text: _Words = Field(min_length=1, max_length=4000)


class DescribeAnswer(_Answer):
    """What is in the attachments of a block."""

    descriptions: list[DescriptionAnswer] = Field(max_length=100)


class QuoteAnswer(_Answer):
    """Words of one message."""

    n: int = Field(description="Message number.")
    quote: str = Field(min_length=1, description="Its exact words.")


class OperationAnswer(_Answer):
    """One change to the memories of a topic."""

    action: Literal["CREATE", "CORROBORATE", "REFINE", "SUPERSEDE", "CONTRADICT", "DELETE"]
    id: _Words = Field(default="", description="Memory id; none for CREATE.")
    content: _Words = Field(default="", max_length=2000)
    when_to_use: _Words = Field(default="", max_length=500)
    category: Literal["preference", "fact", "decision", "emotion", "episode"] = "fact"
    slot: _Words = Field(default="", max_length=80, description="Attribute with one current value, e.g. lives_in.")
    importance: float = Field(default=0.5, ge=0, le=1)
    valid_from: _Words = Field(default="", max_length=40, description="ISO date since when it is true.")
    evidence: list[QuoteAnswer] = Field(default_factory=list, max_length=20)


class ProposalAnswer(_Answer):
    """Changes to the memories of a topic."""

    operations: list[OperationAnswer] = Field(max_length=40)


class ObjectionAnswer(_Answer):
    """One thing wrong with the memories."""

    topic: _Words = Field(description="Topic key.")
    kind: Literal["omission", "duplicate", "conflict"]
    reason: _Words = Field(min_length=1, max_length=500)


class VerdictAnswer(_Answer):
    """What is wrong with the memories; empty: nothing."""

    objections: list[ObjectionAnswer] = Field(max_length=40)


class ConclusionAnswer(_Answer):
    """What similar memories have in common."""

    conclusion: _Words = Field(min_length=1, max_length=500, description="1-2 sentences, in words of your own.")
    conditions: list[_Words] = Field(min_length=1, max_length=5, description="When it applies, a few words each.")


class StepAnswer(_Answer):
    """One step of a skill."""

    n: int = Field(description="Number of the call that it repeats.")
    name: _Words = Field(min_length=1, max_length=80, description="One word.")
    args: dict[str, Any] = Field(
        default_factory=dict,
        description="The call's arguments; what changes from run to run is {slot} or {step.field}.",
    )
    after: list[_Words] = Field(default_factory=list, max_length=50, description="Names of the steps before it.")


class SkillAnswer(_Answer):
    """A procedure that can be repeated."""

    name: _Words = Field(min_length=1, max_length=200)
    when_to_use: _Words = Field(default="", max_length=500)
    steps: list[StepAnswer] = Field(min_length=1, max_length=50)


class NamesAnswer(_Answer):
    """Names that stand in texts."""

    names: list[_Words] = Field(max_length=200, description="As they are written there; empty: none.")


class FieldAnswer(_Answer):
    """One field in general words."""

    field: _Words = Field(description="Its name, as given.")
    text: _Words = Field(min_length=1, max_length=1000)


class KnowledgeAnswer(_Answer):
    """One piece of knowledge in general words."""

    n: int = Field(description="Its number.")
    title: _Words = Field(default="", max_length=80, description="A few words.")
    fields: list[FieldAnswer] = Field(max_length=40)


class GeneralAnswer(_Answer):
    """Knowledge in general words."""

    items: list[KnowledgeAnswer] = Field(max_length=40)
