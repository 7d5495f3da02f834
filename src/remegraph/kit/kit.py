"""MemoryKit: messages in, blocks, topic memories, recall with evidence.

Every verb has an async twin with an `a` before its name; both run the same code.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from functools import partial
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, Self, get_args
from uuid import uuid4

from remegraph.errors import ClosedError, InputError, MessageError, RemegraphError
from remegraph.importers.messages import MessageLike, listed, timed, to_messages
from remegraph.kit.base import Access, settled, twin
from remegraph.kit.capture import Capture
from remegraph.kit.health import Health, observed
from remegraph.kit.injection import Injections
from remegraph.kit.lifecycle import Lifecycle
from remegraph.kit.short_term import ShortTerm
from remegraph.kit.statements import Statements
from remegraph.kit.summarization import Summarization
from remegraph.kit.tools import ToolMemory
from remegraph.kit.validation import check_text, here, required, zone
from remegraph.kit.write_buffers import CallBuffer, ReviewBuffer, ShownBuffer
from remegraph.models import AddReceipt, Scope, TopicType
from remegraph.settings import Settings

if TYPE_CHECKING:
    from langchain_core.documents import BaseDocumentCompressor
    from langchain_core.embeddings import Embeddings
    from langchain_core.language_models import BaseChatModel

    from remegraph.kit.admin import Admin
    from remegraph.kit.background import Reindexing, Runner
    from remegraph.kit.components import Parts
    from remegraph.kit.forms import Forms
    from remegraph.kit.governance import Conflicts, Governance
    from remegraph.kit.imports import Imports
    from remegraph.kit.items import Items
    from remegraph.kit.knowledge import Knowledge
    from remegraph.kit.packs import Packs
    from remegraph.kit.sharing import Sharing
    from remegraph.kit.skills import Skills
    from remegraph.ports import Attention, Clock, Embedder, NewId, RetrievalAgent, TokenCounter, VectorIndex

__all__ = ["FROM_SETTINGS", "MemoryKit"]


class _FromSettings:
    def __repr__(self) -> str:
        return "FROM_SETTINGS"


FROM_SETTINGS: Final = _FromSettings()
"""Not given: take what the settings say."""

_OVERDUE = 50
"""Places whose conversations are cut where a kit opens, at most: it must not wait long; workers cut those of all."""


class MemoryKit(Statements, Injections, Lifecycle, Capture, Summarization, ShortTerm):
    """The memory of an agent. Open it with `MemoryKit.open`; use it from any thread; close it, or use `with`."""

    def __init__(self, parts: Parts, settings: Settings, clock: Clock, new_id: NewId) -> None:
        from remegraph.kit.admin import Admin
        from remegraph.kit.background import Runner, at_once
        from remegraph.kit.forms import Forms
        from remegraph.kit.governance import Conflicts, Governance
        from remegraph.kit.imports import Imports
        from remegraph.kit.items import Items
        from remegraph.kit.knowledge import Knowledge
        from remegraph.kit.packs import Packs
        from remegraph.kit.sharing import Sharing
        from remegraph.kit.skills import Skills
        from remegraph.kit.worker import Worker
        from remegraph.retention.active_tier import ActiveTier
        from remegraph.retention.working_memory import SensoryBuffer, WorkingMemory

        self.settings = settings
        self.embedder_name = parts.embedder.name
        self.health = Health(parts.telemetry)
        self._parts: Parts | None = parts
        self._reindexing: Reindexing | None = None
        self._clock = clock
        self._new_id = new_id
        self._reviews = ReviewBuffer(parts.archive, self.health)
        self._shown = ShownBuffer(parts.trail, self.health)
        self._calls = CallBuffer(parts.archive, clock, new_id, self.health)
        self._tenants = parts.tenants
        access = Access(self._open_parts, settings, self._bring_up_to_date)
        self.items: Items = Items(self._open_parts)
        self.skills: Skills = Skills(access)
        self.tools: ToolMemory = ToolMemory(access, self._calls, self._write_noted_soon)
        self.forms: Forms = Forms(access, self.skills)
        self.conflicts: Conflicts = Conflicts(access)
        self._working = WorkingMemory(settings.working, new_id, clock)
        self.governance: Governance = Governance(access, self._shown, self._working)
        self.sharing: Sharing = Sharing(access)
        self.knowledge: Knowledge = Knowledge(access, self.recall)
        self.packs: Packs = Packs(access)
        self.imports: Imports = Imports(access)
        self.admin: Admin = Admin(access, self.health, write_noted=self._write_noted, forget_sensed=self._forget_sensed)
        self._sensory = SensoryBuffer(settings.sensory, clock)
        self._active = ActiveTier(parts.archive, settings, clock)
        worker = partial(Worker, parts, self._duties())
        poll = settings.capture.poll
        self._runner = Runner(worker, clock, concurrency=at_once(settings), poll=poll, health=self.health)

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
        extractors: Mapping[str, BaseChatModel | str] | None = None,
        index: VectorIndex | None = None,
        clock: Clock | None = None,
        new_id: NewId | None = None,
        require_index: bool = False,
        reindex: bool | Literal["background"] = False,
        reranker: BaseDocumentCompressor | None = None,
        count_tokens: TokenCounter | None = None,
        attention: Attention | None = None,
    ) -> Self:
        """Open a home, which is made where it is missing.

        Args:
            home: Folder of the ledger and the embedded index.
            settings: All settings; read from the environment unless given.
            ledger_url: SQLAlchemy URL of the ledger instead of SQLite in the home.
            chroma_url: `http://host:port` of a Chroma server instead of the embedded index.
            model: A chat model or `provider:model`; None: extractive mode, without a model.
            embedder: An embedder, LangChain `Embeddings` or `provider:model`; None: hashed n-grams, offline.
            extractors: Chat models that write the memories of single agents, by the names that `settings.agents` has,
                instead of `extraction.model_id`.
            index: A vector index instead of Chroma; closed with the kit.
            clock: Tells the time instead of the system's clock.
            new_id: Makes ids instead of uuid4.
            require_index: Refuse where another process owns the embedded index, or a fork keeps this one from it, instead
                of recalling from SQL.
            reindex: Accept another embedder than the recorded one; then call `admin.reindex()`. background: that is
                done while the kit serves, until `close`; the next open goes on. Until it is done, words alone serve.
            reranker: A LangChain document compressor, such as a cross-encoder, that has the last word on which memories
                and messages come first.
            count_tokens: Counts the tokens of a recall's context, as the model that reads it does; unless given, the
                chat model's `custom_get_token_ids` does where it has one, else they are estimated.
            attention: Scores the attention that a text deserves, 0 to 1, given what came before it; ours unless given.

        Raises:
            SetupError: Some part cannot be used. Nothing stays open.
        """
        from remegraph.kit.background import Reindexing
        from remegraph.kit.components import open_parts
        from remegraph.kit.providers import Thinkers, as_attention, as_chat_model, as_embedder, token_counter

        given: dict[str, Any] = {"home": home, "ledger_url": ledger_url, "chroma_url": chroma_url}
        settings = settings or Settings.from_env()
        settings = settings.evolve(**{name: value for name, value in given.items() if value is not None})
        clock = clock or _system_clock
        new_id = new_id or _uuid
        chosen_model = settings.model if isinstance(model, _FromSettings) else model
        chosen_embedder = settings.embedder if isinstance(embedder, _FromSettings) else embedder
        chat_model = as_chat_model(chosen_model, settings.summary.timeout)
        parts = open_parts(
            settings,
            thinkers=Thinkers(settings, chat_model, extractors or {}),
            embedder=as_embedder(chosen_embedder),
            index=index,
            clock=clock,
            new_id=new_id,
            require_index=require_index,
            reindex=bool(reindex),
            count_tokens=count_tokens or token_counter(chat_model),
            reranker=reranker,
            attention=as_attention(attention),
        )
        kit = cls(parts, settings, clock, new_id)
        kit._cut_overdue()
        if reindex == "background" and not parts.projection.is_current():
            kit._reindexing = Reindexing(parts.projection, parts.embedder, kit.health)
        return kit

    @property
    def clock(self) -> Clock:
        """Tells the kit's time."""
        return self._clock

    @classmethod
    async def aopen(cls, home: str | Path | None = None, **options: Any) -> Self:
        """Open a home; see `open`."""
        return await asyncio.to_thread(cls.open, home, **options)

    def close(self) -> None:
        """Stop the background work after the block at hand, and give everything back. Closing twice is fine.

        In a process that was forked from the one that opened it, nothing is done: all of it is that one's.
        """
        if self._parts is not None and self._parts.archive.database.given_up:
            self._parts = None
            return
        self._runner.close()
        if self._reindexing is not None:
            self._reindexing.close()
        parts, self._parts = self._parts, None
        self._sensory.clear()
        self._working.clear()
        if parts is not None:
            with parts.closing:
                self._write_noted()

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

    # ------------------------------------------------------------------------------------------- writing

    @observed("add_messages")
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
            SetupError: An attachment cannot be kept; no message was recorded.
            LimitError: The tenant or the user has used up what the settings' `limits` allow.
            ScopeError: The scope is missing.
        """
        parts, now = self._open_parts(), self._clock()
        partition = required(scope).partition()
        parts.tenants.admit(partition)
        intake = self._intake(strict=True)
        given = tuple(listed(messages))
        place = zone(timezone)
        read = to_messages(
            given, thread=thread or "main", default_time=here(now, place), timezone=place, take=intake.take
        )
        if not read:
            raise MessageError("There are no messages.", "Give at least one.")
        named = [each if each.message_id else each.model_copy(update={"message_id": self._new_id()}) for each in read]
        untimed = {each.message_id for value, each in zip(given, named, strict=True) if not timed(value)}
        asleep = not self.settings.for_agent(scope.agent).learns
        screened = parts.wishes.screen(partition, named)
        receipt = settled(
            lambda: parts.archive.add_messages(
                partition,
                named,
                now,
                asleep=asleep,
                blobs=intake.blobs,
                untimed=untimed,
                withheld=screened,
                screen=partial(parts.retraction.screen, partition, named),
            )
        )
        parts.wishes.hold(partition, screened, partition.agent or "operator")
        return receipt

    aadd_messages = twin(add_messages)

    def register_agent(self, key: str, agent: RetrievalAgent) -> None:
        """Let a custom Sub Agent retrieve from a topic, or from all topics of a type (R9).

        It reads its topic alone, and within what is asked; what it returns is held against the ledger, and what it raises
        stands in `Recall.degraded`.

        Args:
            key: Topic key `type:name`, which need not exist yet, or a type.
            agent: Returns hits for a search.

        Raises:
            InputError: The key names neither a topic nor a type, or the agent cannot be called.
        """
        check_text(key=key)
        kind, named, name = key.strip().partition(":")
        if kind.casefold() not in get_args(TopicType) or (named and not name.strip()):
            types = ", ".join(get_args(TopicType))
            raise InputError(f"{key!r} names no topic.", f"Give `type:name`, or one of the types: {types}.")
        if not callable(agent):
            raise InputError(f"The agent is of type {type(agent).__name__}.", "Give a RetrievalAgent: it is called.")
        self._open_parts().agents[key.strip().casefold()] = agent

    # ------------------------------------------------------------------------------------------- inside

    def _erase(self, home: Scope, message_ids: Sequence[str]) -> None:
        self.admin.erase(home, message_ids=message_ids)

    def _open_parts(self) -> Parts:
        if self._parts is None:
            raise ClosedError("This kit is closed.")
        self._parts.archive.database.check()
        return self._parts

    def _cut_overdue(self) -> None:
        """Cut what became idle while no process was there. No caller waits for it, so a failure is only reported."""
        from remegraph.kit.worker import CUT, Worker

        parts, duty = self._open_parts(), self._duties()[CUT]
        try:
            worker = Worker(parts, {CUT: duty})
            for _ in range(_OVERDUE):
                due = worker.next_due()
                if due is None or due > self._clock() or worker.next(lambda: False, asleep=False) is None:
                    return
        except RemegraphError as error:
            self.health.note("background", error)

    def _background(self) -> Runner:
        return self._runner

    def _write_noted_soon(self) -> None:
        Thread(target=self._write_noted, name="remegraph-notes", daemon=True).start()

    def _write_noted(self) -> None:
        """Write down what was noted. No caller waits for it, so a failure is only reported."""
        from sqlalchemy.exc import SQLAlchemyError

        for notes in (self._reviews, self._calls, self._shown, self._tenants):
            try:
                notes.flush()
            except (RemegraphError, SQLAlchemyError) as error:
                self.health.note("background", error)


def _system_clock() -> datetime:
    return datetime.now(UTC)


def _uuid() -> str:
    return uuid4().hex
