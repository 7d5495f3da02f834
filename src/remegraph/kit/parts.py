"""Builds the parts of a kit from its settings, and closes what it opened if a later part fails."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from langchain_core.documents import BaseDocumentCompressor

from remegraph.engine.reranking import Reranker
from remegraph.engine.retrieval import RetrievalAgent
from remegraph.engine.retriever import Retriever, build_retriever
from remegraph.engine.search import Searcher
from remegraph.errors import IndexOwnedError, MissingExtraError, SetupError
from remegraph.kit.observing import gauges, pseudonym
from remegraph.kit.thinkers import Thinkers
from remegraph.ports import (
    Attention,
    AuditTrail,
    Clock,
    Courier,
    Embedder,
    GrantBook,
    JobQueue,
    NewId,
    TokenCounter,
    VectorIndex,
)
from remegraph.rules.salience import Purpose
from remegraph.settings import RecallPolicy, Settings
from remegraph.storage.archive import SqlArchive
from remegraph.storage.auditing import SqlAuditTrail
from remegraph.storage.backup import LEDGER
from remegraph.storage.blobs import BlobFolder
from remegraph.storage.chroma import ChromaIndex
from remegraph.storage.copies import settle
from remegraph.storage.database import Database
from remegraph.storage.erasing import SqlEraser
from remegraph.storage.grants import SqlGrants
from remegraph.storage.guard import GuardedIndex
from remegraph.storage.items import SqlItems
from remegraph.storage.jobs import SqlJobQueue
from remegraph.storage.keys import journal_key
from remegraph.storage.owner import IndexOwner
from remegraph.storage.projection import VectorProjection
from remegraph.telemetry import Telemetry, telemetry_of

if TYPE_CHECKING:
    from remegraph.engine.summarizer import Summarizer
    from remegraph.engine.tool_guidelines import Guide

__all__ = ["Parts", "ledger_url", "open_parts"]


@dataclass(frozen=True)
class Parts:
    """Everything behind a kit. What only summarising needs is made when it is first asked for."""

    settings: Settings
    clock: Clock
    new_id: NewId
    archive: SqlArchive
    projection: VectorProjection
    trail: AuditTrail
    grants: GrantBook
    jobs: JobQueue
    courier: Courier | None
    """None where workers look for jobs themselves."""
    items: SqlItems
    eraser: SqlEraser
    searcher: Searcher
    retriever: Retriever
    agents: dict[str, RetrievalAgent]
    count_tokens: TokenCounter
    thinkers: Thinkers
    embedder: Embedder
    attention: Mapping[Purpose, Attention]
    """Scores attention, by what it is for."""
    telemetry: Telemetry
    has_index: bool
    """False where another process owns the embedded index."""
    closing: ExitStack

    @cached_property
    def summarizer(self) -> Summarizer:
        """The summariser's graph."""
        from remegraph.engine.extractive import ExtractiveThinker
        from remegraph.engine.perceiving import Perceiver
        from remegraph.engine.summarizer import Tools, build_summarizer

        return build_summarizer(
            Tools(
                archive=self.archive,
                searcher=self.searcher,
                clock=self.clock,
                thinker_of=self.thinkers.of,
                plain=ExtractiveThinker(),
                settings=self.settings,
                perceiver=Perceiver(self.archive.attachments, self.settings.perception),
                attention=self.attention["later"],
            )
        )

    @cached_property
    def guide(self) -> Guide:
        """Keeps the guidelines of tools."""
        from remegraph.engine.extractive import ExtractiveThinker
        from remegraph.engine.tool_guidelines import Guide

        return Guide(self.archive, self.clock, ExtractiveThinker(), self.settings.tools, self.settings.summary.recipe)


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
    """Open the ledger, take the index if it is free, and build the graphs.

    Args:
        settings: What and where.
        thinkers: Turn blocks into memories.
        embedder: Makes vectors.
        index: A vector index instead of Chroma.
        clock: Tells the time.
        new_id: Makes ids.
        require_index: Refuse where another process owns the embedded index.
        reindex: Accept another embedder than the recorded one; its vectors are made by `admin.reindex`.
        count_tokens: Counts the tokens of a recall's context.
        reranker: Has the last word on what a recall returns first.
        attention: Scores attention, by what it is for.

    Raises:
        SetupError: Some part cannot be used; nothing stays open.
    """
    telemetry = telemetry_of(asked=settings.opentelemetry)
    with ExitStack() as opened:
        home, policy = settings.home.expanduser(), settings.recall
        if settings.ledger_url is None:
            _make_home(home)
        key = settings.journal_key.encode() if settings.journal_key else journal_key(home)
        blobs = BlobFolder(settings.blobs) if settings.blobs else None
        archive = SqlArchive.open(
            ledger_url(settings), key=key, clock=clock, new_id=new_id, quorum=settings.sharing.quorum, blobs=blobs
        )
        opened.callback(archive.close)
        index = index or _index(settings, home, archive.database, require_index=require_index)
        if index is not None:
            opened.callback(index.close)
            settle(archive.database)
        projection = VectorProjection.open(
            archive.database, index, embedder, exact_limit=policy.exact_limit, reindex=reindex, telemetry=telemetry
        )
        jobs = SqlJobQueue(archive.database, clock)
        waiting = gauges(archive, projection, jobs, settings.summary.recipe)
        opened.callback(telemetry.watch(pseudonym(ledger_url(settings)), waiting))
        grants = SqlGrants(archive.database, archive.journal, clock, new_id)
        searcher = Searcher(archive, projection, embedder)
        agents: dict[str, RetrievalAgent] = {}
        return Parts(
            settings=settings,
            clock=clock,
            new_id=new_id,
            archive=archive,
            projection=projection,
            trail=SqlAuditTrail(archive.database, archive.journal),
            grants=grants,
            jobs=jobs,
            courier=_courier(settings, archive.database, clock),
            items=SqlItems(archive.database, clock),
            eraser=SqlEraser(archive, projection, clock, new_id),
            searcher=searcher,
            retriever=build_retriever(
                archive,
                searcher,
                policy,
                agents,
                grants=grants,
                sharing=settings.sharing,
                count=count_tokens,
                reranker=_reranker(reranker, policy),
            ),
            agents=agents,
            count_tokens=count_tokens,
            thinkers=thinkers,
            embedder=embedder,
            attention=attention,
            telemetry=telemetry,
            has_index=index is not None,
            closing=opened.pop_all(),
        )


def ledger_url(settings: Settings) -> str:
    """Return the SQLAlchemy URL of the ledger.

    Args:
        settings: Name it, or the home that it is in.
    """
    return settings.ledger_url or f"sqlite:///{settings.home.expanduser() / LEDGER}"


def _courier(settings: Settings, database: Database, clock: Clock) -> Courier | None:
    if settings.queue == "ledger":
        return None
    if database.is_sqlite:
        raise SetupError(
            "Procrastinate needs PostgreSQL.", "Name its URL (REMEGRAPH_LEDGER_URL), or leave the queue to the ledger."
        )
    try:
        from remegraph.storage.procrastinating import Procrastinate
    except ModuleNotFoundError as error:
        raise MissingExtraError("Procrastinate is not installed.", 'pip install "remegraph[workers]"') from error
    return Procrastinate(database, clock)


def _make_home(home: Path) -> None:
    try:
        home.mkdir(parents=True, exist_ok=True)
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


def _index(settings: Settings, home: Path, database: Database, *, require_index: bool) -> VectorIndex | None:
    if settings.chroma_url is not None:
        return ChromaIndex.server(settings.chroma_url)
    owner = IndexOwner.acquire(home / "index")
    if owner is not None:
        return GuardedIndex(database, owner)
    if require_index:
        raise IndexOwnedError(f"Another process owns the vector index in {home}.")
    return None
