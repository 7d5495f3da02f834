"""Typed profiles of a person, a project and a tool: conversations fill the fields of pydantic models.

    python examples/profiles.py

The chat model comes from the environment (`REMEGRAPH_MODEL`). Each field comes with the words that support it and its
earlier values, or with the reason why it is unknown; what fits no field is remembered as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date
from typing import Annotated, Literal

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolCall, ToolMessage
from pydantic import BaseModel, Field

from remegraph import (
    AgentMemorySettings,
    ExtractionPolicy,
    MemoryKit,
    Profile,
    Scope,
    Settings,
    SummaryPolicy,
    ToolPolicy,
)

__all__ = ["SCHEMAS", "Person", "Project", "Tool", "lines", "person", "project", "settings", "tool"]


class Person(BaseModel):
    """A person that the agent talks with."""

    called: str | None = Field(None, description="What they want to be called.")
    lives_in: str | None = Field(None, description="City or town where they live.")
    works_as: str | None = Field(None, description="Their job, without the employer.")
    born_on: date | None = None
    diet: Literal["anything", "pescatarian", "vegetarian", "vegan"] | None = None
    allergies: list[str] = Field(default=[], description="What they themselves must not eat, take or touch.")
    partner: str | None = Field(None, description="Name of the person they are with.")
    pets: list[str] = Field(default=[], description="Names of their animals.")


class Project(BaseModel):
    """Something that people work on together."""

    purpose: str | None = Field(None, description="What it is for, in a few words.")
    language: str | None = Field(None, description="Programming language it is written in.")
    goes_live: date | None = Field(None, description="The day it is to go live.")
    replaces: str | None = Field(None, description="What it takes the place of.")
    lead: str | None = Field(None, description="Who leads it.")
    events_by: Literal["CDC", "outbox", "queue"] | None = Field(None, description="How its events get out.")
    key_hours: Annotated[int, Field(gt=0)] | None = Field(
        None, description="Hours after which idempotency keys expire."
    )
    budget_euros: int | None = None


class Tool(BaseModel):
    """A tool that the agent calls."""

    default_timeout: Annotated[int, Field(gt=0)] | None = Field(
        None, description="Seconds after which a call that names no timeout is cut off."
    )
    longest_timeout: Annotated[int, Field(gt=0)] | None = Field(
        None, description="Most seconds that a call may ask for."
    )
    for_long_jobs: list[str] = Field(default=[], description="Arguments that a longer job needs, each by its name.")
    costs_money: bool | None = None


SCHEMAS: dict[str, type[BaseModel]] = {"personal": Person, "task": Project, "tool": Tool}


def settings(**changes: object) -> Settings:
    """Return settings that fill all three profiles.

    Args:
        changes: Other settings, by name.
    """
    return Settings.from_env().evolve(
        agent=AgentMemorySettings(extraction=ExtractionPolicy(schemas=SCHEMAS)),
        summary=SummaryPolicy(allowed_topics=("kassa",)),
        tools=ToolPolicy(trusted=frozenset({"shell_run"})),  # our own system: what it says about itself is trusted
        **changes,
    )


def person(kit: MemoryKit, scope: Scope) -> Profile[Person]:
    """Record talk of a person who moves, and return what is known about them.

    Args:
        kit: With the settings above.
        scope: The person.
    """
    _tell(kit, scope, "first", [HumanMessage("I'm Hannah, in Leeds. I'm vegetarian. No peanuts, ever!")])
    _tell(kit, scope, "later", [HumanMessage("We moved to Sheffield. And I eat fish now, but no meat.")])
    return kit.profile(Person, scope=scope)


def project(kit: MemoryKit, scope: Scope) -> Profile[Project]:
    """Record talk about a project whose date moves, and return what is known about it.

    Args:
        kit: With the settings above.
        scope: Who works on it.
    """
    words = "kassa, our payments service in Go, takes over from oldpay on 14 March 2027."
    _tell(kit, scope, "first", [HumanMessage(words)])
    _tell(kit, scope, "later", [HumanMessage("The date for kassa has moved to 15 May 2027.")])
    return kit.profile(Project, scope=scope, topic="task:kassa")


def tool(kit: MemoryKit, scope: Scope) -> Profile[Tool]:
    """Record a tool call that was cut off, and return what is known about the tool.

    Args:
        kit: With the settings above.
        scope: Who calls it.
    """
    call = ToolCall(name="shell_run", args={"cmd": "make itest"}, id="call-1")
    result = "[shell_run] killed: still running after 60 s (timeout_s not given, default 60)"
    messages = [
        HumanMessage("Please run the integration tests on main."),
        AIMessage("", tool_calls=[call]),
        ToolMessage(result, tool_call_id="call-1", status="error"),
        AIMessage("It was cut off at the default of 60 s."),
    ]
    _tell(kit, scope, "first", messages)
    return kit.profile(Tool, scope=scope, topic="tool:shell_run")


def _tell(kit: MemoryKit, scope: Scope, thread: str, messages: Iterable[BaseMessage]) -> None:
    kit.add_messages(messages, scope=scope, thread=thread)
    kit.summarize(scope=scope, close=True)


def lines(profile: Profile[BaseModel]) -> Iterator[str]:
    """Yield a profile as lines: each field with its words and earlier values, or why it is unknown.

    Args:
        profile: As `kit.profile` returns it.
    """
    yield profile.topic
    for field in profile:
        if not field.known:
            yield f"  {field.name}: unknown ({field.problem})"
            continue
        words = "; ".join(quote.words for quote in field.words)
        before = ", ".join(str(each.value) for each in field.history)
        disputed = ", in dispute" if field.disputed else ""
        yield f"  {field.name}: {field.value}{disputed} ({words!r}{f'; before: {before}' if before else ''})"
    yield from (f"  beside: {memory.content}" for memory in profile.beside)


def main() -> None:
    """Fill and print all three."""
    with MemoryKit.open(settings=settings()) as kit:
        for profile in (
            person(kit, Scope(user="Hannah", agent="Pip")),
            project(kit, Scope(user="Tomek", agent="Forge")),
            tool(kit, Scope(user="Tomek", agent="Forge")),
        ):
            print("\n".join(lines(profile)))


if __name__ == "__main__":
    main()
