"""Networks that are slow, deaf, cut, or gone on one side: nobody waits for long, and no lock outlives its holder."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from statistics import median, quantiles
from typing import TypeVar
from urllib.parse import urlsplit

import pytest
from sqlalchemy import make_url

from conftest import Figure
from remegraph import MemoryKit, RecallPolicy, Settings
from remegraph.models import Recall
from tests.proxy import FaultyProxy
from tests.reliability.host import ANN, Host, HostDiedError
from tests.talk import SHARED_KEY

pytestmark = [pytest.mark.slow, pytest.mark.requirement("X3")]

T = TypeVar("T")
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


TURNS = 30


@pytest.mark.impatient
@pytest.mark.parametrize("fault", ["2 s each way", "deaf"])
def test_nobody_waits_for_a_chroma_server_that_is_late_or_deaf(
    fault: str, postgres_url: str, chroma_url: str, tmp_path: Path, figure: Figure
) -> None:
    """All that it knows stands in the ledger, too: an agent that answers a person must not hang on it."""
    port = urlsplit(chroma_url).port
    assert port is not None
    with ExitStack() as opened:
        proxy = opened.enter_context(FaultyProxy(("127.0.0.1", port)))
        kit = MemoryKit.open(
            settings=Settings(
                home=tmp_path,
                ledger_url=postgres_url,
                journal_key=SHARED_KEY,
                chroma_url=proxy.url,
                recall=RecallPolicy(exact_limit=0),
            ),
            model=None,
            embedder=None,
        )
        opened.enter_context(kit)
        save(kit, 0)
        kit.admin.verify()
        assert timed(lambda: recalled(kit, 0))[1].index == "chroma"
        before = Turns(kit, range(1, TURNS))
        proxy.delay, proxy.deaf = (2.0, False) if fault != "deaf" else (0.0, True)
        turns = Turns(kit, range(TURNS, 2 * TURNS))
        proxy.delay, proxy.deaf = 0.0, False
        proxy.cut()
        figure(f"bar 26: Chroma {fault}", f"{turns}; before: {before}")
        for number, found in turns.recalls.items():
            assert f"number {number}." in found.memories[0].text
            assert found.index == "sql"
            assert any("vector index" in each for each in found.degraded)
        # What a busy machine adds was there before.
        assert p95(turns.recalling) < 0.8 + p95(before.recalling)
        assert p95(turns.saving) < 0.5 + p95(before.saving)
        assert p95(turns.adding) < 0.5 + p95(before.adding)


class Turns:
    """Some turns of an agent: a message, a memory and a recall each; and how long they took."""

    def __init__(self, kit: MemoryKit, numbers: range) -> None:
        self.adding, self.saving, self.recalling = list[float](), list[float](), list[float]()
        self.recalls: dict[int, Recall] = {}
        for number in numbers:
            add, write, read = partial(say, kit, number), partial(save, kit, number), partial(recalled, kit, number)
            self.adding.append(timed(add)[0])
            self.saving.append(timed(write)[0])
            seconds, self.recalls[number] = timed(read)
            self.recalling.append(seconds)

    def __str__(self) -> str:
        return ", ".join(
            f"{name} p95 {p95(seconds):.2f} s, median {median(seconds):.2f} s, longest {max(seconds):.2f} s"
            for name, seconds in (("recall", self.recalling), ("save", self.saving), ("add", self.adding))
        )


def say(kit: MemoryKit, number: int) -> None:
    kit.add_messages([f"I bought tea number {number}."], scope=ANN)


def save(kit: MemoryKit, number: int) -> None:
    kit.save(f"tea {number}", f"Ann bought tea number {number}.", scope=ANN)


def recalled(kit: MemoryKit, number: int) -> Recall:
    return kit.recall(f"Who bought tea number {number}?", scope=ANN)


def timed(call: Callable[[], T]) -> tuple[float, T]:
    began = time.perf_counter()
    found = call()
    return time.perf_counter() - began, found


def p95(seconds: list[float]) -> float:
    return quantiles(seconds, n=20)[-1]
