"""The schema in steps: each release brings a ledger of any earlier one up to date."""

from __future__ import annotations

from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from sqlalchemy import Connection, column, inspect, select, table

from remegraph.errors import SchemaTooNewError, SetupError
from remegraph.ledger.schema import metadata

if TYPE_CHECKING:
    from alembic.config import Config

__all__ = ["HEAD", "KNOWN", "VERSION_TABLE", "check_revision", "config", "is_current", "upgrade"]

_FIRST = "0020"
"""The revision with which releases begin."""

HEAD = "0020"
"""The revision that this code reads and writes."""

VERSION_TABLE = "remegraph_schema"
"""Where the revision is kept; not Alembic's default name, which a host application may use in the same database."""

KNOWN = frozenset(f"{number:04}" for number in range(int(_FIRST), int(HEAD) + 1))
"""All revisions up to it."""

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
    if revision in KNOWN:
        return
    if revision < _FIRST:
        raise SetupError(f"The {what} has schema {revision}, which no release has.", "Open another home.")
    raise SchemaTooNewError(f"The {what} has schema {revision}; this remegraph knows up to {HEAD}.")


def is_current(connection: Connection) -> bool:
    """Return whether the schema is the one that this code knows.

    Raises:
        SchemaTooNewError: A newer remegraph wrote it.
        SetupError: No release wrote it, or the database holds tables of the same names that are not ours.
    """
    found = set(inspect(connection).get_table_names())
    if VERSION_TABLE in found:
        revision = connection.execute(select(column("version_num")).select_from(table(VERSION_TABLE))).scalar()
        if revision is not None:
            check_revision(revision, "ledger")
        return revision == HEAD
    if foreign := found & set(metadata.tables):
        names = ", ".join(sorted(foreign))
        raise SetupError(f"The database holds tables of another program: {names}.", "Give the ledger its own database.")
    return False


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
