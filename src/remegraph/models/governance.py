"""Governance: versions, differences, audit (G6, X4), conflicts (K4, G7), erasure (X7), and what each tenant holds and uses."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from remegraph.models.base import AwareTime, Record, Text, Token
from remegraph.models.changes import Event
from remegraph.models.memories import Memory, Status
from remegraph.models.recall import Quote
from remegraph.models.scope import Partition, Subject, Tenant

__all__ = [
    "NOT_COVERED",
    "AgentHoldings",
    "Archaeology",
    "AuditEntry",
    "AuditHead",
    "Conflict",
    "ConflictKind",
    "ConflictState",
    "Decided",
    "Decision",
    "Diff",
    "ErasedPlace",
    "Erasure",
    "ErasureRequest",
    "ErasureStage",
    "Export",
    "FieldDiff",
    "Find",
    "Holdings",
    "Known",
    "Shown",
    "TenantHoldings",
    "TenantUsage",
    "ThreadHoldings",
    "UserHoldings",
    "UserUsage",
    "VersionNote",
    "WordDiff",
]

ConflictKind = Literal["redundancy", "superset", "subset", "contradiction"]
ConflictState = Literal["open", "resolved"]
Decision = Literal["add", "supersede", "merge", "keep_both", "dismiss"]

ErasureStage = Literal["ledger", "index", "files", "done"]
"""The next step: rows of the ledger, vectors of the index, bytes of the files; None if done."""

NOT_COVERED: tuple[str, ...] = (
    "backups of the home or the database",
    "the host's own checkpoints, stores and logs",
    "packs and audit exports that were written to files; heads of the journal exported before no longer fit it",
    "what a model or embedding provider keeps of its requests",
    "working memory of other processes, until its tasks end",
    "what other people said about them, and the names of trusted keys",
)
"""Places that an erasure cannot reach."""


class Decided(Record):
    """A decision on a conflict; the journal holds it."""

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
    decided: Decided | None = Field(default=None, description="What was decided, if anything was.")


class VersionNote(Record):
    """One version of a memory: what it said, who wrote it and why. Its three times are those of the memory."""

    memory: Memory = Field(description="The version: true from `valid_from` to `valid_to`, said, and recorded.")
    actor: str = Field(default="", description="Who wrote it.")
    action: str = Field(default="", description="What was done: create, corroborate, supersede, restore...")
    reason: str = Field(default="", description="Why, where the change says so.")
    quotes: tuple[Quote, ...] = Field(default=(), description="Its evidence, in the raw messages, as far as kept.")


class Find(Record):
    """A memory of a chain, and its versions."""

    memory_id: str = Field(description="The memory.")
    status: Status = Field(description="Its status.")
    versions: tuple[VersionNote, ...] = Field(description="Its versions, oldest first.")
    replaced: tuple[str, ...] = Field(default=(), description="Ids of what it replaced, within the chain.")
    replaced_by: tuple[str, ...] = Field(default=(), description="Ids of what replaced it, within the chain.")

    @property
    def head(self) -> Memory:
        """Its newest version."""
        return self.versions[-1].memory


class Archaeology(Record):
    """The chain that a memory is part of, in both directions: what it replaced, and what replaced it."""

    finds: tuple[Find, ...] = Field(description="Its memories: the one asked for, then those before, then those after.")
    held: tuple[Memory, ...] = Field(
        default=(), description="What of the chain holds, or held at the time asked for; one, unless it was put away."
    )

    @property
    def memory(self) -> Find:
        """The memory that was asked for."""
        return self.finds[0]

    def beyond(self, find: Find, *, older: bool) -> tuple[Find, ...]:
        """Return what lies next to a find: the branches of the tree.

        Args:
            find: One of the finds.
            older: Towards what it replaced; otherwise towards what replaced it.
        """
        ids = find.replaced if older else find.replaced_by
        return tuple(each for each in self.finds if each.memory_id in ids)


class FieldDiff(Record):
    """A field of a memory that two versions fill differently."""

    name: str = Field(description="The field.")
    before: Text = Field(description="Its value in the first version, as text or JSON.")
    after: Text = Field(description="Its value in the second.")


class WordDiff(Record):
    """A run of words that both versions have, or one of them."""

    change: Literal["same", "removed", "added"] = Field(description="Which version has it.")
    words: str = Field(description="The words, with the space after them.")


class Diff(Record):
    """Differences between two versions of a memory."""

    memory_id: str = Field(description="The memory.")
    before: int = Field(ge=1, description="Number of the first version.")
    after: int = Field(ge=1, description="Number of the second version.")
    fields: tuple[FieldDiff, ...] = Field(default=(), description="The fields that differ, by name.")
    words: tuple[WordDiff, ...] = Field(default=(), description="The content of both, word by word.")


class AuditEntry(Record):
    """An event with the versions before and after it, and without words of any memory."""

    kind: Literal["event"] = Field(default="event", description="What this line of an export is.")
    event: Event = Field(description="Who, when, what, why.")
    previous: str = Field(description="The chain before it: that of the event before it in its partition.")
    before: int = Field(ge=0, description="The version that it followed; 0: none.")
    after: int = Field(ge=0, description="The version that came of it; 0 for records without versions.")
    evidence: tuple[str, ...] = Field(default=(), description="Ids of the messages that support the version.")
    extractor: str = Field(default="", description="Who wrote the version: a model, `extractive`, or a person.")
    prompt: str = Field(default="", description="Digest of the prompt that the model was asked with.")


class AuditHead(Record):
    """Where an export of a partition ends. Kept elsewhere, it shows later whether anything was removed since."""

    kind: Literal["head"] = Field(default="head", description="What this line of an export is.")
    partition: Partition = Field(description="The partition.")
    events: int = Field(ge=1, description="How many events were exported.")
    previous: str = Field(description="The chain before the first of them.")
    chain: str = Field(description="The chain at the last of them.")
    seal: str = Field(description="HMAC of all lines of the partition, to the letter.")


class Shown(Record):
    """Which memories an agent was shown for one answer. Ids and versions, no text."""

    partition: Partition = Field(description="Of the scope that asked.")
    thread: Text = Field(default="main", description="The conversation.")
    run_id: Text = Field(default="", description="The run, where the host names it.")
    turn: int = Field(default=0, ge=0, description="How often a person had spoken in it by then.")
    at: AwareTime = Field(description="When.")
    versions: dict[str, int] = Field(description="Version by memory id, in the order of showing.")


class Known(Record):
    """An agent's knowledge at a time: what it was shown, in the versions of that time."""

    shown: Shown = Field(description="The record of it.")
    memories: tuple[Memory, ...] = Field(default=(), description="The memories, as they were shown.")
    missing: tuple[str, ...] = Field(default=(), description="Ids of what is not kept any more, or not visible.")


class ErasureRequest(Record):
    """The target of an erasure: all of a person or a tenant, or, of one place, a thread, messages or memories."""

    subject: Subject | None = Field(default=None, description="The person, wherever their rows live.")
    tenant: Tenant | None = Field(default=None, description="The tenant, with all its users and agents.")
    partition: Partition | None = Field(default=None, description="The place, where it is not the whole person.")
    thread: Token | None = Field(default=None, description="All messages of this thread.")
    message_ids: tuple[Token, ...] = Field(default=(), description="These messages.")
    memory_ids: tuple[Token, ...] = Field(default=(), description="These memories; the words they came from stay.")


class ErasedPlace(Record):
    """One place where it was."""

    place: str = Field(description="The place: a table of the ledger, the full text, the index, files.")
    removed: int = Field(ge=0, description="How many records went, or were rebuilt without it.")
    left: int = Field(ge=0, description="How many a look at the end still found.")


class Erasure(Record):
    """The receipt of an erasure. It holds no name and no word of what was erased."""

    erasure_id: str = Field(description="Its id, in the journal too.")
    asked_at: AwareTime = Field(description="When it was asked for.")
    finished_at: AwareTime | None = Field(default=None, description="When the last step was done.")
    stage: ErasureStage = Field(description="What is to be done next; `done` where nothing is.")
    places: tuple[ErasedPlace, ...] = Field(default=(), description="Each place, with counts.")
    rederived: int = Field(default=0, ge=0, description="Memories that live on, rebuilt from what remains.")
    not_covered: tuple[Text, ...] = Field(default=(), description="What it does not reach.")
    not_rewritten: Text = Field(
        default="It was not noted.",
        description="Why not all tables were written anew, so that what was erased may be in their files; empty where they were.",
    )

    @property
    def rewritten(self) -> bool:
        """Whether all tables were rewritten, so that none of their files holds what was erased."""
        return not self.not_rewritten

    @property
    def left(self) -> int:
        """How many records were still found, in all places."""
        return sum(place.left for place in self.places)

    @property
    def complete(self) -> bool:
        """Whether every step is done and nothing is left."""
        return self.stage == "done" and self.left == 0


class Holdings(Record):
    """How much the ledger holds."""

    threads: int = Field(ge=0, description="Conversations.")
    messages: int = Field(ge=0, description="Messages.")
    memories: int = Field(ge=0, description="Memories that are live.")
    stored_bytes: int = Field(ge=0, description="Bytes of messages and their attachments.")


class TenantHoldings(Holdings):
    """How much it holds of a tenant."""

    tenant: str = Field(description="The tenant.")
    users: int = Field(ge=0, description="Its users.")
    agents: int = Field(ge=0, description="Its agents that have a name.")


class UserHoldings(Holdings):
    """How much it holds of a user."""

    user: str | None = Field(description="The user; none: what belongs to no user, as what agents know of themselves.")
    agents: int = Field(ge=0, description="Agents with a name that remember them.")


class AgentHoldings(Holdings):
    """How much it holds of an agent."""

    agent: str | None = Field(description="The agent; none: what belongs to no agent in particular.")
    users: int = Field(ge=0, description="Users that it remembers.")


class ThreadHoldings(Record):
    """How much it holds of a conversation."""

    thread: str = Field(description="The conversation.")
    agent: str | None = Field(description="The agent that it was held with, if it has a name.")
    project: str | None = Field(description="The project, if any.")
    messages: int = Field(ge=0, description="Messages.")
    last_at: AwareTime = Field(description="When the newest was recorded.")


class UserUsage(Record):
    """What a user has used since some time."""

    user: str | None = Field(
        description="The user; none: what belongs to no user, or to one of whom nothing is recorded."
    )
    messages: int = Field(ge=0, description="Messages that were recorded, and are still there.")
    message_bytes: int = Field(ge=0, description="Their bytes, with attachments.")
    calls: int = Field(ge=0, description="Calls of chat models, since the beginning of that day.")
    input_tokens: int = Field(ge=0, description="Tokens sent, likewise.")
    output_tokens: int = Field(ge=0, description="Tokens received, likewise.")
    refused: int = Field(ge=0, description="Calls that a limit refused, likewise.")


class TenantUsage(Record):
    """What a tenant has used since some time, by user."""

    tenant: str = Field(description="The tenant.")
    since: AwareTime = Field(description="From when on.")
    users: tuple[UserUsage, ...] = Field(description="Each user of it.")

    @property
    def total(self) -> UserUsage:
        """What all of them have used."""
        counted = [name for name in UserUsage.model_fields if name != "user"]
        return UserUsage(user=None, **{name: sum(getattr(each, name) for each in self.users) for name in counted})


class Export(Record):
    """What an export wrote to a file."""

    whom: Subject | Tenant = Field(description="Whose data.")
    file: str = Field(description="The file.")
    counts: dict[str, int] = Field(description="Records, by kind.")
    sha256: str = Field(description="Of the file.")
