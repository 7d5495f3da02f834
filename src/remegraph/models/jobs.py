"""The work in the background, as its operator sees it."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from remegraph.models.base import Record, Text
from remegraph.models.scope import Partition

__all__ = ["BackgroundJob", "HealthReport", "JobState", "QueueDepth", "Unrecorded"]

JobState = Literal["asleep", "waiting", "running", "dead"]
"""Where a job stands that is not done; one that sleeps is due when it is asked for, a dead one when it is revived."""


class BackgroundJob(Record):
    """A piece of background work that is not done."""

    kind: str = Field(description="What is to be done: summarize, maintain.")
    partition: Partition = Field(description="Where.")
    state: JobState = Field(description="Where it stands.")
    due_at: datetime | None = Field(description="When it can be taken; never, while it sleeps.")
    attempts: int = Field(ge=0, description="How often it was tried.")
    reason: Text = Field(default="", description="Why it did not work the last time.")
    foreign: bool = Field(
        default=False,
        description="Whether it is left to workers with the settings that it was made with, other than these.",
    )


class QueueDepth(Record):
    """How much work waits, in all partitions."""

    asleep: int = Field(default=0, ge=0, description="Jobs that wait until they are asked for.")
    waiting: int = Field(default=0, ge=0, description="Jobs that wait for a worker, or for their next try.")
    running: int = Field(default=0, ge=0, description="Jobs that a worker holds.")
    dead: int = Field(default=0, ge=0, description="Jobs that gave up.")
    overdue_seconds: float = Field(default=0, ge=0, description="How long the oldest job that is due has waited.")
    reason: Text = Field(default="", description="Why the job failed that was tried most often.")
    foreign: int = Field(
        default=0, ge=0, description="Jobs of those that wait and are due that are left to workers with other settings."
    )


class Unrecorded(Record):
    """A conversation of which this process could not record all that it was given."""

    partition: Partition = Field(description="Where.")
    thread: Text = Field(description="The conversation.")
    messages: int = Field(ge=1, description="How many messages are not recorded, as far as is known.")


class HealthReport(Record):
    """Whether the memory works, and whether its workers keep up."""

    ledger: Literal["sqlite", "postgresql"] = Field(description="What the ledger is kept in; it answered.")
    index: Literal["chroma", "sql", "down"] = Field(
        description="What searches vectors; sql: another process owns the embedded index; down: it did not answer."
    )
    problem: str = Field(default="", description="What the index said.")
    queue: QueueDepth = Field(description="How much work waits.")
    unrecorded: int = Field(
        default=0, ge=0, description="Conversations of which this process could not record a turn yet."
    )

    @property
    def healthy(self) -> bool:
        """Whether all parts answered; recall works without the index, but slower."""
        return self.index != "down"
