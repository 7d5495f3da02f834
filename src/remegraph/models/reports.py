"""What operations report: usage, progress, outcome, health."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from remegraph.models.base import AwareTime, Record, Text, Token
from remegraph.models.changes import Work
from remegraph.models.memories import Memory
from remegraph.models.scope import Partition

__all__ = [
    "Budget",
    "CallRecord",
    "Captured",
    "Forgotten",
    "Mismatch",
    "Passage",
    "Progress",
    "SaveResult",
    "SummaryReport",
    "ToolRefresh",
    "Usage",
    "Verification",
]


class CallRecord(Record):
    """One call of a chat model."""

    operation: str = Field(description="What it was for: digest, propose, review, consolidate.")
    model: str = Field(description="The model.")
    input_tokens: int = Field(ge=0, description="Tokens sent; estimated where the provider does not say.")
    output_tokens: int = Field(ge=0, description="Tokens received; estimated likewise.")
    estimated: bool = Field(description="Whether the token counts are an estimate.")
    seconds: float = Field(ge=0, description="How long it took.")
    error: Text = Field(default="", description="What went wrong, if anything did.")


class Usage(Record):
    """The call and token ledger of one operation."""

    calls: tuple[CallRecord, ...] = Field(default=(), description="Every call, failures included.")

    @property
    def input_tokens(self) -> int:
        """Tokens sent, in all."""
        return sum(call.input_tokens for call in self.calls)

    @property
    def output_tokens(self) -> int:
        """Tokens received, in all."""
        return sum(call.output_tokens for call in self.calls)


class Budget(Record):
    """Hard limits of one operation. None means no limit."""

    max_calls: int | None = Field(default=None, ge=0, description="Chat model calls.")
    max_tokens: int | None = Field(default=None, ge=0, description="Tokens, sent and received together.")


class Progress(Record):
    """How far a long operation is."""

    stage: str = Field(description="What is being done.")
    done: int = Field(ge=0, description="Units done.")
    total: int = Field(ge=0, description="Units in all, as far as known.")
    detail: str = Field(default="", description="The unit at hand.")


class SummaryReport(Record):
    """What `summarize` did."""

    blocks: tuple[str, ...] = Field(default=(), description="The blocks that were summarised.")
    memory_ids: tuple[str, ...] = Field(default=(), description="Memories that are new or have a new version.")
    created: int = Field(default=0, ge=0, description="New memories.")
    updated: int = Field(default=0, ge=0, description="New versions of known memories.")
    work: tuple[Work, ...] = Field(default=(), description="Work that failed or waits for a person.")
    objections: tuple[str, ...] = Field(default=(), description="What the reviser objected to.")
    notes: tuple[Text, ...] = Field(
        default=(), description="What a model wrote that was read otherwise, or left out, and why."
    )
    warnings: tuple[Text, ...] = Field(default=(), description="What a person should decide: to add, or to supersede.")
    pending: int = Field(default=0, ge=0, description="Blocks still to do.")
    degraded: tuple[str, ...] = Field(default=(), description="What could not be brought up to date, and why.")
    usage: Usage = Field(default_factory=Usage, description="Calls and tokens.")


class Captured(Record):
    """What `capture` or `end_session` did. What was said is durable; the rest is done in the background."""

    added: int = Field(default=0, ge=0, description="Messages that are new in the ledger, revisions included.")
    known: int = Field(default=0, ge=0, description="Messages that it had.")
    revised: int = Field(default=0, ge=0, description="Messages recorded anew, because the host replaced them.")
    erased: int = Field(default=0, ge=0, description="Messages that were erased before, and are turned away.")
    due: tuple[str, ...] = Field(
        default=(), description="Ids, as the host gave them, of messages that are recorded once the answer is there."
    )
    blocks: tuple[str, ...] = Field(default=(), description="Blocks that were cut and wait to be summarised.")
    waiting: bool = Field(default=False, description="Whether work of this user waits for the background.")
    enabled: bool = Field(default=True, description="False: the agent's memory is switched off, nothing was done.")


class Passage(Record):
    """Words of a raw message that say what a memory says."""

    partition: Partition = Field(description="Where the message lives.")
    message_id: Token = Field(description="The message.")
    thread: Token = Field(description="Its conversation.")
    time: AwareTime = Field(description="When it was said.")
    speaker: Text = Field(description="Who said it.")
    words: tuple[Text, ...] = Field(description="The words; none once they are withheld.")
    whole: bool = Field(description="Whether nothing of the message is left without them.")


class Forgotten(Record):
    """What `forget` took back, or would take back: the memory, what says the same elsewhere, and the words it came from."""

    memory: Memory = Field(description="The memory.")
    along: tuple[Memory, ...] = Field(default=(), description="Other memories that say the same, which go with it.")
    passages: tuple[Passage, ...] = Field(default=(), description="The raw words that are withheld.")
    blocks: tuple[str, ...] = Field(default=(), description="Blocks whose index entries are made again without them.")
    done: bool = Field(description="Whether it was done; else it was only looked at.")


class SaveResult(Record):
    """What `save` did: made a memory, merged into one, or refused."""

    outcome: Literal["new", "merged", "refused"] = Field(description="What became of it.")
    memory: Memory | None = Field(default=None, description="The memory that holds it now; none where refused.")
    reason: Text = Field(default="", description="Why it was merged or refused.")
    similarity: float | None = Field(
        default=None,
        description="Likeness to the memory that it was merged into, if measured: 0 to 1. It decided nothing.",
    )
    superseded: tuple[str, ...] = Field(default=(), description="Memories that it replaces.")
    similar: tuple[str, ...] = Field(
        default=(),
        description="Memories more alike than `merge_threshold`, the most alike first: linked, and left as is.",
    )
    contradicts: tuple[str, ...] = Field(
        default=(), description="Memories that it contradicts: kept, linked, and with it in dispute."
    )
    may_contradict: tuple[str, ...] = Field(
        default=(), description="Rules and knowledge that it may contradict: kept as they are."
    )
    warnings: tuple[Text, ...] = Field(default=(), description="What a person should decide: to add, or to supersede.")
    degraded: tuple[str, ...] = Field(default=(), description="What could not be used, and why.")


class Mismatch(Record):
    """One difference between the ledger and a projection."""

    where: str = Field(description="Which projection, which collection.")
    record_id: str = Field(description="Which record.")
    problem: str = Field(description="missing, extra, stale, pending, not found by its own vector, or damaged and how.")


class Verification(Record):
    """What `verify` found. Healthy means: no difference."""

    messages: int = Field(ge=0, description="Messages read.")
    blocks: int = Field(ge=0, description="Blocks resolved to messages.")
    memories: int = Field(ge=0, description="Memories resolved to blocks and words.")
    events: int = Field(default=0, ge=0, description="Events of the journal whose chain was checked.")
    vectors: int = Field(ge=0, description="Vectors compared.")
    differences: tuple[Mismatch, ...] = Field(default=(), description="All differences found.")

    @property
    def healthy(self) -> bool:
        """Whether nothing differs."""
        return not self.differences


class ToolRefresh(Record):
    """What a look at the guidelines of tools did."""

    written: tuple[Memory, ...] = Field(default=(), description="Guidelines that are new or have a new version.")
    unchanged: tuple[Text, ...] = Field(default=(), description="Tools of which nothing new is to be said.")
    degraded: tuple[str, ...] = Field(default=(), description="What could not be used: vectors.")
