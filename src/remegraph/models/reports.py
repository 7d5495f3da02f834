"""Reports of operations: usage, progress, outcome, health, background work, backups, imports, diagnoses."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from remegraph.models.base import AwareTime, Json, Record, Text, Token
from remegraph.models.changes import Work
from remegraph.models.memories import Memory
from remegraph.models.messages import StoredMessage
from remegraph.models.scope import Partition

__all__ = [
    "BackgroundJob",
    "Backup",
    "BackupFile",
    "Budget",
    "CallRecord",
    "Captured",
    "Check",
    "Diagnosis",
    "Finding",
    "ForeignMemory",
    "ForeignSystem",
    "ForgetDecision",
    "ForgetRequest",
    "Forgotten",
    "HealthReport",
    "Imported",
    "JobState",
    "Migration",
    "MigrationStep",
    "Mismatch",
    "Passage",
    "Progress",
    "QueueDepth",
    "SaveResult",
    "Severity",
    "SummaryReport",
    "ToolRefresh",
    "Unrecorded",
    "Usage",
    "Verification",
    "WorkerSign",
]

Check = Literal[
    "home", "disk", "key", "ledger", "schema", "model", "embedder", "owner", "index", "backlog", "records", "attachments",
    "journal", "jobs", "work", "clock",
]  # fmt: skip
"""The subject of a check."""

Severity = Literal["note", "warning", "error"]
"""note: nothing is wrong; warning: something is, but the memory works; error: part of it does not, or is lost."""

JobState = Literal["asleep", "later", "waiting", "running", "dead"]
"""State of an unfinished job; one that waits is due, one that sleeps is due when asked for, a dead one when revived."""

ForeignSystem = Literal["mem0", "langmem"]


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
    """The progress of a long operation."""

    stage: str = Field(description="What is being done.")
    done: int = Field(ge=0, description="Units done.")
    total: int = Field(ge=0, description="Units in all, as far as known.")
    detail: str = Field(default="", description="The unit at hand.")


class SummaryReport(Record):
    """Result of `summarize`."""

    blocks: tuple[str, ...] = Field(default=(), description="The blocks that were summarised.")
    memory_ids: tuple[str, ...] = Field(default=(), description="Memories that are new or have a new version.")
    created: int = Field(default=0, ge=0, description="New memories.")
    updated: int = Field(default=0, ge=0, description="New versions of known memories.")
    work: tuple[Work, ...] = Field(default=(), description="Work that failed or waits for a person.")
    objections: tuple[str, ...] = Field(default=(), description="What the reviser objected to.")
    notes: tuple[Text, ...] = Field(
        default=(), description="What a model wrote that was read otherwise, or left out, and why."
    )
    refused: dict[str, int] = Field(
        default_factory=dict,
        description="How many statements the owner's rules kept out, by rule; none of their words.",
    )
    warnings: tuple[Text, ...] = Field(default=(), description="What a person should decide: to add, or to supersede.")
    pending: int = Field(default=0, ge=0, description="Blocks still to do.")
    degraded: tuple[str, ...] = Field(default=(), description="What could not be brought up to date, and why.")
    usage: Usage = Field(default_factory=Usage, description="Calls and tokens.")


class Captured(Record):
    """Result of `capture` or `end_session`. Messages are durable; the rest is done in the background."""

    added: int = Field(default=0, ge=0, description="Messages that are new in the ledger, revisions included.")
    known: int = Field(default=0, ge=0, description="Messages that it had.")
    revised: int = Field(default=0, ge=0, description="Messages recorded again, because the host replaced them.")
    erased: int = Field(default=0, ge=0, description="Messages that were erased before, and are turned away.")
    off_record: int = Field(default=0, ge=0, description="Messages that are kept off the record from now on.")
    due: tuple[str, ...] = Field(
        default=(), description="Ids, as the host gave them, of messages that are recorded once the answer is there."
    )
    blocks: tuple[str, ...] = Field(default=(), description="Blocks that were cut and wait to be summarised.")
    waiting: bool = Field(default=False, description="Whether work of this user waits for the background.")
    enabled: bool = Field(default=True, description="False: the agent's memory is switched off, nothing was done.")


class Passage(Record):
    """Words of a raw message that repeat a memory."""

    partition: Partition = Field(description="Where the message lives.")
    message_id: Token = Field(description="The message.")
    thread: Token = Field(description="Its conversation.")
    time: AwareTime = Field(description="When it was said.")
    speaker: Text = Field(description="Who said it.")
    words: tuple[Text, ...] = Field(description="The words; none once they are withheld.")
    whole: bool = Field(description="Whether nothing of the message is left without them.")


class Forgotten(Record):
    """Result or preview of `forget`: the memory, what says the same elsewhere, and the words it came from."""

    memory: Memory = Field(description="The memory.")
    along: tuple[Memory, ...] = Field(default=(), description="Other memories that say the same, which go with it.")
    passages: tuple[Passage, ...] = Field(default=(), description="The raw words that are withheld.")
    blocks: tuple[str, ...] = Field(default=(), description="Blocks whose index entries are made again without them.")
    done: bool = Field(description="Whether it was done; else it was only looked at.")


class ForgetRequest(Record):
    """A request to forget from a conversation, waiting for a decision."""

    message: StoredMessage = Field(description="The message that asks.")
    words: tuple[StoredMessage, ...] = Field(
        description="All messages of which it withholds words meanwhile: itself, what it points back to, and answers."
    )


class ForgetDecision(Record):
    """Result of a person's decision on a request to forget."""

    message_id: Token = Field(description="The message that asks.")
    forget: bool = Field(description="Whether it was one.")
    memories: tuple[Memory, ...] = Field(
        default=(), description="Memories that were forgotten for it, without a word of what they said."
    )
    messages: tuple[Token, ...] = Field(
        default=(), description="Ids of the messages of which words are withheld as forgotten, or shown again."
    )
    found: bool = Field(
        description="Whether anything was found that it means. False: only its own words and the answer are withheld, "
        "and what it means may still be remembered in other words: look for it, and forget it by its id."
    )


class SaveResult(Record):
    """Result of `save`: a new memory, a merged one, or a refusal."""

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
    """Result of `verify`. Healthy means: no difference."""

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
    """Result of refreshing the guidelines of tools."""

    written: tuple[Memory, ...] = Field(default=(), description="Guidelines that are new or have a new version.")
    unchanged: tuple[Text, ...] = Field(default=(), description="Tools of which nothing new is to be said.")
    degraded: tuple[str, ...] = Field(default=(), description="What could not be used: vectors.")


class Finding(Record):
    """One problem."""

    check: Check = Field(description="Where it was found.")
    severity: Severity = Field(description="How bad it is.")
    what: str = Field(description="What is wrong.")
    cure: str = Field(description="What to do about it.")
    commands: tuple[str, ...] = Field(default=(), description="Commands that do it, each as it is typed.")
    fixable: bool = Field(default=False, description="Whether `fix` mends it: without loss, and without a model.")
    done: str = Field(default="", description="What `fix` did about it.")


class Diagnosis(Record):
    """Everything that was checked, and what was found."""

    checks: tuple[Check, ...] = Field(description="What was looked at; what is not here could not be.")
    findings: tuple[Finding, ...] = Field(default=(), description="What was found, in the order of the checks.")

    @property
    def healthy(self) -> bool:
        """Whether nothing is wrong any more."""
        return all(finding.severity == "note" or finding.done for finding in self.findings)


class BackupFile(Record):
    """A file of a backup."""

    size: int = Field(ge=0, description="Its length in bytes.")
    sha256: str = Field(description="Of its bytes.")


class Backup(Record):
    """The manifest of a backup."""

    format: Literal[1] = Field(default=1, description="How it is laid out.")
    revision: str = Field(description="Of the ledger's schema.")
    taken_at: datetime = Field(description="When it was begun: it holds what was acknowledged before then.")
    counts: dict[str, int] = Field(description="Rows of the ledger, by table.")
    files: dict[str, BackupFile] = Field(description="All its files but the manifest, by path.")
    missing: tuple[str, ...] = Field(
        default=(), description="SHA-256 of attachments that messages hold and the home did not."
    )
    settings: dict[str, Any] = Field(description="What the kit was opened with, without addresses and keys.")

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files.values())


class BackgroundJob(Record):
    """A piece of unfinished background work."""

    kind: str = Field(description="What is to be done: cut, summarize, maintain.")
    partition: Partition = Field(description="Where.")
    state: JobState = Field(description="Its place.")
    due_at: datetime | None = Field(description="When it can be taken; none: when it is asked for.")
    attempts: int = Field(ge=0, description="How often it was tried.")
    worker: str = Field(
        default="", description="Who does it: machine, process and worker; nobody unless it is running."
    )
    reason: Text = Field(default="", description="Why it did not work the last time.")
    foreign: bool = Field(
        default=False,
        description="Whether it is left to workers with the settings that it was made with, other than these.",
    )


class QueueDepth(Record):
    """How much work waits, in all partitions."""

    asleep: int = Field(default=0, ge=0, description="Jobs that wait until they are asked for.")
    later: int = Field(
        default=0,
        ge=0,
        description="Jobs that are due later: after a pause, at their next try, or when it is time to tidy up.",
    )
    waiting: int = Field(default=0, ge=0, description="Jobs that are due, and wait for a worker.")
    running: int = Field(default=0, ge=0, description="Jobs that a worker holds.")
    dead: int = Field(default=0, ge=0, description="Jobs that gave up.")
    overdue_seconds: float = Field(default=0, ge=0, description="How long the oldest job that is due has waited.")
    reason: Text = Field(default="", description="Why the job failed that was tried most often.")
    refused: bool = Field(
        default=False,
        description="Whether it did not fail, but was refused by a limit; it is done once that allows it.",
    )
    foreign: int = Field(
        default=0, ge=0, description="Jobs of those that wait and are due that are left to workers with other settings."
    )


class Unrecorded(Record):
    """A conversation that this process could not record completely."""

    partition: Partition = Field(description="Where.")
    thread: Text = Field(description="The conversation.")
    messages: int = Field(ge=1, description="How many messages are not recorded, as far as is known.")
    refused: bool = Field(default=False, description="Whether a limit kept the last of them out; else it failed.")


class HealthReport(Record):
    """Whether the memory works, and whether its workers keep up."""

    ledger: Literal["sqlite", "postgresql"] = Field(description="What the ledger is kept in.")
    ready: bool = Field(
        default=True,
        description="Whether it answered in time, and a kit opens with these settings: the schema fits, no table is missing.",
    )
    index: Literal["chroma", "pgvector", "sql", "embedded", "down"] = Field(
        description="What searches vectors; sql: another process owns the embedded index; embedded: it was not asked, as no "
        "kit is open; down: it did not answer, or the ledger has another one than the settings name."
    )
    problem: str = Field(
        default="", description="What the ledger said where it is not ready, else what the index said."
    )
    queue: QueueDepth = Field(description="How much work waits; nothing is known of it where the ledger is not ready.")
    unrecorded: int = Field(
        default=0, ge=0, description="Conversations of which this process could not record a turn yet."
    )

    @property
    def healthy(self) -> bool:
        """Whether it works: the ledger is ready, on which everything else depends."""
        return self.ready

    @property
    def degraded(self) -> bool:
        """Whether the index did not answer, or belongs to another ledger: until that is fixed, SQL is searched."""
        return self.index == "down"


class WorkerSign(Record):
    """What a worker on this machine reports of itself."""

    process: int = Field(ge=0, description="The number of its process.")
    silent_seconds: float = Field(ge=0, description="Since its last sign of life.")
    alive: bool = Field(description="Whether that was within a lease, in which it looks for work or renews a job.")


class MigrationStep(Record):
    """One change of the schema."""

    revision: str = Field(min_length=1, description="The schema that it leads to.")
    what: str = Field(description="What it does.")
    adds_only: bool = Field(description="Whether processes of the release before go on beside it.")


class Migration(Record):
    """What a ledger lacks to have the schema of this release."""

    found: str | None = Field(description="Its schema; none where it has no tables yet.")
    needed: str = Field(description="The schema of this release.")
    steps: tuple[MigrationStep, ...] = Field(description="The changes, in order.")
    applied: bool = Field(description="Whether they were made.")
    problem: str = Field(
        default="", description="What is wrong where the ledger has another index than the settings name, and the cure."
    )

    @property
    def changes_index(self) -> bool:
        """Whether the ledger has another index than the settings name, and is migrating to that."""
        return self.problem != ""

    @property
    def rolling(self) -> bool:
        """Whether no process has to be stopped for it: the ledger has no tables yet, or each step only adds."""
        return self.found is None or all(each.adds_only for each in self.steps)


class ForeignMemory(Record):
    """One memory of another system, as its export has it."""

    system: ForeignSystem = Field(description="The system.")
    record_id: Token = Field(min_length=1, description="Its id there; of a store: the key.")
    content: Token = Field(min_length=1, description="What it says.")
    user: Token = Field(default="", description="Whom it is of there; empty where the export does not say.")
    agent: Token = Field(default="", description="The agent there, if any.")
    session: Token = Field(default="", description="The session or run there, if any.")
    namespace: tuple[Token, ...] = Field(default=(), description="Its namespace in a store.")
    tags: tuple[Token, ...] = Field(default=(), description="Its categories there.")
    created_at: AwareTime | None = Field(default=None, description="When it was made there.")
    updated_at: AwareTime | None = Field(default=None, description="When it got its present words.")
    record: Json = Field(default_factory=dict, description="The record to the letter.")


class Imported(Record):
    """Result of an import."""

    created: int = Field(default=0, ge=0, description="New memories.")
    corroborated: int = Field(
        default=0, ge=0, description="Records whose words a memory had already: it rests on them, too."
    )
    known: int = Field(default=0, ge=0, description="Records that were imported before: nothing was done.")
    erased: int = Field(
        default=0, ge=0, description="Records that were erased here before: they are not taken in again."
    )
    changed: tuple[Text, ...] = Field(
        default=(), description="Records that were imported before with other words: what is here stays."
    )
    invalid: tuple[Text, ...] = Field(
        default=(), description="Records that could not be read and were skipped, and why."
    )
    relations: int = Field(
        default=0, ge=0, description="Relations of a mem0 graph in the export; they are not taken in."
    )
    users: tuple[Text, ...] = Field(default=(), description="The users here who now have them.")
    degraded: tuple[str, ...] = Field(default=(), description="What could not be brought up to date, and why.")
