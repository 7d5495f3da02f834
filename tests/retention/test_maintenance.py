"""The run that takes what has faded out of the way: what it moves, and what it leaves alone."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from remegraph import CancelledError, ConflictError, InputError, MemoryKit, NotFoundError, RecallFilter, Scope
from remegraph.errors import NaiveTimeError
from remegraph.ledger.archive import Archive
from remegraph.models import ChangeSet, Conclusion, Memory, MemoryChange, Progress, Receipt
from remegraph.models.remnants import MARK
from remegraph.retention import maintenance
from remegraph.testing import InMemoryVectorIndex
from tests.retention.conftest import DAY, POLICIES, House
from tests.talk import NOON

pytestmark = pytest.mark.requirement("F5", "G5")

ARCHIVED = RecallFilter(statuses=("archived",))


@pytest.mark.requirement("B14")
def test_what_fades_is_lowered_then_archived_and_says_why(house: House) -> None:
    """Noise leaves in two steps, each with its formula and numbers in the journal, and nothing is lost."""
    kit, clock, ann = house.kit, house.clock, house.ann
    tea = house.saved("Ann likes sencha tea.")
    vow = house.saved("Ann must never be called before nine.", importance=0.9)
    clock.move(112 * DAY)
    assert [(move.to, move.action) for move in kit.retention.maintain(scope=ann).moves] == [("low_priority", "fade")]
    assert kit.recall("sencha", scope=ann, k=1).memories[0].status == "low_priority"
    clock.move(400 * DAY)
    assert [(move.to, move.action) for move in kit.retention.maintain(scope=ann).moves] == [("archived", "archive")]
    assert house.statuses() == {tea.content: "archived", vow.content: "active"}
    assert tea.memory_id not in {hit.record_id for hit in kit.recall("sencha", scope=ann).memories}
    assert [hit.record_id for hit in kit.recall("sencha", scope=ann, only=ARCHIVED).memories] == [tea.memory_id]
    explained = kit.explain(tea.memory_id, scope=ann)
    create, fade, archive = (event for event in explained.trace.events if event.action != "link")
    assert (create.action, fade.action, archive.action) == ("create", "fade", "archive")
    assert (archive.actor, archive.version, archive.time) == ("maintenance", 3, clock())
    assert fade.reason.startswith(
        "under low_threshold 0.3: weight 0.2500 = 0.5 ^ (days / half_life) with days 112, half_life 56,"
    )
    assert archive.reason.startswith("under forget_threshold 0.15: weight 0.")
    assert [version.content for version in explained.trace.versions] == [tea.content] * 3
    assert kit.admin.verify().healthy


def test_a_dry_run_says_what_would_be_done_and_does_nothing(house: House) -> None:
    """Who fears for their memories looks first."""
    kit, clock, ann = house.kit, house.clock, house.ann
    house.saved("Ann likes sencha tea.")
    clock.move(240 * DAY)
    before = house.rows()
    would = kit.retention.maintain(scope=ann, dry_run=True)
    assert house.rows() == before
    done = kit.retention.maintain(scope=ann)
    assert (would.dry_run, would.examined, done.dry_run) == (True, 1, False)
    assert done.moves == would.moves
    assert done.moves


def test_nothing_moves_unless_maintenance_is_called(house: House) -> None:
    """The default forgets nothing behind anybody's back: it only says what would be forgotten."""
    kit, clock, ann = house.kit, house.clock, house.ann
    house.saved("Ann likes sencha tea.")
    clock.move(999 * DAY)
    kit.drain()
    kit.summarize(scope=ann)
    assert len(kit.retention.forecast(scope=ann)) == 1
    assert house.statuses() == {"Ann likes sencha tea.": "active"}
    assert kit.recall("sencha", scope=ann).memories


def test_a_second_run_and_a_run_at_the_same_time_change_nothing_more(house: House) -> None:
    """A cron job that fires twice, or on two machines, is no accident."""
    kit, clock, ann = house.kit, house.clock, house.ann
    memories = [house.saved(f"Note {number} of Ann's.") for number in range(6)]
    clock.move(240 * DAY)
    before = int(kit.admin.stats()["versions"])
    with MemoryKit.open(
        settings=kit.settings, model=None, embedder=None, index=InMemoryVectorIndex(), clock=clock
    ) as other:
        with ThreadPoolExecutor(2) as pool:
            runs = list(pool.map(lambda each: each.retention.maintain(scope=ann), (kit, other)))
        assert sorted(move.memory.memory_id for run in runs for move in run.moves) == sorted(
            memory.memory_id for memory in memories
        )
        assert set(house.statuses().values()) == {"archived"}
        after = house.rows()
        assert after["versions"] == before + len(memories)
        assert kit.retention.maintain(scope=ann).moves == ()
        assert house.rows() == after
    kit.admin.rebuild()  # each of the two has an index of its own, and only one learned of each move


def test_what_somebody_changes_meanwhile_is_left_to_them(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """A memory that is said again while maintenance runs must not be archived by what was true a moment ago."""
    kit, clock, ann = house.kit, house.clock, house.ann
    tea, cat = house.saved("Ann likes sencha tea."), house.saved("Bob has a grey cat.")
    clock.move(240 * DAY)
    commit = Archive.commit

    def late(archive: Archive, changes: ChangeSet) -> Receipt:
        if changes.actor == maintenance.ACTOR:
            monkeypatch.setattr(Archive, "commit", commit)
            kit.save("note", tea.content, scope=ann)
        return commit(archive, changes)

    monkeypatch.setattr(Archive, "commit", late)
    done = kit.retention.maintain(scope=ann)
    assert [move.memory.memory_id for move in done.moves] == [cat.memory_id]
    assert done.skipped == (tea.memory_id,)
    assert house.statuses() == {tea.content: "active", cat.content: "archived"}
    assert kit.retention.maintain(scope=ann).moves == ()


def test_a_run_that_was_stopped_is_finished_by_the_next(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """A deployment in the middle of the night costs nothing: each batch is whole, and the rest is found again."""
    monkeypatch.setattr(maintenance, "_BATCH", 2)
    kit, clock, ann = house.kit, house.clock, house.ann
    for number in range(5):
        house.saved(f"Note {number} of Ann's.")
    clock.move(240 * DAY)
    commit, batches = Archive.commit, 0

    def once(archive: Archive, changes: ChangeSet) -> Receipt:
        nonlocal batches
        batches += changes.actor == "maintenance"
        if batches == 2:
            raise KeyboardInterrupt
        return commit(archive, changes)

    with monkeypatch.context() as patched:
        patched.setattr(Archive, "commit", once)
        with pytest.raises(KeyboardInterrupt):
            kit.retention.maintain(scope=ann)
    assert list(house.statuses().values()).count("archived") == 2
    assert len(kit.retention.maintain(scope=ann).moves) == 3
    assert set(house.statuses().values()) == {"archived"}


def test_a_library_is_kept_to_its_size_the_faintest_go_first(house: House) -> None:
    """A bound on the number of memories holds whatever their weight; what is kept stays, whatever the bound."""
    kit, ann = house.kit, house.agent("small")
    house.saved("Ann must never be called before nine.", importance=0.9, scope=ann)
    for number in range(4):
        house.clock.move(DAY)
        house.saved(f"Note {number} of Ann's.", scope=ann)
    kit.recall("Note 0", scope=ann, k=1)
    done = kit.retention.maintain(scope=ann)
    assert [(move.memory.content, move.action) for move in done.moves] == [
        ("Note 1 of Ann's.", "archive_surplus"),
        ("Note 2 of Ann's.", "archive_surplus"),
    ]
    assert done.moves[0].reason.startswith("one of the faintest of 5, max_entries 3; weight 0.")
    assert kit.retention.maintain(scope=ann).moves == ()


def test_what_comes_back_into_use_gets_its_priority_back(house: House) -> None:
    """An old matter that is current again is no longer set back."""
    kit, clock, ann = house.kit, house.clock, house.ann
    house.saved("Ann likes sencha tea.")
    clock.move(112 * DAY)
    kit.retention.maintain(scope=ann)
    kit.recall("sencha", scope=ann)
    assert [move.action for move in kit.retention.maintain(scope=ann).moves] == ["revive"]


def test_an_archived_memory_can_be_restored_and_stays(house: House) -> None:
    """Forgetting is not deleting: one call brings it back to recall, and counts as a review."""
    kit, clock, ann = house.kit, house.clock, house.ann
    tea, cat = house.saved("Ann likes sencha tea."), house.saved("Bob has a grey cat.")
    clock.move(240 * DAY)
    kit.retention.maintain(scope=ann)
    house.saved(cat.content)
    restored = kit.restore(tea.memory_id, scope=ann)
    assert (restored.status, restored.version) == ("active", 3)
    assert kit.restore(tea.memory_id, scope=ann) == restored
    assert kit.retention.maintain(scope=ann).moves == ()
    assert tea.memory_id in {hit.record_id for hit in kit.recall("sencha", scope=ann).memories}
    with pytest.raises(ConflictError, match="same words"):
        kit.restore(cat.memory_id, scope=ann)
    kit.forget(tea.memory_id, scope=ann)
    assert kit.restore(tea.memory_id, scope=ann).content == tea.content
    with pytest.raises(NotFoundError):
        kit.restore("nowhere", scope=ann)
    assert kit.admin.verify().healthy


def test_a_forecast_tells_what_goes_next_and_when(house: House) -> None:
    """Who wants to keep something sees in time that it is about to go."""
    kit, clock, ann = house.kit, house.clock, house.ann
    house.saved("Ann must never be called before nine.", importance=0.9)
    big, small = house.saved("Ann moved to Porto.", importance=0.8), house.saved("Bob has a cat.", importance=0.1)
    assert kit.retention.forecast(10, scope=ann) == ()
    assert [each.memory.memory_id for each in kit.retention.forecast(120, scope=ann)] == [small.memory_id]
    found = kit.retention.forecast(240, scope=ann)
    assert [each.memory.memory_id for each in found] == [small.memory_id, big.memory_id]
    assert found[0].forget_at == kit.explain(small.memory_id, scope=ann).forget_at
    clock.move(found[0].forget_at - clock())
    kit.retention.maintain(scope=ann)
    assert house.statuses()[small.content] != "archived"
    clock.move(DAY)
    kit.retention.maintain(scope=ann)
    assert house.statuses()[small.content] == "archived"
    for days in (-1, float("nan"), 1e300):
        with pytest.raises(InputError, match="days is"):
            kit.retention.forecast(days, scope=ann)


def test_one_user_never_maintains_what_is_anothers_or_shared(house: House) -> None:
    """A maintenance run is for whom it is called; others' memories it neither moves nor tells of."""
    kit, clock, ann = house.kit, house.clock, house.agent("another")
    tea = house.saved("Ann likes sencha tea.", scope=ann)
    kit.remember_self("I am Remy.", scope=ann, importance=0.2)
    clock.move(240 * DAY)
    bob = Scope(user="bob", agent="another")
    assert (kit.retention.maintain(scope=bob).examined, kit.retention.forecast(scope=bob)) == (0, ())
    for look in (kit.explain, kit.restore):
        with pytest.raises(NotFoundError):
            look(tea.memory_id, scope=bob)
    assert kit.retention.maintain(scope=ann).examined == 1
    with pytest.raises(NaiveTimeError):
        kit.explain(tea.memory_id, scope=ann, at=NOON.replace(tzinfo=None))


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_forgets_when_it_said_it_would(house: House, policy: str) -> None:
    """A forecast that maintenance does not keep would be no answer."""
    kit, clock, ann = house.kit, house.clock, house.agent(policy)
    tea = house.saved("Ann likes sencha tea.", importance=0.3, scope=ann)
    explained = kit.explain(tea.memory_id, scope=ann)
    assert explained.forget_at is not None
    assert explained.weight.policy == policy
    clock.move(explained.forget_at - clock() - DAY / 24)
    kit.retention.maintain(scope=ann)
    assert house.statuses(ann) == {tea.content: "low_priority"}
    clock.move(DAY / 12)
    kit.retention.maintain(scope=ann)
    assert house.statuses(ann) == {tea.content: "archived"}


async def test_async_verbs_answer_the_same(house: House) -> None:
    """Who moves to async code gets the same answers."""
    kit, clock, ann = house.kit, house.clock, house.ann
    tea = house.saved("Ann likes sencha tea.")
    clock.move(240 * DAY)
    assert await kit.aexplain(tea.memory_id, scope=ann) == kit.explain(tea.memory_id, scope=ann)
    assert await kit.retention.aforecast(scope=ann) == kit.retention.forecast(scope=ann)
    assert (await kit.retention.amaintain(scope=ann)).moves
    assert (await kit.arestore(tea.memory_id, scope=ann)).status == "active"
    assert json.loads(kit.explain(tea.memory_id, scope=ann).to_json())["layer"] == "long_term"


def test_the_journal_keeps_the_reason_of_any_change(house: House) -> None:
    """Whatever says why it changes a memory is asked for it later."""
    kit, clock, ann = house.kit, house.clock, house.ann
    tea: Memory = house.saved("Ann likes sencha tea.")
    change = MemoryChange(memory=tea, expected_version=1, action="refine", reason="a person said so")
    changes = ChangeSet(operation_id="o", actor="person", recorded_at=clock(), changes=(change,))
    kit.context.parts().archive.commit(changes)
    assert [event.reason for event in kit.trace(tea.memory_id, scope=ann).events] == ["", "a person said so"]


def twice(house: House) -> tuple[Memory, Memory]:
    """One fact, noted twice in words that differ too much to be merged when they are written."""
    short = house.saved("Ann lives in Lisbon.", 0.6)
    house.clock.move(DAY)
    long = house.saved("Ann lives in Lisbon. She found a flat above the bakery there after a long search.")
    assert short.memory_id != long.memory_id
    return _at_home(house, short), _at_home(house, long)


def _at_home(house: House, memory: Memory) -> Memory:
    """A memory of which somebody says since that it tells where Ann lives."""
    told = memory.evolve(version=2, canonical_topic="ann:lives_in", slot_value="Lisbon")
    change = MemoryChange(memory=told, expected_version=1, action="refine")
    changes = ChangeSet(operation_id=memory.memory_id, actor="a", recorded_at=house.clock(), changes=(change,))
    house.kit.context.parts().archive.commit(changes)
    return told


def test_what_says_the_same_is_merged_and_can_be_traced(house: House) -> None:
    """One fact that was noted twice is one memory afterwards, with the words of both; the copy points to it."""
    kit, ann = house.kit, house.ann
    short, long = twice(house)
    would = kit.retention.maintain(scope=ann, dry_run=True)
    assert [merge.kept.memory_id for merge in would.merges] == [short.memory_id]
    assert kit.retention.maintain(scope=ann).merges == would.merges
    traced = kit.trace(short.memory_id, scope=ann)
    assert traced.memory.content == long.content
    assert {quote.words for quote in traced.quotes} == {short.evidence[0].quote, long.evidence[0].quote}
    assert [(link.type, link.target_id) for link in traced.links] == [("supersedes", long.memory_id)]
    (merge,) = [each for each in traced.events if each.action == "merge"]
    assert merge.actor == maintenance.ACTOR
    assert long.memory_id in merge.reason
    assert kit.trace(long.memory_id, scope=ann).memory.status == "superseded"
    assert [hit.record_id for hit in kit.recall("Where does Ann live?", scope=ann).memories] == [short.memory_id]
    assert not kit.retention.maintain(scope=ann).changed
    assert kit.admin.verify().healthy


def test_copies_that_somebody_changes_meanwhile_are_left_to_the_next_run(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run beside a writer loses neither the writer's words nor its own way."""
    kit, ann = house.kit, house.ann
    short, long = twice(house)
    commit = Archive.commit

    def late(archive: Archive, changes: ChangeSet) -> Receipt:
        if changes.actor == maintenance.ACTOR:
            monkeypatch.setattr(Archive, "commit", commit)
            kit.forget(long.memory_id, scope=ann, leave=[short.memory_id])
        return commit(archive, changes)

    monkeypatch.setattr(Archive, "commit", late)
    done = kit.retention.maintain(scope=ann)
    assert (done.merges, done.skipped) == ((), (short.memory_id, long.memory_id))
    assert house.statuses() == {short.content: "active", MARK: "deleted"}
    assert not kit.retention.maintain(scope=ann).changed


def test_a_run_tells_how_far_it_is_and_stops_when_it_is_told_to(house: House) -> None:
    """Who watches sees it move; who cancels keeps what is done, and loses nothing."""
    kit, clock, ann = house.kit, house.clock, house.ann
    house.saved("Bob has a grey cat.")
    clock.move(240 * DAY)
    twice(house)
    told: list[Progress] = []
    with pytest.raises(CancelledError, match="continues where it stopped"):
        kit.retention.maintain(scope=ann, progress=told.append, cancel=lambda: bool(told))
    assert [(each.done, each.total, each.detail) for each in told] == [(1, 6, "fade")]
    rest = kit.retention.maintain(scope=ann, progress=told.append)
    assert (len(rest.merges), [move.to for move in rest.moves]) == (1, ["archived"])
    steps = [each.detail for each in told if each.stage == "maintain"]
    assert steps == ["fade", "fade", "merge", "consolidate", "guide", "archive", "purge"]


@pytest.mark.requirement("B6")
def test_one_run_does_all_that_is_due_and_a_second_nothing_more(house: House) -> None:
    """One call, or one job in the background: nobody has to know which tidying there is, and in which order."""
    kit, ann = house.kit, house.ann
    house.saved("Ann swims on Sundays.")
    house.told("I like sencha tea from Uji.", "I like matcha tea from Uji.", "I like gyokuro tea from Uji.")
    call = {"id": "c1", "type": "function", "function": {"name": "brew", "arguments": "{}"}}
    kit.add_messages(
        [
            {"role": "user", "content": "Brew some tea."},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "content": "Error: the kettle is empty", "tool_call_id": "c1"},
        ],
        scope=ann,
        thread="kitchen",
    )
    kit.summarize(scope=ann, close=True)
    heard: list[Progress] = []
    (group,) = kit.retention.consolidate(scope=ann, dry_run=True).proposed
    done = kit.retention.maintain(scope=ann, progress=heard.append)
    assert list(dict.fromkeys(step.detail for step in heard if step.stage == "maintain")) == [
        "fade", "merge", "consolidate", "guide", "archive", "purge",
    ]  # fmt: skip
    assert done.abstracted == ()  # nobody concludes anything without a model
    concluded = Conclusion(sources=group, conclusion="Ann is a tea drinker.", conditions=("in the kitchen",))
    (learned,) = kit.retention.consolidate(scope=ann, conclusions=[concluded]).made
    assert (learned.layer, learned.extractor, learned.content) == ("long_term", "person", "Ann is a tea drinker.")
    (guideline,) = done.guidelines
    assert guideline.topic.key == "tool:brew"
    assert not kit.retention.maintain(scope=ann).changed


def test_sixty_days_after_archiving_its_words_go_and_its_stub_stays(house: House) -> None:
    """Nothing is kept for ever, and nothing goes at once: first it can be foreseen, then restored, then only named."""
    kit, clock, ann = house.kit, house.clock, house.ann
    tea = house.saved("Ann likes sencha tea.")
    clock.move(500 * DAY)
    assert [move.to for move in kit.retention.maintain(scope=ann).moves] == ["archived"]
    clock.move(59 * DAY)
    assert not kit.retention.maintain(scope=ann).changed
    assert kit.restore(tea.memory_id, scope=ann).status == "active"
    clock.move(500 * DAY)
    kit.retention.maintain(scope=ann)
    clock.move(60 * DAY)
    foreseen = kit.retention.maintain(scope=ann, dry_run=True)
    assert [(move.to, move.action) for move in foreseen.moves] == [("purged", "purge")]
    assert kit.retention.maintain(scope=ann).moves == foreseen.moves
    with pytest.raises(NotFoundError):
        kit.restore(tea.memory_id, scope=ann)
    explained = kit.explain(tea.memory_id, scope=ann)
    assert (explained.status, explained.memory.content) == ("purged", "(purged)")
    assert explained.trace.missing[0].startswith("content: purged on ")
    assert [event.action for event in explained.trace.events][-2:] == ["archive", "purge"]
    assert explained.trace.events[-1].reason.endswith("purge_after 60 days")
    assert [message.text for message in explained.trace.messages] == [tea.content], "what was said stays"
    assert "sencha" not in " ".join(version.to_json() for version in explained.trace.versions)
    assert kit.recall("sencha", scope=ann, only=RecallFilter(statuses=("purged",))).memories == ()
    assert not kit.retention.maintain(scope=ann).changed
    assert kit.admin.verify().healthy


def test_where_nothing_shall_be_purged_the_archive_is_kept(house: House) -> None:
    """Who must keep records keeps them."""
    keeper = house.agent("keeper")
    house.saved("Ann likes sencha tea.", scope=keeper)
    for _ in range(2):
        house.clock.move(2000 * DAY)
        house.kit.retention.maintain(scope=keeper)
    assert set(house.statuses(keeper).values()) == {"archived"}
