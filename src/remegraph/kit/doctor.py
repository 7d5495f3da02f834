"""Looks for whatever is wrong with a home, from outside: it may be one that no kit can open."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING

from remegraph.errors import EmbedderMismatchError, JournalKeyError, RemegraphError
from remegraph.kit.examination import Seen, mended
from remegraph.kit.kit import FROM_SETTINGS, MemoryKit, _FromSettings
from remegraph.kit.providers import as_embedder
from remegraph.ledger.checkup import examine_folder, examine_key, examine_ledger, newest, recorded_embedder
from remegraph.ledger.connections import lacks_ledger, ledger_url
from remegraph.ledger.database import Database
from remegraph.ledger.journal import KEY_FILE
from remegraph.models import Check, Diagnosis, Finding
from remegraph.settings import AgentMemorySettings, Settings

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

    from remegraph.ports import Clock, Embedder, VectorIndex, Vectors

__all__ = ["diagnose"]

_OUTSIDE: tuple[Check, ...] = ("home", "disk", "key", "ledger", "schema")


def diagnose(
    settings: Settings,
    *,
    fix: bool = False,
    embedder: Embedder | Embeddings | str | _FromSettings | None = FROM_SETTINGS,
    index: VectorIndex | None = None,
    clock: Clock | None = None,
) -> Diagnosis:
    """Look for whatever is wrong with a home, and say how bad it is and what to do. No model is called.

    Args:
        settings: What a kit would be opened with.
        fix: Mend what can be mended without loss: permissions, the schema, the index, what waits for it, dead jobs.
        embedder: See `MemoryKit.open`.
        index: See `MemoryKit.open`.
        clock: See `MemoryKit.open`.
    """
    outside = tuple(mended(_outside(settings), fix=fix))
    if any(
        not each.done and ((each.severity == "error" and each.check != "key") or each.check == "schema")
        for each in outside
    ):
        return Diagnosis(checks=_OUTSIDE, findings=outside)
    chosen = settings.embedder if isinstance(embedder, _FromSettings) else embedder
    usable, findings = _embedder(settings, chosen)
    if usable is None:
        return Diagnosis(checks=(*_OUTSIDE, "embedder"), findings=(*outside, *findings))
    if any(each.check == "key" and each.severity == "error" for each in outside):
        settings = settings.evolve(journal_key=token_hex())  # opening would make a key, and hide that it was lost
    try:
        with MemoryKit.open(
            settings=_without_rules(settings), model=None, embedder=usable, index=index, clock=clock
        ) as kit:
            inside = kit.admin.examine(fix=fix)
    except RemegraphError as error:
        check: Check = "key" if isinstance(error, JournalKeyError) else "index"
        found = Finding(check=check, severity="error", what=error.what, cure=error.cure)
        return Diagnosis(checks=_OUTSIDE, findings=(*outside, *findings, found))
    return Diagnosis(checks=(*_OUTSIDE, *inside.checks), findings=(*outside, *findings, *inside.findings))


def _without_rules(settings: Settings) -> Settings:
    """Return settings without rules of owners: nothing is learned here, and without a model no kit opens with them."""

    def plain(agent: AgentMemorySettings) -> AgentMemorySettings:
        return agent.evolve(extraction=agent.extraction.evolve(remember=(), never_remember=()))

    return settings.evolve(
        agent=plain(settings.agent), agents={name: plain(each) for name, each in settings.agents.items()}
    )


def _outside(settings: Settings) -> Iterator[Seen]:
    """Look at the files, without opening a kit; stop where nothing more can be seen."""
    home = settings.home.expanduser()
    if settings.ledger_url is None:
        found = list(examine_folder(home))
        if not any(each.check == "home" for each in found) and lacks_ledger(home):
            cure = "Restore a backup (remegraph backup restore); an empty ledger is made when something is recorded."
            found.append(Finding(check="ledger", severity="error", what=f"{home} has no ledger.", cure=cure))
        yield from ((each, None) for each in found)
        if any(each.check in {"home", "ledger"} for each in found):
            return
    url = ledger_url(settings)
    with closing(Database.as_it_is(url)) as database:
        found = list(examine_ledger(database))
        yield from ((each, (lambda: _upgrade(url)) if each.fixable else None) for each in found)
        if found or settings.journal_key:
            return
        key = home / KEY_FILE
        for each in examine_key(home, sealed=newest(database) is not None):
            yield each, (lambda: _close_to_others(key)) if each.fixable else None


def _upgrade(url: str) -> str:
    Database.open(url).close()
    return "brought it up to date"


def _close_to_others(key: Path) -> str:
    key.chmod(0o600)
    return "closed it to others"


def _embedder(
    settings: Settings, chosen: Embedder | Embeddings | str | None
) -> tuple[Embedder | None, Sequence[Finding]]:
    """Return an embedder that the ledger can be opened with, and why it is not the chosen one, if so."""
    with closing(Database.as_it_is(ledger_url(settings))) as database:
        recorded = recorded_embedder(database)
    try:
        made = as_embedder(chosen)
        if recorded in (None, (made.name, made.dimension)):
            return made, ()
        what = f"The ledger's vectors come from {recorded[0]}, and the settings name {made.name}."
        cure = "Open with the recorded one, or change over: kit.admin.reindex() on a kit opened with reindex=True."
    except RemegraphError as error:
        what, cure = f"The embedder cannot be used: {error.what}", error.cure
    found = Finding(check="embedder", severity="error", what=what, cure=cure)
    return (None if recorded is None else _StandIn(*recorded)), [found]


class _StandIn:
    """An embedder that has made the vectors of a ledger, and is not here: enough to compare them."""

    semantic = False

    def __init__(self, name: str, dimension: int) -> None:
        self.name = name
        self.dimension = dimension

    def embed(self, texts: Sequence[str]) -> Vectors:
        raise EmbedderMismatchError(f"{len(texts)} texts need a vector of {self.name}, which is not here.")
