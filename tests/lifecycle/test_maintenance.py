"""The run that takes what has faded out of the way: what it moves, and what it leaves alone."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import get_args

import pytest

from remegraph import (
    ConflictError,
    InputError,
    LifecyclePolicy,
    MemoryKit,
    NaiveTimeError,
    NotFoundError,
    RecallFilter,
    Scope,
)
from remegraph.lifecycle import maintenance
from remegraph.models import ChangeSet, Memory, MemoryChange, Receipt
from remegraph.storage.archive import SqlArchive
from tests.lifecycle.clocked import DAY, clocked, saved
from tests.talk import ANN, NOON

pytestmark = pytest.mark.requirement("F5", "G5")

ARCHIVED = RecallFilter(statuses=("archived",))


def statuses(kit: MemoryKit) -> dict[str, str]:
    return {memory.content: memory.status for memory in kit.memories(scope=ANN)}


def rows(kit: MemoryKit) -> dict[str, object]:
    return {name: count for name, count in kit.admin.stats().items() if name in {"memories", "versions", "events"}}


@pytest.mark.requirement("B14")
def test_what_fades_is_lowered_then_archived_and_says_why(tmp_path: Path) -> None:
    """Noise leaves in two steps, each with its formula and numbers in the journal, and nothing is lost."""
    kit, clock = clocked(tmp_path)
    with kit:
        tea = saved(kit, "Ann likes sencha tea.")
        vow = saved(kit, "Ann must never be called before nine.", importance=0.9)
        clock.move(112 * DAY)
        assert [(move.to, move.action) for move in kit.maintain(scope=ANN).moves] == [("low_priority", "fade")]
        assert kit.recall("sencha", scope=ANN, k=1).memories[0].status == "low_priority"
        clock.move(400 * DAY)
        assert [(move.to, move.action) for move in kit.maintain(scope=ANN).moves] == [("archived", "archive")]
        assert statuses(kit) == {tea.content: "archived", vow.content: "active"}
        assert tea.memory_id not in {hit.record_id for hit in kit.recall("sencha", scope=ANN).memories}
        assert [hit.record_id for hit in kit.recall("sencha", scope=ANN, only=ARCHIVED).memories] == [tea.memory_id]
        explained = kit.explain(tea.memory_id, scope=ANN)
        create, fade, archive = explained.trace.events
        assert (create.action, fade.action, archive.action) == ("create", "fade", "archive")
        assert (archive.actor, archive.version, archive.time) == ("maintenance", 3, clock())
        assert fade.reason.startswith("weight 0.2500 = 0.5 ^ (days / half_life) with days 112, half_life 56,")
        assert [version.content for version in explained.trace.versions] == [tea.content] * 3
        assert kit.admin.verify().healthy


def test_a_dry_run_says_what_would_be_done_and_does_nothing(tmp_path: Path) -> None:
    """Who fears for their memories looks first."""
    kit, clock = clocked(tmp_path)
    with kit:
        saved(kit, "Ann likes sencha tea.")
        clock.move(240 * DAY)
        before = rows(kit)
        would = kit.maintain(scope=ANN, dry_run=True)
        assert rows(kit) == before
        done = kit.maintain(scope=ANN)
        assert (would.dry_run, would.examined, done.dry_run) == (True, 1, False)
        assert done.moves == would.moves
        assert done.moves


def test_nothing_moves_unless_maintenance_is_called(tmp_path: Path) -> None:
    """The default forgets nothing behind anybody's back: it only says what would be forgotten."""
    kit, clock = clocked(tmp_path)
    with kit:
        saved(kit, "Ann likes sencha tea.")
        clock.move(999 * DAY)
        kit.drain()
        kit.summarize(scope=ANN)
        assert len(kit.forecast(scope=ANN)) == 1
        assert statuses(kit) == {"Ann likes sencha tea.": "active"}
        assert kit.recall("sencha", scope=ANN).memories


def test_a_second_run_and_a_run_at_the_same_time_change_nothing_more(tmp_path: Path) -> None:
    """A cron job that fires twice, or on two machines, is no accident."""
    kit, clock = clocked(tmp_path)
    other, _ = clocked(tmp_path, clock, ids="other-")
    with kit, other:
        memories = [saved(kit, f"Note {number} of Ann's.") for number in range(6)]
        clock.move(240 * DAY)
        before = int(kit.admin.stats()["versions"])
        with ThreadPoolExecutor(2) as pool:
            runs = list(pool.map(lambda each: each.maintain(scope=ANN), (kit, other)))
        assert sorted(move.memory.memory_id for run in runs for move in run.moves) == sorted(
            memory.memory_id for memory in memories
        )
        assert set(statuses(kit).values()) == {"archived"}
        after = rows(kit)
        assert after["versions"] == before + len(memories)
        assert kit.maintain(scope=ANN).moves == ()
        assert rows(kit) == after


def test_what_somebody_changes_meanwhile_is_left_to_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A memory that is said again while maintenance runs must not be archived by what was true a moment ago."""
    kit, clock = clocked(tmp_path)
    with kit:
        tea, cat = saved(kit, "Ann likes sencha tea."), saved(kit, "Bob has a grey cat.")
        clock.move(240 * DAY)
        commit = SqlArchive.commit

        def late(archive: SqlArchive, changes: ChangeSet) -> Receipt:
            if changes.actor == maintenance.ACTOR:
                monkeypatch.setattr(SqlArchive, "commit", commit)
                kit.save("note", tea.content, scope=ANN)
            return commit(archive, changes)

        monkeypatch.setattr(SqlArchive, "commit", late)
        done = kit.maintain(scope=ANN)
        assert [move.memory.memory_id for move in done.moves] == [cat.memory_id]
        assert done.skipped == (tea.memory_id,)
        assert statuses(kit) == {tea.content: "active", cat.content: "archived"}
        assert kit.maintain(scope=ANN).moves == ()


def test_a_run_that_was_stopped_is_finished_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A deployment in the middle of the night costs nothing: each batch is whole, and the rest is found again."""
    monkeypatch.setattr(maintenance, "_BATCH", 2)
    kit, clock = clocked(tmp_path)
    with kit:
        for number in range(5):
            saved(kit, f"Note {number} of Ann's.")
        clock.move(240 * DAY)
        commit, batches = SqlArchive.commit, 0

        def once(archive: SqlArchive, changes: ChangeSet) -> Receipt:
            nonlocal batches
            batches += 1
            if batches == 2:
                raise KeyboardInterrupt
            return commit(archive, changes)

        with monkeypatch.context() as patched:
            patched.setattr(SqlArchive, "commit", once)
            with pytest.raises(KeyboardInterrupt):
                kit.maintain(scope=ANN)
        assert list(statuses(kit).values()).count("archived") == 2
        assert len(kit.maintain(scope=ANN).moves) == 3
        assert set(statuses(kit).values()) == {"archived"}


def test_a_library_is_kept_to_its_size_the_faintest_go_first(tmp_path: Path) -> None:
    """A bound on the number of memories holds whatever their weight; what is kept stays, whatever the bound."""
    kit, clock = clocked(tmp_path, lifecycle=LifecyclePolicy(max_entries=3))
    with kit:
        saved(kit, "Ann must never be called before nine.", importance=0.9)
        for number in range(4):
            clock.move(DAY)
            saved(kit, f"Note {number} of Ann's.")
        kit.recall("Note 0", scope=ANN, k=1)
        done = kit.maintain(scope=ANN)
        assert [(move.memory.content, move.action) for move in done.moves] == [
            ("Note 1 of Ann's.", "archive_surplus"),
            ("Note 2 of Ann's.", "archive_surplus"),
        ]
        assert done.moves[0].reason.startswith("one of the faintest of 5, max_entries 3; weight 0.")
        assert kit.maintain(scope=ANN).moves == ()


def test_what_comes_back_into_use_gets_its_priority_back(tmp_path: Path) -> None:
    """An old matter that is current again is no longer set back."""
    kit, clock = clocked(tmp_path)
    with kit:
        saved(kit, "Ann likes sencha tea.")
        clock.move(112 * DAY)
        kit.maintain(scope=ANN)
        kit.recall("sencha", scope=ANN)
        assert [move.action for move in kit.maintain(scope=ANN).moves] == ["revive"]


def test_an_archived_memory_can_be_restored_and_stays(tmp_path: Path) -> None:
    """Forgetting is not deleting: one call brings it back to recall, and counts as a review."""
    kit, clock = clocked(tmp_path)
    with kit:
        tea, cat = saved(kit, "Ann likes sencha tea."), saved(kit, "Bob has a grey cat.")
        clock.move(240 * DAY)
        kit.maintain(scope=ANN)
        saved(kit, cat.content)
        restored = kit.restore(tea.memory_id, scope=ANN)
        assert (restored.status, restored.version) == ("active", 3)
        assert kit.restore(tea.memory_id, scope=ANN) == restored
        assert tea.memory_id in {hit.record_id for hit in kit.recall("sencha", scope=ANN).memories}
        assert kit.maintain(scope=ANN).moves == ()
        with pytest.raises(ConflictError, match="same words"):
            kit.restore(cat.memory_id, scope=ANN)
        kit.forget(tea.memory_id, scope=ANN)
        for wrong in (tea.memory_id, "nowhere"):
            with pytest.raises(NotFoundError):
                kit.restore(wrong, scope=ANN)
        assert kit.admin.verify().healthy


def test_a_forecast_tells_what_goes_next_and_when(tmp_path: Path) -> None:
    """Who wants to keep something sees in time that it is about to go."""
    kit, clock = clocked(tmp_path)
    with kit:
        saved(kit, "Ann must never be called before nine.", importance=0.9)
        big, small = saved(kit, "Ann moved to Porto.", importance=0.8), saved(kit, "Bob has a cat.", importance=0.1)
        assert kit.forecast(10, scope=ANN) == ()
        assert [each.memory.memory_id for each in kit.forecast(120, scope=ANN)] == [small.memory_id]
        found = kit.forecast(240, scope=ANN)
        assert [each.memory.memory_id for each in found] == [small.memory_id, big.memory_id]
        assert found[0].forget_at == kit.explain(small.memory_id, scope=ANN).forget_at
        clock.move(found[0].forget_at - clock())
        kit.maintain(scope=ANN)
        assert statuses(kit)[small.content] != "archived"
        clock.move(DAY)
        kit.maintain(scope=ANN)
        assert statuses(kit)[small.content] == "archived"
        for days in (-1, float("nan"), 1e300):
            with pytest.raises(InputError, match="days is"):
                kit.forecast(days, scope=ANN)


def test_one_user_never_maintains_what_is_anothers_or_shared(tmp_path: Path) -> None:
    """A maintenance run is for whom it is called; others' memories it neither moves nor tells of."""
    kit, clock = clocked(tmp_path)
    with kit:
        tea = saved(kit, "Ann likes sencha tea.")
        kit.remember_self("I am Remy.", scope=ANN, importance=0.2)
        clock.move(240 * DAY)
        bob = Scope(user="bob", agent="remy")
        assert (kit.maintain(scope=bob).examined, kit.forecast(scope=bob)) == (0, ())
        for look in (kit.explain, kit.restore):
            with pytest.raises(NotFoundError):
                look(tea.memory_id, scope=bob)
        assert kit.maintain(scope=ANN).examined == 1
        with pytest.raises(NaiveTimeError):
            kit.explain(tea.memory_id, scope=ANN, at=NOON.replace(tzinfo=None))


@pytest.mark.parametrize("policy", get_args(LifecyclePolicy.model_fields["policy"].annotation))
def test_every_policy_forgets_when_it_said_it_would(tmp_path: Path, policy: str) -> None:
    """A forecast that maintenance does not keep would be no answer."""
    kit, clock = clocked(tmp_path, lifecycle=LifecyclePolicy.model_validate({"policy": policy}))
    with kit:
        tea = saved(kit, "Ann likes sencha tea.", importance=0.3)
        explained = kit.explain(tea.memory_id, scope=ANN)
        assert explained.forget_at is not None
        assert explained.weight.policy == policy
        clock.move(explained.forget_at - clock() - DAY / 24)
        kit.maintain(scope=ANN)
        assert statuses(kit) == {tea.content: "low_priority"}
        clock.move(DAY / 12)
        kit.maintain(scope=ANN)
        assert statuses(kit) == {tea.content: "archived"}


async def test_async_verbs_answer_the_same(tmp_path: Path) -> None:
    """Who moves to async code gets the same answers."""
    kit, clock = clocked(tmp_path)
    async with kit:
        tea = saved(kit, "Ann likes sencha tea.")
        clock.move(240 * DAY)
        assert await kit.aexplain(tea.memory_id, scope=ANN) == kit.explain(tea.memory_id, scope=ANN)
        assert await kit.aforecast(scope=ANN) == kit.forecast(scope=ANN)
        assert (await kit.amaintain(scope=ANN)).moves
        assert (await kit.arestore(tea.memory_id, scope=ANN)).status == "active"
        assert json.loads(kit.explain(tea.memory_id, scope=ANN).to_json())["layer"] == "long_term"


def test_the_journal_keeps_the_reason_of_any_change(tmp_path: Path) -> None:
    """Whatever says why it changes a memory is asked for it later."""
    kit, clock = clocked(tmp_path)
    with kit:
        tea: Memory = saved(kit, "Ann likes sencha tea.")
        change = MemoryChange(memory=tea, expected_version=1, action="refine", reason="a person said so")
        changes = ChangeSet(operation_id="o", actor="person", recorded_at=clock(), changes=(change,))
        kit._open_parts().archive.commit(changes)
        assert [event.reason for event in kit.trace(tea.memory_id, scope=ANN).events] == ["", "a person said so"]
