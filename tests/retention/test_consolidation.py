"""Long-term memory, line by line of the brain-like layers' section 2: each test is named after its line."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from remegraph import CancelledError, InputError, MemoryKit, NotFoundError, Scope, Settings
from remegraph.ledger.archive import Archive
from remegraph.models import (
    Abstraction,
    ChangeSet,
    Conclusion,
    Consolidation,
    Link,
    Memory,
    MemoryChange,
    Progress,
    Receipt,
    Trace,
)
from remegraph.models.quotes import repeats
from remegraph.models.remnants import MARK
from remegraph.retention import consolidation
from remegraph.retention.conclusions import may_be_mixed
from remegraph.testing import FrozenClock, InMemoryVectorIndex
from tests.retention.conftest import DAY, House
from tests.talk import NOON, SHARED_KEY, said

pytestmark = pytest.mark.requirement("B6")

TEA = ("I drink sencha tea from Uji.", "I keep my sencha tea at the office.", "Bob gave me sencha tea from Uji.")
RIVER = ("I jog along the river on Sundays.", "I jog by the river with Rex.", "My knee hurts when I jog by the river.")
PLACES = "the market,the harbour,the mall,the fair,the old town".split(",")
THINGS = "lamp kettle carpet printer mirror bicycle tent drill".split()
_NUMBERS = itertools.count()
LATTE = ("我早上喝抹茶拿铁。", "我在办公室喝抹茶拿铁。", "我给小林买了抹茶拿铁。")


def told(house: House, *texts: str) -> list[Memory]:
    """Let Ann tell something, each in a conversation of its own; return the memories of it: episodes."""
    messages = [said(text, thread=text).evolve(time=house.clock()) for text in texts]
    house.kit.add_messages(messages, scope=house.ann)
    house.kit.summarize(scope=house.ann, close=True)
    known = {each.evidence[0].quote: each for each in house.kit.memories(scope=house.ann) if each.layer == "episodic"}
    return [known[text] for text in texts]


CONCLUDED = {
    "sencha": ("Uji tea is what Ann has.", "when Uji is concerned"),
    "river": ("Ann's jogs follow the river.", "outdoors"),
    "抹茶": ("小林身边常有抹茶拿铁。", "涉及抹茶拿铁时"),
}


def concluded(house: House, **options: Any) -> Consolidation:
    """Let a person conclude from every group that is proposed, if there is one."""
    proposed = house.kit.retention.consolidate(scope=house.ann, dry_run=True).proposed
    known = {memory.memory_id: memory.content for memory in house.kit.memories(scope=house.ann)}
    conclusions = [_concluded(group, " ".join(known[each] for each in group)) for group in proposed]
    return house.kit.retention.consolidate(scope=house.ann, conclusions=conclusions, **options)


def _concluded(group: tuple[str, ...], said: str) -> Conclusion:
    word = next((word for word in CONCLUDED if word in said), "")
    conclusion, condition = CONCLUDED.get(word, (f"Case {group[0]} holds.", "always"))
    return Conclusion(sources=group, conclusion=conclusion, conditions=(condition,))


def changed(house: House, change: MemoryChange, *links: Link) -> None:
    """Commit a change that nobody makes through the kit."""
    changes = ChangeSet(
        operation_id=house.ann.user, actor="a", recorded_at=house.clock(), changes=(change,), links=links
    )
    house.kit.context.parts().archive.commit(changes)
    house.kit.context.follow()


def lasting(house: House) -> list[Memory]:
    """Her live long-term memories."""
    return [each for each in house.kit.memories(scope=house.ann) if each.live and each.layer == "long_term"]


def traces(house: House) -> list[Trace]:
    return [house.kit.trace(memory.memory_id, scope=house.ann) for memory in lasting(house)]


def neighbours(trace: Trace) -> set[str]:
    """What a memory is tied to, apart from what it came from."""
    ends = {end for link in trace.links if link.type != "derived_from" for end in (link.source_id, link.target_id)}
    return ends - {trace.memory.memory_id}


def sources(house: House, memory: Memory) -> set[str]:
    """What a memory was abstracted from."""
    links = house.kit.trace(memory.memory_id, scope=house.ann).links
    return {link.target_id for link in links if link.type == "derived_from" and link.source_id == memory.memory_id}


def abstraction(memory: Memory) -> Abstraction:
    found = Abstraction.of(memory)
    assert found is not None
    return found


def about(house: House, word: str) -> Memory:
    """Her long-term memory of something."""
    (memory,) = [each for each in lasting(house) if word in each.content]
    return memory


@dataclass(frozen=True)
class Settled:
    """A house whose episodes were consolidated once; the tests that share it only look."""

    house: House
    tea: list[Memory]
    river: list[Memory]
    before: Sequence[Memory]
    saved: Memory
    done: Consolidation


@pytest.fixture(scope="module")
def settled(lived_in: tuple[MemoryKit, FrozenClock]) -> Settled:
    """Ann told of tea, then of the river, and had something saved."""
    house = House(*lived_in, Scope(user="settled", agent="remy"))
    tea = [*told(house, *TEA[:2], *LATTE[:1])[:2], *told(house, *TEA[2:])]
    house.clock.move(3 * DAY)
    river = told(house, *RIVER, *LATTE[1:])
    saved = house.saved("Ann never works on Fridays.")
    before = house.kit.memories(scope=house.ann)
    return Settled(house, tea, river[:3], before, saved, concluded(house))


def test_several_similar_episodes_become_one_long_term_memory(settled: Settled) -> None:
    """多条相似 M3 → 一个 LTM 节点: one for each matter, with all that it came from; the episodes stay as they are."""
    house = settled.house
    assert {memory.content for memory in settled.done.made} == {text for text, _ in CONCLUDED.values()}
    for word, episodes in (("tea", settled.tea), ("river", settled.river)):
        memory = about(house, word)
        assert sources(house, memory) == {each.memory_id for each in episodes}
        assert set(memory.block_ids) == {block_id for each in episodes for block_id in each.block_ids}
        assert set(memory.evidence) >= {each.evidence[0] for each in episodes}
        assert memory.trust == min(each.trust for each in episodes)
    after = {memory.memory_id: memory for memory in house.kit.memories(scope=house.ann)}
    assert all(after[memory.memory_id] == memory for memory in settled.before)
    assert house.kit.admin.verify().healthy


def test_only_conclusion_conditions_and_confidence_are_kept(settled: Settled) -> None:
    """只保留：抽象结论、适用条件、置信度: counted by code, with the figures that they come from; Chinese alike."""
    tea, latte = abstraction(about(settled.house, "tea")), about(settled.house, "抹茶")
    assert tea.conditions == ("when Uji is concerned",)
    assert (tea.corroborations, tea.contradictions, tea.confidence) == (3, 0, 4 / 5)
    assert (latte.language, abstraction(latte).conditions) == ("zh", ("涉及抹茶拿铁时",))


def test_no_original_dialogue_is_kept(settled: Settled) -> None:
    """不保留原始对话: no six words in a row of what was said, nor of an episode, stand in a conclusion or condition."""
    heard = [*TEA, *RIVER, *LATTE, *(memory.content for memory in settled.before)]
    for memory in settled.done.made:
        assert repeats([memory.content, *abstraction(memory).conditions], heard) == ""


def test_no_dialogue_as_a_time_series(settled: Settled) -> None:
    """不允许存时间序列对话: one conclusion without times and turns, however often and whenever it was said."""
    for memory in settled.done.made:
        assert memory.kind == "semantic"
        assert not re.search(r"\d|\n", memory.content)


def test_no_fact_without_a_source(settled: Settled) -> None:
    """不允许直接写事实而无来源: each leads back to its episodes, to the blocks, and to the words, to the letter."""
    for word, texts in (("tea", TEA), ("river", RIVER)):
        trace = settled.house.kit.trace(about(settled.house, word).memory_id, scope=settled.house.ann)
        assert {quote.words for quote in trace.quotes} == set(texts)
        assert set(texts) <= {message.text for message in trace.messages}
        assert len(sources(settled.house, trace.memory)) == 3
        assert not trace.missing


@pytest.mark.requirement("B7")
def test_no_long_term_memory_without_links(settled: Settled) -> None:
    """不允许 LTM 无图关系: what was saved outright gets neighbours, too; where a memory came from does not count."""
    assert settled.saved.memory_id in {trace.memory.memory_id for trace in traces(settled.house)}
    assert all(neighbours(trace) for trace in traces(settled.house))


@pytest.mark.requirement("B7")
def test_the_mean_degree_of_long_term_memories_is_over_one(settled: Settled) -> None:
    """LTM 节点平均连接度 > 1."""
    degrees = [len(neighbours(trace)) for trace in traces(settled.house)]
    assert len(degrees) == 4
    assert sum(degrees) / len(degrees) > 1


@pytest.mark.requirement("B7")
def test_what_nothing_can_be_linked_with_waits(house: House) -> None:
    """无孤立长期节点: where only one long-term memory could be made and nothing else is known, it is not made yet."""
    tea = told(house, *TEA)
    done = concluded(house)
    assert (done.made, set(done.waiting)) == ((), {memory.memory_id for memory in tea})
    told(house, "I have a grey cat.")
    done = concluded(house)
    assert (len(done.made), done.waiting) == (1, ())


@pytest.mark.requirement("B7")
def test_causes_and_dependencies_are_lifted_to_what_was_abstracted(house: House) -> None:
    """Neo4j：概念、因果、依赖: what caused what among the episodes, their long-term memories still tell, once."""
    episodes = told(house, *TEA, *RIVER)
    house.kit.topics.link(episodes[0].memory_id, "causes", episodes[3].memory_id, scope=house.ann, reason="caffeine")
    house.kit.topics.link(episodes[0].memory_id, "causes", episodes[1].memory_id, scope=house.ann)
    concluded(house)
    tea, river = about(house, "tea"), about(house, "river")
    links = house.kit.trace(tea.memory_id, scope=house.ann).links
    assert [(each.source_id, each.target_id, each.reason) for each in links if each.type == "causes"] == [
        (tea.memory_id, river.memory_id, "caffeine")
    ]
    assert concluded(house).linked == 0


@pytest.mark.requirement("B8")
def test_long_term_memories_are_usable_when_the_episodes_are_gone(house: House) -> None:
    """删除 M3 后 LTM 是否仍可用: recalled by what the episodes were about, though their words are withheld."""
    episodes = [*told(house, *TEA), *told(house, *RIVER)]
    concluded(house)
    for episode in episodes:
        house.kit.forget(episode.memory_id, scope=house.ann)
    memory = about(house, "tea")
    found = house.kit.recall("Where does my sencha come from?", scope=house.ann).memories
    assert found[0].record_id == memory.memory_id
    assert {item.quote for item in found[0].evidence} == {MARK}
    trace = house.kit.trace(memory.memory_id, scope=house.ann)
    assert {message.text for message in trace.messages} == {MARK}
    assert len(trace.quotes) == len(TEA)
    assert all(map(neighbours, traces(house)))
    assert concluded(house).made == ()


@pytest.mark.requirement("B8")
def test_a_fact_learned_again_is_merged(house: House) -> None:
    """相同事实多次学习是否被合并: a new episode joins the memory that it resembles, which is then surer of it."""
    told(house, *TEA, *RIVER)
    concluded(house)
    before = about(house, "tea")
    (more,) = told(house, "I ordered sencha tea from Uji again.")
    done = concluded(house)
    after = about(house, "tea")
    assert (done.made, [memory.memory_id for memory in done.grown]) == ((), [before.memory_id])
    assert abstraction(after).corroborations == 4
    assert abstraction(after).confidence > abstraction(before).confidence
    assert more.memory_id in sources(house, after)
    assert set(more.evidence) <= set(after.evidence)


@pytest.mark.requirement("B8", "X11")
def test_likeness_alone_makes_nothing_and_makes_nothing_surer(house: House) -> None:
    """Without a model or a person, groups are only named: what looks alike need not be one matter."""
    told(house, *TEA, *RIVER)
    done = house.kit.retention.consolidate(scope=house.ann)
    assert (done.made, done.grown, len(done.proposed)) == ((), (), 2)
    assert lasting(house) == []
    concluded(house)
    before = about(house, "tea")
    told(house, "I ordered sencha tea from Uji again.")
    done = house.kit.retention.consolidate(scope=house.ann)
    assert (done.grown, [before.memory_id in group for group in done.proposed]) == ((), [True])
    assert about(house, "tea") == before


@pytest.mark.requirement("B8")
def test_the_same_slot_and_value_learned_twice_become_one(house: House) -> None:
    """冗余率低: the other is superseded, never deleted, and its words go over."""
    slot = {"canonical_topic": "ann:favourite_tea", "slot_value": "sencha"}
    first, cat = house.saved("Ann likes sencha."), house.saved("Bob has a grey cat.")
    second = first.evolve(
        memory_id="second" + house.ann.user, content="Ann really enjoys sencha.", evidence=cat.evidence, **slot
    )
    second = second.evolve(block_ids=cat.block_ids)
    changed(house, MemoryChange(memory=second, expected_version=0, action="create"))
    noted = first.evolve(version=2, **slot)
    note = MemoryChange(memory=noted, expected_version=1, action="refine")
    changes = ChangeSet(operation_id=first.memory_id, actor="a", recorded_at=house.clock(), changes=(note,))
    house.kit.context.parts().archive.commit(changes)
    (merge,) = house.kit.retention.maintain(scope=house.ann).merges
    (survivor,) = [memory for memory in lasting(house) if memory.memory_id == merge.kept.memory_id]
    assert set(survivor.evidence) == {*first.evidence, *second.evidence}
    (retired,) = merge.merged
    assert house.kit.trace(retired.memory_id, scope=house.ann).memory.status == "superseded"


@pytest.mark.requirement("B8")
def test_conflicting_knowledge_coexists_with_its_confidence(house: House) -> None:
    """冲突知识是否可并存（带置信度）: both stay, are linked, and the long-term one is less sure than before."""
    told(house, *TEA, *RIVER)
    concluded(house)
    before = about(house, "tea")
    saved = house.saved("Ann has no tea from Uji.")
    house.kit.topics.link(saved.memory_id, "contradicts", before.memory_id, scope=house.ann)
    concluded(house)
    after = about(house, "Uji tea")
    counted = abstraction(after)
    assert (counted.corroborations, counted.contradictions) == (3, 1)
    assert counted.confidence < abstraction(before).confidence
    assert about(house, "no tea").live
    assert concluded(house).grown == ()


@pytest.mark.requirement("B6")
@pytest.mark.parametrize("spoilt", ["unknown", "one topic", "rule"])
def test_a_person_concludes_only_from_what_may_be_mixed(house: House, spoilt: str) -> None:
    """A slip of the hand must not make a conclusion of a rule, nor of two matters."""
    tea = told(house, *TEA)
    other = {
        "unknown": "nobody",
        "one topic": house.kit.save("x", "Brew at 80 degrees.", scope=house.ann, topic="task:tea").memory,
        "rule": house.saved("Never buy tea bags.", importance=0.95),
    }[spoilt]
    ids = (tea[0].memory_id, other if isinstance(other, str) else other.memory_id if other else "")
    with pytest.raises((InputError, NotFoundError)):
        house.kit.retention.consolidate(
            scope=house.ann, conclusions=[Conclusion(sources=ids, conclusion="Ann has tea.")]
        )
    assert not any(Abstraction.of(memory) for memory in lasting(house))


# ------------------------------------------------------------------------------------------ how it is run


def test_a_second_run_changes_nothing(house: House) -> None:
    """A cron job that fires twice is no accident."""
    told(house, *TEA, *RIVER)
    house.saved("Ann never works on Fridays.")
    concluded(house)
    rows = house.rows()
    again = concluded(house)
    assert (again.made, again.grown, again.proposed, again.linked, again.skipped) == ((), (), (), 0, ())
    assert house.rows() == rows


def test_a_dry_run_says_what_would_be_asked_and_does_nothing(house: House) -> None:
    """Who fears for their memories looks first."""
    episodes = told(house, *TEA, *RIVER)
    rows = house.rows()
    would = house.kit.retention.consolidate(scope=house.ann, dry_run=True)
    assert house.rows() == rows
    assert would.dry_run
    assert {frozenset(group) for group in would.proposed} == {
        frozenset(each.memory_id for each in episodes[:3]),
        frozenset(each.memory_id for each in episodes[3:]),
    }


def test_a_run_that_was_stopped_is_finished_by_the_next(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """A deployment in the middle of the night costs nothing: each batch is whole, and nothing is made twice."""
    monkeypatch.setattr(consolidation, "_BATCH", 1)
    told(house, *TEA, *RIVER, "I have a grey cat.")
    commit, batches = Archive.commit, 0

    def once(archive: Archive, changes: ChangeSet) -> Receipt:
        nonlocal batches
        batches += changes.actor == consolidation.ACTOR
        if batches == 2:
            raise KeyboardInterrupt
        return commit(archive, changes)

    with monkeypatch.context() as patched:
        patched.setattr(Archive, "commit", once)
        with pytest.raises(KeyboardInterrupt):
            concluded(house)
    assert len(lasting(house)) == 1
    assert all(map(neighbours, traces(house)))
    assert len(concluded(house).made) == 1
    assert len(lasting(house)) == 2
    assert concluded(house).made == ()


def test_a_run_is_watched_and_cancelled_between_batches(house: House) -> None:
    """A bar on a terminal, and a way out that leaves nothing half done."""
    told(house, *TEA, *RIVER)
    heard: list[Progress] = []
    with pytest.raises(CancelledError):
        concluded(house, cancel=lambda: True)
    assert lasting(house) == []
    concluded(house, progress=heard.append)
    assert [(each.done, each.total) for each in heard] == [(0, 2), (2, 2)]


def test_what_somebody_changes_meanwhile_is_left_to_the_next_run(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long-term memory must not grow by what was true a moment ago, and one writer must not undo another."""
    told(house, *TEA, *RIVER)
    concluded(house)
    (more,) = told(house, "I ordered sencha tea from Uji again.")
    commit = Archive.commit

    def late(archive: Archive, changes: ChangeSet) -> Receipt:
        if changes.actor == consolidation.ACTOR:
            monkeypatch.setattr(Archive, "commit", commit)
            old = about(house, "tea")
            change = MemoryChange(memory=old, expected_version=old.version, action="refine")
            archive.commit(changes.evolve(operation_id="late", actor="person", changes=(change,), links=()))
        return commit(archive, changes)

    monkeypatch.setattr(Archive, "commit", late)
    assert concluded(house).skipped == (more.memory_id,)
    assert [memory.version for memory in concluded(house).grown] == [3]


def test_what_another_run_concluded_meanwhile_is_left_as_it_made_it(house: House) -> None:
    """Two machines may be told the same: the second finds it done, and neither fails nor loses its neighbours."""
    told(house, *TEA, *RIVER)
    groups = house.kit.retention.consolidate(scope=house.ann, dry_run=True).proposed
    known = {memory.memory_id: memory.content for memory in house.kit.memories(scope=house.ann)}
    same = [_concluded(group, " ".join(known[each] for each in group)) for group in groups]
    made = house.kit.retention.consolidate(scope=house.ann, conclusions=same).made
    again = house.kit.retention.consolidate(scope=house.ann, conclusions=same)
    assert (again.made, again.grown) == ((), ())
    assert set(again.skipped) == {each for conclusion in same for each in conclusion.sources}
    assert {memory.memory_id for memory in lasting(house)} == {memory.memory_id for memory in made}


def test_two_runs_at_the_same_time_make_each_memory_once(house: House) -> None:
    """Two machines, one cron table."""
    told(house, *TEA, *RIVER)
    settings, clock = house.kit.settings, house.clock
    with MemoryKit.open(
        settings=settings, model=None, embedder=None, index=InMemoryVectorIndex(), clock=clock
    ) as other:
        with ThreadPoolExecutor(2) as pool:
            kits = (House(kit, clock, house.ann) for kit in (house.kit, other))
            list(pool.map(concluded, kits))
        assert concluded(house).made == ()
    house.kit.admin.rebuild()  # the other kit has an index of its own, and took its share of the work
    tea, river = (sources(house, memory) for memory in lasting(house))
    assert (len(tea), len(river), tea & river) == (3, 3, set())


def test_what_a_person_forgot_is_not_made_again(house: House) -> None:
    """Whoever deletes a conclusion means it: the same episodes do not bring it back."""
    told(house, *TEA, *RIVER)
    concluded(house)
    house.kit.forget(about(house, "tea").memory_id, scope=house.ann)
    assert concluded(house).made == ()


@pytest.mark.parametrize(
    "spoilt",
    [{"usage": "knowledge"}, {"status": "disputed"}, {"trust": 0.4}, {"importance": 0.9}],
    ids=lambda spoilt: next(iter(spoilt)),
)
def test_knowledge_and_what_is_doubtful_is_never_mixed_in(settled: Settled, spoilt: dict[str, object]) -> None:
    """A conclusion is as good as its worst source: what must not be rewritten, or is not trusted, stays apart."""
    assert may_be_mixed(settled.tea[0])
    assert not may_be_mixed(settled.tea[0].evolve(**spoilt))


def test_what_may_not_be_mixed_in_is_left_as_it_is(house: House) -> None:
    """Two episodes and a piece of knowledge are no three episodes."""
    episodes = told(house, *TEA, *RIVER)
    known = episodes[0].evolve(version=2, usage="knowledge")
    changed(house, MemoryChange(memory=known, expected_version=1, action="refine"))
    (made,) = concluded(house).made
    assert sources(house, made) == {each.memory_id for each in episodes[3:]}


def test_a_source_that_is_forgotten_meanwhile_makes_its_group_wait(house: House) -> None:
    """A model may take its time: what was deleted while it wrote must not come back as a conclusion."""
    episodes = told(house, *TEA, *RIVER, "I have a grey cat.")
    gone = iter(episodes[:1])

    def forget(_: Progress) -> None:
        for episode in gone:
            house.kit.forget(episode.memory_id, scope=house.ann)

    done = concluded(house, progress=forget)
    assert set(done.skipped) == {each.memory_id for each in episodes[:3]}
    assert [sources(house, memory) for memory in done.made] == [{each.memory_id for each in episodes[3:6]}]


def test_one_user_never_consolidates_what_is_anothers(house: House) -> None:
    """A run is for whom it is called."""
    told(house, *TEA, *RIVER)
    bob = Scope(user=f"not {house.ann.user}", agent="remy")
    assert house.kit.retention.consolidate(scope=bob).examined == 0
    assert lasting(house) == []


@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.sampled_from(PLACES), st.sampled_from(THINGS)), min_size=4, max_size=14, unique=True))
@pytest.mark.requirement("B7", "B8")
def test_whatever_is_told_none_is_isolated_and_no_source_is_lost(
    lived_in: tuple[MemoryKit, FrozenClock], pairs: list[tuple[str, str]]
) -> None:
    """Whatever one tells: sources stay, trust is that of the weakest, and a second run finds nothing to do."""
    house = House(*lived_in, Scope(user=f"any {next(_NUMBERS)}", agent="remy"))
    episodes = told(house, *(f"I bought a {thing} at {place}." for place, thing in pairs))
    weak = episodes[0].evolve(version=2, trust=0.7)
    changed(house, MemoryChange(memory=weak, expected_version=1, action="refine"))
    before = {memory.memory_id: memory for memory in house.kit.memories(scope=house.ann)}
    done = concluded(house)
    after = {memory.memory_id: memory for memory in house.kit.memories(scope=house.ann)}
    assert before.items() <= after.items()
    for memory in done.made:
        made_of = [before[memory_id] for memory_id in sources(house, memory)]
        assert len(made_of) >= 3
        assert memory.trust == min(each.trust for each in made_of)
        assert set(memory.evidence) == {item for each in made_of for item in each.evidence}
        assert set(memory.block_ids) == {block_id for each in made_of for block_id in each.block_ids}
    assert all(neighbours(trace) for trace in traces(house))
    again = concluded(house)
    assert (again.made, again.grown, again.proposed, again.linked) == ((), (), (), 0)


class _Meaning:
    """An embedder to whom all tea means the same, and each jog something else."""

    name, dimension, semantic = "meaning", 4, True

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        marks = ("sencha", "Sundays", "Rex", "knee")
        return np.array([[float(mark in text) for mark in marks] for text in texts], np.float32)


def test_vectors_that_know_meaning_have_half_a_say(tmp_path: Path) -> None:
    """Sentences that share words but mean something else are no group; without such an embedder words decide."""
    with MemoryKit.open(tmp_path, model=None, embedder=_Meaning(), index=InMemoryVectorIndex()) as kit:
        house = House(kit, FrozenClock(NOON), Scope(user="ann", agent="remy"))
        told(house, *TEA, *RIVER)
        (made,) = concluded(house).made
    assert made.content == CONCLUDED["sencha"][0]


def test_it_is_done_on_postgresql_alike(postgres_url: str, settled: Settled, tmp_path: Path) -> None:
    """A team's ledger holds the same conclusions as a laptop's."""
    clock, ann = FrozenClock(NOON), Scope(user="settled", agent="remy")
    settings = Settings(home=tmp_path, ledger_url=postgres_url, journal_key=SHARED_KEY)
    with MemoryKit.open(settings=settings, model=None, embedder=None, index=InMemoryVectorIndex(), clock=clock) as kit:
        house = House(kit, clock, ann)
        told(house, *TEA, *RIVER)
        done = concluded(house)
        assert {memory.content for memory in done.made} < {memory.content for memory in settled.done.made}
        assert len(done.made) == 2
        assert concluded(house).linked == 0


async def test_the_async_verb_does_the_same(house: House) -> None:
    """Who moves to async code gets the same memories."""
    told(house, *TEA, *RIVER)
    assert len((await house.kit.retention.aconsolidate(scope=house.ann)).proposed) == 2


_SPANS: dict[str, tuple[int | None, int | None]] = {
    "is": (None, None),
    "began": (-9, None),
    "was": (-9, -2),
    "ends": (-9, 30),
    "will be": (30, None),
}
"""Since when and until when something is so, in days from now."""


def timed(house: House, memories: Sequence[Memory], spans: Sequence[str]) -> None:
    """Give memories their times."""
    ends = [[None if day is None else house.clock() + day * DAY for day in _SPANS[span]] for span in spans]
    changes = tuple(
        MemoryChange(
            memory=each.evolve(version=each.version + 1, valid_from=begins, valid_to=over),
            expected_version=each.version,
            action="refine",
        )
        for each, (begins, over) in zip(memories, ends, strict=True)
    )
    operation = f"timed {next(_NUMBERS)}"
    house.kit.context.parts().archive.commit(
        ChangeSet(operation_id=operation, actor="a", recorded_at=house.clock(), changes=changes)
    )
    house.kit.context.follow()


@pytest.mark.slow
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(sorted(_SPANS)), min_size=8, max_size=8))
@pytest.mark.requirement("B6", "B8")
def test_what_was_is_and_will_be_are_never_put_together(
    lived_in: tuple[MemoryKit, FrozenClock], spans: list[str]
) -> None:
    """Nothing is concluded from what is over, ends or is yet to be, whoever agrees to what; each group has its line."""
    house = House(*lived_in, Scope(user=f"times {next(_NUMBERS)}", agent="remy"))
    episodes = told(house, *(f"I drink sencha tea from the {thing}." for thing in THINGS))
    timed(house, episodes, spans)
    so = {each.memory_id for each, span in zip(episodes, spans, strict=True) if span in {"is", "began"}}
    dry = house.kit.retention.consolidate(scope=house.ann, dry_run=True)
    assert {each for group in dry.proposed for each in group} <= so
    assert [line.partition(":")[0] for line in dry.lines] == [", ".join(group) for group in dry.proposed]
    assert all("alike by" in line for line in dry.lines)
    done = concluded(house)
    assert all(sources(house, memory) <= so for memory in done.made)
    assert [line.partition(" <- ")[0] for line in done.lines] == [memory.memory_id for memory in done.made]


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ((*(f"I used to {each[2:]}" for each in TEA[:2]), "Bob no longer gave me sencha tea from Uji."), TEA),
        (tuple(f"以前{each}" for each in LATTE), LATTE),
    ],
)
def test_what_is_told_as_over_is_not_put_beside_what_is(
    house: House, was: tuple[str, ...], now: tuple[str, ...]
) -> None:
    """The words alone tell it where nobody set an end: who used to drink tea does not."""
    over = {each.memory_id for each in told(house, *was)}
    told(house, *now)
    groups = house.kit.retention.consolidate(scope=house.ann, dry_run=True).proposed
    assert groups
    assert [group for group in groups if 0 < len(over.intersection(group)) < len(group)] == []


def test_what_is_told_as_over_joins_no_conclusion_of_what_is(house: House) -> None:
    """Her tea would be what she drinks and what she gave up."""
    told(house, *TEA, *RIVER)
    concluded(house)
    before = about(house, "tea")
    told(house, "I no longer order sencha tea from Uji.")
    assert [
        group
        for group in house.kit.retention.consolidate(scope=house.ann, dry_run=True).proposed
        if before.memory_id in group
    ] == []
    (still,) = told(house, "I order sencha tea from Uji.")
    dry = house.kit.retention.consolidate(scope=house.ann, dry_run=True)
    assert [set(group) for group in dry.proposed if before.memory_id in group] == [{before.memory_id, still.memory_id}]


def test_a_person_cannot_put_what_was_beside_what_is(house: House) -> None:
    """The error says why; nothing changes."""
    episodes = told(house, *TEA)
    timed(house, episodes, ["is", "is", "was"])
    conclusion = Conclusion(sources=tuple(each.memory_id for each in episodes), conclusion="Tea it is.")
    with pytest.raises(InputError, match="may not be mixed"):
        house.kit.retention.consolidate(scope=house.ann, conclusions=[conclusion])
    assert lasting(house) == []


def test_nothing_joins_a_conclusion_one_of_whose_sources_is_over(house: House) -> None:
    """What was concluded from what was says nothing of today: it stays as it is, and new episodes stay by themselves."""
    episodes = told(house, *TEA, *RIVER)
    concluded(house)
    before = about(house, "tea")
    timed(house, episodes[:1], ["was"])
    told(house, "I ordered sencha tea from Uji again.")
    done = concluded(house)
    assert done.grown == ()
    assert about(house, "tea") == before


def test_maintenance_says_in_a_line_each_what_it_merges_and_why(house: House) -> None:
    """In the dry run, too: the same lines, and nothing is changed."""
    one, other = (house.saved(text) for text in ("Ann owns a kiln.", "There is a kiln that Ann owns."))
    changes = tuple(
        MemoryChange(
            memory=each.evolve(version=2, canonical_topic="Ann:owns", slot_value="kiln"),
            expected_version=1,
            action="refine",
        )
        for each in (one, other)
    )
    house.kit.context.parts().archive.commit(
        ChangeSet(operation_id="slots", actor="a", recorded_at=house.clock(), changes=changes)
    )
    dry = house.kit.retention.maintain(scope=house.ann, dry_run=True)
    done = house.kit.retention.maintain(scope=house.ann)
    (line,) = (each for each in dry.lines if "they say the same" in each)
    assert {one.memory_id, other.memory_id} <= set(re.split(r"\W+<-\W+|: ", line))
    assert line in done.lines
