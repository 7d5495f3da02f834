"""A home seen from outside, as it may be one that no kit can open: what is wrong with it, its schema, and its backups.

An account that may change tables migrates the schema, before processes start that may not.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING

from remegraph.errors import EmbedderMismatchError, JournalKeyError, RemegraphError, SchemaTooOldError, SetupError
from remegraph.kit.admin import folder_path
from remegraph.kit.admin.examination import Seen, mended
from remegraph.kit.components import courier_of, make_home
from remegraph.kit.kit import FROM_SETTINGS, MemoryKit, _FromSettings
from remegraph.kit.providers import as_chat_model, as_embedder
from remegraph.kit.worker import OnProgress
from remegraph.ledger import migrations
from remegraph.ledger.backup import inspect, problems, restore
from remegraph.ledger.connections import lacks_ledger, ledger_url
from remegraph.ledger.database import Database
from remegraph.ledger.index import choice, embedders
from remegraph.ledger.journal import KEY_FILE
from remegraph.ledger.rows import newest
from remegraph.models import Backup, Check, Diagnosis, Finding, Migration, MigrationStep
from remegraph.settings import AgentMemorySettings, Settings, open_to_others

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

    from remegraph.ports import Clock, Embedder, VectorIndex, Vectors

__all__ = ["diagnose", "inspect_backup", "migrate", "restore_backup"]

_ROOM = 100 * 2**20  # less than this, and a busy agent fills it within days
_NO_ROOM = 10 * 2**20
_OUTSIDE: tuple[Check, ...] = ("home", "disk", "key", "ledger", "schema")


def diagnose(
    settings: Settings,
    *,
    fix: bool = False,
    embedder: Embedder | Embeddings | str | _FromSettings | None = FROM_SETTINGS,
    index: VectorIndex | None = None,
    clock: Clock | None = None,
) -> Diagnosis:
    """Return what is wrong with a home, how bad it is and what to do. No model is called.

    Args:
        settings: What a kit would be opened with.
        fix: Repair what can be repaired without loss: permissions, the schema, the index, what waits for it, dead jobs.
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
    if index is None and (wrong := _misnamed(settings)) is not None:
        return Diagnosis(checks=(*_OUTSIDE, "index"), findings=(*outside, wrong))
    made_here = fix and settings.migrate == "auto"
    if not made_here and (lacks := _lacking(settings, own_index=index is None)) is not None:
        return Diagnosis(checks=_OUTSIDE, findings=(*outside, lacks))
    wrong_models = tuple(_models(settings))
    outside = (*outside, *wrong_models)
    chosen = settings.embedder if isinstance(embedder, _FromSettings) else embedder
    usable, findings = _embedder(settings, chosen)
    if usable is None:
        return Diagnosis(checks=(*_OUTSIDE, "model", "embedder"), findings=(*outside, *findings))
    if any(each.check == "key" and each.severity == "error" for each in outside):
        settings = settings.evolve(journal_key=token_hex())  # opening would make a key, and hide that it was lost
    try:
        with MemoryKit.open(
            settings=_openable(settings, own_models=not wrong_models),
            model=None,
            embedder=usable,
            index=index,
            clock=clock,
        ) as kit:
            inside = kit.admin.examine(fix=fix)
    except RemegraphError as error:
        check: Check = "key" if isinstance(error, JournalKeyError) else "index"
        found = Finding(check=check, severity="error", what=error.what, cure=error.cure)
        return Diagnosis(checks=(*_OUTSIDE, "model"), findings=(*outside, *findings, found))
    return Diagnosis(checks=(*_OUTSIDE, "model", *inside.checks), findings=(*outside, *findings, *inside.findings))


def _openable(settings: Settings, *, own_models: bool) -> Settings:
    """Return settings that a kit opens with: without rules of owners, which need a model, and where asked for without models."""

    def plain(agent: AgentMemorySettings) -> AgentMemorySettings:
        own = agent.extraction.model_id if own_models else None
        return agent.evolve(extraction=agent.extraction.evolve(remember=(), never_remember=(), model_id=own))

    return settings.evolve(
        agent=plain(settings.agent), agents={name: plain(each) for name, each in settings.agents.items()}
    )


def _outside(settings: Settings) -> Iterator[Seen]:
    """Look at the files, without opening a kit; stop where nothing more can be seen."""
    home = settings.home.expanduser()
    if settings.ledger_url is None:
        found = list(_examine_folder(home))
        if not any(each.check == "home" for each in found) and lacks_ledger(home):
            cure = "Restore a backup (`remegraph backup restore FOLDER`); an empty ledger is made when something is recorded."
            found.append(Finding(check="ledger", severity="error", what=f"{home} has no ledger.", cure=cure))
        yield from ((each, None) for each in found)
        if any(each.check in {"home", "ledger"} for each in found):
            return
    url = ledger_url(settings)
    with closing(Database.as_it_is(url)) as database:
        found = list(_examine_ledger(database))
        yield from ((each, (lambda: _upgrade(url)) if each.fixable else None) for each in found)
        if found or settings.journal_key:
            return
        key = home / KEY_FILE
        with database.read() as connection:
            sealed = newest(connection) is not None
        for each in _examine_key(home, expected=sealed and not settings.former_journal_keys):
            yield each, (lambda: _close_to_others(key)) if each.fixable else None


def _examine_folder(home: Path) -> Iterator[Finding]:
    """Look at the folder of a home, and how much room it has."""
    if not home.is_dir():
        cure = "Record something first (`remegraph ingest FILE`), or name another folder with --home."
        yield Finding(check="home", severity="error", what=f"There is no memory in {home}.", cure=cure)
        return
    if not os.access(home, os.R_OK | os.W_OK | os.X_OK):
        yield Finding(
            check="home",
            severity="error",
            what=f"{home} cannot be written.",
            cure="Make it yours (chown, chmod u+rwx).",
        )
    free = shutil.disk_usage(home).free
    if free < _ROOM:
        yield Finding(
            check="disk",
            severity="error" if free < _NO_ROOM else "warning",
            what=f"The disk of {home} has {free >> 20} MB left.",
            cure="Free some space: when none is left, nothing new is remembered; recall goes on.",
        )


def _examine_key(home: Path, *, expected: bool) -> Iterator[Finding]:
    """Look at the file of the journal's key; `expected`: whether no other key can have sealed what is there."""
    path = home / KEY_FILE
    if not path.exists():
        if expected:
            yield Finding(
                check="key",
                severity="error",
                what=f"The key of the journal, {path}, is missing: no one can tell whether the journal was rewritten.",
                cure=JournalKeyError.cure,
            )
    elif open_to_others(path):
        yield Finding(
            check="key",
            severity="warning",
            what=f"Others may read the key of the journal, {path}: with it, anyone can write a journal that fits.",
            cure="Close it to others.",
            commands=(shlex.join(["chmod", "600", str(path)]),),
            fixable=True,
        )


def _examine_ledger(database: Database) -> Iterator[Finding]:
    """Look at the pages of a ledger, what its rows refer to, and its schema; stop at the first error."""
    try:
        with database.read() as connection:
            source = connection.connection.driver_connection
            problem = problems(source) if isinstance(source, sqlite3.Connection) else ""
            current = not problem and migrations.is_current(connection)
    except SetupError as error:
        yield Finding(check="ledger", severity="error", what=error.what, cure=error.cure)
        return
    except sqlite3.Error as error:
        problem, current = str(error), False
    if problem:
        cure = "Restore a backup (`remegraph backup restore FOLDER`), or salvage the file with `sqlite3 FILE .recover`."
        yield Finding(check="ledger", severity="error", what=f"The ledger is damaged: {problem}.", cure=cure)
    elif not current:
        yield Finding(
            check="schema",
            severity="warning",
            what="The ledger is of an earlier release; what follows is examined once it is brought up to date.",
            cure="Take a backup, then open it once with this release.",
            fixable=True,
        )


def _upgrade(url: str) -> str:
    Database.open(url).close()
    return "brought it up to date"


def _close_to_others(key: Path) -> str:
    key.chmod(0o600)
    return "closed it to others"


def _misnamed(settings: Settings) -> Finding | None:
    """Look whether the ledger has another index than settings name: opening with these might change it over."""
    with closing(Database.as_it_is(ledger_url(settings))) as database:
        wrong = choice.misnamed(settings, database)
    return None if wrong is None else Finding(check="index", severity="error", what=wrong.what, cure=wrong.cure)


def _lacking(settings: Settings, *, own_index: bool) -> Finding | None:
    """Look whether tables of procrastinate or pgvector are missing: opening a kit would make them, or fail."""
    with closing(Database.as_it_is(ledger_url(settings))) as database:
        if database.is_sqlite:
            return None
        lacks = _lacks_courier(settings, database)
        if lacks is None and own_index and choice.chosen(settings, database) == "pgvector":
            with database.read() as connection:
                lacks = migrations.lacks_pgvector(connection)
    return None if lacks is None else Finding(check="schema", severity="error", what=lacks.what, cure=lacks.cure)


def _models(settings: Settings) -> Iterator[Finding]:
    """Look whether each chat model that the settings name can be made; none is called."""
    agents = (settings.agent, *settings.agents.values())
    for name in dict.fromkeys((settings.model, *(each.extraction.model_id for each in agents))):
        try:
            as_chat_model(name, settings.summary.timeout)
        except RemegraphError as error:
            what = f"The model cannot be used: {error.what}"
            yield Finding(check="model", severity="error", what=what, cure=error.cure)


def _embedder(
    settings: Settings, chosen: Embedder | Embeddings | str | None
) -> tuple[Embedder | None, Sequence[Finding]]:
    """Return an embedder that the ledger can be opened with, and why it is not the chosen one, if so."""
    with closing(Database.as_it_is(ledger_url(settings))) as database, database.read() as connection:
        recorded = embedders.current(connection)
    try:
        made = as_embedder(chosen)
        if recorded is None or (recorded.name, recorded.dimension) == (made.name, made.dimension):
            return made, ()
        what = f"The ledger's vectors come from {recorded.name}, and the settings name {made.name}."
        cure = "Open with the recorded one, or change over: kit.admin.reindex() on a kit opened with options=OpenOptions(reindex=True)."
    except RemegraphError as error:
        what, cure = f"The embedder cannot be used: {error.what}", error.cure
    found = Finding(check="embedder", severity="error", what=what, cure=cure)
    return (None if recorded is None else _StandIn(recorded.name, recorded.dimension)), [found]


class _StandIn:
    """Stands in for the embedder of a ledger's vectors where it is missing: enough to compare them."""

    semantic = False

    def __init__(self, name: str, dimension: int) -> None:
        self.name = name
        self.dimension = dimension

    def embed(self, texts: Sequence[str]) -> Vectors:
        raise EmbedderMismatchError(f"{len(texts)} texts need a vector of {self.name}, which is not here.")


# ------------------------------------------------------------------------------------------- the schema


_IN_MEMORY = "sqlite://"
_COURIER = MigrationStep(revision="procrastinate", what="The tables of procrastinate.", adds_only=True)
_NOW = partial(datetime.now, UTC)


def migrate(settings: Settings, *, apply: bool = False, change_index: bool = False) -> Migration:
    """Return what a ledger lacks of the schema of this release, and migrate it with `apply`.

    Args:
        settings: What a kit would be opened with.
        apply: Do it, all steps in one transaction. Nothing is changed otherwise.
        change_index: Also change the index where the ledger has another than the settings name, which is refused otherwise.

    Raises:
        SchemaTooNewError: A newer remegraph wrote it.
        SetupError: The ledger cannot be used, no release wrote it, or it has another index.
    """
    made = settings.ledger_url is None and lacks_ledger(settings.home.expanduser())
    with closing(Database.as_it_is(_IN_MEMORY if made else ledger_url(settings))) as database:
        with database.read() as connection:
            found, lacking = migrations.recorded(connection), migrations.pending(connection)
        steps = [MigrationStep(revision=name, what=what, adds_only="." in name) for name, what in lacking]
        steps += [_COURIER] if _lacks_courier(settings, database) else []
        if lacks := choice.lacking(settings, database):
            steps.append(MigrationStep(revision="index", what=lacks, adds_only=True))
        wrong = choice.misnamed(settings, database)
    if apply and wrong is not None and not change_index:
        raise wrong
    if apply and steps:
        if made:
            make_home(settings.home.expanduser())
        with closing(Database.open(ledger_url(settings), settings.pool)) as database:
            courier_of(settings.evolve(migrate="auto"), database, _NOW)
            choice.complete(settings, database)
    return Migration(
        found=found,
        needed=migrations.HEAD,
        steps=tuple(steps),
        applied=apply,
        problem=str(wrong or ""),
    )


def _lacks_courier(settings: Settings, database: Database) -> SchemaTooOldError | None:
    if not migrations.brings_jobs(settings, sqlite=database.is_sqlite):
        return None
    with database.read() as connection:
        return migrations.lacks_procrastinate(connection)


# ------------------------------------------------------------------------------------------- backups


def inspect_backup(folder: str | Path) -> Backup:
    """Return what a backup holds, once all of it was read and fits its checksums.

    Args:
        folder: The backup.

    Raises:
        BackupError: It is none, or it is incomplete or damaged.
        SchemaTooNewError: A newer remegraph made it.
    """
    return inspect(folder_path(folder))


def restore_backup(folder: str | Path, home: str | Path, progress: OnProgress | None = None) -> Backup:
    """Restore a backup as a home, which is then opened like any other; it rebuilds its index from the ledger.

    Args:
        folder: The backup.
        home: Must be missing or empty; in the end it is complete, or not there at all.
        progress: Told after each file.

    Raises:
        BackupError: The backup is damaged, or there is something in the home.
        SchemaTooNewError: A newer remegraph made it.
    """
    return restore(folder_path(folder), folder_path(home), progress)
