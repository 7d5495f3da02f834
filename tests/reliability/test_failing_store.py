"""One call of the store fails: every one in its turn, before its work and after it."""

from __future__ import annotations

import itertools
import random
import sqlite3
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event, exc

from conftest import Figure
from remegraph import LedgerUnavailableError, MemoryKit, RemegraphError, Settings, SummaryPolicy
from remegraph.errors import ModelUnavailableError, VectorIndexError
from remegraph.ledger.index.embedders import HashedEmbedder
from remegraph.testing import FailingCall, FrozenClock, InMemoryVectorIndex, ScriptedChatModel
from tests import talk
from tests.talk import ANN, NOON, create, digest, proposal, said

FACTS = {"Ann loves hiking.", "Zoe plays chess."}
MESSAGES = [
    said("I love hiking in the hills.", message_id="1"),
    said("I play chess on Sundays.", name="Zoe", minutes=1, message_id="2"),
]


def ledger_fails() -> Exception:
    return LedgerUnavailableError("The ledger cannot be used: disk I/O error.", "Check the disk.")


def index_fails() -> Exception:
    return VectorIndexError("The index failed.")


def embedder_fails() -> Exception:
    return ModelUnavailableError("The embedder did not answer.")


ARCHIVE = dict.fromkeys(
    (
        "visible", "add_messages", "messages", "layout", "tails", "add_blocks", "blocks", "summaries", "topics",
        "memories", "work", "match", "commit",
    ),
    ledger_fails,
)  # fmt: skip

PROJECTION = dict.fromkeys(("sync", "nearest"), index_fails)
INDEX = dict.fromkeys(("upsert", "delete", "query"), index_fails)
EMBEDDER = {"embed": embedder_fails}
WRITES = ("BEGIN IMMEDIATE", "SELECT pg_advisory_xact_lock", "INSERT", "UPDATE", "DELETE")


def open_kit(home: Path, embedder: HashedEmbedder | None = None) -> MemoryKit:
    def propose(call: Any) -> dict[str, Any]:
        if "Topic: personal:Zoe" in call.text:
            return proposal(create("Zoe plays chess.", 2, "I play chess"))
        return proposal(create("Ann loves hiking.", 1, "I love hiking"))

    script = {"DigestAnswer": digest("personal:Ann", "personal:Zoe"), "ProposalAnswer": propose}
    urls = talk.urls_of(home)
    return MemoryKit.open(
        settings=Settings(home=home, summary=SummaryPolicy(backoff=0, reviser="rules"), **urls),
        model=ScriptedChatModel(script=script),
        embedder=embedder or HashedEmbedder(),
        index=None if urls else InMemoryVectorIndex(),
        clock=FrozenClock(NOON),
    )


def strides(setup: str) -> tuple[int, int]:
    """Which call fails first, and how many are passed over to the next: none in files, two of three on servers."""
    stride = 1 if setup == "sqlite" else 3  # a second each, with a database of its own
    return random.randint(1, stride), stride


def use(kit: MemoryKit) -> bool:
    """Add, summarise and recall; each error must be one of ours, and say its cure and that it may pass.

    Returns:
        Whether all went well.
    """
    errors: list[RemegraphError] = []
    steps: list[Callable[[], object]] = [
        lambda: kit.add_messages(MESSAGES, scope=ANN),
        lambda: kit.summarize(scope=ANN, close=True),
        lambda: kit.recall("Who loves hiking?", scope=ANN, depth="messages"),
    ]
    for step in steps:
        try:
            step()
        except RemegraphError as error:
            errors.append(error)
    assert all(error.cure and error.retryable for error in errors)
    return not errors


def check(kit: MemoryKit) -> None:
    """What must be there in the end: all of it, once."""
    kit.work.retry(scope=ANN)
    assert [message.message_id for message in kit.sources.retrieve_message(scope=ANN)] == ["1", "2"]
    assert sorted(memory.content for memory in kit.memories(scope=ANN)) == sorted(FACTS)
    assert {memory.version for memory in kit.memories(scope=ANN)} == {1}
    assert len(kit.sources.blocks(scope=ANN)) == 1
    assert kit.work.list(scope=ANN) == ()
    events = kit.context.parts().archive.events(kit.context.parts().archive.visible(ANN))
    assert Counter(each.action for each in events)["create"] == 2
    found = kit.recall("Who loves hiking?", scope=ANN, depth="messages")
    assert found.memories[0].text == "Ann loves hiking."
    assert found.messages
    assert found.degraded == ()
    assert kit.admin.verify().healthy


@pytest.mark.slow
@pytest.mark.requirement("X2", "X3", "X9")
@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
def test_a_failing_call_of_any_part_loses_and_doubles_nothing(
    tmp_path: Path, setup: str, late: bool, figure: Figure
) -> None:
    """Disks, servers and networks fail at any moment; the next run must find everything, once."""
    first, stride = strides(setup)
    for n in itertools.count(first, stride):
        failing = FailingCall(n, late=late)
        embedder = HashedEmbedder()
        with open_kit(tmp_path / str(n), embedder) as kit:
            parts = kit.context.parts()
            doors = (ARCHIVE, PROJECTION, INDEX, EMBEDDER)
            for part, each in zip(
                (parts.archive, parts.projection, parts.projection._index, embedder), doors, strict=True
            ):
                failing.guard(part, each)
            use(kit)
            clean, failing.n = not failing.failed, 0
            assert use(kit), f"the run after a failure of {failing.calls[n - 1]} (call {n}) failed too"
            check(kit)
        if clean:
            break
    assert n > 25
    told = f"{setup}: {(n - first) // stride} calls failed, each {stride}. from {first}"
    figure(f"bar 09: store faults {'after' if late else 'before'} the work", told)


@pytest.mark.slow
@pytest.mark.requirement("X2", "X3", "X9")
def test_a_failing_write_of_the_ledger_loses_and_doubles_nothing(tmp_path: Path, setup: str, figure: Figure) -> None:
    """A disk error, or a connection that breaks, may come in the middle of a transaction: then all of it is undone."""
    first, stride = strides(setup)
    for n in itertools.count(first, stride):
        with open_kit(tmp_path / str(n)) as kit:
            engine = kit.context.parts().archive.database.engine
            seen, heal = _fail_statement(engine, n)
            use(kit)
            heal()
            clean = len(seen) < n
            assert use(kit), f"the run after a failure of statement {n} failed too: {seen[n - 1]}"
            check(kit)
        if clean:
            break
    assert n > 30
    figure(
        "bar 09: failing SQL writes", f"{setup}: {(n - first) // stride} statements failed, each {stride}. from {first}"
    )


def _fail_statement(engine: Engine, n: int) -> tuple[list[str], Callable[[], None]]:
    """Let the n-th statement that writes fail: as SQLite fails on a bad disk, or on a connection that is gone.

    Returns:
        The list of those seen, which grows, and what ends it.
    """
    seen: list[str] = []

    def before(_connection: object, cursor: Any, statement: str, *_: object) -> None:
        if statement.startswith(WRITES):
            seen.append(statement)
            if len(seen) == n:
                if engine.dialect.name == "postgresql":
                    cursor.connection.close()
                    return
                raise exc.OperationalError(statement, None, sqlite3.OperationalError("disk I/O error"))

    event.listen(engine, "before_cursor_execute", before)
    return seen, lambda: event.remove(engine, "before_cursor_execute", before)
