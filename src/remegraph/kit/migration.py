"""Brings a ledger up to date without opening a kit: by whoever may change tables, before those come who may not."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime
from functools import partial

from remegraph.errors import SchemaTooOldError
from remegraph.kit.components import courier_of, make_home
from remegraph.ledger import migrations
from remegraph.ledger.connections import lacks_ledger, ledger_url
from remegraph.ledger.database import Database
from remegraph.ledger.index import choice
from remegraph.models import Migration, MigrationStep
from remegraph.settings import Settings

__all__ = ["migrate"]

_IN_MEMORY = "sqlite://"
_COURIER = MigrationStep(revision="procrastinate", what="The tables of procrastinate.", adds_only=True)
_NOW = partial(datetime.now, UTC)


def migrate(settings: Settings, *, apply: bool = False) -> Migration:
    """Say what a ledger lacks to have the schema of this release, and bring it up to date where that is asked for.

    Args:
        settings: What a kit would be opened with.
        apply: Do it: each step in the one transaction of all, or none. Nothing is changed otherwise.

    Raises:
        SchemaTooNewError: A newer remegraph wrote it.
        SetupError: The ledger cannot be used, or no release wrote it.
    """
    made = settings.ledger_url is None and lacks_ledger(settings.home.expanduser())
    with closing(Database.as_it_is(_IN_MEMORY if made else ledger_url(settings))) as database:
        with database.read() as connection:
            found, lacking = migrations.recorded(connection), migrations.pending(connection)
        steps = [MigrationStep(revision=name, what=what, adds_only="." in name) for name, what in lacking]
        steps += [_COURIER] if _lacks_courier(settings, database) else []
        if lacks := choice.lacking(settings, database):
            steps.append(MigrationStep(revision="pgvector", what=lacks, adds_only=True))
    if apply and steps:
        if made:
            make_home(settings.home.expanduser())
        with closing(Database.open(ledger_url(settings), settings.pool)) as database:
            courier_of(settings.evolve(migrate="auto"), database, _NOW)
            choice.complete(settings, database)
    return Migration(found=found, needed=migrations.HEAD, steps=tuple(steps), applied=apply)


def _lacks_courier(settings: Settings, database: Database) -> bool:
    try:
        courier_of(settings.evolve(migrate="never"), database, _NOW)
    except SchemaTooOldError:
        return True
    return False
