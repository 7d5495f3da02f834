"""What is known about a memory beside what it says."""

from __future__ import annotations

import threading
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy.exc import OperationalError

from remegraph import MemoryKit, NotFoundError, Scope, Settings
from remegraph.kit import OpenOptions, SaveOptions
from remegraph.kit.write_buffers import ReviewBuffer
from remegraph.ledger.archive import Archive
from remegraph.models import Hit, Shown, Subject, ToolRecord
from remegraph.testing import FrozenClock, InMemoryVectorIndex, SequentialIds
from tests.talk import ANN, NOON, open_kit, said

pytestmark = pytest.mark.requirement("F8")


def clocked(home: Path, clock: FrozenClock) -> MemoryKit:
    """A kit whose time stands still."""
    return MemoryKit.open(
        settings=Settings(home=home),
        model=None,
        embedder=None,
        index=InMemoryVectorIndex(),
        clock=clock,
        options=OpenOptions(new_id=SequentialIds()),
    )


def test_a_memory_tells_its_source_its_voice_and_its_feeling(tmp_path: Path) -> None:
    """Who wonders why an agent believes something starts here."""
    with open_kit(tmp_path) as kit:
        saved = kit.save(
            "mushrooms",
            "Ann hates mushrooms.",
            scope=ANN,
            category="preference",
            options=SaveOptions(session="monday", sentiment=-0.8),
        ).memory
        assert saved is not None
        known = kit.retention.metadata(saved.memory_id, scope=ANN)
        assert (known.memory_type, known.source_session_id, known.sentiment) == ("preference", "monday", -0.8)
        assert (known.source, known.extractor_model_id) == ("tool-call", saved.extractor)
        assert (known.access_count, known.last_accessed_at, known.previous_version_id) == (0, None, None)


def test_what_was_learned_names_its_thread_agent_and_former_version(tmp_path: Path) -> None:
    """A memory's path is followed backwards, version by version."""
    scope = Scope(user="ann", agent="remy")
    with open_kit(tmp_path) as kit:
        kit.add_messages([said("I live in Lisbon now.", thread="Lisbon")], scope=scope)
        kit.summarize(scope=scope, close=True)
        (old,) = kit.memories(scope=scope)
        new = kit.save("home", "I live in Porto now.", scope=scope, supersedes=[old.memory_id]).memory
        assert new is not None
        assert kit.retention.metadata(new.memory_id, scope=scope).previous_version_id == old.memory_id
        known = kit.retention.metadata(old.memory_id, scope=scope)
        assert (known.source_session_id, known.source_agent_id) == ("Lisbon", "remy")
        assert known.previous_version_id == f"{old.memory_id}@1"


def test_recall_counts_accesses_and_writes_them_later(tmp_path: Path) -> None:
    """Forgetting and ranking need to know what is used, but no answer may wait for a write."""
    clock = FrozenClock(NOON)
    with clocked(tmp_path, clock) as kit:
        saved = kit.save("tea", "Ann likes sencha tea.", scope=ANN).memory
        assert saved is not None
        kit.recall("sencha", scope=ANN)
        clock.move(timedelta(hours=1))
        kit.recall("sencha", scope=ANN)
        known = kit.retention.metadata(saved.memory_id, scope=ANN)
        assert (known.access_count, known.last_accessed_at) == (2, NOON + timedelta(hours=1))
        assert kit.admin.stats()["reviews"] == 0
        kit.drain()
        assert kit.admin.stats()["reviews"] == 2
        assert kit.retention.metadata(saved.memory_id, scope=ANN) == known
        kit.recall("sencha", scope=ANN)
    with clocked(tmp_path, clock) as kit:
        assert kit.retention.metadata(saved.memory_id, scope=ANN).access_count == 3


def test_another_user_sees_no_metadata(tmp_path: Path) -> None:
    """An id that leaked is of no use."""
    with open_kit(tmp_path) as kit:
        saved = kit.save("tea", "Ann likes sencha tea.", scope=ANN).memory
        assert saved is not None
        with pytest.raises(NotFoundError):
            kit.retention.metadata(saved.memory_id, scope=Scope(user="mallory"))


def test_reviews_that_cannot_be_written_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk for a minute must not make a memory look unused."""
    with open_kit(tmp_path) as kit:
        saved = kit.save("tea", "Ann likes sencha tea.", scope=ANN).memory
        assert saved is not None
        (hit,) = kit.recall("sencha", scope=ANN).memories

        def full(*_: object) -> None:
            raise OperationalError("INSERT", {}, Exception("disk is full"))

        with monkeypatch.context() as patched:
            patched.setattr(Archive, "add_reviews", full)
            kit.drain()
        assert kit.admin.stats()["background_failures"] == 1
        assert kit.retention.metadata(saved.memory_id, scope=ANN).access_count == 1
        assert isinstance(hit, Hit)


def test_a_note_that_cannot_be_written_costs_no_other(ledger_url: str, tmp_path: Path) -> None:
    """One absurd number among what was noted must not take the good notes along, nor stop an erasure or the close."""
    partition = ANN.partition()

    def shown(turn: int) -> Shown:
        return Shown.model_construct(
            partition=partition, thread="main", run_id="", turn=turn, at=NOON, versions={"m": 1}
        )

    def called(call_id: str, tokens: int) -> ToolRecord:
        return ToolRecord(
            partition=partition, call_id=call_id, tool="t", digest=call_id, ok=True, input_tokens=tokens, time=NOON
        )

    settings = Settings(home=tmp_path, ledger_url=ledger_url, journal_key="a key of this test")
    for absurd in ([2**63], [1, 2**63, 2]):
        with MemoryKit.open(settings=settings, model=None, embedder=None, index=InMemoryVectorIndex()) as kit:
            kit.context.shown.add([shown(number) for number in absurd])
            kit.context.calls.add([called(f"c{number}", number) for number in absurd])
            kit.save("tea", "Bob likes tea.", scope=Scope(user="bob"))
            kit.admin.erase(Subject(tenant="default", user="bob"))
            assert kit.admin.stats()["background_failures"] == 2
    with MemoryKit.open(settings=settings, model=None, embedder=None, index=InMemoryVectorIndex()) as kit:
        assert [each.shown.turn for each in kit.governance.known_to(thread="main", scope=ANN)] == [1, 2]
        assert [each.calls for each in kit.tools.stats(scope=ANN)] == [2]


def test_many_reviews_ask_to_be_written(tmp_path: Path) -> None:
    """A service that only recalls keeps no endless list in memory."""
    with open_kit(tmp_path) as kit:
        kit.save("tea", "Ann likes sencha tea.", scope=ANN)
        (hit,) = kit.recall("sencha", scope=ANN).memories
        buffer = ReviewBuffer(kit.context.parts().archive, kit.context.health)
        assert not buffer.note([hit] * 255, NOON)
        assert buffer.note([hit], NOON)
        buffer.flush()
        assert not buffer.waiting(hit.record_id)
        assert kit.retention.metadata(hit.record_id, scope=ANN).access_count == 257


def test_recalling_a_lot_starts_no_other_work(tmp_path: Path) -> None:
    """Who summarises when it suits them must not find it begun by a question."""
    with open_kit(tmp_path) as kit:
        for number in range(20):
            kit.save(f"tea {number}", f"Ann likes sencha tea number {number}.", scope=ANN)
        kit.add_messages([said("I live in Lisbon.")], scope=ANN)
        blocks = len(kit.sources.blocks(scope=ANN))
        for _ in range(30):
            kit.recall("sencha tea", scope=ANN, k=20)
        for thread in [each for each in threading.enumerate() if each.name == "remegraph-notes"]:
            thread.join()
        assert int(kit.admin.stats()["reviews"]) >= 512
        assert kit.admin.stats()["jobs_waiting"] == 1
        assert len(kit.sources.blocks(scope=ANN)) == blocks
