"""Frozen policies, and the one place that reads them from the environment and the settings file.

Only the token of an MCP server and the options of commands are read elsewhere, in `cli`.
"""

from __future__ import annotations

import logging
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from datetime import timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ImportString,
    StringConstraints,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic.fields import FieldInfo

from remegraph.errors import SetupError
from remegraph.telemetry import event

__all__ = [
    "AgentMemorySettings",
    "CapturePolicy",
    "ExtractionPolicy",
    "LifecyclePolicy",
    "LimitPolicy",
    "Limits",
    "Mode",
    "PerceptionPolicy",
    "Perspective",
    "PoolPolicy",
    "PrivateKind",
    "RecallPolicy",
    "RetrievalPolicy",
    "RuleKind",
    "SensoryPolicy",
    "Settings",
    "SharingPolicy",
    "SlicingPolicy",
    "SummaryPolicy",
    "ToolPolicy",
    "WorkingPolicy",
    "closed_to_others",
    "open_to_others",
    "without_passwords",
]

_log = logging.getLogger(__name__)

Mode = Literal["tool-call", "first-person", "ghostwriter", "factual"]
Perspective = Literal["first-person", "third-person"]

PrivateKind = Literal[
    "cn-id", "iban", "card", "ssn", "email", "ip", "mac", "key", "url", "host", "path", "password", "plate", "passport",
    "birth-date", "phone", "account", "address",
]  # fmt: skip
"""Kinds of private data, the most certain first: what a checksum proves before what a word nearby suggests."""


RuleKind = Literal["health", "religion", "politics", "sexuality", "minors", "money", "credentials"]
"""Kinds that an owner's rule may name by one word; prompts say what each of them covers."""

_Rule = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)]


_PASSWORD = re.compile(r"(://[^\s:/]*:)\S*(?=@)|(\bpassword=)[^\s&]*", re.IGNORECASE)


def without_passwords(text: str) -> str:
    """Return a text with stars for the passwords of the URLs in it.

    Args:
        text: A URL, or a message about one.
    """
    return _PASSWORD.sub(lambda found: f"{found[1] or found[2]}***", text)


def open_to_others(path: Path) -> bool:
    """Return whether a file of secrets may be used by others than its owner and its group, or written by the group.

    Args:
        path: The file; its group may read it, as secrets that a cluster mounts belong to root and the group of a pod.

    Raises:
        OSError: It is not there.
    """
    return os.name == "posix" and bool(path.stat().st_mode & 0o027)


def closed_to_others(path: Path) -> Path:
    """Return a file of secrets.

    Args:
        path: The file.

    Raises:
        OSError: It is not there.
        SetupError: It is `open_to_others`.
    """
    if not open_to_others(path):
        return path
    mode = path.stat().st_mode & 0o777
    who = "every account of this machine can use it" if mode & 0o007 else "its group can change it"
    raise SetupError(
        f"{path} holds a secret, and with its mode of {mode:03o} {who}.",
        f"Run: chmod 600 {path}, so that its owner alone can read it; or chmod 640, so that its group can, too.",
    )


class _Policy(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    def evolve(self, **changes: Any) -> Self:
        """Return a copy with some fields changed, validated again.

        Args:
            changes: New values by field name.
        """
        given = {name: getattr(self, name) for name in self.model_fields_set}  # what was not given stays so
        return type(self).model_validate({**given, **changes})


class SlicingPolicy(_Policy):
    """Where a thread is cut into blocks (R2)."""

    strategy: Literal["combined", "window", "gap", "task", "length"] = Field(
        default="combined", description="combined: gap, task boundary and length, whichever comes first."
    )
    window: timedelta = Field(
        default=timedelta(minutes=5), gt=timedelta(0), description="Fixed window (strategy window)."
    )
    gap: timedelta = Field(default=timedelta(hours=3), gt=timedelta(0), description="A silence that ends a block.")
    max_messages: int = Field(default=24, ge=1, description="Longest block, in messages.")
    max_tokens: int = Field(default=1500, ge=1, description="Longest block, in estimated tokens.")
    overlap: int = Field(default=0, ge=0, description="Messages that two blocks share (strategy length).")


class SummaryPolicy(_Policy):
    """How blocks become memories (R4 to R8, R11)."""

    create_topics: bool = Field(default=False, description="Whether a model may invent task topics.")
    allowed_topics: tuple[str, ...] = Field(default=(), description="Task topics that it may create all the same.")
    reviser: Literal["rules", "auto", "always"] = Field(
        default="rules",
        description="rules: no model reviews what was written; auto: one does where rules flag; always: for each block.",
    )
    max_attempts: int = Field(default=2, ge=1, description="How often one topic is tried before a person looks.")
    attention: float = Field(
        default=0.1, ge=0, le=1, description="A block under this score is indexed without a model."
    )
    salience: float = Field(
        default=0.0, ge=0, le=1, description="A message under this score is not summarised, nor learned from."
    )
    similar_tokens: int = Field(
        default=4000, ge=1, description="Tokens of a topic's memories shown to a Sub Agent: all, as far as they go."
    )
    before_tokens: int = Field(
        default=300, ge=0, description="Tokens of what was said right before a block, shown with it."
    )
    merge_threshold: float = Field(
        default=0.85, ge=0, le=1, description="A statement more similar than this to a memory is merged into it."
    )
    max_concurrency: int = Field(
        default=8, ge=1, description="Model calls at once in a process: of all users, blocks and topics together."
    )
    timeout: float = Field(default=60.0, gt=0, description="Seconds that a model call may take, retries not counted.")
    repairs: int = Field(default=1, ge=0, description="How often an invalid answer is sent back with the error.")
    retries: int = Field(default=2, ge=0, description="Retries of a failed transport.")
    backoff: float = Field(default=0.5, ge=0, description="First wait before such a retry, in seconds; doubles.")
    longest_wait: float = Field(
        default=30.0, ge=0, description="Longest wait before such a retry, also where the provider asks for more."
    )
    recipe: str = Field(default="1", min_length=1, description="Name of this way; another name summarises again.")


class RecallPolicy(_Policy):
    """How much is recalled, and how wide the search is."""

    k: int = Field(default=10, ge=1, description="Hits of each kind.")
    threshold: float = Field(
        default=0.0,
        ge=0,
        le=1,
        description="Where nothing that is found is at least so relevant, nothing is returned. At .5 about 3 % of what "
        "answers is lost; at 0 all is shown, and where the embedder knows meaning the context says if it is unsure.",
    )
    max_topics: int = Field(default=8, ge=1, description="Topics searched at most (bounded fan-out).")
    context_tokens: int = Field(default=2000, ge=1, description="Token budget of the assembled context.")
    exact_limit: int = Field(default=5000, ge=0, description="Vectors up to which exact search over SQL is used.")
    index_timeout: float = Field(
        default=0.5, gt=0, description="Seconds that recall waits for the vector index; then it goes on from SQL."
    )
    rerank: int = Field(default=20, ge=1, description="Memories and messages that a reranker sees, of each at most.")
    rerank_timeout: float = Field(default=2.0, gt=0, description="Seconds that it may take; then recall goes without.")


class CapturePolicy(_Policy):
    """When conversations are captured, what counts of what hosts do to them, and how they are worked off."""

    early: bool = Field(
        default=False,
        description="Whether the words of a person are captured before the answer: what the host redacts within the turn "
        "is then recorded as it was. Else a turn is captured when it is over, or, after a crash, with the next one.",
    )
    removed: Literal["keep", "hide", "erase"] = Field(
        default="keep",
        description="What becomes of messages that the host takes out of its state, as when it trims or summarises: they "
        "are remembered, hidden until they are there again, or erased for good, with the branches that it leaves. "
        "For hosts whose state is the whole conversation.",
    )
    max_pending: int = Field(
        default=16, ge=1, description="Pending blocks of one partition from which turns are no longer cut one by one."
    )
    lease: float = Field(default=300.0, gt=0, description="Seconds that a job belongs to a worker that says nothing.")
    poll: float = Field(default=1.0, gt=0, description="Least seconds between looks at the queue, while jobs wait.")
    concurrency: int = Field(
        default=8,
        ge=1,
        description="Jobs at once in a process, each of another user: so many are learned from side by side, the blocks of "
        "each in order; one where `trust_boundary` makes users a team. Model calls at once: `summary.max_concurrency`.",
    )
    background: bool = Field(
        default=True,
        description="Whether the process that captures does the work, too; false: `remegraph worker` does.",
    )
    max_waiting: int | None = Field(
        default=None, ge=1, description="The same as max_pending, for jobs of all partitions that wait for a worker."
    )
    strict: bool = Field(
        default=False,
        description="Whether a turn fails that cannot be recorded; else it is answered, counted, and recorded by the next "
        "capture of its thread.",
    )
    reread: int = Field(
        default=0,
        ge=0,
        description="Tokens a day, for each user of an agent, for which the background has a model read again what was read "
        "without one, the newest first, once there is nothing else to do; 0: nothing is, until `remegraph work reread`.",
    )
    max_attempts: int = Field(
        default=100, ge=1, description="Failures in a row after which a job gives up: after some four days."
    )


class PoolPolicy(_Policy):
    """How many connections to the ledger a process has, and how long a call waits for one."""

    size: int = Field(default=5, ge=1, description="Connections that are kept.")
    overflow: int = Field(default=10, ge=0, description="More of them at once, while there is more to do.")
    wait: float = Field(
        default=10.0,
        ge=0,
        description="Seconds that a call waits for one: while all are in use, or PostgreSQL refuses another, as it has too "
        "many, starts, or has a new password that this process will know in a moment. As long it may stand still without a "
        "sign of life, 3 at least, then the call ends. All this for each call: a turn makes several, as it recalls, "
        "captures, and uses tools. 0: a call that gets none at once fails.",
    )


class ExtractionPolicy(_Policy):
    """How an agent's conversations are written back (F1, F2)."""

    mode: Mode = Field(
        default="factual",
        description="tool-call: only what the agent saves itself; first-person: the agent's own model looks back; "
        "ghostwriter: another model writes in its name; factual: facts alone.",
    )
    perspective: Perspective | None = Field(
        default=None, description="For ghostwriter (first-person unless said) and factual (third-person unless said)."
    )
    trigger: Literal["gathered", "per-turn", "session-end", "manual"] = Field(
        default="gathered",
        description="When: once turns make up a block, or nothing was said for `idle`, or the session is ended; after each "
        "turn; only when a session is ended; or when asked.",
    )
    idle: timedelta = Field(
        default=timedelta(minutes=10),
        gt=timedelta(0),
        description="How long nothing was said in a thread until its last turns are extracted (trigger gathered).",
    )
    min_turns: int = Field(default=1, ge=1, description="Turns of a person under which nothing is extracted.")
    prompt_template: str | None = Field(
        default=None, description="Template instead of the Sub Agent's own; it has the same variables."
    )
    language: str = Field(
        default="",
        max_length=40,
        description="What memories are written in, as in German; unless given, the language of the words they stand on.",
    )
    remember: tuple[RuleKind | _Rule, ...] = Field(
        default=(),
        description="Nothing but this is remembered, each a kind (as in never_remember) or a sentence, as in 'what the team "
        "decides'; all, unless given.",
    )
    never_remember: tuple[RuleKind | _Rule, ...] = Field(
        default=(),
        description="What is never remembered: health, religion, politics, sexuality, minors, money, credentials, or "
        "sentences, as in 'what is said of our supplier'. In the prompts, and held against what comes back: one more call "
        "for each block and each save by a model.",
    )
    schemas: dict[str, ImportString[type[BaseModel]]] = Field(
        default_factory=dict,
        description="Pydantic models the fields of which are slots that are filled, by type of topic (personal) or by the key "
        "of one (task:atlas), which comes first. In a file, where each is imported from: app.memory:Person.",
    )
    model_id: str | None = Field(default=None, description="Own chat model, as provider:model; the kit's unless given.")

    @property
    def gathers(self) -> bool:
        """Whether turns are gathered until they make up a block."""
        return self.trigger == "gathered"

    @property
    def voice(self) -> Perspective:
        """The perspective that memories are written in."""
        if self.mode in {"tool-call", "first-person"}:
            return "first-person"
        return self.perspective or ("first-person" if self.mode == "ghostwriter" else "third-person")

    @field_validator("schemas")
    @classmethod
    def _of_topics(cls, value: dict[str, type[BaseModel]]) -> dict[str, type[BaseModel]]:
        for key in value:
            kind, divided, name = key.partition(":")
            if kind not in {"self", "personal", "task", "tool"} or bool(divided) != bool(name.strip()):
                raise ValueError(f"{key!r} is no topic: write a type, as personal, or type:name, as task:atlas")
        return value

    @model_validator(mode="after")
    def _one_voice(self) -> Self:
        if self.perspective == "third-person" and self.mode in {"tool-call", "first-person"}:
            raise ValueError(f"mode {self.mode} writes in the first person: leave perspective out")
        return self


class LifecyclePolicy(_Policy):
    """How an agent's memories live on (F4, F5). Unless `every` is given, nothing moves before `kit.retention.maintain` is called."""

    merge_threshold: float | None = Field(
        default=None, ge=0, le=1, description="As in the summary policy, whose value holds unless given."
    )
    policy: Literal["curve", "priority", "health"] = Field(
        default="curve",
        description="How memories fade. curve: by a half-life that each review lengthens; priority: the priority decays "
        "with the days since the last access; health: by age, accesses and importance.",
    )
    half_life: float | None = Field(
        default=None,
        gt=0,
        le=36_500,
        description="Days. Unless given 28 for curve (of an episode of middling importance) and 14 for health.",
    )
    decay_factor: float = Field(default=0.95, gt=0, le=1, description="What a day leaves of a priority (priority).")
    low_threshold: float = Field(default=0.3, ge=0, le=1, description="Under this weight a memory is low_priority.")
    forget_threshold: float = Field(default=0.15, ge=0, le=1, description="Under this weight it is archived.")
    purge_after: timedelta | None = Field(
        default=timedelta(days=60),
        gt=timedelta(0),
        description="How long an archived memory can be restored; then maintenance purges what it says. None, in a file "
        '"never": for ever.',
    )
    max_entries: int | None = Field(
        default=None, ge=1, description="Live memories of one library; maintenance archives the faintest over it."
    )
    cluster_size: int = Field(default=3, ge=2, description="So many similar episodes become one long-term memory.")
    cluster_likeness: float = Field(default=0.3, gt=0, le=1, description="How similar they are, by their rarer words.")

    every: timedelta | None = Field(
        default=None,
        gt=timedelta(0),
        description="How often maintenance runs in the background, from the next session's capture on; none: only when "
        "called, as nothing should be forgotten unnoticed.",
    )
    active_entries: int = Field(
        default=20, ge=0, description="Memories that stand ready without a query, at most; see `kit.retention.active`."
    )

    @field_validator("purge_after", mode="before")
    @classmethod
    def _never(cls, value: Any) -> Any:
        """Read what a file says, which has no None."""
        return None if value == "never" else value

    @model_validator(mode="after")
    def _low_before_forgotten(self) -> Self:
        if self.low_threshold < self.forget_threshold:
            raise ValueError("low_threshold is under forget_threshold: memories lose priority before they are archived")
        return self


class RetrievalPolicy(_Policy):
    """How an agent is given memories before it answers, and what counts beside relevance in their ranking (F6)."""

    k: int | None = Field(default=None, ge=1, description="Hits of each kind; the recall policy's unless given.")
    note_tokens: int = Field(
        default=600,
        ge=1,
        description="Token budget of what middleware and nodes show the model of what bears on the words; what you ask for "
        "yourself, and layers, have that of the recall policy.",
    )
    depth: Literal["summaries", "memories", "blocks", "messages"] = Field(
        default="messages", description="How far to expand: memories, index entries, raw messages; or summaries alone."
    )
    min_trust: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="How far messages and index entries must be trusted that a recall brings which does not say it. Unless "
        "given, tools and documents stay out; 0 lets an agent recall them all the tools of which are your own.",
    )
    apply_time_decay: bool = Field(default=False, description="Whether memories that were said lately come first.")
    half_life: float = Field(default=14.0, gt=0, description="Days in which half of that is gone.")
    injection: Literal["recall", "layers"] = Field(
        default="recall",
        description="recall: what bears on the words, at every turn; layers: core rules, what applies to the project or "
        "language, and what bears on the words where they call for it.",
    )
    workspace: Path | None = Field(
        default=None, description="The working directory, which tells the languages, and the project of scopes of none."
    )
    apply_frequency_boost: bool = Field(
        default=False, description="Whether memories that were recalled often come first."
    )
    importance_boost: bool = Field(default=False, description="Whether important memories come first.")

    active_first: bool = Field(
        default=False, description="Whether the active memories come first in the context, whatever is asked."
    )
    utility_boost: bool = Field(default=False, description="Whether memories that answers drew on come first.")

    @property
    def favours(self) -> bool:
        """Whether anything counts beside relevance."""
        return self.apply_time_decay or self.apply_frequency_boost or self.importance_boost or self.utility_boost


class SensoryPolicy(_Policy):
    """The sensory buffer, and which of its items get attention (B1, B2)."""

    ttl: timedelta = Field(default=timedelta(seconds=30), gt=timedelta(0), description="How long an event stays.")
    capacity: int = Field(default=1024, ge=1, description="Events at once, of all scopes; the oldest make way.")
    threshold: float = Field(
        default=0.15, ge=0, le=1, description="Attention from which on an event enters working memory."
    )


class WorkingPolicy(_Policy):
    """How much an agent has in mind (B3)."""

    capacity: int = Field(default=7, ge=1, le=9, description="Chunks for each agent and task: 7, plus or minus two.")
    chunk_tokens: int = Field(default=100, ge=1, description="Longest chunk, in estimated tokens.")
    tasks: int = Field(default=1000, ge=1, description="Tasks at once; what was idle longest is forgotten.")


class ToolPolicy(_Policy):
    """How tools are remembered (R12), and which of them are believed."""

    trusted: frozenset[str] = Field(
        default=frozenset(),
        description="Tools that are systems of your own, by name, as crm_lookup: what they return is a fact, and holds until "
        "they return another, or the person says otherwise. Never one that brings what others write. Also as text, with commas.",
    )

    heard: bool = Field(default=True, description="Whether the middleware hears how tool calls go, and how long.")
    last: int = Field(default=50, ge=1, description="Newest calls that guidelines and predictions look at.")
    cited: int = Field(default=12, ge=1, le=50, description="Calls that a guideline is made from, at most.")

    @field_validator("trusted", mode="before")
    @classmethod
    def _names(cls, value: Any) -> Any:
        """Read names as one text has them."""
        names = value.split(",") if isinstance(value, str) else value
        return [each.strip() for each in names if each.strip()] if isinstance(value, str) else names


class PerceptionPolicy(_Policy):
    """How attachments are kept and read (K3)."""

    reads: frozenset[Literal["image", "audio", "video", "file"]] = Field(
        default=frozenset(), description="What the chat model can look at and shall describe; none: by reference only."
    )
    most: int = Field(default=8, ge=1, description="Attachments of a block that it is shown, the first ones.")
    max_bytes: int = Field(default=10_000_000, ge=1, description="Largest attachment.")
    max_message_bytes: int = Field(default=25_000_000, ge=1, description="All attachments of a message together.")
    max_text: int = Field(default=20_000, ge=0, description="Characters of a text file that are read, without a model.")
    folder: Path | None = Field(
        default=None,
        description="Where their bytes are kept: all that share a ledger need the same; `blobs` in the home unless given.",
    )


class SharingPolicy(_Policy):
    """Whom an agent learns from, and when a library of several agents takes something up (B12, K8)."""

    quorum: int = Field(default=2, ge=2, description="Agents that must bear out what is proposed, its author included.")
    trust: dict[str, float] = Field(
        default_factory=dict, description="How far other agents are believed, 0 to 1, by name; packs, by key."
    )
    default_trust: float = Field(
        default=0.4, ge=0, le=1, description="How far those not named are; under .5, a person must approve."
    )
    require_signature: bool = Field(
        default=False, description="Whether packs are refused that no trusted key has signed."
    )
    source_share: float = Field(
        default=0.5, gt=0, le=1, description="Most of the hits of a recall that one other agent or pack may make."
    )


class Limits(_Policy):
    """How much may be used. Whatever is begun below a limit is finished; what follows is refused."""

    messages_per_minute: int | None = Field(default=None, ge=1, description="Messages that are recorded in a minute.")
    tokens_per_day: int | None = Field(
        default=None, ge=1, description="Tokens of chat models, sent and received, in a day of UTC."
    )
    stored_bytes: int | None = Field(default=None, ge=1, description="Bytes of messages and attachments that are kept.")


class LimitPolicy(_Policy):
    """What tenants and users may use, over all processes that share a ledger. Unless one is set, nothing is looked up."""

    tenant: Limits = Field(default_factory=Limits, description="Of each tenant, all its users together.")
    user: Limits = Field(default_factory=Limits, description="Of each user of a tenant.")
    tenants: dict[str, Limits] = Field(
        default_factory=dict, description="Of single tenants, by name, instead of `tenant`."
    )


class AgentMemorySettings(_Policy):
    """The memory of one agent, in one object (F9)."""

    enabled: bool = Field(
        default=True, description="Whether its conversations are captured and recalled by themselves."
    )
    library: Literal["own", "shared"] = Field(
        default="own", description="own: memories of this agent alone; shared: of all agents of the user."
    )
    usage: Literal["memory", "knowledge", "hybrid"] = Field(
        default="memory",
        description="memory: learned from conversations; knowledge: only what is saved explicitly, which extraction "
        "never rewrites and time never wears; hybrid: both side by side.",
    )
    extraction: ExtractionPolicy = Field(default_factory=ExtractionPolicy, description="How conversations are written.")
    lifecycle: LifecyclePolicy = Field(default_factory=LifecyclePolicy, description="How memories live on.")
    retrieval: RetrievalPolicy = Field(default_factory=RetrievalPolicy, description="What is given to the agent.")

    @property
    def extracts(self) -> bool:
        """Whether memories are made from conversations, beside those that are saved explicitly."""
        return self.usage != "knowledge" and self.extraction.mode != "tool-call"

    @property
    def learns(self) -> bool:
        """Whether memories are made of its conversations without being asked for."""
        return self.enabled and self.usage != "knowledge" and self.extraction.trigger != "manual"


class Settings(_Policy):
    """All settings of a kit."""

    home: Path = Field(default=Path("~/.remegraph"), description="Folder of the ledger and the embedded index.")
    ledger_url: str | None = Field(
        default=None,
        description="SQLAlchemy URL; SQLite in the home where none is given. PostgreSQL: `?password_file=/run/secrets/password` "
        "is read at each new connection.",
    )
    chroma_url: str | None = Field(default=None, description="http://host:port of a Chroma server; embedded if none.")
    index: Literal["chroma", "pgvector"] | None = Field(
        default=None,
        description="What searches vectors. pgvector: the PostgreSQL that the ledger is in; chroma: a server where `chroma_url` "
        "names one, else embedded. Unless one is named, a ledger keeps the one that it had, first chroma.",
    )
    queue: Literal["ledger", "procrastinate"] | None = Field(
        default=None,
        description="What hands work to workers. procrastinate is for PostgreSQL and any number of processes, and what is "
        "used there unless another is named, if the extra `workers` is installed; ledger is for the threads of one process, "
        "and for one machine.",
    )
    migrate: Literal["auto", "never"] = Field(
        default="auto",
        description="Whether whoever opens an earlier ledger brings its schema up to date; never: it is refused until "
        "`remegraph migrate --apply`.",
    )
    model: str | None = Field(
        default=None, description="Chat model as provider:model; without one, or with `none` as text, extractive mode."
    )
    embedder: str | None = Field(
        default=None, description="Embedder as provider:model; without one, or with `none` as text, hashed n-grams."
    )
    journal_key: str | None = Field(
        default=None,
        min_length=16,
        repr=False,
        description="Secret that the journal is sealed with; a file in the home holds one unless given. All that share "
        "a ledger need the same.",
    )
    former_journal_keys: tuple[Annotated[str, Field(min_length=16)], ...] = Field(
        default=(),
        repr=False,
        description="Secrets that it was sealed with before, newest first: they verify what they sealed, and one of them "
        "seals on until `seal_journal`. They come after those of a file in the home. Also as text, with commas.",
    )
    opentelemetry: bool = Field(
        default=False,
        description="Whether spans and metrics go to the OpenTelemetry of the process; see docs/observability.md.",
    )
    redact: frozenset[PrivateKind] = Field(
        default=frozenset(),
        description="Kinds of private data that are replaced as they come in: no ledger, index or model ever has them. "
        "Also as text, email,card, or all; see docs/security.md.",
    )
    trust_boundary: Literal["user", "agent"] = Field(
        default="user", description="agent: the users of an agent are one team and share what it learns."
    )
    slicing: SlicingPolicy = Field(default_factory=SlicingPolicy, description="Where threads are cut.")
    summary: SummaryPolicy = Field(default_factory=SummaryPolicy, description="How blocks become memories.")
    recall: RecallPolicy = Field(default_factory=RecallPolicy, description="How much is recalled.")
    pool: PoolPolicy = Field(default_factory=PoolPolicy, description="How many connections to the ledger there are.")
    capture: CapturePolicy = Field(default_factory=CapturePolicy, description="How the background work is done.")
    sensory: SensoryPolicy = Field(default_factory=SensoryPolicy, description="What is sensed.")
    working: WorkingPolicy = Field(default_factory=WorkingPolicy, description="What an agent has in mind.")
    perception: PerceptionPolicy = Field(default_factory=PerceptionPolicy, description="What is read of attachments.")
    sharing: SharingPolicy = Field(default_factory=SharingPolicy, description="Whom it learns from.")
    tools: ToolPolicy = Field(default_factory=ToolPolicy, description="How tools are remembered.")
    limits: LimitPolicy = Field(default_factory=LimitPolicy, description="What tenants and users may use.")
    agent: AgentMemorySettings = Field(
        default_factory=AgentMemorySettings, description="Memory of agents not named below, and of shared libraries."
    )
    agents: dict[str, AgentMemorySettings] = Field(default_factory=dict, description="Memory of agents, by name.")

    def for_agent(self, name: str | None) -> AgentMemorySettings:
        """Return the settings of an agent's memory.

        Args:
            name: The agent of a scope; none: no agent in particular.
        """
        return self.agent if name is None else self.agents.get(name, self.agent)

    @property
    def blobs(self) -> Path | None:
        """Where the bytes of attachments are kept; None where the ledger is elsewhere and no folder is named."""
        if self.perception.folder is not None:
            return self.perception.folder.expanduser()
        elsewhere = self.ledger_url is not None and "home" not in self.model_fields_set
        return None if elsewhere else self.home.expanduser() / "blobs"

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """Show no password of a URL."""
        for name, value in super().__repr_args__():
            yield name, without_passwords(value) if name in {"ledger_url", "chroma_url"} and value else value

    @field_validator("model", "embedder", mode="before")
    @classmethod
    def _without(cls, value: Any) -> Any:
        """Read what an environment or a file says, which have no None."""
        return None if value == "none" else value

    @field_validator("redact", mode="before")
    @classmethod
    def _kinds(cls, value: Any) -> Any:
        """Read kinds as a line of the environment has them."""
        if not isinstance(value, str):
            return value
        return get_args(PrivateKind) if value.strip() == "all" else [kind.strip() for kind in value.split(",")]

    @field_validator("former_journal_keys", mode="before")
    @classmethod
    def _former(cls, value: Any) -> Any:
        """Read keys as a line of the environment has them."""
        return [key for each in value.split(",") if (key := each.strip())] if isinstance(value, str) else value

    @model_validator(mode="after")
    def _shared_libraries_agree(self) -> Self:
        for name, settings in self.agents.items():
            same = settings.extraction == self.agent.extraction and settings.usage == self.agent.usage
            if settings.library == "shared" and not same:
                raise ValueError(f"agent {name!r} shares its library: what is extracted into it, `agent` says for all")
        return self

    @classmethod
    def from_env(cls, env: Mapping[str, str] | None = None) -> Self:
        """Read the file that REMEGRAPH_SETTINGS names, if it names one; what else the environment says counts more.

        REMEGRAPH_HOME, _LEDGER_URL, _CHROMA_URL, _INDEX, _QUEUE, _MIGRATE, _MODEL, _EMBEDDER, _JOURNAL_KEY,
        _FORMER_JOURNAL_KEYS, _OPENTELEMETRY, _REDACT. OpenAI if only its key is set.

        Args:
            env: The environment; that of the process unless given.

        Raises:
            SetupError: The file or a value cannot be used; it is named.
        """
        env = os.environ if env is None else env
        path = env.get("REMEGRAPH_SETTINGS")
        return cls.from_file(path, env) if path else cls._read({}, env, "the environment")

    @classmethod
    def from_file(cls, path: str | Path, env: Mapping[str, str] | None = None) -> Self:
        """Read a TOML file with these settings by name; what the environment says counts more, as in `from_env`.

        Args:
            path: The file. A time span is a number of seconds or a text such as PT3H.
            env: The environment; that of the process unless given.

        Raises:
            SetupError: The file or a value cannot be used; it is named.
        """
        return cls._read(_file(Path(path)), os.environ if env is None else env, str(path))

    @classmethod
    def _read(cls, told: Mapping[str, Any], env: Mapping[str, str], where: str) -> Self:
        _check_names(env)
        # Stores of secrets often add a line end: it is no part of a key, and would make another one of it.
        told_here = {name: env.get(f"REMEGRAPH_{name.upper()}", "").strip() for name in _IN_ENVIRONMENT}
        given = {name: value for name, value in told_here.items() if value}
        usual = {"model": "openai:gpt-5-mini", "embedder": "openai:text-embedding-3-small"}
        try:
            return cls.model_validate((usual if env.get("OPENAI_API_KEY") else {}) | dict(told) | given)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            name = ".".join(map(str, first["loc"])) or "settings"
            setting = str(first["loc"][0]) if first["loc"] else ""
            source = f"{_PREFIX}{setting.upper()}" if setting in given else f"{name} in {where}"
            raise SetupError(f"{source} cannot be used: {first['msg']}.", "See docs/reference/settings.md.") from error


_IN_ENVIRONMENT = (
    "home",
    "ledger_url",
    "chroma_url",
    "index",
    "queue",
    "migrate",
    "model",
    "embedder",
    "journal_key",
    "former_journal_keys",
    "opentelemetry",
    "redact",
)
"""Settings that have a variable of their own."""

_OF_COMMANDS = ("settings", "user", "agent", "project", "tenant", "mcp_token")
"""What else has one."""

_PREFIX, _VARIABLES = "REMEGRAPH_", frozenset(name.upper() for name in (*_IN_ENVIRONMENT, *_OF_COMMANDS))
_KUBERNETES = re.compile(r"(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)")
"""What pods are told of Services, with the name of each before it: one may be called remegraph."""

_NEAR = 0.75
"""How alike a name must be to be taken for a slip; LEDGER and LEDGER_URL are."""


def _fields(kind: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Yield settings by name, those of the policies in a policy as `pool.size`."""
    for name, field in kind.model_fields.items():
        within = field.annotation
        if isinstance(within, type) and issubclass(within, BaseModel):
            yield from _fields(within, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", field


def _check_names(env: Mapping[str, str]) -> None:
    """Refuse a variable that is a slip of one that there is, and warn of one that is unknown.

    Raises:
        SetupError: One that is set is a slip, or names a setting that only the file has.
    """
    for given in sorted(env):
        name = given.removeprefix(_PREFIX)
        known = not given.startswith(_PREFIX) or name in _VARIABLES or _KUBERNETES.fullmatch(name)
        if known or not env[given].strip():
            continue
        what = f"{given} is no variable of remegraph"
        if (meant := _meant(name.upper())) is not None:
            raise SetupError(f"{what}.", f"{meant} All of them: docs/reference/settings.md.")
        _log.warning("%s, and is left out of account.", what, extra=event("settings.unknown", variable=given))


def _meant(name: str) -> str | None:
    """Return the question whether another name was meant, where one is near."""
    in_file = {setting.upper().replace(".", "_"): setting for setting, _ in _fields(Settings) if "." in setting}
    if not (near := get_close_matches(name.replace("__", "_"), [*_VARIABLES, *in_file], 1, _NEAR)):
        return None
    if near[0] in in_file:
        return f"Did you mean the setting `{in_file[near[0]]}`? It is set in the file that REMEGRAPH_SETTINGS names."
    # A known name with a word behind it is no slip, and may be what a host calls its own.
    return None if name.startswith(f"{near[0]}_") else f"Did you mean {_PREFIX}{near[0]}?"


def _file(path: Path) -> Mapping[str, Any]:
    try:
        with path.expanduser().open("rb") as file:
            return tomllib.load(file)
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SetupError(
            f"The settings file {path} cannot be read ({error}).", "Give a TOML file; see docs/operations.md."
        ) from error
