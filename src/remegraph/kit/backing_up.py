"""Backups: taken from an open kit while everybody goes on, and brought back to where no home is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from remegraph.errors import BackupError
from remegraph.kit.calling import twin
from remegraph.kit.facade import Facade
from remegraph.models import Backup, Progress

__all__ = ["BackingUp", "inspect_backup", "restore_backup"]

_NOT_TOLD = {"journal_key", "former_journal_keys", "ledger_url", "chroma_url"}
"""Settings that are secrets, or hold passwords."""


class BackingUp(Facade):
    """The verb of `kit.admin` about backups."""

    def backup(
        self,
        folder: str | Path,
        progress: Callable[[Progress], None] | None = None,
        cancel: Callable[[], bool] | None = None,
    ) -> Backup:
        """Copy the ledger, the attachments and the journal's key to a new folder; nobody has to wait meanwhile.

        It holds all that was acknowledged before, as one snapshot. The vector index is left out: `restore_backup` needs
        none. Whoever has the backup can read every memory, and write a journal that fits.

        Args:
            folder: Must be missing or empty; is there in the end, whole, or not at all.
            progress: Told how far it is.
            cancel: Asked again and again whether to stop.

        Raises:
            BackupError: The ledger is on PostgreSQL or is damaged, or the folder cannot be written.
            CancelledError: `cancel` said so; nothing is left.
        """
        from remegraph.storage.backup import Taking
        from remegraph.storage.blobs import BlobFolder

        parts = self._parts()
        settings, blobs = parts.settings, parts.settings.blobs
        taking = Taking(
            parts.archive.database,
            settings.home.expanduser(),
            None if blobs is None else BlobFolder(blobs),
            progress=progress,
            cancel=cancel,
        )
        told = settings.model_dump(mode="json", exclude=_NOT_TOLD)
        return taking.run(_path(folder), at=parts.clock(), settings=told)

    abackup = twin(backup)


def inspect_backup(folder: str | Path) -> Backup:
    """Return what a backup holds, once all of it was read and fits its checksums.

    Args:
        folder: The backup.

    Raises:
        BackupError: It is none, or it is incomplete or damaged.
        SchemaTooNewError: A newer remegraph made it.
    """
    from remegraph.storage.backup import inspect

    return inspect(_path(folder))


def restore_backup(folder: str | Path, home: str | Path, progress: Callable[[Progress], None] | None = None) -> Backup:
    """Bring a backup back as a home, which is then opened like any other; it makes its index anew from the ledger.

    Args:
        folder: The backup.
        home: Must be missing or empty; is there in the end, whole, or not at all.
        progress: Told after each file.

    Raises:
        BackupError: The backup is damaged, or there is something in the home.
        SchemaTooNewError: A newer remegraph made it.
    """
    from remegraph.storage.backup import restore

    return restore(_path(folder), _path(home), progress)


def _path(given: object) -> Path:
    if not isinstance(given, str | Path) or not str(given) or "\x00" in str(given):
        raise BackupError(f"{given!r} is no folder.", "Give a path.")
    return Path(given).expanduser()
