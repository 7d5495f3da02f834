"""How soon the inspector's pages are there with 100,000 messages of one user behind them.

    python -m evals inspector [--messages 100000]

Generated messages go in in batches, and one memory for each five of them. Then each page is asked for in turn, over the
whole way but the network: routing, guard, kit, template. The first page has a bar; the others are for information.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from urllib.parse import quote

from starlette.testclient import TestClient

from evals._figures import Figure, finish
from evals._talk import PER_MEMORY, Talk, learn
from remegraph import MemoryKit
from remegraph.servers.inspector import Session, inspector

__all__ = ["main"]

_HOST = "127.0.0.1:8765"
_BATCH = 1000


def _furnish(kit: MemoryKit, talk: Talk, messages: int) -> None:
    scope = talk.scope(0)
    for _ in range(0, messages, _BATCH):
        kit.add_messages(talk.messages(_BATCH), scope=scope)
    for at in range(0, messages // PER_MEMORY, _BATCH):
        learn(kit, talk.memories(scope.partition(), _BATCH, f"learn {at}"))


def _figures(kit: MemoryKit, talk: Talk, runs: int) -> Iterator[Figure]:
    scope, session = talk.scope(0), Session()
    memory = kit.memories(scope=scope, limit=1)[0]
    _, question = next(iter(talk.questions(1, 1)))
    client = TestClient(inspector(kit, scope, session=session, hosts=[_HOST]), base_url=f"http://{_HOST}")
    pages = {
        "first page": "/",
        "memories": "/memories",
        "memories, page 20": "/memories?page=20",
        "a memory": f"/memory?id={memory.memory_id}",
        "timeline": "/timeline",
        "recall": f"/recall?q={quote(question)}",
        "conflicts": "/conflicts",
        "quarantine": "/quarantine",
        "health": "/health",
        "drawing (after the first page)": "/graph",
        "opening a topic": f"/graph/topic?topic={quote(memory.topic.key)}",
        "forecast": "/forecast",
        "journal, of all days": "/audit?since=2020-01-01",
    }
    with client:
        client.get(f"/login?token={session.token}")
        for name, address in pages.items():
            times = []
            for _ in range(runs):
                began = time.perf_counter()
                answer = client.get(address)
                times.append(time.perf_counter() - began)
                assert answer.status_code == 200, (name, answer.status_code)
            bar = 1.0 if address == "/" else None
            yield Figure(name, statistics.median(times), bar, "under", "s", f"slowest {max(times):.2f}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and end with 0 where the first page is there in under a second."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=100_000, help="how many (100000)")
    parser.add_argument("--runs", type=int, default=3, help="of each page (3)")
    given = parser.parse_args(arguments)
    talk = Talk()
    with tempfile.TemporaryDirectory() as home, MemoryKit.open(home, model=None, embedder=None) as kit:
        _furnish(kit, talk, given.messages)
        finish(list(_figures(kit, talk, given.runs)))


if __name__ == "__main__":
    main()
