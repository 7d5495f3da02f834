"""The schema in steps: each release brings a ledger of any earlier one up to date."""

from __future__ import annotations

from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from sqlalchemy import Connection, column, inspect, select, table

from remegraph.errors import SchemaTooNewError, SetupError
from remegraph.storage.tables import metadata

if TYPE_CHECKING:
    from alembic.config import Config

__all__ = ["HEAD", "KNOWN", "VERSION_TABLE", "config", "is_current", "upgrade"]

HEAD = "0020"
"""The revision that this code reads and writes."""

VERSION_TABLE = "remegraph_schema"
"""Where the revision is kept; not Alembic's default name, which a host application may use in the same database."""

KNOWN = frozenset(f"{number:04}" for number in range(1, int(HEAD) + 1))
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


def is_current(connection: Connection) -> bool:
    """Return whether the schema is the one that this code knows.

    Raises:
        SchemaTooNewError: A newer remegraph wrote it.
        SetupError: The database holds tables of the same names that are not ours.
    """
    found = set(inspect(connection).get_table_names())
    if VERSION_TABLE in found:
        revision = connection.execute(select(column("version_num")).select_from(table(VERSION_TABLE))).scalar()
        if revision is not None and revision not in KNOWN:
            raise SchemaTooNewError(f"The ledger has schema {revision}; this remegraph knows up to {HEAD}.")
        return revision == HEAD
    if foreign := found & set(metadata.tables):
        names = ", ".join(sorted(foreign))
        raise SetupError(f"The database holds tables of another program: {names}.", "Give the ledger its own database.")
    return False


def upgrade(connection: Connection) -> None:
    """Bring the schema up to date, in the connection's transaction; the caller holds the lock.

    Raises:
        SchemaTooNewError: A newer remegraph wrote it.
        SetupError: The database holds tables of the same names that are not ours.
    """
    if not is_current(connection):  # another process may have been first
        from alembic import command

        with _ONE_AT_A_TIME:
            command.upgrade(config(connection), "head")
