"""`save` and `forget`: one memory at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from remegraph import InputError, Memory, MemoryKit, NotFoundError, Scope, Settings
from remegraph.errors import ModelUnavailableError
from remegraph.kit import OpenOptions, SaveOptions
from remegraph.settings import SummaryPolicy
from remegraph.testing import FailingCall, FrozenClock, InMemoryVectorIndex, SequentialIds
from tests.talk import ANN, NOON, change, digest, model_of, open_kit, packed, proposal, said

pytestmark = [pytest.mark.usefixtures("setup"), pytest.mark.requirement("X9")]

BOB = Scope(user="bob", agent="remy")


class _Angles:
    """An embedder that puts each text at an angle: the cosine between two is known to the letter."""

    name = "angles"
    dimension = 2
    semantic = True

    def __init__(self, cosines: dict[str, float]) -> None:
        self.cosines = cosines

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        cosines = np.array([self.cosines.get(text, 0.5) for text in texts])
        return np.stack([cosines, np.sqrt(1 - cosines**2)], axis=1).astype(np.float32)


@pytest.fixture
def kit(tmp_path: Path) -> Iterator[MemoryKit]:
    with open_kit(tmp_path) as opened:
        yield opened


def kept(result: Any) -> Memory:
    memory = result.memory
    assert isinstance(memory, Memory)
    return memory


@pytest.mark.requirement("F3", "F4")
def test_a_new_memory_has_its_priority_its_tags_and_the_words_it_came_from(kit: MemoryKit) -> None:
    """It is as traceable as one that was learned from a conversation."""
    result = kit.save(
        "tea",
        "Ann drinks oolong.",
        scope=ANN,
        tags=["drinks"],
        importance=0.7,
        category="decision",
        options=SaveOptions(session="s1"),
    )
    memory = kept(result)

    assert (result.outcome, memory.content, memory.priority) == ("new", "Ann drinks oolong.", 70)
    assert memory.weighted_tags == {"drinks": 1.0, "memory:decision": 0.5, "session:s1": 0.3}
    trace = kit.trace(memory.memory_id, scope=ANN)
    assert [quote.words for quote in trace.quotes] == ["Ann drinks oolong."]
    assert [block.block_id for block in trace.blocks] == list(memory.block_ids)
    assert kit.work.list(scope=ANN) == ()
    assert kit.admin.verify().healthy


@pytest.mark.requirement("F3", "F4")
def test_the_same_words_are_merged_and_strengthened_up_to_200(kit: MemoryKit) -> None:
    """An agent that repeats itself must not fill the memory; what comes up often counts more."""
    first = kept(kit.save("tea", "Ann drinks oolong.", scope=ANN, tags=["a"]))
    priorities = []
    for _ in range(16):
        result = kit.save("a drink", "ann drinks oolong", scope=ANN, tags=["b"])
        assert (result.outcome, kept(result).memory_id) == ("merged", first.memory_id)
        priorities.append(kept(result).priority)

    assert priorities == [*range(60, 200, 10), 200, 200]
    (memory,) = kit.memories(scope=ANN)
    assert (memory.content, memory.tags, len(memory.evidence)) == ("Ann drinks oolong.", ("a", "b"), 17)
    assert kit.admin.verify().healthy


@pytest.mark.requirement("F4", "X11")
@pytest.mark.parametrize(("threshold", "linked"), [(0.74, True), (0.75, False), (0.76, False)])
def test_what_is_strictly_above_the_threshold_is_linked_and_nothing_is_merged(
    tmp_path: Path, threshold: float, linked: bool
) -> None:
    """The score shows a person or a model what to look at; it never makes one memory of two."""
    one, other = "Ann keeps bees.", "There are hives on the roof."
    with MemoryKit.open(
        settings=Settings(home=tmp_path, summary=SummaryPolicy(merge_threshold=threshold)),
        model=None,
        embedder=_Angles({one: 1.0, other: 0.75}),
        index=InMemoryVectorIndex(),
        clock=FrozenClock(NOON),
        options=OpenOptions(new_id=SequentialIds()),
    ) as kit:
        bees = kept(kit.save("bees", one, scope=ANN))
        result = kit.save("hives", other, scope=ANN)

        assert (result.outcome, result.similarity) == ("new", None)
        assert result.similar == ((bees.memory_id,) if linked else ())
        assert [link.type for link in kit.trace(bees.memory_id, scope=ANN).links] == (["related"] if linked else [])
        assert {memory.content for memory in kit.memories(scope=ANN)} == {one, other}
        assert kit.recall("hives", scope=ANN).memories[0].text == other


@pytest.mark.requirement("F4", "K4")
def test_a_later_value_of_a_slot_supersedes_and_one_of_the_same_moment_is_disputed(tmp_path: Path) -> None:
    """The newest home is the home, however it is said; of two at once, a person must judge."""
    clock = FrozenClock(NOON)
    with MemoryKit.open(
        settings=Settings(home=tmp_path), model=None, embedder=None, index=InMemoryVectorIndex(), clock=clock
    ) as kit:
        lisbon = kept(kit.save("home", "I live in Lisbon.", scope=ANN, slot="Ann : lives_in", value="Lisbon"))
        clock.move(timedelta(days=90))
        porto = kit.save("home", "We moved to Porto.", scope=ANN, slot="ann:lives_in", value="Porto")
        again = kit.save("home", "My flat is in Porto.", scope=ANN, slot="ann:lives_in", value="porto")
        braga = kit.save(
            "home", "I live in Braga.", scope=ANN, value="Braga", options=SaveOptions(canonical_topic="ann:lives_in")
        )

        assert porto.superseded == (lisbon.memory_id,)
        assert (again.outcome, kept(again).content) == ("merged", "We moved to Porto.\nMy flat is in Porto.")
        assert (braga.outcome, braga.contradicts) == ("new", (kept(porto).memory_id,))
        status = {memory.content: memory.status for memory in kit.memories(scope=ANN)}
        assert status["I live in Lisbon."] == "superseded"
        assert list(status.values()).count("disputed") == 2
        assert len(kit.conflicts.list(scope=ANN)) == 1


@pytest.mark.requirement("F4")
def test_many_values_of_a_slot_stand_side_by_side(kit: MemoryKit) -> None:
    """Who likes figs still likes tea."""
    for what in ("tea", "figs"):
        result = kit.save(
            "likes", f"Ann likes {what}.", scope=ANN, slot="ann:likes", value=what, options=SaveOptions(many=True)
        )
        assert (result.outcome, result.superseded, result.contradicts) == ("new", (), ())
    assert {memory.status for memory in kit.memories(scope=ANN)} == {"active"}


@pytest.mark.requirement("F4", "X11")
def test_without_a_slot_nothing_is_superseded(kit: MemoryKit) -> None:
    """No grammar reads one out of the words: both stay, dated, until a model or a person says which holds."""
    kit.save("home", "I live in Lisbon.", scope=ANN)
    result = kit.save("home", "I live in Porto.", scope=ANN)
    assert (result.outcome, result.superseded, result.contradicts) == ("new", (), ())
    assert {memory.status for memory in kit.memories(scope=ANN)} == {"active"}


@pytest.mark.requirement("F4", "X11")
def test_what_is_linked_as_alike_is_shown_to_the_model_which_may_merge_it(tmp_path: Path) -> None:
    """Whether two sentences say one thing takes somebody who reads them, with words that bear it out."""
    one, other, whole = "Ann keeps bees.", "Ann keeps her bees.", "Ann keeps bees on her roof."
    merge = change("SUPERSEDE", "m1", 1, "my bees are on the roof", content=whole) | {"id": ["m1", "m2"]}
    steps = {"DigestAnswer": digest("personal:ann"), "ProposalAnswer": proposal(merge)}
    with open_kit(tmp_path, steps, reviser="rules", merge_threshold=0.3) as kit:
        first = kept(kit.save("bees", one, scope=ANN))
        second = kit.save("hives", other, scope=ANN)
        assert second.similar == (first.memory_id,)
        kit.add_messages([said("Yes, my bees are on the roof.", name="ann")], scope=ANN)
        kit.summarize(scope=ANN, close=True)

        asked = next(call.text for call in model_of(kit).calls if call.schema == "ProposalAnswer")
        assert one in asked
        assert other in asked
        assert {memory.content: memory.status for memory in kit.memories(scope=ANN)} == {
            one: "superseded",
            other: "superseded",
            whole: "active",
        }


@pytest.mark.requirement("F4")
def test_what_a_conversation_taught_is_superseded_by_who_names_it(kit: MemoryKit) -> None:
    """There is one memory, whichever way a fact came in."""
    kit.add_messages([said("I live in Lisbon.")], scope=ANN)
    kit.summarize(scope=ANN, close=True)
    (taught,) = kit.memories(scope=ANN)
    result = kit.save("home", "I live in Porto.", scope=ANN, supersedes=[taught.memory_id])

    assert result.superseded == (taught.memory_id,)
    assert [hit.text for hit in kit.recall("Where does Ann live?", scope=ANN).memories] == ["I live in Porto."]


@pytest.mark.requirement("F3", "X6")
def test_recalled_text_is_refused(kit: MemoryKit) -> None:
    """Else memory would feed on itself, and a guess become a fact by being repeated."""
    kit.save("tea", "Ann drinks oolong.", scope=ANN)
    result = kit.save("tea", kit.recall("oolong", scope=ANN).context, scope=ANN)

    assert (result.outcome, result.memory) == ("refused", None)
    assert "recalled" in result.reason
    assert len(kit.memories(scope=ANN)) == 1


@pytest.mark.requirement("F3", "X6")
def test_a_model_cannot_overrule_a_core_rule_and_leaves_no_trace_of_trying(kit: MemoryKit) -> None:
    """Only a person may."""
    rule = kept(kit.save("home", "I live in Lisbon.", scope=ANN, importance=0.95, slot="ann:lives_in", value="Lisbon"))
    result = kit.save(
        "home", "Ann lives in Porto.", scope=ANN, slot="ann:lives_in", value="Porto", options=SaveOptions(by_model=True)
    )

    assert (result.outcome, rule.memory_id in result.reason) == ("refused", True)
    assert [memory.content for memory in kit.memories(scope=ANN)] == ["I live in Lisbon."]
    assert kit.sources.retrieve_message("Porto", scope=ANN) == ()


@pytest.mark.requirement("X6")
def test_what_a_model_saved_is_no_surer_in_the_index_than_as_a_memory(kit: MemoryKit) -> None:
    """A question that goes to the index gets no model's word for a person's."""
    memory = kept(kit.save("tea", "Ann drinks oolong.", scope=ANN, options=SaveOptions(by_model=True)))
    (entry,) = kit.sources.blocks(scope=ANN)
    assert entry.trust == memory.trust < 1


@pytest.mark.requirement("F3")
def test_a_call_that_is_carried_out_twice_changes_nothing(kit: MemoryKit) -> None:
    """LangGraph runs a tool again when it resumes; that is no second saying."""
    for outcome in ("new", "merged"):
        results = [
            kit.save("tea", "Ann drinks oolong.", scope=ANN, options=SaveOptions(call_id=outcome)) for _ in range(3)
        ]
        assert {result.outcome for result in results} == {outcome}
    (memory,) = kit.memories(scope=ANN)
    assert (memory.version, len(kit.sources.retrieve_message("oolong", scope=ANN))) == (2, 2)


@pytest.mark.requirement("F3", "X3")
@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
def test_a_save_that_broke_off_anywhere_is_finished_by_saving_again(tmp_path: Path, late: bool) -> None:
    """Whatever fails in between, there is one memory in the end, and never a half one."""
    doors = dict.fromkeys(("add_statement", "commit"), lambda: OSError("disk full"))
    for n in range(1, 3):
        with open_kit(tmp_path / f"{n}{late}") as kit:
            failing = FailingCall(n, late=late)
            failing.guard(kit.context.parts().archive, doors)
            with pytest.raises(OSError, match="disk full"):
                kit.save("tea", "Ann drinks oolong.", scope=ANN, options=SaveOptions(call_id="c"))
            assert len(kit.memories(scope=ANN)) <= 1
            kit.save("tea", "Ann drinks oolong.", scope=ANN, options=SaveOptions(call_id="c"))
            assert [memory.version for memory in kit.memories(scope=ANN)] == [1]
            assert len(kit.sources.retrieve_message("oolong", scope=ANN)) == 1
            assert kit.admin.verify().healthy


@pytest.mark.requirement("F3", "X3")
def test_many_savers_of_the_same_words_make_one_memory(kit: MemoryKit) -> None:
    """Parallel tool calls are common; the loser of the race merges."""
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: kit.save("tea", "Ann drinks oolong.", scope=ANN), range(4)))

    assert sorted(result.outcome for result in results) == ["merged", "merged", "merged", "new"]
    (memory,) = kit.memories(scope=ANN)
    assert (memory.merges, len(memory.evidence)) == (3, 4)


def test_a_worker_that_summarises_at_the_same_time_takes_nothing_away(kit: MemoryKit) -> None:
    """A background runner may reach the statement's block first."""
    archive = kit.context.parts().archive
    commit = archive.commit

    def summarised_first(changes: Any) -> Any:
        if changes.operation_id not in seen:
            seen.add(changes.operation_id)
            kit.summarize(scope=ANN, close=True)
        return commit(changes)

    seen: set[str] = set()
    archive.commit = summarised_first  # type: ignore[method-assign]
    result = kit.save("tea", "Ann drinks oolong.", scope=ANN)

    assert result.outcome == "new"
    assert len(kit.memories(scope=ANN)) == 1
    assert kit.admin.verify().healthy


@pytest.mark.requirement("F3", "X2")
def test_without_the_embedder_a_statement_is_saved_all_the_same(tmp_path: Path) -> None:
    """It says that it compared by words only; the vector follows with the next write."""
    embedder = _Down({"Ann drinks oolong.": 1.0})
    with MemoryKit.open(home=tmp_path, model=None, embedder=embedder, index=InMemoryVectorIndex()) as kit:
        embedder.down = True
        result = kit.save("oolong", "Ann drinks oolong.", scope=ANN)
        again = kit.save("oolong", "Ann drinks oolong.", scope=ANN)

        assert (result.outcome, again.outcome) == ("new", "merged")
        assert result.degraded == ("vectors: The embedder is down.",)
        embedder.down = False
        kit.context.parts().projection.sync()
        assert kit.admin.verify().healthy


class _Down(_Angles):
    down = False

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if self.down:
            raise ModelUnavailableError("The embedder is down.")
        return super().embed(texts)


@pytest.mark.parametrize(
    "fields",
    [
        {"content": " "},
        {"content": "a\x00b"},
        {"key": 3},
        {"tags": "drinks"},
        {"tags": [3]},
        {"importance": 1.5},
        {"importance": float("nan")},
        {"topic": "drinks"},
        {"topic": "self:self"},
        {"topic": "place:x"},
        {"category": "guess"},
        {"value": "Lisbon"},
        {"slot": "ann:home", "canonical_topic": "ann:work"},
        {"sentiment": 2},
    ],
    ids=str,
)
def test_what_cannot_be_saved_is_refused_at_the_door(kit: MemoryKit, fields: dict[str, Any]) -> None:
    """With the cure, and nothing written."""
    with pytest.raises(InputError):
        kit.save(**{"key": "tea", "content": "Ann drinks oolong.", "scope": ANN, **packed(fields)})
    assert kit.sources.retrieve_message("oolong", scope=ANN) == ()


def test_a_topic_may_be_named(kit: MemoryKit) -> None:
    """An agent's experience with a task is no trait of its user; each shelf holds its own."""
    for topic in ("task:deploy", None):
        assert kit.save("rule", "Run the smoke tests first.", scope=ANN, topic=topic).outcome == "new"
    assert {shelf.topic.key for shelf in kit.topics.list(scope=ANN)} == {"task:deploy", "personal:ann"}


@pytest.mark.requirement("F3", "X5")
def test_what_is_forgotten_is_not_recalled_and_its_versions_stay(kit: MemoryKit) -> None:
    """The user asked for it; the journal still shows that it was there."""
    memory = kept(kit.save("tea", "Ann drinks oolong.", scope=ANN))
    for _ in range(2):
        assert kit.forget(memory.memory_id, scope=ANN).memory.status == "deleted"

    assert kit.recall("oolong", scope=ANN).memories == ()
    trace = kit.trace(memory.memory_id, scope=ANN)
    assert [version.status for version in trace.versions] == ["active", "deleted"]
    assert kit.save("tea", "Ann drinks oolong.", scope=ANN).outcome == "new"
    assert kit.admin.verify().healthy


@pytest.mark.requirement("X5")
def test_nobody_forgets_what_is_not_theirs(kit: MemoryKit) -> None:
    """Neither another user's memory, nor what all users of the agent share."""
    memory = kept(kit.save("tea", "Ann drinks oolong.", scope=ANN))
    shared = kit.remember_self("I am Remy.", scope=ANN)
    for memory_id, scope in ((memory.memory_id, BOB), (shared.memory_id, ANN), ("unknown", ANN)):
        with pytest.raises(NotFoundError):
            kit.forget(memory_id, scope=scope)
    assert {each.status for each in kit.memories(scope=ANN)} == {"active"}


async def test_the_async_twins_do_the_same(tmp_path: Path) -> None:
    """Both are one code."""
    async with open_kit(tmp_path) as kit:
        memory = kept(await kit.asave("tea", "Ann drinks oolong.", scope=ANN))
        assert [one.memory_id for one in await kit.amemories(scope=ANN)] == [memory.memory_id]
        assert (await kit.aforget(memory.memory_id, scope=ANN)).memory.status == "deleted"
