"""The schema in steps: each release brings a ledger of any earlier one up to date."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from sqlalchemy import Connection, column, inspect, select, table

from remegraph.errors import MissingExtraError, SchemaTooNewError, SchemaTooOldError, SetupError
from remegraph.ledger.schema import metadata
from remegraph.settings import Settings

if TYPE_CHECKING:
    from alembic.config import Config

__all__ = [
    "DELIVERIES",
    "HEAD",
    "KNOWN",
    "VECTORS",
    "VERSION_TABLE",
    "brings_jobs",
    "check_fit",
    "check_revision",
    "config",
    "fits",
    "is_current",
    "lacks_pgvector",
    "lacks_procrastinate",
    "pending",
    "recorded",
    "upgrade",
]

_CHAIN = ("0020",)
"""All revisions, from that of the first release on.

One that only adds to the one before it, so that code of that one goes on beside it, is numbered below it, as 0020.1. One that
changes or drops what such code reads or writes has the next whole number: it may run once none of that code does.
"""

HEAD = _CHAIN[-1]
"""The revision that this code reads and writes."""

VERSION_TABLE = "remegraph_schema"
"""Where the revision is kept; not Alembic's default name, which a host application may use in the same database."""

KNOWN = frozenset(_CHAIN)
"""All revisions up to it."""

VECTORS, DELIVERIES = "pgvector_records", "procrastinate_jobs"
"""The tables that show whether those of pgvector, and of procrastinate, were made: they count as schema, too."""

_ONE_AT_A_TIME = Lock()
"""Alembic keeps what it is at in its modules: two ledgers of one process would be taken for each other."""


def config(connection: Connection) -> Config:
    """Return Alembic's configuration for an open connection; no ini file is read."""
    from alembic.config import Config

    configured = Config()
    configured.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    configured.attributes["connection"] = connection
    return configured


def check_revision(revision: str, what: str) -> None:
    """Return if this code can bring a revision up to date.

    Args:
        what: What it was found in.

    Raises:
        SchemaTooNewError: A newer remegraph wrote it.
        SetupError: No release wrote it.
    """
    if revision in KNOWN or fits(revision):
        return
    if revision < _CHAIN[0]:
        raise SetupError(f"The {what} has schema {revision}, which no release has.", "Open another home.")
    raise SchemaTooNewError(f"The {what} has schema {revision}; this remegraph knows up to {HEAD}.")


def fits(revision: str) -> bool:
    """Return whether this code can read and write a ledger of a revision: its own, or one that only adds to it."""
    (step, added), (ours, own) = _parts(revision), _parts(HEAD)
    return step == ours and added >= own


def check_fit(revision: str | None) -> None:
    """Return if this code can read and write a ledger of a revision.

    Args:
        revision: None where the ledger has no tables yet.

    Raises:
        SchemaTooNewError: A newer remegraph wrote it.
        SchemaTooOldError: It must be brought up to date first.
        SetupError: No release wrote it.
    """
    if revision is None:
        raise SchemaTooOldError("The ledger has no tables yet.")
    check_revision(revision, "ledger")
    if not fits(revision):
        raise SchemaTooOldError(f"The ledger has schema {revision}; this remegraph needs {HEAD}.")


def _parts(revision: str) -> tuple[str, str]:
    step, _, added = revision.partition(".")
    return step, added.zfill(4)


def recorded(connection: Connection) -> str | None:
    """Return the revision of a ledger; none where it has no tables yet.

    Raises:
        SetupError: The database holds tables of the same names that are not ours.
    """
    found = set(inspect(connection).get_table_names())
    if VERSION_TABLE in found:
        revision: str | None = connection.execute(
            select(column("version_num")).select_from(table(VERSION_TABLE))
        ).scalar()
        return revision
    if foreign := found & set(metadata.tables):
        names = ", ".join(sorted(foreign))
        raise SetupError(f"The database holds tables of another program: {names}.", "Give the ledger its own database.")
    return None


def is_current(connection: Connection) -> bool:
    """Return whether this code can read and write the schema as it is.

    Raises:
        SchemaTooNewError: A newer remegraph wrote it.
        SetupError: No release wrote it, or the database holds tables of the same names that are not ours.
    """
    revision = recorded(connection)
    if revision is not None:
        check_revision(revision, "ledger")
    return revision is not None and fits(revision)


def pending(connection: Connection) -> tuple[tuple[str, str], ...]:
    """Return the revisions that a ledger lacks, in order, each with what it does.

    Raises:
        SchemaTooNewError: A newer remegraph wrote it.
        SetupError: No release wrote it, or the database holds tables of the same names that are not ours.
    """
    if is_current(connection):
        return ()
    from alembic.script import ScriptDirectory

    scripts = ScriptDirectory.from_config(config(connection))
    lacking = scripts.iterate_revisions("head", recorded(connection) or "base")
    return tuple((each.revision, each.doc) for each in reversed(list(lacking)))


def upgrade(connection: Connection) -> None:
    """Bring the schema up to date, in the connection's transaction; the caller holds the lock.

    Raises:
        SchemaTooNewError: A newer remegraph wrote it.
        SetupError: No release wrote it, or the database holds tables of the same names that are not ours.
    """
    if not is_current(connection):  # another process may have been first
        from alembic import command

        with _ONE_AT_A_TIME:
            command.upgrade(config(connection), "head")


# ------------------------------------------------------------------------------------------- tables of others


def lacks_pgvector(connection: Connection) -> SchemaTooOldError | None:
    """Return what is wrong where a ledger has no tables of pgvector.

    Raises:
        SetupError: It is not on PostgreSQL.
    """
    if connection.dialect.name == "sqlite":
        raise SetupError(
            "pgvector needs PostgreSQL.", "Name its URL (REMEGRAPH_LEDGER_URL), or leave the index to Chroma."
        )
    return _lacks(connection, VECTORS, "pgvector")


def brings_jobs(settings: Settings, *, sqlite: bool) -> bool:
    """Return whether procrastinate brings jobs to workers; where it does not, they look for them.

    Raises:
        SetupError: It is to, and the ledger is not on PostgreSQL.
        MissingExtraError: It is to, and is not installed.
    """
    installed = find_spec("procrastinate") is not None
    if settings.queue == "ledger" or (settings.queue is None and (sqlite or not installed)):
        return False
    if sqlite:
        raise SetupError(
            "Procrastinate needs PostgreSQL.", "Name its URL (REMEGRAPH_LEDGER_URL), or leave the queue to the ledger."
        )
    if not installed:
        raise MissingExtraError("Procrastinate is not installed.", 'pip install "remegraph[workers]"')
    return True


def lacks_procrastinate(connection: Connection) -> SchemaTooOldError | None:
    """Return what is wrong where a ledger on PostgreSQL has no tables of procrastinate."""
    return _lacks(connection, DELIVERIES, "procrastinate")


def _lacks(connection: Connection, table: str, whose: str) -> SchemaTooOldError | None:
    if inspect(connection).has_table(table):
        return None
    return SchemaTooOldError(f"The ledger has no tables of {whose} yet.")
