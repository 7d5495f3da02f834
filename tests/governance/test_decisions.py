"""Contradictions are kept, marked and linked when they are written, and a person decides them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remegraph import ConflictError, InputError, MemoryKit, NotFoundError, Scope, Settings
from remegraph.engine.disputes import Disputes
from remegraph.kit import SaveOptions
from remegraph.models import ChangeSet, Conflict, Decision, Memory, Receipt, SaveResult
from remegraph.testing import FrozenClock, InMemoryVectorIndex
from tests.retention.skilled import deploying, step
from tests.talk import NOON, SHARED_KEY, change, digest, open_kit, proposal, said

SMALL, LARGE, HUGE = (f"The hall seats {count} guests." for count in (250, 320, 400))
_NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryKit]:
    home = tmp_path_factory.mktemp("conflicts")
    index, clock = InMemoryVectorIndex(), FrozenClock(NOON)
    with MemoryKit.open(home, ledger_url="sqlite://", model=None, embedder=None, index=index, clock=clock) as opened:
        yield opened


@pytest.fixture
def ann() -> Scope:
    """A person whom nobody has met before."""
    return somebody()


def somebody() -> Scope:
    return Scope(user=f"ann{next(_NUMBERS)}", agent="remy")


SLOTS = {"The hall seats": "hall:seats", "The shop is": "shop:open", "The server has": "server:memory"}


def slotted(content: str) -> tuple[str, str]:
    """The slot, and the value, that these tests give what is said of hall, shop and server, all at one moment."""
    slot = next((slot for start, slot in SLOTS.items() if content.startswith(start)), "")
    return slot, content if slot else ""


def save(kit: MemoryKit, content: str, scope: Scope, importance: float = 0.5) -> tuple[Memory, SaveResult]:
    slot, value = slotted(content)
    result = kit.save("note", content, scope=scope, importance=importance, slot=slot, value=value)
    assert result.memory is not None
    return result.memory, result


def memories(kit: MemoryKit, scope: Scope) -> dict[str, Memory]:
    return {memory.content: memory for memory in kit.memories(scope=scope)}


def only(kit: MemoryKit, scope: Scope) -> Conflict:
    (conflict,) = kit.conflicts.list(scope=scope)
    return conflict


def halls(kit: MemoryKit, scope: Scope) -> Conflict:
    save(kit, SMALL, scope)
    save(kit, LARGE, scope)
    return only(kit, scope)


# ----------------------------------------------------------------------------------------------- on write


@pytest.mark.requirement("K4", "G7")
def test_a_contradiction_is_kept_in_dispute_linked_raised_and_warned_of(kit: MemoryKit, ann: Scope) -> None:
    """Of two truths nobody throws one away unasked."""
    old, _ = save(kit, SMALL, ann)
    new, result = save(kit, LARGE, ann)

    assert (result.outcome, result.contradicts, new.status) == ("new", (old.memory_id,), "disputed")
    (warning,) = result.warnings
    assert old.memory_id in warning
    assert "Add (keep them all), or let one supersede the others." in warning
    assert {memory.status for memory in memories(kit, ann).values()} == {"disputed"}
    assert {memory.importance for memory in memories(kit, ann).values()} == {0.6}
    conflict = only(kit, ann)
    assert (conflict.kind, conflict.state, conflict.certain) == ("contradiction", "open", True)
    assert (conflict.older.content, conflict.newer.content) == (SMALL, LARGE)
    assert kit.trace(new.memory_id, scope=ann).links[0].type == "contradicts"
    assert kit.admin.verify().healthy


@pytest.mark.requirement("K4", "X11")
def test_what_two_persons_say_in_their_own_words_is_left_to_who_can_judge_it(kit: MemoryKit, ann: Scope) -> None:
    """No grammar knows whether open and closed are one slot: both stand, each with who said it."""
    kit.add_messages([said("The shop is open on Sundays.", name="Ann", thread="a")], scope=ann)
    kit.summarize(scope=ann, close=True)
    kit.add_messages([said("The shop is closed on Sundays.", name="Ben", thread="b", minutes=9)], scope=ann)
    report = kit.summarize(scope=ann, close=True)

    assert {memory.topic.key for memory in kit.memories(scope=ann)} == {"personal:Ann", "personal:Ben"}
    assert {memory.status for memory in kit.memories(scope=ann)} == {"active"}
    assert (kit.conflicts.list(scope=ann), report.warnings) == ((), ())


@pytest.mark.requirement("X11")
def test_the_contrary_is_not_merged_because_it_has_the_same_words(kit: MemoryKit, ann: Scope) -> None:
    """An embedder that counts words finds them equal; merged, what is preferred would be lost."""
    save(kit, "I prefer tea to coffee.", ann)
    _, result = save(kit, "I prefer coffee to tea.", ann)
    assert (result.outcome, result.superseded, len(kit.memories(scope=ann))) == ("new", (), 2)


def paid(kit: MemoryKit, scope: Scope, *steps: str) -> Memory:
    """An item of the protocol: how one pays."""
    content = {"task_description": "Pay", "workflow_name": "pay", "steps": [{"name": each} for each in steps]}
    item = {"memory_id": " ".join(steps), "memory_type": "workflow", "timestamp": NOON.isoformat()}
    done = kit.forms.add(item | {"content": content, "importance": "mid"}, scope=scope)
    assert done.memory is not None
    return done.memory


@pytest.mark.requirement("K4")
def test_what_says_more_is_linked_both_ways_and_folded_in_if_somebody_wants_it(kit: MemoryKit, ann: Scope) -> None:
    """Paying by scanned code is paying: either leads to the other."""
    part = paid(kit, ann, "scan the code", "enter the sum")
    whole = paid(kit, ann, "open the app", "scan the code", "enter the sum", "choose yen")

    links = {(link.source_id, link.type, link.target_id) for link in kit.trace(whole.memory_id, scope=ann).links}
    assert links == {
        (whole.memory_id, "superset_of", part.memory_id),
        (part.memory_id, "related", whole.memory_id),
    }
    assert kit.conflicts.list(scope=ann) == ()
    (conflict,) = kit.conflicts.list(scope=ann, kinds=["superset", "subset"])
    assert (conflict.kind, conflict.newer.status) == ("superset", "active")
    kit.conflicts.resolve(conflict.conflict_id, "merge", scope=ann, by="Olga")
    (live,) = kit.memories(scope=ann, statuses=["active"])
    assert (live.memory_id, live.supersedes, len(live.evidence)) == (whole.memory_id, (part.memory_id,), 2)


@pytest.mark.requirement("K4")
def test_a_skill_that_holds_another_is_linked_with_it_and_waits_for_nobody(kit: MemoryKit, ann: Scope) -> None:
    """Which of two ways is the better one, their outcomes tell; no person needs to."""
    part = kit.skills.add(deploying("quick", step("build"), step("push", "build", image="{build.image}")), scope=ann)
    steps = (step("build"), step("push", "build", image="{build.image}"), step("check", "push", url="{push.url}"))
    whole = kit.skills.add(deploying("careful", *steps), scope=ann)
    links = {(link.source_id, link.type, link.target_id) for link in kit.trace(whole.memory_id, scope=ann).links}
    assert (whole.memory_id, "superset_of", part.memory_id) in links
    assert kit.conflicts.list(scope=ann, kinds=["superset", "contradiction"]) == ()


def test_a_core_rule_and_knowledge_stay_what_they_are_when_contradicted(kit: MemoryKit, ann: Scope) -> None:
    """Nobody shakes a rule by saying the contrary; it is only put on the list."""
    save(kit, SMALL, ann, importance=0.95)
    save(kit, LARGE, ann)
    kit.save(
        "note",
        "The shop is open.",
        scope=ann,
        slot="shop:open",
        value="The shop is open.",
        options=SaveOptions(usage="knowledge"),
    )
    save(kit, "The shop is closed.", ann)
    policy = "The server has 16 GB of memory."
    kit.save("note", policy, scope=ann, memory_class="policy", slot="server:memory", value=policy)
    refused = kit.save("note", "The server has 64 GB.", scope=ann, slot="server:memory", value="64")
    assert (refused.outcome, "a policy" in refused.reason) == ("refused", True)

    status = {content: memory.status for content, memory in memories(kit, ann).items()}
    assert status[SMALL] == status["The shop is open."] == status["The shop is closed."] == "active"
    assert [content for content, each in status.items() if each == "disputed"] == [LARGE]
    assert [conflict.certain for conflict in kit.conflicts.list(scope=ann)] == [True, False]


class _OnceChanged:
    """An archive in which, just before the first commit, somebody else changes a memory."""

    def __init__(self, kit: MemoryKit, content: str, scope: Scope) -> None:
        self._kit = kit
        self._archive = kit.context.parts().archive
        self._left = [(content, scope)]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._archive, name)

    def commit(self, changes: ChangeSet) -> Receipt:
        """Commit, after the other one."""
        for content, scope in (self._left.pop(),) if self._left else ():
            save(self._kit, content, scope)
        return self._archive.commit(changes)


def test_a_dispute_waits_for_nobody_who_changes_the_other_memory(kit: MemoryKit, ann: Scope) -> None:
    """What is new must not be lost because the memory that it contradicts was just said again."""
    old, _ = save(kit, SMALL, ann)
    other = somebody()
    new, _ = save(kit, LARGE, other)
    moved = new.evolve(memory_id="new", partition=old.partition, topic=old.topic, evidence=old.evidence)
    create = ChangeSet.model_validate(
        {
            "operation_id": f"op {ann.user}",
            "actor": "test",
            "recorded_at": NOON,
            "changes": [
                {"memory": moved.evolve(memory_id=f"new {ann.user}"), "expected_version": 0, "action": "create"}
            ],
        }
    )
    archive = _OnceChanged(kit, SMALL, ann)
    weighed, _ = Disputes(cast("Any", archive), kit.context.parts().searcher).commit(create)
    assert [link.type for link in weighed.links] == ["contradicts"]
    assert memories(kit, ann)[SMALL].status == "disputed"
    assert memories(kit, ann)[SMALL].merges == 1


# ------------------------------------------------------------------------------------------------- decided


@pytest.mark.requirement("K4", "G7")
@pytest.mark.parametrize(
    ("decision", "live", "gone"),
    [
        ("add", {SMALL, LARGE}, set()),
        ("keep_both", {SMALL, LARGE}, set()),
        ("dismiss", {SMALL, LARGE}, set()),
        ("supersede", {LARGE}, {SMALL}),
        ("merge", {f"{LARGE}\n{SMALL}"}, {SMALL}),
    ],
)
async def test_each_decision_does_what_it_says_and_the_journal_tells_who_when_and_why(
    kit: MemoryKit, ann: Scope, decision: Decision, live: set[str], gone: set[str]
) -> None:
    """A year later somebody asks who decided that."""
    conflict = halls(kit, ann)
    done = await kit.conflicts.aresolve(conflict.conflict_id, decision, scope=ann, by="Olga", note="I counted.")

    assert (done.state, done.decided and done.decided.decision) == ("resolved", decision)
    status = {content: memory.status for content, memory in memories(kit, ann).items()}
    assert {content for content in status if status[content] == "active"} == live
    assert {content for content in status if status[content] == "superseded"} == gone
    for memory in (conflict.older, conflict.newer):
        event = next(e for e in kit.trace(memory.memory_id, scope=ann).events if e.action == f"resolve_{decision}")
        assert (event.actor, event.time, event.reason) == ("Olga", NOON, "I counted.")
        assert len(kit.trace(memory.memory_id, scope=ann).versions) >= 2
    assert kit.conflicts.list(scope=ann) == ()
    assert [each.decided for each in kit.conflicts.list(scope=ann, state="resolved")] == [done.decided]
    assert kit.admin.verify().healthy


@pytest.mark.requirement("F7")
def test_recall_shows_both_only_while_they_contradict_each_other(kit: MemoryKit) -> None:
    """A counterpart that somebody dismissed is noise; one that was kept on purpose is the point."""
    shown = {}
    for decision in ("", "keep_both", "dismiss"):
        ann = somebody()
        conflict = halls(kit, ann)
        if decision:
            kit.conflicts.resolve(conflict.conflict_id, decision, scope=ann, by="Olga")  # type: ignore[arg-type]
        hits = kit.recall("How many guests does the hall seat?", scope=ann, k=1).memories
        shown[decision] = {hit.text for hit in hits}
    assert shown[""] == shown["keep_both"] == {SMALL, LARGE}
    assert len(shown["dismiss"]) == 1


def test_the_older_may_stay_and_what_is_worn_by_another_conflict_stays_in_dispute(kit: MemoryKit, ann: Scope) -> None:
    """The newest is not always right, and one answer does not settle another question."""
    halls(kit, ann)
    save(kit, HUGE, ann)
    pairs = {frozenset({c.older.content, c.newer.content}): c for c in kit.conflicts.list(scope=ann)}
    assert len(pairs) == 3
    first = pairs[frozenset({SMALL, HUGE})]
    kept = next(memory for memory in (first.older, first.newer) if memory.content == SMALL)
    kit.conflicts.resolve(first.conflict_id, "supersede", scope=ann, by="Olga", keep=kept.memory_id)

    status = {content: memory.status for content, memory in memories(kit, ann).items()}
    assert status == {SMALL: "disputed", LARGE: "disputed", HUGE: "superseded"}
    kit.conflicts.resolve(only(kit, ann).conflict_id, "dismiss", scope=ann, by="Olga")
    assert {memory.status for memory in memories(kit, ann).values()} == {"active", "superseded"}


def test_who_forgets_one_of_two_frees_the_other(kit: MemoryKit, ann: Scope) -> None:
    """A memory must not stay in doubt because of one that is gone."""
    conflict = halls(kit, ann)
    kit.forget(conflict.newer.memory_id, scope=ann)
    assert memories(kit, ann)[SMALL].status == "active"
    assert kit.conflicts.list(scope=ann) == ()
    (over,) = kit.conflicts.list(scope=ann, state="resolved")
    assert over.decided is None


def test_deciding_the_same_twice_changes_nothing_and_otherwise_is_refused(kit: MemoryKit, ann: Scope) -> None:
    """Two people click at once: the first one decided."""
    conflict = halls(kit, ann)
    once = kit.conflicts.resolve(conflict.conflict_id, "supersede", scope=ann, by="Olga")
    again = kit.conflicts.resolve(conflict.conflict_id, "supersede", scope=ann, by="Pia")
    assert again == once
    with pytest.raises(ConflictError, match="was decided: supersede"):
        kit.conflicts.resolve(conflict.conflict_id, "dismiss", scope=ann, by="Pia")


def test_a_decision_about_words_that_changed_since_is_refused(kit: MemoryKit, ann: Scope) -> None:
    """Nobody decides what he has not read."""
    conflict = halls(kit, ann)
    archive = kit.context.parts().archive
    new = conflict.newer.evolve(version=conflict.newer.version + 1, content="The hall seats 330 guests, standing.")
    archive.commit(
        ChangeSet.model_validate(
            {
                "operation_id": f"refine {ann.user}",
                "actor": "test",
                "recorded_at": NOON,
                "changes": [{"memory": new, "expected_version": conflict.newer.version, "action": "refine"}],
            }
        )
    )
    with pytest.raises(ConflictError, match="List the conflicts again"):
        kit.conflicts.resolve(conflict.conflict_id, "supersede", scope=ann, by="Olga")
    assert {memory.status for memory in memories(kit, ann).values()} == {"disputed"}


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        ({"decision": "ignore"}, InputError, "no decision"),
        ({"by": " "}, InputError, "There is no one to decide"),
        ({"note": "x" * 501}, InputError, "501 characters"),
        ({"keep": "nowhere"}, InputError, "none of the two"),
        ({"conflict_id": "nowhere"}, NotFoundError, "no conflict"),
        ({"conflict_id": 7}, InputError, "conflict_id"),
        ({"scope": somebody()}, NotFoundError, "no conflict"),
    ],
)
def test_a_decision_that_cannot_be_is_refused_and_changes_nothing(
    kit: MemoryKit, ann: Scope, given: dict[str, object], error: type[Exception], says: str
) -> None:
    """Nor does anybody decide for another user, whose conflicts are never found."""
    conflict = halls(kit, ann)
    call = {"conflict_id": conflict.conflict_id, "decision": "supersede", "scope": ann, "by": "Olga"} | given
    before = memories(kit, ann)
    with pytest.raises(error, match=says):
        kit.conflicts.resolve(**call)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no state"):
        kit.conflicts.list(scope=ann, state="closed")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="kinds is"):
        kit.conflicts.list(scope=ann, kinds="superset")  # type: ignore[arg-type]
    assert memories(kit, ann) == before


def test_a_model_takes_back_no_core_rule(kit: MemoryKit, ann: Scope) -> None:
    """A web page that talks the agent into a decision must not undo what a person laid down."""
    save(kit, SMALL, ann, importance=0.95)
    save(kit, LARGE, ann)
    name = only(kit, ann).conflict_id
    with pytest.raises(InputError, match="core rule"):
        kit.conflicts.resolve(name, "supersede", scope=ann, by="remy", by_model=True)
    assert kit.conflicts.resolve(name, "supersede", scope=ann, by="Olga").state == "resolved"


def test_conflicts_and_decisions_outlive_the_process_on_both_engines(tmp_path: Path, ledger_url: str) -> None:
    """The queue is the ledger's: nothing of it is in the memory of a process."""
    ann = somebody()
    settings = Settings(home=tmp_path, ledger_url=ledger_url, journal_key=SHARED_KEY)

    def opened() -> MemoryKit:
        clock = FrozenClock(NOON)  # both are said at one moment
        return MemoryKit.open(settings=settings, model=None, embedder=None, index=InMemoryVectorIndex(), clock=clock)

    with opened() as kit:
        conflict = halls(kit, ann)
    with opened() as kit:
        assert only(kit, ann) == conflict
        kit.conflicts.resolve(conflict.conflict_id, "keep_both", scope=ann, by="Olga")
    with opened() as kit:
        (over,) = kit.conflicts.list(scope=ann, state="resolved")
        assert over.decided is not None
        assert (over.decided.decision, over.decided.by) == ("keep_both", "Olga")


@settings(max_examples=8)
@given(
    counts=st.lists(st.integers(2, 9), min_size=2, max_size=4, unique=True),
    decisions=st.lists(
        st.sampled_from(["add", "supersede", "merge", "keep_both", "dismiss"]), min_size=12, max_size=12
    ),
    order=st.randoms(use_true_random=False),
)
def test_in_any_order_no_version_is_lost_and_no_dispute_is_left_without_its_reason(
    kit: MemoryKit, counts: Sequence[int], decisions: Sequence[Decision], order: st.DataObject
) -> None:
    """Whoever decides what first: one that was replaced is never active beside its successor, and all is still there."""
    ann = somebody()
    for count in counts:
        save(kit, f"The choir has {count} altos.", ann)
    written = {memory.memory_id: memory.version for memory in memories(kit, ann).values()}
    for decision in decisions:
        waiting = list(kit.conflicts.list(scope=ann))
        if not waiting:
            break
        kit.conflicts.resolve(order.choice(waiting).conflict_id, decision, scope=ann, by="Olga")  # type: ignore[attr-defined]
        now = {memory.memory_id: memory for memory in kit.memories(scope=ann)}
        live = {memory_id for memory_id, memory in now.items() if memory.live}
        assert not any(set(now[memory_id].supersedes) & live for memory_id in live)
        open_now = {m.memory_id for c in kit.conflicts.list(scope=ann) for m in (c.older, c.newer)}
        assert {memory_id for memory_id, memory in now.items() if memory.status == "disputed"} == open_now
    for memory_id, version in written.items():
        versions = kit.trace(memory_id, scope=ann).versions
        assert [each.version for each in versions] == list(range(1, len(versions) + 1))
        assert len(versions) >= version


# ------------------------------------------------------------------------------------------- with a model


def scripted(home: Path, *answers: object) -> MemoryKit:
    first = proposal(
        {"action": "CREATE", "content": "Ann's flat has a balcony.", "evidence": [{"n": 1, "quote": "a balcony"}]}
    )
    script = {"DigestAnswer": [digest("personal:Ann")] * 2, "ProposalAnswer": [first, *answers]}
    kit = open_kit(home, script, reviser="rules")
    scope = Scope(user="ann", agent="remy")
    kit.add_messages([said("My flat has a balcony, by the way.", thread="a")], scope=scope)
    kit.summarize(scope=scope, close=True)
    kit.add_messages([said("Our flat came with neither garden nor balcony.", thread="b", minutes=9)], scope=scope)
    return kit


@pytest.mark.requirement("K4")
def test_a_contradiction_that_a_model_proposes_is_checked_kept_and_queued(tmp_path: Path) -> None:
    """A model reads what no rule parses; what becomes of it, code and a person decide."""
    says = "Ann's flat came with neither a garden nor a balcony."
    answer = proposal(change("CONTRADICT", "m1", 1, "neither garden nor balcony", content=says))
    scope = Scope(user="ann", agent="remy")
    with scripted(tmp_path, answer) as kit:
        report = kit.summarize(scope=scope, close=True)
        conflict = only(kit, scope)
        assert (conflict.older.content, conflict.newer.content) == ("Ann's flat has a balcony.", says)
        assert conflict.older.status == conflict.newer.status == "disputed"
        assert (len(report.warnings), report.work) == (1, ())
        kit.conflicts.resolve(conflict.conflict_id, "supersede", scope=scope, by="Ann")
        assert kit.admin.verify().healthy
