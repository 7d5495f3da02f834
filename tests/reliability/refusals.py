"""A PostgreSQL that refuses: a role that may have few connections, or none, and whose password changes."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event

import psycopg
from psycopg import sql
from sqlalchemy import make_url

from remegraph.ledger.database import Database

__all__ = ["Role", "limited"]

_PATIENCE = 60
_TABLES = ("TABLES", "SEQUENCES")
_LINE = "local all {name} scram-sha-256\n"


class Role:
    """Somebody who may use one ledger, as far as the server lets them; the password stands in a file of libpq's.

    Args:
        url: Of the ledger, as the owner of all.
        folder: Where the file of the password goes.
    """

    def __init__(self, url: str, folder: Path) -> None:
        owner = make_url(url).set(drivername="postgresql")
        self._admin = psycopg.connect(owner.render_as_string(hide_password=False), autocommit=True)
        self.name = f"role_{uuid.uuid4().hex}"
        self.file = folder / "passfile"
        own = make_url(url).set(username=self.name, password=None).update_query_dict({"passfile": str(self.file)})
        self.url = own.render_as_string(hide_password=False)
        self.secret = folder / "password"
        alone = own.difference_update_query(["passfile"]).update_query_dict({"password_file": str(self.secret)})
        self.url_with_secret = alone.render_as_string(hide_password=False)
        """Of the same ledger, by a file that holds the password and nothing else, as secrets of clusters do."""
        self.note("first")
        self._do("CREATE ROLE {name} LOGIN PASSWORD {password}", password="first")
        self._do("GRANT ALL ON SCHEMA public TO {name}")
        self.grant()

    def grant(self) -> None:
        """Let it use all tables that are there."""
        for kind in _TABLES:
            self._admin.execute(sql.SQL(f"GRANT ALL ON ALL {kind} IN SCHEMA public TO {{}}").format(self._ident))

    @property
    def _ident(self) -> sql.Identifier:
        return sql.Identifier(self.name)

    def limit(self, connections: int) -> None:
        """Let the role have so many connections at once; those over it that it has are ended.

        A superuser's are never limited, and this role is none.
        """
        self._do("ALTER ROLE {name} CONNECTION LIMIT {number}", number=connections)
        if not connections:
            self.end_all()

    def change_password(self, password: str) -> None:
        """Change it on the server alone, and end all connections of the role."""
        self._do("ALTER ROLE {name} PASSWORD {password}", password=password)
        self.end_all()

    def note(self, password: str) -> None:
        """Write the password into the files that are read at each connection: libpq's, and ours."""
        plain = self.secret.with_name(f"password.{uuid.uuid4().hex}")
        plain.touch(mode=0o640)
        plain.write_text(f"{password}\n", encoding="ascii")
        plain.replace(self.secret)
        draft = self.file.with_name(f"passfile.{uuid.uuid4().hex}")
        draft.touch(mode=0o600)
        draft.write_text(f"*:*:*:{self.name}:{password}\n", encoding="ascii")
        draft.replace(self.file)

    def end_all(self) -> int:
        """End all connections of the role, and return how many; one that is let in just now is not among them."""
        ended = self._admin.execute(
            "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE usename = %s", [self.name]
        )
        return len(ended.fetchall())

    @contextmanager
    def asked_for_a_password(self) -> Iterator[None]:
        """Have the server ask the role for its password, which it trusts otherwise, as it does all of this machine."""
        (found,) = self._admin.execute("SHOW hba_file").fetchone() or ("",)
        path, line = Path(found), _LINE.format(name=self.name)
        path.write_text(line + path.read_text(encoding="utf-8"), encoding="utf-8")
        self._admin.execute("SELECT pg_reload_conf()")
        end = time.monotonic() + _PATIENCE
        while self._trusted():
            assert time.monotonic() < end, "the server does not ask"
            Event().wait(0.05)
        try:
            yield
        finally:
            path.write_text(path.read_text(encoding="utf-8").replace(line, ""), encoding="utf-8")
            self._admin.execute("SELECT pg_reload_conf()")

    def close(self) -> None:
        """Be gone."""
        self.end_all()
        self._do("DROP OWNED BY {name}")
        self._do("DROP ROLE {name}")
        self._admin.close()

    def _trusted(self) -> bool:
        place = make_url(self.url).difference_update_query(["password_file"])
        url = place.set(drivername="postgresql", password="wrong").render_as_string(hide_password=False)
        with suppress(psycopg.OperationalError):
            psycopg.connect(url, passfile=os.devnull).close()
            return True
        return False

    def _do(self, statement: str, **literals: str | int) -> None:
        values = {name: sql.Literal(value) for name, value in literals.items()}
        self._admin.execute(sql.SQL(statement).format(name=self._ident, **values))


@contextmanager
def limited(url: str, folder: Path) -> Iterator[Role]:
    """Give a role of its own on a ledger, which is made.

    Args:
        url: Of an empty database.
        folder: Where the file of the password goes.
    """
    Database.open(url).close()
    role = Role(url, folder)
    try:
        yield role
    finally:
        role.close()
