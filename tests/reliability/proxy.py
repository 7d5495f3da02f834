"""A wire to PostgreSQL that can be cut at the worst moment: when a COMMIT is on its way, before or after it took effect."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Lock, Thread
from typing import Literal

from sqlalchemy import make_url

__all__ = ["Wire", "wired"]

Moment = Literal["before", "after"]

_COMMIT = b"COMMIT\x00"
_WRITES = b"INSERT INTO messages"


class Wire:
    """Passes bytes on, both ways, between clients on a loopback port and the socket of a server.

    Args:
        upstream: The socket of the server.
    """

    def __init__(self, upstream: str) -> None:
        self._upstream = upstream
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._cuts: list[Moment] = []
        self._lock = Lock()
        self.cut = 0
        """How often it was cut."""
        Thread(target=self._accept, daemon=True).start()

    def arm(self, *moments: Moment) -> None:
        """Cut the next COMMIT of messages and those that follow, as many as are given.

        Args:
            moments: Of each: before the server sees it, or after, before its answer is passed on.
        """
        with self._lock:
            self._cuts, self.cut = list(moments), 0

    def close(self) -> None:
        """Take no more clients."""
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):  # it is closed
            while True:
                client, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(self._upstream)
                Thread(target=self._ask, args=(client, server), daemon=True).start()

    def _ask(self, client: socket.socket, server: socket.socket) -> None:
        answers = Thread(target=_pump, args=(server, client), daemon=True)
        answers.start()
        writes = False
        with client, server, suppress(OSError):
            while data := client.recv(65536):
                writes = writes or _WRITES in data
                moment = self._moment(first=writes) if _COMMIT in data else None
                writes = writes and _COMMIT not in data
                if moment is None:
                    server.sendall(data)
                    continue
                client.shutdown(socket.SHUT_RDWR)  # what the server answers reaches nobody
                if moment == "after":
                    server.sendall(data)
                break
            server.shutdown(socket.SHUT_WR)  # it does what it has heard, and hangs up
            answers.join()

    def _moment(self, *, first: bool) -> Moment | None:
        with self._lock:
            if not self._cuts or not (self.cut or first):
                return None
            self.cut += 1
            return self._cuts.pop(0)


def _pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            with suppress(OSError):  # whoever asked is gone: let the server say what it has to say
                target.sendall(data)
        target.shutdown(socket.SHUT_RDWR)


@contextmanager
def wired(url: str) -> Iterator[tuple[str, Wire]]:
    """Give the URL of a ledger by way of a wire, and the wire.

    Args:
        url: Of a database on a server that listens on a socket of this machine.
    """
    parsed = make_url(url)
    folder = str(parsed.query["host"])
    wire = Wire(f"{folder}/.s.PGSQL.{parsed.query.get('port', 5432)}")
    told = parsed.set(host="127.0.0.1", port=wire.port, query={"sslmode": "disable"})
    try:
        yield told.render_as_string(hide_password=False), wire
    finally:
        wire.close()
