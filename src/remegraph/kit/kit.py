"""MemoryKit: messages in, blocks, topic memories, recall with evidence.

Every verb has an async twin with an `a` before its name; both run the same code. What few agents need is on facades,
such as `kit.topics` and `kit.admin`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from html import escape
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, cast, get_args
from uuid import uuid4

from pydantic import BaseModel

from remegraph.engine.retrieval.hits import named
from remegraph.engine.schemas import profile
from remegraph.errors import InputError, RemegraphError
from remegraph.governance.versions import trace
from remegraph.importers.messages import MessageLike
from remegraph.importers.views import View
from remegraph.kit.admin import Admin
from remegraph.kit.background import Reindexing
from remegraph.kit.capture import Capture
from remegraph.kit.components import OpenOptions, Parts, open_parts
from remegraph.kit.facade import Context, twin
from remegraph.kit.governance import Conflicts, Governance, restored
from remegraph.kit.items import Items
from remegraph.kit.knowledge import Imports, Knowledge
from remegraph.kit.packs import Packs
from remegraph.kit.providers import Thinkers, as_attention, as_chat_model, as_embedder, token_counter
from remegraph.kit.recall import Asked, Injections, Recalls, Rules
from remegraph.kit.retention import Retention, Working
from remegraph.kit.sharing import Sharing
from remegraph.kit.skills import Skills
from remegraph.kit.sources import Sources, Topics, explain, held
from remegraph.kit.statements import Forms, SaveOptions, Statements
from remegraph.kit.summarization import Summarization, Worklist
from remegraph.kit.tools import ToolMemory
from remegraph.kit.validation import actor_of, check_choices, check_numbers, check_text, check_type, path_of, required
from remegraph.kit.worker import CUT, Worker
from remegraph.models import (
    AddReceipt,
    Budget,
    Captured,
    Category,
    Depth,
    EnforcementLevel,
    Explanation,
    Forgotten,
    Injection,
    Memory,
    MemoryClass,
    Profile,
    Recall,
    RecallFilter,
    RecallMode,
    SaveResult,
    Scope,
    Status,
    StoredMessage,
    SummaryReport,
    Topic,
    TopicType,
    Trace,
    Workspace,
)
from remegraph.retention.maintenance import restore
from remegraph.settings import Settings, without_passwords

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings
    from langchain_core.language_models import BaseChatModel

    from remegraph.kit.worker import Cancel, Duty, OnProgress
    from remegraph.ports import Clock, Embedder, VectorIndex

__all__ = ["FROM_SETTINGS", "MemoryKit"]

S = TypeVar("S", bound=BaseModel)


class _FromSettings:
    def __repr__(self) -> str:
        return "FROM_SETTINGS"


FROM_SETTINGS: Final = _FromSettings()
"""Default: use what the settings say."""

_SHOWN = ("messages", "blocks", "memories", "topics", "jobs_waiting", "model", "embedder", "index")
"""The entries of `admin.stats` that a notebook shows."""

_OVERDUE = 50
"""Most partitions whose conversations are cut when a kit opens, which must not take long; workers cut those of all."""


class MemoryKit:
    """The memory of an agent. Open it with `MemoryKit.open`; use it from any thread; close it, or use `with`.

    Attributes:
        sources: What was said, word for word.
        topics: What memories are about, and how they are linked.
        rules: What an agent is given in every conversation.
        retention: How useful memories were, when and why they fade, and maintenance.
        working: What is sensed at the moment, and kept in mind for a task.
        work: What waits, failed, or needs a person, and the workers that do it.
        skills: Learned procedures, step by step.
        tools: How calls of tools went.
        governance: Which version is valid, who did what, and what an agent was shown.
        conflicts: Memories that contradict each other.
        sharing: What other agents may read, and what they agree on.
        knowledge: Memories as items that other agents take in.
        packs: Knowledge as a signed file.
        forms: Memories as editable items.
        items: Key-value items, as a LangGraph store has them.
        imports: Conversations and memories from elsewhere.
        admin: Health, proof and repair, erasure, and backups; for an operator.
        context: What all of these share.
    """

    def __init__(self, parts: Parts) -> None:
        context = Context(parts, self._duties)
        self.context = context
        self.sources = Sources(context)
        self.topics = Topics(context)
        self.rules = Rules(context)
        self.retention = Retention(context)
        self.working = Working(context)
        self.skills = Skills(context)
        self.tools = ToolMemory(context)
        self.governance = Governance(context)
        self.conflicts = Conflicts(context)
        self.sharing = Sharing(context)
        self.packs = Packs(context)
        self.forms = Forms(context, self.skills)
        self.items = Items(context.parts)
        self.imports = Imports(context)
        self.admin = Admin(context)
        self._statements = Statements(context)
        self._recalls = Recalls(context)
        self._injections = Injections(context, self._recalls)
        self._capture = Capture(context, self._erase)
        self._summarization = Summarization(context, self._capture.cut_idle, self.retention.maintain)
        self.work = Worklist(context, self._summarization)
        self.knowledge = Knowledge(context, self._recalls)
        self._reindexing: Reindexing | None = None

    @classmethod
    def open(
        cls,
        home: str | Path | None = None,
        *,
        settings: Settings | None = None,
        ledger_url: str | None = None,
        chroma_url: str | None = None,
        model: BaseChatModel | str | _FromSettings | None = FROM_SETTINGS,
        embedder: Embedder | Embeddings | str | _FromSettings | None = FROM_SETTINGS,
        index: VectorIndex | None = None,
        clock: Clock | None = None,
        options: OpenOptions | None = None,
    ) -> Self:
        """Open a home, which is created where it is missing.

        Args:
            home: Folder of the ledger and the embedded index.
            settings: All settings; read from the environment unless given.
            ledger_url: SQLAlchemy URL of the ledger instead of SQLite in the home.
            chroma_url: `http://host:port` of a Chroma server instead of the embedded index.
            model: A chat model or `provider:model`; None: extractive mode, without a model.
            embedder: An embedder, LangChain `Embeddings` or `provider:model`; None: hashed n-grams, offline.
            index: A vector index instead of Chroma; closed with the kit.
            clock: Used instead of the system's clock.
            options: What few applications give.

        Raises:
            InputError: The home is no path, or a URL no text.
            SetupError: Some part cannot be used. Nothing stays open.
        """
        check_type(Settings, settings=settings)
        check_type(OpenOptions, options=options)
        urls = {name: url for name, url in (("ledger_url", ledger_url), ("chroma_url", chroma_url)) if url is not None}
        check_text(**urls)
        settings, options = settings or Settings.from_env(), options or OpenOptions()
        settings = settings.evolve(**urls, **({} if home is None else {"home": path_of(home)}))
        chosen_model = settings.model if isinstance(model, _FromSettings) else model
        chosen_embedder = settings.embedder if isinstance(embedder, _FromSettings) else embedder
        chat_model = as_chat_model(chosen_model, settings.summary.timeout)
        parts = open_parts(
            settings,
            thinkers=Thinkers(settings, chat_model, options.extractors),
            embedder=as_embedder(chosen_embedder),
            index=index,
            clock=clock or _system_clock,
            new_id=options.new_id or _uuid,
            require_index=options.require_index,
            reindex=bool(options.reindex),
            count_tokens=options.count_tokens or token_counter(chat_model),
            reranker=options.reranker,
            attention=as_attention(options.attention),
        )
        kit = cls(parts)
        kit._cut_overdue()
        if options.reindex == "background" and not parts.projection.is_current():
            kit._reindexing = Reindexing(parts.projection, parts.embedder, kit.context.health)
        return kit

    @classmethod
    async def aopen(cls, home: str | Path | None = None, **options: Any) -> Self:
        """Open a home; see `open`."""
        return await asyncio.to_thread(cls.open, home, **options)

    @property
    def settings(self) -> Settings:
        """The settings that it was opened with."""
        return self.context.settings

    def close(self) -> None:
        """Stop the background work after the current block, and release everything. Closing twice is fine.

        In a process forked from the one that opened it, nothing is done: everything belongs to the parent.
        """
        if self._reindexing is not None and not self.context.forked:
            self._reindexing.close()
        self.context.close()

    aclose = twin(close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"<MemoryKit {self._place()}>"

    def _repr_html_(self) -> str:
        """Show in a notebook what it holds."""
        if self.context.closed:
            return f"<b>MemoryKit</b> {escape(self._place())}, closed"
        stats = self.admin.stats()
        rows = "".join(f"<tr><td>{escape(name)}</td><td>{escape(str(stats[name]))}</td></tr>" for name in _SHOWN)
        return f"<b>MemoryKit</b> {escape(self._place())}<table>{rows}</table>"

    def add_messages(
        self,
        messages: Iterable[MessageLike],
        *,
        scope: Scope,
        thread: str | None = None,
        timezone: str | tzinfo | None = None,
    ) -> AddReceipt:
        """Record messages. Once this returns they are durable; no model and no embedder is called.

        Args:
            messages: Our messages, LangChain messages, mappings in the form of OpenAI or LangChain, or texts.
            scope: Who speaks with the agent.
            thread: The conversation of messages that do not name one.
            timezone: Zone of the person, for times that name none and for messages without a time.

        Raises:
            MessageError: A message cannot be recorded; none was.
            MessageChangedError: An id is recorded with other content; none was recorded.
            SetupError: An attachment cannot be stored; no message was recorded.
            LimitError: The tenant or the user has used up what the settings' `limits` allow.
            ScopeError: The scope is missing.
        """
        return self._capture.add_messages(messages, scope=scope, thread=thread, timezone=timezone)

    aadd_messages = twin(add_messages)

    def capture(
        self,
        messages: Iterable[MessageLike],
        *,
        scope: Scope,
        thread: str = "main",
        timezone: str | tzinfo | None = None,
        view: View | None = None,
        record: bool = True,
    ) -> Captured:
        """Record what is new in a thread, after each turn. No model is called; memories are made in the background.

        Give all messages of the thread, or only new ones: a known id is skipped. Where the host replaced the content
        under an id, the older form is hidden, with what was learned from it alone, and the newer is recorded under a
        new id, with the old one in `extra["revises"]`. A message without an id gets one
        from its place in the list, its role and its content: a host without ids must give the whole thread each time.
        Left out is what was not said: system messages, a framework's summaries, recalled memory. Results of tools that
        recall stay, as every call has its result. What is not in the list is not touched, unless `view` says that it is
        the host's whole state.

        `extraction.trigger` of the agent's settings says when memories are made. Once this returns, the messages are
        durable; so is the decision to make a block of them, or when to look whether the conversation goes on. Until then
        recall finds them by their words.

        Args:
            messages: In any form that `add_messages` takes. An empty list is fine.
            scope: Who speaks with which agent.
            thread: The conversation of messages that do not name one.
            timezone: Zone of the person, for times that name none and for messages without a time.
            view: What the list is to its host, where that is known, as with node and middleware.
            record: Whether it may be recorded. False: off the record. Messages of the list that are not recorded yet never are, by
                any later call: only their ids are kept, as marks that nothing can be read from. An answer to
                such words is off the record, too.

        Raises:
            MessageError: A message cannot be recorded; none was.
            LimitError: The tenant or the user has used up what the settings' `limits` allow; the next capture of the
                thread records it.
            ScopeError: The scope is missing.
            ConflictError: Others recorded the same messages at the same time, again and again.
        """
        return self._capture.capture(messages, scope=scope, thread=thread, timezone=timezone, view=view, record=record)

    acapture = twin(capture)

    def end_session(self, thread: str = "main", *, scope: Scope) -> Captured:
        """Say that a conversation is over: what no block holds yet becomes one, and memories are made of it.

        With fewer than `min_turns` turns of a person it is left as it is, joins what follows in this thread, and is
        found by its words until then. Where the trigger is `manual`, or the agent keeps knowledge only, nothing
        happens. Ending a session again changes nothing.

        Args:
            thread: The conversation.
            scope: Who spoke with which agent.

        Raises:
            ScopeError: The scope is missing.
        """
        return self._capture.end_session(thread, scope=scope)

    aend_session = twin(end_session)

    def summarize(
        self,
        *,
        scope: Scope,
        close: bool = False,
        budget: Budget | None = None,
        progress: OnProgress | None = None,
        cancel: Cancel | None = None,
    ) -> SummaryReport:
        """Turn what is new into blocks, index entries and topic memories. Continues where the last run stopped.

        Args:
            scope: Whose messages.
            close: Whether the open tail of each thread, which more messages may still join, is a block too.
            budget: Hard limits on calls and tokens.
            progress: Told after each block.
            cancel: Asked before each block.

        Raises:
            ModelUnavailableError: The model is down; what is not done stays pending.
            BudgetExceededError: The budget is used up; the rest stays pending.
            CancelledError: `cancel` said so; the rest stays pending.
        """
        loop = self._summarization.loop(scope, close=close, budget=budget, progress=progress, cancel=cancel)
        return self._summarization.run(loop)

    async def asummarize(
        self,
        *,
        scope: Scope,
        close: bool = False,
        budget: Budget | None = None,
        progress: OnProgress | None = None,
        cancel: Cancel | None = None,
    ) -> SummaryReport:
        """Turn what is new into memories; see `summarize`."""
        loop = self._summarization.loop(scope, close=close, budget=budget, progress=progress, cancel=cancel)
        return await self._summarization.arun(loop)

    def drain(self, *, progress: OnProgress | None = None, cancel: Cancel | None = None) -> SummaryReport:
        """Summarise everything that waits, in every scope, oldest first, also where the trigger is `manual`; then maintain.

        The last turns of a conversation that is not idle yet are left open: `end_session` ends it, `summarize` with
        `close` takes them as they are. The background work pauses meanwhile. Once this returns, nothing of this kit
        waits or runs, except jobs that failed and wait for their next try, or that a limit refuses: the report lists
        their blocks as pending, and why.

        Args:
            progress: Told after each block.
            cancel: Asked before each block.

        Raises:
            ModelUnavailableError: The model is down; the job waits for the next call.
            CancelledError: `cancel` said so; the rest waits.
        """
        return self._summarization.drain(progress=progress, cancel=cancel)

    adrain = twin(drain)

    def recall(
        self,
        query: str,
        *,
        scope: Scope,
        k: int | None = None,
        depth: Depth = "memories",
        mode: RecallMode = "hybrid",
        time_start: datetime | None = None,
        time_end: datetime | None = None,
        topics: Sequence[str] | None = None,
        only: RecallFilter | None = None,
        without: Collection[str] = (),
        budget: int | None = None,
        brief: bool = False,
        asked_at: datetime | None = None,
        previous: str = "",
        task: str | None = None,
        review: bool = True,
    ) -> Recall:
        """Find what is relevant to a query. Calls no model and writes nothing.

        Args:
            query: A question, or any text.
            scope: Who asks.
            k: Hits of each kind; the policy's unless given.
            depth: How far to expand: memories, then index entries (blocks), then raw messages; or index entries alone
                (summaries), for an overview that costs few tokens and no memory's or message's words.
            mode: What counts: words and vectors (hybrid), or one of the other ways of `RecallMode`.
            time_start: Only what was said at this time or later.
            time_end: Only what was said at this time or earlier.
            topics: Only these topics, by key.
            only: Which memories may be returned: by type, tag, status, trust, and as of which time.
            without: Ids of raw messages that the caller already has, which need not be found again; nor does the context
                show what is based on them alone.
            budget: Tokens of the context; the policy's unless given.
            brief: Whether the context leaves out, sentence by sentence, what other records in it say already, and what only
                asks the same, as a note for a model should.
            asked_at: When it is asked, for the times that it names ("last week") and the age of what is found; now unless
                given.
            previous: What was asked before it: a question that refers back ("and where was that?") is read with it.
            task: What is in mind for this task comes first in the context; see `sense`.
            review: Whether it strengthens the memories that it finds; pass False to try queries out.

        Raises:
            InputError: The query is empty, k or budget is not positive, the task is no text, or a time has no zone.
        """
        asked = Asked(
            query=query,
            scope=scope,
            k=k,
            depth=depth,
            mode=mode,
            time_start=time_start,
            time_end=time_end,
            topics=topics,
            only=only,
            without=without,
            budget=budget,
            brief=brief,
            asked_at=asked_at,
            previous=previous,
            task=task,
            review=review,
        )
        return self._recalls.recall(asked)

    arecall = twin(recall)

    def inject(
        self,
        text: str,
        *,
        scope: Scope,
        turn: int = 1,
        budget: int | None = None,
        workspace: Workspace | str | Path | None = None,
        depth: Depth = "memories",
        without: Collection[str] = (),
        previous: str = "",
        task: str | None = None,
        always: bool = False,
        review: bool = True,
        asked_at: datetime | None = None,
    ) -> Injection:
        """Return what an agent should have before it when it answers, in layers. No model is called, nothing is written.

        First core rules (importance .9 or more, at most 10), then what applies to the project or to a language in use
        (at most 5), then what is relevant to the text (at most 5). That third layer is looked up only where the text calls
        for it: it speaks of the past, asks for a decision or about the person's own things, names what memory knows and
        the first layers do not show, or it is a fifth turn.

        Args:
            text: What the person said; empty: no third layer.
            scope: Who is served.
            turn: How many messages the person has said in the conversation, this one included.
            budget: Tokens of the context; the recall policy's, 2,000, unless given. Core rules are never cut. The other
                layers use summaries where there is no room for the whole.
            workspace: What is worked on, or the working directory: gives the languages, and the project where the scope
                names none.
            depth: How far the third layer looks: memories, then index entries, then raw messages.
            without: Ids of what the third layer need not bring again.
            previous: What the person said before.
            task: What is in mind for this task comes before the third layer; see `sense`.
            always: Whether the third layer is looked up whatever the text says.
            review: Whether it strengthens the memories that it finds; see `recall`.
            asked_at: When it is asked, for the times that it names; now unless given.

        Raises:
            BudgetExceededError: The core rules do not fit into the budget.
            InputError: The text or task is no text, the turn or budget is no number that can be, or the working directory
                cannot be read.
        """
        return self._injections.inject(
            text,
            scope=scope,
            turn=turn,
            budget=budget,
            workspace=workspace,
            depth=depth,
            without=without,
            previous=previous,
            task=task,
            always=always,
            review=review,
            asked_at=asked_at,
        )

    ainject = twin(inject)

    def trace(self, memory_id: str, *, scope: Scope) -> Trace:
        """Follow a memory down to the exact words that it came from.

        Args:
            memory_id: The memory: its id, or what a context calls it.
            scope: Who asks.

        Raises:
            NotFoundError: The scope sees no such memory.
            InputError: The id is no text.
        """
        check_text(memory_id=memory_id)
        parts, asking = self.context.parts(), required(scope)
        return trace(parts.archive, parts.grants, named(parts.archive, parts.grants, asking, memory_id), asking)

    atrace = twin(trace)

    def explain(
        self,
        memory_id: str,
        *,
        scope: Scope,
        at: datetime | None = None,
        known_at: datetime | None = None,
        true_at: datetime | None = None,
    ) -> Explanation:
        """Explain a memory: its layer, when it will be forgotten and why, where it came from, and its history.

        Args:
            memory_id: The memory.
            scope: Who asks.
            at: The time to weigh it at, with the reviews that it had by then; `known_at`, else now, unless given.
            known_at: In the version that was recorded by this time, with its history up to then.
            true_at: Only if it was true in the world at this time.

        Raises:
            NotFoundError: The scope sees no such memory, or it was not known or not true then.
            InputError: The id is no text, or the time has no zone.
        """
        return explain(self.context, memory_id, scope, at=at, known_at=known_at, true_at=true_at)

    aexplain = twin(explain)

    def save(
        self,
        key: str,
        content: str,
        *,
        scope: Scope,
        tags: Sequence[str] = (),
        importance: float = 0.5,
        topic: str | None = None,
        category: Category | None = None,
        memory_class: MemoryClass = "episodic",
        slot: str = "",
        value: str = "",
        supersedes: Sequence[str] = (),
        options: SaveOptions | None = None,
    ) -> SaveResult:
        """Remember one statement (F3, F4). No model is called, unless one states it and its agent's owner has rules.

        The same words, and the same value of the same slot, are merged into the memory that is there: its priority grows
        by 10, up to 200. Another value of a slot that holds one supersedes what the same user said of it before; where
        another person said it, or both were said at the same moment, both are kept, in dispute, and `kit.conflicts` has them.
        Anything else is a new memory. What is similar strictly above `merge_threshold` (the agent's, else that of the
        summary policy) is only linked with it: likeness decides nothing.

        Args:
            key: What it is about, in a few words; searched too.
            content: The statement, understandable by itself.
            scope: Whose memory.
            tags: Labels, searched too. Associative recall goes from a tag to those that memories have beside it.
            importance: 0 to 1, priority is 100 times that; .9 and more make it a core rule.
            topic: Key of its topic, `type:name`; the scope's user unless given.
            category: preference, fact, decision, emotion or episode; fact unless given.
            memory_class: policy: a rule, which nothing replaces that does not name it; episodic; or mixed.
            slot: The attribute it states, as `ann:lives_in` or `database:choice`; it is never read from the words.
            value: The value of the slot, as `Lisbon`, so that the same value is known in other words.
            supersedes: Memories that it replaces, by id: the only way to replace a policy.
            options: What few callers need.

        Returns:
            Whether it is new, merged or refused, into which memory, and why.

        Raises:
            InputError: The statement is empty, or a field cannot be used.
            LimitError: The tenant or the user has used up what the settings' `limits` allow.
            NotFoundError: An id in `supersedes` is of no live memory of this user.
            ConflictError: Other changes came first, again and again.
            ModelError: The owner has rules, and no answer said whether they let it pass; nothing was saved.
        """
        return self._statements.save(
            key,
            content,
            scope=scope,
            tags=tags,
            importance=importance,
            topic=topic,
            category=category,
            slot=slot,
            value=value,
            memory_class=memory_class,
            supersedes=supersedes,
            options=options or SaveOptions(),
        )

    asave = twin(save)

    def remember_self(
        self,
        content: str,
        *,
        scope: Scope,
        importance: float = 0.9,
        memory_class: MemoryClass = "episodic",
        enforcement_level: EnforcementLevel | None = None,
    ) -> Memory:
        """State something that the agent knows of itself, for all its users. Stating it again changes nothing.

        Args:
            content: The statement.
            scope: Names tenant and agent; its user and project do not matter.
            importance: 0 to 1; .9 and more make it a core rule.
            memory_class: policy: a rule; only `save` with `supersedes` and `forget` take it back.
            enforcement_level: How binding a policy is: soft, or hard.

        Raises:
            InputError: The statement is no text or empty, or a field cannot be used.
            LimitError: The tenant or the user has used up what the settings' `limits` allow.
            ScopeError: The scope is missing, or names no agent.
        """
        return self._statements.remember_self(
            content, scope=scope, importance=importance, memory_class=memory_class, enforcement_level=enforcement_level
        )

    aremember_self = twin(remember_self)

    def forget(self, memory_id: str, *, scope: Scope, leave: Collection[str] = (), dry_run: bool = False) -> Forgotten:
        """Take a memory back, and the words that it rests on: from now on no recall, list, trace or file shows them.

        What says the same elsewhere goes with it: other memories, sentences of raw messages, what the agent answered, index
        entries of blocks. Look at it first with `dry_run`, and name in `leave` what should stay. The rest of a message
        stays. Raw rows stay in the ledger, withheld, until `admin.erase`; `restore` brings all of it back. Forgetting it
        again, or what went with it, changes nothing.

        Args:
            memory_id: The memory: its id, or what a context calls it.
            scope: Who asks.
            leave: Ids of memories and messages that stay as they are.
            dry_run: Whether nothing is done, and only shown what would be.

        Returns:
            What was, or would be, taken back; once it is done, no words of it.

        Raises:
            NotFoundError: There is no such memory, or it is not this user's.
            InputError: An id is no text.
            ConflictError: Other changes came first, again and again.
        """
        return self._statements.forget(memory_id, scope=scope, leave=leave, dry_run=dry_run)

    aforget = twin(forget)

    def restore(self, memory_id: str, *, scope: Scope, version: int | None = None) -> Memory:
        """Bring back a memory that was archived, which counts as a review, or forgotten, with all that went with it.

        Restoring an active one changes nothing. With a version, that one becomes valid again, as a new one: nothing is
        overwritten, and the journal records who did it. Where another memory replaced this one, a new memory says what that version said, and
        replaces the end of the chain.

        Args:
            memory_id: The memory.
            scope: Whose memory.
            version: Number of the version, as `trace` and `governance.archaeology` give it.

        Returns:
            The memory that now says it, active.

        Raises:
            NotFoundError: There is no such memory or version, it is not this user's, or it was neither archived nor forgotten.
            ConflictError: It was learned again meanwhile, it changed just now, or another live memory has its words.
            InputError: The id is no text, or the version was not live.
        """
        if version is not None:
            return restored(self.context, memory_id, version, scope)
        check_text(memory_id=memory_id)
        parts, context = self.context.parts(), self.context
        memory = parts.retraction.restore(memory_id, required(scope)) or restore(
            parts.archive,
            parts.own(scope),
            memory_id,
            actor=actor_of(scope),
            at=context.clock(),
            operation_id=context.new_id(),
        )
        context.follow()
        return memory

    arestore = twin(restore)

    def memories(
        self,
        *,
        scope: Scope,
        topic: str | None = None,
        statuses: Sequence[Status] | None = None,
        limit: int | None = None,
    ) -> tuple[Memory, ...]:
        """Return memories in their head version, newest first.

        Args:
            scope: Who asks.
            topic: Only of this topic, by key.
            statuses: Only in these statuses; any unless given.
            limit: At most this many; all unless given.

        Raises:
            InputError: The limit is not positive, the topic is no text, or there is no such status.
        """
        check_numbers(least=1, whole=True, limit=limit)
        check_choices(Status, statuses=statuses or ())
        archive = self.context.parts().archive
        partitions = archive.visible(required(scope))
        asked = None
        if topic is not None:
            check_text(topic=topic)
            asked = [
                shelf.topic for shelf in archive.topics(partitions) if shelf.topic.key.casefold() == topic.casefold()
            ]
            if not asked:
                return ()
        return archive.memories(partitions, topics=asked, statuses=statuses, limit=limit)

    amemories = twin(memories)

    def messages(self, thread: str = "main", *, scope: Scope) -> tuple[StoredMessage, ...]:
        """Return the raw messages of a thread, in the order of recording.

        Args:
            thread: The conversation.
            scope: Who asks; only what was said in this very scope.

        Raises:
            InputError: The thread is no text.
        """
        archive = self.context.parts().archive
        check_text(thread=thread)
        return held(archive.messages([required(scope).partition()], thread=thread))

    amessages = twin(messages)

    def profile(self, schema: type[S], *, scope: Scope, topic: str | None = None) -> Profile[S]:
        """Return what a topic knows as a pydantic model: each field with its words, its history, and what is unknown.

        Any model will do; models that conversations should fill are named in `ExtractionPolicy.schemas`. A value
        in a slot that its field does not take now is reported as unknown, with the reason and its words.

        Args:
            schema: The model. Its fields are slots of the topic, by their names and aliases; of a list, each item is a
                memory of its own.
            scope: Who asks.
            topic: Key of the topic, `type:name`, as in task:atlas; the scope's user unless given.

        Raises:
            InputError: The model cannot be a schema, or the key names no topic.
        """
        parts = self.context.parts()
        key = topic or f"personal:{required(scope).user}"
        check_text(topic=key)
        kind, _, name = key.partition(":")
        if kind not in get_args(TopicType) or not name.strip():
            raise InputError(f"{key!r} names no topic.", "Write it as type:name, as in task:atlas.")
        asked = Topic(type=cast("TopicType", kind), target_name=name)
        return profile(parts.archive, required(scope), schema, asked, self.context.clock())

    aprofile = twin(profile)

    # ------------------------------------------------------------------------------------------- inside

    def _place(self) -> str:
        return without_passwords(self.settings.ledger_url) if self.settings.ledger_url else str(self.settings.home)

    def _erase(self, home: Scope, message_ids: Sequence[str]) -> None:
        self.admin.erase(home, message_ids=message_ids)

    def _duties(self) -> Mapping[str, Duty]:
        return self._summarization.duties()

    def _cut_overdue(self) -> None:
        """Cut what became idle while no process was running. No caller waits for it, so a failure is only reported."""
        parts, duty = self.context.parts(), self._duties()[CUT]
        try:
            worker = Worker(parts, {CUT: duty})
            for _ in range(_OVERDUE):
                due = worker.next_due()
                if due is None or due > self.context.clock() or worker.next(lambda: False, asleep=False) is None:
                    return
        except RemegraphError as error:
            self.context.health.note("background", error)


def _system_clock() -> datetime:
    return datetime.now(UTC)


def _uuid() -> str:
    return uuid4().hex
