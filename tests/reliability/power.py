"""Homes whose power can be cut: what is on the disk at that moment, or committed on the server, is all that is left."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import psycopg
from langchain_core.language_models import BaseChatModel
from sqlalchemy import event

from remegraph import MemoryKit, Settings, SlicingPolicy, SummaryPolicy
from remegraph.errors import SetupError
from remegraph.kit import OpenOptions
from remegraph.ledger.archive import Archive
from remegraph.testing import InMemoryVectorIndex, SequentialIds
from tests.talk import NOON, SHARED_KEY


class PowerCutError(RuntimeError):
    """The process dies here: nothing after this statement happens."""


class Fuse:
    """Counts the calls of a kit's clock and id maker, both of which are called in the midst of transactions.

    Once it is armed, the n-th call from then on is the last; or a place is that the kit's code reaches.
    """

    def __init__(self) -> None:
        self._ids = SequentialIds()
        self._left: int | None = None
        self._at = ""
        self._on_blow: Callable[[], None] = lambda: None

    def arm(self, calls: int, on_blow: Callable[[], None]) -> None:
        """Blow at the call after so many."""
        self._left, self._at, self._on_blow = calls, "", on_blow

    def arm_at(self, failpoint: str, on_blow: Callable[[], None]) -> None:
        """Blow where this place is reached."""
        self._left, self._at, self._on_blow = 0, failpoint, on_blow

    def reached(self, failpoint: str) -> None:
        """Blow, if it is this place."""
        if failpoint == self._at:
            self._blow()

    @property
    def armed(self) -> bool:
        """Whether it has yet to blow."""
        return self._left is not None

    def disarm(self) -> None:
        """Blow no more."""
        self._left = None

    def clock(self) -> datetime:
        """Tell the time, which stands still."""
        self._burn()
        return NOON

    def new_id(self) -> str:
        """Give a new id."""
        self._burn()
        return self._ids()

    def _burn(self) -> None:
        if self._left is None or self._at:
            return
        self._left -= 1
        if self._left < 0:
            self._blow()

    def _blow(self) -> None:
        self._left, self._at = None, ""
        self._on_blow()
        raise PowerCutError


class KeptIndex(InMemoryVectorIndex):
    """A vector index in memory that outlives the kits that use it, as files would."""

    def close(self) -> None:
        """Keep everything."""


class Home:
    """A home on SQLite, opened by a kit, reopened, or left as a power cut leaves it.

    Args:
        folder: Where; each power cut makes a new folder in it.
        template: An empty ledger, to save the time of making one.
        chroma: Whether the index is Chroma's; else it is in memory, which is faster.
    """

    _ledger_url: str | None = None

    def __init__(self, folder: Path, template: Path | None = None, *, chroma: bool = False) -> None:
        self.fuse = Fuse()
        self._folder = folder
        self._number = 0
        self._index = None if chroma else KeptIndex()
        self.path.mkdir(parents=True)
        if template is not None:
            shutil.copy(template, self.path / "ledger.sqlite")
        self.kit = self._open(None)
        self._model: BaseChatModel | None = None

    @property
    def path(self) -> Path:
        """The folder of the kit that is open."""
        return self._folder / str(self._number)

    @property
    def archive(self) -> Archive:
        """The ledger of the kit that is open."""
        return self.kit.context.parts().archive

    def reopen(self, model: BaseChatModel | None) -> None:
        """Close the kit in peace and open the next one, which thinks with another model."""
        self.kit.close()
        self._model = model
        self.kit = self._open(model)

    def cut_power(self) -> None:
        """Go on with what is on the disk now."""
        self.take_image()
        self.restart()

    def take_image(self) -> None:
        """Copy the ledger as it lies on the disk, its log included, in the midst of whatever is under way."""
        image = self._folder / str(self._number + 1)
        image.mkdir()
        for name in ("ledger.sqlite", "ledger.sqlite-wal", "journal.key"):
            if (self.path / name).exists():
                shutil.copy(self.path / name, image / name)

    def restart(self) -> None:
        """Go on with the image that was taken; what happened since then has not happened."""
        self.kit.close()
        index = self.path / "index"
        self._number += 1
        if index.exists():
            shutil.move(index, self.path / "index")
        self.kit = self._open(self._model)

    def close(self) -> None:
        """Close the kit."""
        self.kit.close()

    def _open(self, model: BaseChatModel | None) -> MemoryKit:
        return MemoryKit.open(
            settings=Settings(
                home=self.path,
                ledger_url=self._ledger_url,
                journal_key=SHARED_KEY if self._ledger_url else None,
                slicing=SlicingPolicy(max_messages=10_000, max_tokens=1_000_000),
                summary=SummaryPolicy(backoff=0),
            ),
            model=model,
            embedder=None,
            index=self._index,
            clock=self.fuse.clock,
            options=OpenOptions(new_id=self.fuse.new_id),
        )


class ServerHome(Home):
    """The same on PostgreSQL: a power cut ends all connections to it, and nobody gets another until the restart.

    Args:
        folder: Where what is not on the server goes.
        ledger_url: An empty database.
    """

    def __init__(self, folder: Path, ledger_url: str) -> None:
        self._ledger_url = ledger_url
        super().__init__(folder)

    def take_image(self) -> None:
        """End all transactions that are under way."""
        assert self._ledger_url is not None
        event.listen(self.archive.database.engine, "do_connect", _refuse)
        with psycopg.connect(self._ledger_url, autocommit=True) as connection:
            connection.execute(_END_ALL).fetchall()

    def restart(self) -> None:
        """Go on with what was committed."""
        with suppress(PowerCutError, SetupError):  # it cannot write what it noted: dead processes do not either
            self.kit.close()
        self.kit = self._open(self._model)


_END_ALL = """
SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity
WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
"""


def _refuse(*_: object) -> None:
    raise PowerCutError
