"""Several processes on one home, and a Chroma server that dies."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from conftest import Figure
from evals._servers import ChromaServer
from remegraph import MemoryKit
from remegraph.errors import IndexOwnedError
from remegraph.kit import OpenOptions
from tests.reliability.host import Host

pytestmark = pytest.mark.requirement("X2", "X3", "X5")

CLIENTS, KILLS = 3, 8


@pytest.fixture
def owner() -> Iterator[Host]:
    with Host() as started:
        yield started


@pytest.fixture
def second() -> Iterator[Host]:
    with Host() as started:
        yield started


@pytest.mark.slow
def test_a_second_process_writes_and_recalls_and_the_owner_indexes_it_later(
    owner: Host, second: Host, tmp_path: Path
) -> None:
    """A notebook beside the service: it must work, must say how it searches, and must not touch the index."""
    home = str(tmp_path)
    assert owner("open", home=home) == "chroma"
    owner("learn", memories={"first": "Ann likes green tea"})
    owner("sync")
    assert second("open", home=home) == "sql"
    assert second("recall", query="green tea") == ["sql", ["first"]]
    assert second("add", texts=["I like black coffee."], prefix="x") == ["x0"]
    second("learn", memories={"second": "Ann likes black coffee"})
    second("sync")
    assert second("recall", query="black coffee")[1][0] == "second"
    assert owner("recall", query="black coffee")[1][0] == "second"  # before the index knows it
    assert "dirty set: second pending" in owner("verify")[1]
    second("close")
    owner("close")
    assert owner("open", home=home) == "chroma"
    owner("sync")
    assert owner("verify")[1] == []
    assert owner("recall", query="black coffee") == ["chroma", ["second", "first"]]
    assert owner("messages") == ["x0"]
    owner("close")


@pytest.mark.slow
def test_whoever_needs_the_index_is_refused_at_once_while_another_has_it(
    owner: Host, tmp_path: Path, figure: Figure
) -> None:
    """A service that counts on the index should fail at its start, with the cure, not be slow later."""
    owner("open", home=str(tmp_path))
    seconds = []
    for _ in range(2):  # the first time, a good part of it is imports
        began = time.process_time()
        with pytest.raises(IndexOwnedError, match="chroma run"):
            MemoryKit.open(tmp_path, model=None, embedder=None, options=OpenOptions(require_index=True))
        seconds.append(time.process_time() - began)
    assert seconds[1] < 1
    figure("bar 07: refused while another owns the index, seconds of processor", seconds[1])
    owner("close")


@pytest.mark.slow
def test_a_server_that_is_killed_again_and_again_loses_nothing(tmp_path: Path, figure: Figure) -> None:
    """Three processes share a ledger and a server; whatever the server forgets, the ledger knows."""
    server = ChromaServer(tmp_path)
    learned: dict[str, str] = {}
    failed = 0
    with ExitStack() as opened:
        hosts = [opened.enter_context(Host()) for _ in range(CLIENTS)]
        for turn in range(KILLS):
            with server.running() as process:
                for number, host in enumerate(hosts):
                    if not turn:
                        host("open", home=str(tmp_path / "home"), chroma_url=server.url)
                    memories = {f"m{turn}-{number}-{n}": f"{turn} {number} {n} is {n * 7919:x}" for n in range(40)}
                    host("learn", memories=memories)
                    learned |= memories
                    if number == turn % CLIENTS:
                        process.kill()
                        process.wait()
                    failed += bool(host("try_sync"))
                    assert f"m{turn}-{number}-7" in host("recall", query=memories[f"m{turn}-{number}-7"])[1]
        with server.running():
            hosts[0]("sync")
            assert hosts[0]("verify")[1] == []
            index, ids = hosts[1]("recall", query=learned["m0-0-7"])
            assert (index, "m0-0-7" in ids) == ("chroma", True)
    assert failed >= KILLS
    figure("bar 07: server", f"{CLIENTS} clients, {KILLS} kills, {len(learned)} memories: 0 lost, all vectors found")
