"""Networks that are slow, deaf, cut, or gone on one side: nobody waits for long, and no lock outlives its holder."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import make_url

from conftest import Figure
from remegraph import MemoryKit, Settings
from tests.proxy import FaultyProxy
from tests.reliability.host import ANN, Host, HostDiedError
from tests.talk import SHARED_KEY

pytestmark = [pytest.mark.slow, pytest.mark.requirement("X3")]

PATIENCE = 30
"""Seconds that a test waits before it fails; none waits so long where all is well."""


@contextmanager
def before_postgres(url: str) -> Iterator[tuple[FaultyProxy, str]]:
    """A proxy before PostgreSQL, and the ledger's URL that leads through it."""
    parsed = make_url(url)
    folder = parsed.query["host"]
    with FaultyProxy(Path(str(folder)) / ".s.PGSQL.5432") as proxy:
        through = parsed.set(host="127.0.0.1", port=proxy.port, query={})
        yield proxy, through.render_as_string(hide_password=False)


@pytest.mark.parametrize("swallowed", ["INSERT INTO messages", "COMMIT"])
def test_who_vanishes_while_it_writes_holds_up_the_next_write_for_seconds_only(
    swallowed: str, postgres_url: str, tmp_path: Path, figure: Figure
) -> None:
    """A machine goes down, or a network with it: its user writes on from another one, not two hours later."""
    here = Settings(home=tmp_path / "here", ledger_url=postgres_url, journal_key=SHARED_KEY)
    with (
        ThreadPoolExecutor(2) as pool,
        MemoryKit.open(settings=here, model=None, embedder=None) as kit,
        before_postgres(postgres_url) as (proxy, through),
        Host() as host,
    ):
        host("open", home=str(tmp_path / "there"), ledger_url=through, journal_key=SHARED_KEY)
        proxy.deaf_from = [b"pg_advisory_xact_lock", swallowed.encode()]
        adding = pool.submit(host, "add", texts=["I live in Lisbon."])
        assert proxy.swallowed.wait(PATIENCE)
        host.process.kill()
        with pytest.raises(HostDiedError):
            adding.result(PATIENCE)
        began = time.perf_counter()
        pool.submit(kit.add_messages, ["I love tea."], scope=ANN).result(PATIENCE)
        took = time.perf_counter() - began
        figure("bar 26: next write after a client vanished, seconds", took)
        assert took < 10
        assert [message.text for message in kit.messages(scope=ANN)] == ["I love tea."]
