"""How often a verb asks the ledger: to a server far away, each time is what a caller waits for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from sqlalchemy import event, make_url
from sqlalchemy.engine import Engine

from remegraph import MemoryKit, Scope
from remegraph.settings import CapturePolicy, Settings
from tests.proxy import FaultyProxy
from tests.talk import ANN, SHARED_KEY

OTHER = Scope(user="zoe", agent="remy")

STATEMENTS = {"add": 8, "summarize": 71, "recall": 20, "save": 57, "capture": 17}
ROUND_TRIPS = {"add": 13, "recall": 25, "capture": 27}
"""One or two more than are needed, as what the index does beside is counted, too; of verbs that leave it nothing to do."""


def _verbs(kit: MemoryKit, hobby: str) -> Mapping[str, Callable[[], object]]:
    said = [{"role": "user", "name": "Ann", "content": f"I love {hobby}."}]
    turn = [*said, {"role": "assistant", "content": f"{hobby} suits you."}]
    return {
        "add": lambda: kit.add_messages(said, scope=ANN),
        "summarize": lambda: kit.summarize(scope=ANN, close=True),
        "recall": lambda: kit.recall("What does Ann love?", scope=ANN, depth="messages"),
        "save": lambda: kit.save(hobby, f"Berta is fond of {hobby}.", scope=ANN),
        "capture": lambda: kit.capture(turn, scope=OTHER, thread="talk"),
    }


def _counted(kit: MemoryKit, count: Callable[[], int]) -> dict[str, int]:
    """Return how much each verb counts, called for the second time: the first one finds nothing built."""
    for verb in _verbs(kit, "hiking in Wales").values():
        verb()
    found: dict[str, int] = {}
    for name, verb in _verbs(kit, "chess on Sundays").items():
        before = count()
        verb()
        found[name] = count() - before
    return found


def _too_many(found: Mapping[str, int], most: Mapping[str, int]) -> dict[str, int]:
    return {name: found[name] for name, bound in most.items() if found[name] > bound}


@pytest.fixture
def statements() -> Iterator[list[str]]:
    """What reaches a database, but for what the index does in the background."""
    seen: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if not threading.current_thread().name.startswith("remegraph-index"):
            seen.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    yield seen
    event.remove(Engine, "before_cursor_execute", note)


def _settings(home: Path, ledger_url: str | None = None) -> Settings:
    return Settings(home=home, ledger_url=ledger_url, journal_key=SHARED_KEY, capture=CapturePolicy(background=False))


def test_verbs_ask_the_ledger_in_few_statements(tmp_path: Path, statements: list[str]) -> None:
    """A user with a thousand messages pays for each of them at each turn."""
    with MemoryKit.open(settings=_settings(tmp_path), model=None, embedder=None) as kit:
        found = _counted(kit, lambda: len(statements))
    assert _too_many(found, STATEMENTS) == {}


def test_verbs_wait_for_a_server_far_away_a_few_times(tmp_path: Path, postgres_url: str) -> None:
    """At 400 ms there and back, 180 round trips of a save took 72 seconds."""
    url = make_url(postgres_url)
    with FaultyProxy(Path(str(url.query["host"])) / ".s.PGSQL.5432") as proxy:
        through = url.set(host="127.0.0.1", port=proxy.port, query={}).render_as_string(hide_password=False)
        settings = _settings(tmp_path, through)
        with MemoryKit.open(settings=settings, model=None, embedder=None, index=None) as kit:
            found = _counted(kit, lambda: proxy.round_trips)
    assert _too_many(found, ROUND_TRIPS) == {}


def test_a_recall_reads_memories_as_often_over_eight_topics_as_over_two(tmp_path: Path, statements: list[str]) -> None:
    """Each topic had read its own, and what was shown beside them was read once more: 11 times for 136 memories."""
    with MemoryKit.open(settings=_settings(tmp_path), model=None, embedder=None) as kit:
        read, found = list[int](), list[int]()
        for topics in (("Ann", "Bob"), ("Cem", "Dora", "Eve", "Finn", "Gus", "Hal")):
            for name in topics:
                kit.save("tea", f"{name} drinks tea in the garden.", scope=ANN, topic=f"personal:{name}")
            before = len(statements)
            recall = kit.recall("Who drinks tea?", scope=ANN)
            read.append(sum("memories.body" in each for each in statements[before:]))
            found.append(len(recall.topics))
    assert found == [2, 8]
    assert read[1] <= read[0] <= 3
