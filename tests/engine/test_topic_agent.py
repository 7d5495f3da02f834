"""Sub Agents as readers: one topic, by query and by time, by themselves and on the path of the read graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import count
from pathlib import Path
from threading import Barrier
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from remegraph import Hit, InputError, MemoryKit, NotFoundError, RecallFilter, RecallPolicy, Scope, Settings
from remegraph.errors import NaiveTimeError
from remegraph.kit import OpenOptions
from remegraph.ports import Search, TopicReader
from remegraph.testing import FrozenClock, InMemoryVectorIndex, SequentialIds
from tests.talk import ANN, NOON, misled, open_kit, said

FOODS = ("Ann hates mushrooms.", "Ann eats figs.", "Ann bakes bread.")


def memories(hits: Iterable[Hit]) -> list[str]:
    return [hit.text for hit in hits if hit.kind == "memory"]


def saved(home: Path, topics: Mapping[str, Sequence[str]], **options: Any) -> MemoryKit:
    """A kit that was told what each topic is to hold."""
    settings = Settings(home=home, recall=RecallPolicy(**options))
    kit = MemoryKit.open(
        settings=settings,
        model=None,
        embedder=None,
        index=InMemoryVectorIndex(),
        clock=FrozenClock(NOON),
        options=OpenOptions(new_id=SequentialIds()),
    )
    for topic, told in topics.items():
        for text in told:
            kit.save(text, text, topic=topic, scope=ANN)
    return kit


@pytest.mark.requirement("R9")
def test_a_sub_agent_finds_memories_and_index_entries_of_its_topic_only(tmp_path: Path) -> None:
    """A custom agent builds on these two calls, and must not see another person's shelf."""
    with open_kit(tmp_path) as kit:
        kit.add_messages([said("I hate mushrooms."), said("I love mushrooms.", name="Bob", minutes=1)], scope=ANN)
        kit.summarize(scope=ANN, close=True)

        agent = kit.topics.agent("personal:Ann", scope=ANN)
        hits = agent.retrieve_by_query("mushrooms", limit_size=5, threshold=0.1)

        assert memories(hits) == ["Ann: I hate mushrooms."]
        assert [hit.record_id for hit in hits if hit.kind == "block"] == ["20250304_01"]
        with pytest.raises(NotFoundError):
            kit.topics.agent("personal:Zoe", scope=ANN)


@pytest.mark.requirement("R9")
def test_a_threshold_keeps_out_what_does_not_bear_on_the_query(tmp_path: Path) -> None:
    """Of a topic that knows nothing of the matter, the best hit is no answer: a share of it would let everything pass."""
    with saved(tmp_path, {"personal:Ann": FOODS}) as kit:
        agent = kit.topics.agent("personal:Ann", scope=ANN)

        assert memories(agent.retrieve_by_query("Does Ann hate mushrooms?")) == ["Ann hates mushrooms."]
        assert agent.retrieve_by_query("Which xylophone plays the sonata?") == ()
        assert {*memories(agent.retrieve_by_query("Does Ann hate mushrooms?", threshold=0))} == {*FOODS}


@pytest.mark.requirement("R9")
def test_the_limit_is_of_all_hits_and_the_best_come_first(tmp_path: Path) -> None:
    """Fifty hits are a page, five are a glance."""
    foods = [f"Ann likes soup number {number}." for number in range(8)]
    with saved(tmp_path, {"personal:Ann": foods}) as kit:
        agent = kit.topics.agent("personal:Ann", scope=ANN)
        every = agent.retrieve_by_query("Which soup does Ann like?", threshold=0)
        assert len(every) > len(foods)  # their index entries, too

        few = agent.retrieve_by_query("Which soup does Ann like?", limit_size=3, threshold=0)
        assert few == every[:3]
        assert [hit.score for hit in every] == sorted((hit.score for hit in every), reverse=True)


class Meaning:
    """An embedder to which all that is eaten means the same."""

    name = "meaning"
    dimension = 2
    semantic = True

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        eaten = [any(word in text for word in ("food", "mushrooms", "figs", "bread")) for text in texts]
        return np.array([[1.0, 0.0] if each else [0.0, 1.0] for each in eaten], dtype=np.float32)


@pytest.mark.requirement("R9")
def test_the_threshold_means_the_same_where_meaning_finds_what_words_do_not(tmp_path: Path) -> None:
    """A host does not choose another threshold for each embedder."""
    with MemoryKit.open(home=tmp_path, model=None, embedder=Meaning(), index=InMemoryVectorIndex()) as kit:
        kit.save("food", "Ann hates mushrooms.", topic="personal:Ann", scope=ANN)
        kit.save("home", "Ann lives upstairs.", topic="personal:Ann", scope=ANN)
        agent = kit.topics.agent("personal:Ann", scope=ANN)
        assert memories(agent.retrieve_by_query("Is there any food to avoid?")) == ["Ann hates mushrooms."]


@pytest.mark.requirement("R9")
def test_recall_asks_the_sub_agent_that_a_caller_asks(tmp_path: Path) -> None:
    """What is offered to callers would else be a side door: another search beside that of the graph."""
    with saved(tmp_path / "open", {"personal:Ann": FOODS}) as kit:
        agent = kit.topics.agent("personal:Ann", scope=ANN)
        query = "Does Ann hate mushrooms?"
        by_graph = kit.recall(query, scope=ANN, topics=["personal:Ann"], k=2).memories
        assert [*map(called, by_graph[:2])] == [
            *map(called, [hit for hit in agent.retrieve_by_query(query, threshold=0) if hit.kind == "memory"][:2])
        ]
        day = (NOON - timedelta(hours=1), NOON + timedelta(hours=1))
        timed = kit.recall(query, scope=ANN, mode="temporal", time_start=day[0], time_end=day[1], k=9).memories
        assert {*map(called, timed)} == {*map(called, agent.time_aware_retrieve(day))} - {*entries(agent, day)}
    with saved(tmp_path / "closed", {"personal:Ann": FOODS}, threshold=0.5) as kit:
        assert memories(kit.recall(query, scope=ANN).memories)[0] == "Ann hates mushrooms."
        assert kit.recall("Which xylophone plays the sonata?", scope=ANN).memories == ()
        unsure = {"score": 0.4, "contributions": {"guess": 0.4}}
        kit.topics.register("personal", lambda _search, topic: [hit.evolve(**unsure) for hit in topic.memories()])
        assert kit.recall(query, scope=ANN).memories == ()  # nor does an agent of one's own get round it


def called(hit: Hit) -> str:
    return hit.record_id


def entries(agent: TopicReader, time: tuple[datetime, datetime]) -> Iterator[str]:
    yield from (hit.record_id for hit in agent.time_aware_retrieve(time) if hit.kind == "block")


@pytest.mark.requirement("R9", "R14")
@pytest.mark.parametrize(
    ("time", "found"),
    [
        ("yesterday", ["Ann: I hate mushrooms."]),
        ("昨天", ["Ann: I hate mushrooms."]),
        ("last week", ["Ann: I bake bread."]),
        ("上周", ["Ann: I bake bread."]),
        ("去年三月", ["Ann: I eat figs."]),
        (date(2025, 3, 3), ["Ann: I hate mushrooms."]),
        (datetime(2025, 3, 3, 12, tzinfo=UTC), ["Ann: I hate mushrooms."]),
        ((date(2025, 2, 20), date(2025, 3, 3)), ["Ann: I bake bread.", "Ann: I hate mushrooms."]),
        ((NOON, NOON), ["Ann: I love hiking."]),
        ((None, date(2024, 12, 31)), ["Ann: I eat figs."]),
        ((date(2025, 3, 4), None), ["Ann: I love hiking."]),
    ],
)
async def test_a_sub_agent_reads_a_time_in_words_as_a_day_a_moment_or_a_range(
    tmp_path: Path, time: Any, found: list[str]
) -> None:
    """'What did she say yesterday' is a question about time, not about words."""
    minutes = {"I eat figs.": -360 * 24 * 60, "I bake bread.": -7 * 24 * 60, "I hate mushrooms.": -24 * 60}
    with open_kit(tmp_path) as kit:
        kit.add_messages([said(text, minutes=at) for text, at in minutes.items()], scope=ANN)
        kit.add_messages([said("I love hiking.", minutes=0)], scope=ANN)
        kit.summarize(scope=ANN, close=True)
        agent = await kit.topics.aagent("personal:Ann", scope=ANN)

        hits = agent.time_aware_retrieve(time)
        assert memories(hits) == found
        assert len([hit for hit in hits if hit.kind == "block"]) == len(found)
        assert await agent.atime_aware_retrieve(time) == hits


@pytest.mark.requirement("R9")
def test_of_a_moment_a_sub_agent_tells_what_was_being_talked_of(tmp_path: Path) -> None:
    """'What was that at ten past twelve?': nobody said anything in that very minute."""
    with open_kit(tmp_path) as kit:
        kit.add_messages([said("I hate mushrooms."), said("I love hiking.", minutes=4)], scope=ANN)
        kit.summarize(scope=ANN, close=True)
        hits = kit.topics.agent("personal:Ann", scope=ANN).time_aware_retrieve(NOON + timedelta(minutes=2))
        assert memories(hits) == ["Ann: I hate mushrooms.\nI love hiking."]


@pytest.mark.requirement("R9")
async def test_sync_and_async_sub_agents_find_the_same(tmp_path: Path) -> None:
    """An agent in an event loop reads its topics as one in a thread does."""
    with saved(tmp_path, {"personal:Ann": FOODS}) as kit:
        agent = kit.topics.agent("personal:Ann", scope=ANN)
        assert await agent.aretrieve_by_query("bread", 5, 0.2) == agent.retrieve_by_query("bread", 5, 0.2) != ()
        assert await agent.amemories(2) == agent.memories(2)
        (block_id,) = agent.memories(1)[0].block_ids
        assert await agent.aretrieve_block(block_id) == agent.retrieve_block(block_id) != ()
        assert agent.retrieve_block("20991231_01") == ()


BAD: dict[str, tuple[Any, type[Exception], str]] = {
    "empty query": (lambda agent: agent.retrieve_by_query(""), InputError, "empty or no text"),
    "no query": (lambda agent: agent.retrieve_by_query(None), InputError, "empty or no text"),
    "no limit": (lambda agent: agent.retrieve_by_query("x", limit_size=0), InputError, "limit_size is 0"),
    "high threshold": (lambda agent: agent.retrieve_by_query("x", threshold=1.5), InputError, "threshold is 1.5"),
    "wordy threshold": (
        lambda agent: agent.retrieve_by_query("x", threshold="half"),
        InputError,
        "threshold is 'half'",
    ),
    "no memories": (lambda agent: agent.memories(0), InputError, "limit is 0"),
    "no time named": (lambda agent: agent.time_aware_retrieve("purple"), InputError, "names no time"),
    "no time": (lambda agent: agent.time_aware_retrieve(None), InputError, "is not a time"),
    "half a range": (lambda agent: agent.time_aware_retrieve((NOON,)), InputError, "is not a time"),
    "range turned round": (
        lambda agent: agent.time_aware_retrieve((NOON, NOON - timedelta(1))),
        InputError,
        "before its start",
    ),
    "naive time": (lambda agent: agent.time_aware_retrieve(datetime(2025, 3, 4)), NaiveTimeError, "time zone"),  # noqa: DTZ001
}


@pytest.mark.requirement("R9")
@pytest.mark.parametrize(("ask", "error", "told"), BAD.values(), ids=BAD)
def test_bad_input_to_a_sub_agent_gets_a_typed_error(
    tmp_path: Path, ask: Any, error: type[Exception], told: str
) -> None:
    """A raw TypeError from within tells nobody what to give."""
    with saved(tmp_path, {"personal:Ann": FOODS}) as kit, pytest.raises(error, match=told):
        ask(kit.topics.agent("personal:Ann", scope=ANN))


# ------------------------------------------------------------------------------------- agents of one's own


@pytest.mark.requirement("R7")
async def test_sub_agents_read_side_by_side(tmp_path: Path) -> None:
    """Three topics must not take three times as long: here nobody goes on before all three have begun."""
    together = Barrier(3)

    def waits(search: Search, topic: TopicReader) -> Sequence[Hit]:
        together.wait(timeout=20)
        return topic.retrieve_by_query(search.query, search.k, 0)

    topics = {"personal:Ann": FOODS[:1], "task:cooking": FOODS[1:2], "tool:oven": FOODS[2:]}
    with saved(tmp_path, topics) as kit:
        for kind in ("personal", "task", "tool"):
            kit.topics.register(kind, waits)
        for recall in (
            kit.recall("mushrooms figs bread", scope=ANN),
            await kit.arecall("mushrooms figs bread", scope=ANN),
        ):
            assert recall.degraded == ()
            assert {*memories(recall.memories)} == {*FOODS}


@pytest.mark.requirement("R9", "B15")
def test_an_agent_of_ones_own_reads_its_topic_alone_and_cannot_write(tmp_path: Path) -> None:
    """It once had the whole ledger in its hands, with `commit`."""
    seen: list[TopicReader] = []

    def looks(_search: Search, topic: TopicReader) -> Sequence[Hit]:
        seen.append(topic)
        return topic.memories()

    with saved(tmp_path, {"personal:Ann": FOODS, "personal:Bob": ["Bob hates figs."]}) as kit:
        kit.save("other", "Ann of another tenant.", topic="personal:Ann", scope=Scope(user="ann", tenant="other"))
        kit.topics.register("personal:ann", looks)  # keys are written as people write names
        recall = kit.recall("What does Ann hate?", scope=ANN, topics=["personal:Ann"])
        assert {*memories(recall.memories)} == {*FOODS}
        (topic,) = seen
        offered = {name for name in dir(topic) if not name.startswith("_")}
        reads = {"memories", "retrieve_block", "retrieve_by_query", "time_aware_retrieve"}
        assert offered == reads | {f"a{name}" for name in reads} | {"shelf", "vouched"}


@pytest.mark.requirement("R9")
def test_an_agent_of_ones_own_keeps_within_what_is_asked(tmp_path: Path) -> None:
    """A filter of the caller's holds whoever retrieves."""
    with saved(tmp_path, {"personal:Ann": FOODS}) as kit:
        everything = kit.topics.agent("personal:Ann", scope=ANN).memories()
        kit.topics.register("personal", lambda _search, _topic: everything)
        assert kit.recall("mushrooms", scope=ANN, time_start=NOON + timedelta(days=1)).memories == ()
        assert (
            kit.recall("mushrooms", scope=ANN, only=RecallFilter(tags=("none",)), topics=["personal:Ann"]).memories
            == ()
        )
        exact = kit.recall("eats figs", scope=ANN, mode="exact", topics=["personal:Ann"]).memories
        assert memories(exact) == ["Ann eats figs."]


@pytest.mark.requirement("R9", "X5", "X6")
def test_what_an_agent_of_ones_own_returns_is_held_against_the_ledger(tmp_path: Path) -> None:
    """It may be wrong, or worse: forged, of another tenant, forgotten, of another topic, or with other words."""
    other = Scope(user="ann", agent="remy", tenant="other")
    with saved(tmp_path, {"personal:Ann": FOODS, "personal:Bob": ["Bob hates figs."]}) as kit:
        theirs = kit.save("a", "Ann of another tenant.", topic="personal:Ann", scope=other).memory
        gone, kept, told = (
            each for each in sorted(kit.memories(scope=ANN, topic="personal:Ann"), key=lambda m: m.content)
        )
        (bob,) = kit.memories(scope=ANN, topic="personal:Bob")
        kit.forget(gone.memory_id, scope=ANN)

        def forges(_search: Search, topic: TopicReader) -> Iterator[Any]:
            (hit, *_) = topic.memories()
            yield from (hit.evolve(record_id=each.memory_id, score=0.9) for each in (theirs, gone, bob) if each)
            yield hit.evolve(record_id="0" * 32, score=0.9)
            yield hit.evolve(record_id=kept.memory_id, text="Ann owes me money.", score=7.0, trust=1.0)
            yield hit.evolve(record_id=told.memory_id, score=float("nan"))
            yield "no hit at all"

        kit.topics.register("personal:Ann", forges)
        recall = kit.recall("Ann", scope=ANN, topics=["personal:Ann"])
        assert memories(recall.memories) == [kept.content]
        assert recall.memories[0].score == 1.0
        assert recall.degraded == (
            "sub agent of personal:Ann: 6 of its hits are none of this topic's, or may not be returned",
        )


@pytest.mark.requirement("R9", "X6")
def test_an_agent_of_ones_own_cannot_bring_what_is_in_quarantine(tmp_path: Path) -> None:
    """Nobody approved it, and an agent that knows its id is nobody."""
    with misled(tmp_path) as kit:
        (poisoned,) = kit.memories(scope=ANN, statuses=["quarantined"])
        kit.save("figs", "Ann eats figs.", topic=poisoned.topic.key, scope=ANN)

        def brings(_search: Search, topic: TopicReader) -> list[Hit]:
            return [hit.evolve(record_id=poisoned.memory_id, score=1.0) for hit in topic.memories(1)]

        kit.topics.register(poisoned.topic.key, brings)
        recall = kit.recall("figs", scope=ANN, topics=[poisoned.topic.key])
        assert recall.memories == ()
        assert "1 of its hits" in recall.degraded[0]


@pytest.mark.requirement("R9")
async def test_an_agent_of_ones_own_that_fails_is_reported_and_its_topic_searched_all_the_same(tmp_path: Path) -> None:
    """A host's mistake must not cost its users their memory."""

    def fails(_search: Search, _topic: TopicReader) -> Sequence[Hit]:
        raise KeyError("prices")

    def never_ends(_search: Search, topic: TopicReader) -> Iterator[Hit]:
        for _ in count():
            yield from topic.memories()

    with saved(tmp_path, {"personal:Ann": FOODS}) as kit:
        for agent, told in ((fails, "KeyError: 'prices'"), (lambda *_: None, "TypeError")):
            kit.topics.register("personal:Ann", agent)  # type: ignore[arg-type]
            for recall in (kit.recall("mushrooms", scope=ANN), await kit.arecall("mushrooms", scope=ANN)):
                assert recall.memories[0].text == "Ann hates mushrooms."
                assert recall.degraded[0].startswith(f"sub agent of personal:Ann: {told}")
        kit.topics.register("personal:Ann", never_ends)
        assert {*memories(kit.recall("mushrooms", scope=ANN).memories)} == {*FOODS}


@pytest.mark.requirement("R9")
@pytest.mark.parametrize("key", ["Ann", "person:Ann", "personal:", "personal: ", "", None, 7])
def test_a_key_that_names_no_topic_is_refused_at_registration(tmp_path: Path, key: Any) -> None:
    """An agent under a wrong key would never be asked, and nobody would know."""
    with open_kit(tmp_path) as kit:
        with pytest.raises(InputError):
            kit.topics.register(key, lambda _search, _topic: ())
        with pytest.raises(InputError, match="is called"):
            kit.topics.register("personal:Ann", "an agent")  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------- which topics are asked


@pytest.mark.requirement("R6")
def test_a_topic_that_the_query_describes_goes_before_another(tmp_path: Path) -> None:
    """The Meta Agent holds names and descriptions: 'tool' is in no memory and no name, and says where to look."""
    topics = {
        "task:bread": ["Bake for an hour."],
        "tool:oven": ["Bake at 220 degrees."],
        "task:soup": ["Salt it late."],
    }
    with saved(tmp_path, topics, max_topics=1) as kit:
        assert kit.recall("How hot does one bake?", scope=ANN).topics == ("task:bread",)
        assert kit.recall("How hot does one bake, by experience?", scope=ANN).topics == ("tool:oven",)


@pytest.mark.requirement("R6", "R5")
def test_what_the_agent_knows_of_itself_takes_part_in_routing(tmp_path: Path) -> None:
    """Self memory is in the Meta Agent's hands when it routes: it says where this agent looks things up."""
    topics = {"task:ledger": ["The rent of the flat upstairs is due."], "task:market": ["The rent is due."]}
    with saved(tmp_path, topics, max_topics=1) as kit:
        assert kit.recall("Is the rent of anything due, in euros?", scope=ANN).topics == ("task:market",)
        kit.remember_self("I look up euros in the ledger.", scope=ANN)
        assert kit.recall("Is the rent of anything due, in euros?", scope=ANN).topics == ("task:ledger",)


@pytest.mark.requirement("R6", "R9")
def test_an_agent_of_ones_own_is_asked_where_only_the_description_fits(tmp_path: Path) -> None:
    """Its way to retrieve may need no word of the question."""
    with saved(tmp_path, {"tool:oven": ["Bake at 220 degrees."], "task:soup": ["Salt it late."]}) as kit:
        query = "Any experience?"
        kit.topics.register("tool:oven", lambda _search, topic: topic.memories())
        assert memories(kit.recall(query, scope=ANN).memories) == ["Bake at 220 degrees."]
