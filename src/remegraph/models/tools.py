"""Tool calls: how each went, what they add up to, and what to watch for (R12)."""

from __future__ import annotations

from pydantic import Field

from remegraph.models.base import AwareTime, Record, Text, Token
from remegraph.models.scope import Partition

__all__ = ["ToolAdvice", "ToolRecord", "ToolStats", "ToolWindow", "TypicalError"]


class ToolRecord(Record):
    """One tool call and how it went: heard as it happened, read off the messages by code, or both.

    What was asked and what came back stand in the raw messages alone; here is a digest of the one, and the first line of
    an error.
    """

    partition: Partition = Field(description="Where it lives.")
    block_id: str = Field(default="", description="The block it was read from; none where it was only heard.")
    message_id: Token = Field(default="", description="The message that asked for the call; none likewise.")
    call_id: Text = Field(description="Joins the call with its result, and what was heard with what was read.")
    tool: Text = Field(min_length=1, description="The tool.")
    digest: str = Field(default="", description="SHA-256 of tool and arguments; none of calls recorded before it was.")
    ok: bool | None = Field(description="Whether it succeeded; none where the result does not say.")
    error: Text = Field(default="", description="First line of the error, at most 200 characters.")
    seconds: float | None = Field(default=None, ge=0, description="From call to result, in seconds, if timed.")
    input_tokens: int | None = Field(default=None, ge=0, description="Tokens that the tool was sent, if it says.")
    output_tokens: int | None = Field(default=None, ge=0, description="Tokens that it gave, likewise.")
    time: AwareTime = Field(description="When it was called.")


class TypicalError(Record):
    """What went wrong several times in the same way, or once."""

    kind: Text = Field(description="The error, with a mark for each number, id, path and quoted value.")
    count: int = Field(ge=1, description="How often.")
    error: Text = Field(description="The newest of them, as it was.")
    call_id: Text = Field(description="The call that it came from.")
    message_id: str = Field(default="", description="The message that asked for that call, if it is recorded.")


class ToolWindow(Record):
    """The newest calls of a tool, looked at closely."""

    calls: int = Field(default=0, ge=0, description="How many they are.")
    succeeded: int = Field(default=0, ge=0, description="Calls known to have succeeded.")
    failed: int = Field(default=0, ge=0, description="Calls known to have failed.")
    low: float = Field(default=0.0, ge=0, le=1, description="The success rate is at least this (Wilson, 95 %).")
    high: float = Field(default=1.0, ge=0, le=1, description="And at most this.")
    median_seconds: float | None = Field(default=None, description="Half of the timed calls took no longer.")
    p95_seconds: float | None = Field(default=None, description="19 of 20 took no longer.")
    mean_input_tokens: float | None = Field(default=None, description="Of the calls that say.")
    mean_output_tokens: float | None = Field(default=None, description="Likewise.")
    errors: tuple[TypicalError, ...] = Field(default=(), description="What went wrong, the most frequent first.")


class ToolStats(Record):
    """Statistics of one tool, counted in SQL over its records."""

    tool: Text = Field(description="The tool.")
    calls: int = Field(ge=0, description="Recorded calls.")
    distinct: int = Field(default=0, ge=0, description="Calls that differ in their arguments.")
    succeeded: int = Field(ge=0, description="Calls known to have succeeded.")
    failed: int = Field(ge=0, description="Calls known to have failed.")
    mean_seconds: float | None = Field(default=None, description="Mean time of the timed calls, in seconds.")
    mean_input_tokens: float | None = Field(default=None, description="Mean of the calls that say.")
    mean_output_tokens: float | None = Field(default=None, description="Likewise.")
    last_error: Text = Field(default="", description="The newest error.")
    last_called: AwareTime | None = Field(default=None, description="When it was last called.")
    recent: ToolWindow = Field(default_factory=ToolWindow, description="Its newest calls.")

    @property
    def success_rate(self) -> float | None:
        """Succeeded among those whose outcome is known, 0 to 1; none where no outcome is known."""
        known = self.succeeded + self.failed
        return self.succeeded / known if known else None


class ToolAdvice(Record):
    """A tool for a task: why this one, and what to watch for."""

    tool: Text = Field(description="The tool.")
    score: float = Field(
        ge=0, description="Relevance times the success to be expected, a little more for tools called often."
    )
    relevance: float = Field(ge=0, description="How well the situations that it was used in fit the task, 0 to 1.")
    failure: float = Field(ge=0, le=1, description="The error rate that is to be expected of it.")
    guideline: str = Field(description="When it works, what fails and what to pass, citing calls; 200 words at most.")
    memory_id: str = Field(description="The memory that holds the guideline, for `trace` and `explain`.")
    stats: ToolStats = Field(description="What was counted; `stats.recent.errors` is what to watch for.")

    @property
    def why(self) -> str:
        """The score in figures."""
        return f"relevance {self.relevance:.2f} x expected success {1 - self.failure:.2f}, {self.stats.calls} calls"
