"""The parts of a kit: opened as its settings say, all or none, and what is made of them once it is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from secrets import token_bytes
from typing import TYPE_CHECKING, Literal

from langchain_core.documents import BaseDocumentCompressor

from remegraph.deadlines import Probe
from remegraph.engine.disputes import Disputes
from remegraph.engine.extractive import ExtractiveThinker
from remegraph.engine.forget_requests import Wishes
from remegraph.engine.perception import Perceiver
from remegraph.engine.redaction import UNREDACTED, RedactingEmbedder, Redactor
from remegraph.engine.retraction import Retraction
from remegraph.engine.retrieval.reranker import Reranker
from remegraph.engine.retrieval.retriever import Retriever, build_retriever
from remegraph.engine.retrieval.search import Searcher
from remegraph.engine.routes import at_home, own
from remegraph.engine.salience import Purpose
from remegraph.engine.summarizer import Tools, build_summarizer
from remegraph.engine.summary_tasks import Meter
from remegraph.errors import IndexOwnedError, SetupError
from remegraph.files import IndexOwner
from remegraph.governance.decisions import ForgetDecisions
from remegraph.importers.views import OffRecord, Recent
from remegraph.kit.health import LEDGER_SECONDS, gauges, pseudonym, worker_gauges
from remegraph.kit.providers import Thinkers
from remegraph.kit.write_buffers import UnrecordedTurns
from remegraph.ledger.archive import Archive
from remegraph.ledger.attachments import BlobFolder
from remegraph.ledger.audit import AuditTrail
from remegraph.ledger.backup import settle_copy
from remegraph.ledger.connections import lacks_ledger, ledger_url
from remegraph.ledger.database import Database
from remegraph.ledger.erasure import Eraser
from remegraph.ledger.index.choice import chosen, settle_index
from remegraph.ledger.index.chroma import ChromaIndex, stranded
from remegraph.ledger.index.guard import GuardedIndex, IndexFolder, recorded
from remegraph.ledger.index.pgvector import PgvectorIndex
from remegraph.ledger.index.projection import VectorProjection
from remegraph.ledger.jobs import Stamps
from remegraph.ledger.journal import KeyRing, add_key, keys_in
from remegraph.ledger.migrations import brings_jobs
from remegraph.ledger.permissions import GrantBook
from remegraph.ledger.store_items import ItemStore
from remegraph.ledger.tenants import Tenants
from remegraph.mek.absorption import Absorber
from remegraph.models import Budget, CallRecord, ChangeSet, Partition, Receipt, Scope
from remegraph.ports import Attention, Clock, Courier, Embedder, NewId, RetrievalAgent, TokenCounter, VectorIndex
from remegraph.settings import RecallPolicy, Settings
from remegraph.skills.tool_guidelines import Guide
from remegraph.telemetry import Telemetry, telemetry_of

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from remegraph.engine.summarizer import Summarizer
    from remegraph.ledger.jobs import JobQueue

__all__ = ["INDEX", "OpenOptions", "Parts", "courier_of", "make_home", "open_parts"]

INDEX = "index"
"""The folder of the vector index, in a home."""

_A_NUMBER = "+44 20 7946 0018"
"""Looked at when a kit opens: that a package is missing must not be found out by the first number in a conversation."""


@dataclass(frozen=True, slots=True)
class _PlaceAccount:
    """Bears the calls of models for one place."""

    tenants: Tenants
    place: Partition

    def admit(self) -> None:
        self.tenants.admit_calls(self.place)

    def book(self, calls: Sequence[CallRecord]) -> None:
        self.tenants.book(self.place, calls)


@dataclass(frozen=True, kw_only=True)
class OpenOptions:
    """What few applications give when they open a kit."""

    extractors: Mapping[str, BaseChatModel | str] = field(default_factory=dict)
    """Chat models that write the memories of single agents, by the names that `settings.agents` has, instead of
    `extraction.model_id`."""
    new_id: NewId | None = None
    """Makes ids instead of uuid4."""
    require_index: bool = False
    """Refuse where another process owns the embedded index, or a fork keeps this one from it, instead of recalling from
    SQL."""
    reindex: bool | Literal["background"] = False
    """Accept another embedder than the recorded one; then call `admin.reindex()`. background: that is done while the kit
    serves, until `close`; the next open goes on. Until it is done, words alone serve."""
    reranker: BaseDocumentCompressor | None = None
    """A LangChain document compressor, such as a cross-encoder, that has the last word on which memories and messages
    come first."""
    count_tokens: TokenCounter | None = None
    """Counts the tokens of a recall's context, as the model that reads it does; unless given, the chat model's
    `custom_get_token_ids` does where it has one, else they are estimated."""
    attention: Attention | None = None
    """Scores the attention that a text deserves, 0 to 1, given what came before it; ours unless given."""


@dataclass(frozen=True)
class Parts:
    """Everything behind a kit."""

    settings: Settings
    clock: Clock
    new_id: NewId
    archive: Archive
    projection: VectorProjection
    trail: AuditTrail
    grants: GrantBook
    jobs: JobQueue
    courier: Courier | None
    """None where workers look for jobs themselves."""
    items: ItemStore
    eraser: Eraser
    tenants: Tenants
    reranker: Reranker | None
    count_tokens: TokenCounter
    thinkers: Thinkers
    embedder: Embedder
    attention: Mapping[Purpose, Attention]
    """Scores attention, by what it is for."""
    telemetry: Telemetry
    redactor: Redactor
    """Takes what is private out of what comes in."""
    unrecorded: UnrecordedTurns
    """What captures could not record yet."""
    has_index: bool
    """False where another process owns the embedded index."""
    closing: ExitStack
    recent: Recent = field(default_factory=Recent)
    """What of conversations was recorded here."""
    off_record: OffRecord = field(default_factory=OffRecord)
    """What of them never may be, as long as the ledger does not say so."""
    agents: dict[str, RetrievalAgent] = field(default_factory=dict)
    """Custom Sub Agents, by topic key or type."""

    def meter(self, place: Partition, budget: Budget | None = None) -> Meter:
        """Return what counts the calls of an operation on a place, and books them when it is left."""
        return Meter(budget, _PlaceAccount(self.tenants, place))

    def own(self, scope: Scope) -> list[Partition]:
        """Return the partitions whose memories are a scope's to change: its user's, or their team's."""
        return own(self.archive.visible(scope), scope, self.settings.trust_boundary)

    def at_home(self, scope: Scope) -> bool:
        """Return whether what all agents of the user own is a scope's to change."""
        return at_home(scope, self.settings)

    def absorber(self, scope: Scope, *, dry_run: bool = False) -> Absorber:
        """Return what takes offers in for a scope, each compared with what is known; a dry run reports what it would do."""

        def weighed(change: ChangeSet) -> tuple[ChangeSet, Receipt]:
            return self.disputes.weigh(change), Receipt(operation_id=change.operation_id, replayed=False)

        return Absorber(
            archive=self.archive,
            near=self.searcher.worded,
            commit=weighed if dry_run else self.disputes.commit,
            clock=self.clock,
            recipe=self.settings.summary.recipe,
            at_home=self.at_home(scope),
            redactor=self.redactor,
        )

    @cached_property
    def searcher(self) -> Searcher:
        """Finds memories and index entries by words and vectors."""
        return Searcher(self.archive, self.projection, self.embedder)

    @cached_property
    def disputes(self) -> Disputes:
        """Commits changes, held against what is known."""
        return Disputes(self.archive, self.searcher)

    @cached_property
    def retraction(self) -> Retraction:
        """Forgets, and brings back."""
        return Retraction(self.archive, self.searcher, self.clock, self.new_id, self.settings)

    @cached_property
    def wishes(self) -> Wishes:
        """Withholds what a request to forget may mean, until it is decided."""
        return Wishes(self.archive, self.searcher, self.retraction, self.settings)

    @cached_property
    def forget_decisions(self) -> ForgetDecisions:
        """Settles requests to forget as a person decides."""
        return ForgetDecisions(self.archive, self.wishes, self.retraction, self.settings)

    @cached_property
    def retriever(self) -> Retriever:
        """The retriever's graph."""
        return build_retriever(
            self.archive,
            self.searcher,
            self.settings.recall,
            self.agents,
            grants=self.grants,
            sharing=self.settings.sharing,
            count=self.count_tokens,
            reranker=self.reranker,
        )

    @cached_property
    def summarizer(self) -> Summarizer:
        """The summariser's graph."""
        return build_summarizer(
            Tools(
                archive=self.archive,
                searcher=self.searcher,
                clock=self.clock,
                thinker_of=self.thinkers.of,
                plain=ExtractiveThinker(),
                settings=self.settings,
                perceiver=Perceiver(self.archive.attachments, self.settings.perception, self.redactor.text),
                attention=self.attention["later"],
                wishes=self.wishes,
            )
        )

    @cached_property
    def guide(self) -> Guide:
        """Keeps the guidelines of tools."""
        return Guide(self.archive, self.clock, self.settings.tools, self.settings.summary.recipe)


def open_parts(
    settings: Settings,
    *,
    thinkers: Thinkers,
    embedder: Embedder,
    index: VectorIndex | None,
    clock: Clock,
    new_id: NewId,
    require_index: bool,
    reindex: bool,
    count_tokens: TokenCounter,
    reranker: BaseDocumentCompressor | None,
    attention: Mapping[Purpose, Attention],
) -> Parts:
    """Open the ledger, and take the index if it is free.

    Args:
        settings: What and where.
        thinkers: Turn blocks into memories.
        embedder: Makes vectors.
        index: A vector index instead of Chroma.
        clock: Gives the time.
        new_id: Makes ids.
        require_index: Refuse where another process owns the embedded index, or a fork keeps this one from it.
        reindex: Accept another embedder than the recorded one; its vectors are made by `admin.reindex`.
        count_tokens: Counts the tokens of a recall's context.
        reranker: Has the last word on what a recall returns first.
        attention: Scores attention, by what it is for.

    Raises:
        SetupError: Some part cannot be used; nothing stays open.
    """
    telemetry = telemetry_of(asked=settings.opentelemetry)
    with ExitStack() as opened:
        archive = _archive(settings, clock, new_id)
        opened.callback(archive.close)
        redactor = _redactor(settings)
        embedder = RedactingEmbedder(embedder, redactor) if settings.redact else embedder
        database = archive.database
        if index is None:
            index = _index(settings, database, require_index=require_index)
        projection = _projection(settings, database, index, embedder, reindex=reindex, telemetry=telemetry)
        opened.callback(projection.close)
        jobs, unrecorded = archive.queue, UnrecordedTurns(archive.recorded)
        probe = Probe(LEDGER_SECONDS)
        waiting = (
            gauges(archive, projection, jobs, settings.summary.recipe, probe)
            | worker_gauges(settings.home)
            | {"remegraph.threads.unrecorded": partial(unrecorded.by_state, probe)}
        )
        opened.callback(telemetry.watch(pseudonym(ledger_url(settings)), waiting))
        return Parts(
            settings=settings,
            clock=clock,
            new_id=new_id,
            archive=archive,
            projection=projection,
            trail=AuditTrail(database, archive.journal),
            grants=GrantBook(database, archive.journal, clock, new_id),
            jobs=jobs,
            courier=courier_of(settings, database, clock),
            items=ItemStore(database, clock),
            eraser=Eraser(archive, projection, clock, new_id),
            tenants=Tenants(database, settings.limits, clock, telemetry),
            reranker=_reranker(reranker, settings.recall),
            count_tokens=count_tokens,
            thinkers=thinkers,
            embedder=embedder,
            attention=attention,
            telemetry=telemetry,
            redactor=redactor,
            unrecorded=unrecorded,
            has_index=index is not None,
            closing=opened.pop_all(),
        )


def _without_ledger(home: Path) -> SetupError:
    return SetupError(
        f"The ledger of {home} holds nothing, though the index beside it was made of one.",
        f"Bring it back from a backup. If it is meant to be a new one, move {home / INDEX} away: it is rebuilt.",
    )


def courier_of(settings: Settings, database: Database, clock: Clock) -> Courier | None:
    """Return what brings work to workers, with its tables; none where they look for it themselves.

    Raises:
        SetupError: It cannot be used here.
        SchemaTooOldError: Its tables are missing, and may not be made.
    """
    if not brings_jobs(settings, sqlite=database.is_sqlite):
        return None
    from remegraph.ledger.procrastinate_queue import Procrastinate

    return Procrastinate(database, clock, Stamps(settings), migrate=settings.migrate)


def _keys(settings: Settings) -> KeyRing:
    home, url = settings.home.expanduser(), ledger_url(settings)
    if settings.ledger_url is None:
        make_home(home)
        if lacks_ledger(home) and IndexFolder(home / INDEX).used:
            raise _without_ledger(home)
    former = tuple(key.encode() for key in settings.former_journal_keys)
    shared = not url.startswith("sqlite")
    first = None if shared else lambda: add_key(home, first=True)
    if settings.journal_key:
        return KeyRing((settings.journal_key.encode(), *former), first)
    return KeyRing((*keys_in(home), *former), first, lambda: (*keys_in(home), *former))


def _redactor(settings: Settings) -> Redactor:
    """Return what redacts, by the oldest key given: a newer one changes no placeholder."""
    if not settings.redact:
        return UNREDACTED
    keys = _keys(settings).keys
    redactor = Redactor(settings.redact, keys[-1] if keys else token_bytes())  # without a key, nothing is written
    redactor.text(_A_NUMBER)
    return redactor


def _projection(
    settings: Settings,
    database: Database,
    index: VectorIndex | None,
    embedder: Embedder,
    *,
    reindex: bool,
    telemetry: Telemetry,
) -> VectorProjection:
    """Open the projection over an index, which it closes from then on; where it cannot be opened, this does."""
    with ExitStack() as unless_opened:
        if index is not None:
            unless_opened.callback(index.close)
            settle_copy(database)
            settle_index(database, index, settings.migrate)
        projection = VectorProjection.open(
            database,
            index,
            embedder,
            exact_limit=settings.recall.exact_limit,
            timeout=settings.recall.index_timeout,
            reindex=reindex,
            telemetry=telemetry,
        )
        unless_opened.pop_all()
    return projection


def _archive(settings: Settings, clock: Clock, new_id: NewId) -> Archive:
    if settings.ledger_url is None:
        make_home(settings.home.expanduser())
    blobs = BlobFolder(settings.blobs) if settings.blobs else None
    return Archive.open(
        ledger_url(settings),
        keys=_keys(settings),
        clock=clock,
        new_id=new_id,
        settings=settings,
        blobs=blobs,
    )


def make_home(home: Path) -> None:
    """Make the folder of a home where it is missing: for its owner alone, as all talk lies in it.

    Raises:
        SetupError: It cannot be made.
    """
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise SetupError(
            f"The home {home} cannot be made ({error}).", "Name a folder that you may write to."
        ) from error


def _reranker(compressor: object, policy: RecallPolicy) -> Reranker | None:
    if compressor is None:
        return None
    if not isinstance(compressor, BaseDocumentCompressor):
        raise SetupError(
            f"The reranker is of type {type(compressor).__name__}.", "Give a LangChain document compressor."
        )
    return Reranker(compressor, first=policy.rerank, seconds=policy.rerank_timeout)


def _index(settings: Settings, database: Database, *, require_index: bool) -> VectorIndex | None:
    if chosen(settings, database) == "pgvector":
        return PgvectorIndex.open(database, migrate=settings.migrate)
    if settings.chroma_url is not None:
        return ChromaIndex.server(settings.chroma_url)
    if error := stranded():
        if require_index:
            raise SetupError(error.what, error.cure)
        return None
    home = settings.home.expanduser()
    if settings.ledger_url is None and IndexFolder(home / INDEX).used and not recorded(database):
        raise _without_ledger(home)
    try:
        owner = IndexOwner.acquire(home / INDEX)
    except OSError as error:
        raise SetupError(
            f"The folder of the vector index, {home / INDEX}, cannot be used ({error}).",
            "Move what is there away, or make it writable.",
        ) from error
    if owner is not None:
        return GuardedIndex(database, owner)
    if require_index:
        raise IndexOwnedError(f"Another process owns the vector index in {home}.")
    return None
