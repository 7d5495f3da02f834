"""The ways to recall: to the letter, by vectors, by time, along links (K5)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from remegraph import InputError, MemoryKit, RecallFilter, Scope, Settings
from remegraph.kit import OpenOptions
from remegraph.testing import FrozenClock, InMemoryVectorIndex, SequentialIds
from tests.talk import ANN, NOON, replaced, said

BOB = Scope(user="bob", agent="remy")
DAYS = {
    0: "I live in Oslo by the sea.",
    1: "My sister Berta plays chess in Lisbon.",
    9: "I love hiking in the hills.",
    10: "I live in Rome now.",
    11: "My brother works as a baker in Porto.",
}

pytestmark = pytest.mark.requirement("K5")


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryKit]:
    """Ann tells something on five days, the last of them three days ago; a person says that one replaced another."""
    with MemoryKit.open(
        settings=Settings(home=tmp_path_factory.mktemp("modes")),
        model=None,
        embedder=None,
        index=InMemoryVectorIndex(),
        clock=FrozenClock(NOON + timedelta(days=14)),
        options=OpenOptions(new_id=SequentialIds()),
    ) as opened:
        talk = [said(text, minutes=day * 24 * 60) for day, text in DAYS.items()]
        opened.add_messages(talk, scope=ANN)
        opened.summarize(scope=ANN, close=True)
        replaced(opened, "in Oslo", "in Rome")
        yield opened


def test_exact_returns_only_what_holds_the_query_to_the_letter(kit: MemoryKit) -> None:
    """Who looks for a code or a name wants that one, not what is like it."""
    recall = kit.recall("chess in LISBON", scope=ANN, depth="messages", mode="exact")
    assert [hit.text for hit in recall.memories] == [f"Ann: {DAYS[1]}"]
    assert [hit.text for hit in recall.messages] == [f"Ann: {DAYS[1]}"]
    assert all("chess in Lisbon" in hit.text for hit in recall.blocks)
    assert kit.recall("Lisbon chess", scope=ANN, depth="messages", mode="exact").memories == ()


def test_semantic_counts_vectors_alone_and_says_what_has_none(kit: MemoryKit) -> None:
    """Whoever compares embedders must see their share, and an empty list must not read as if there were nothing."""
    recall = kit.recall("hills to hike", scope=ANN, depth="messages", mode="semantic")
    assert recall.memories[0].text == f"Ann: {DAYS[9]}"
    assert {name for hit in (*recall.memories, *recall.blocks) for name in hit.contributions} <= {"dense", "evidence"}
    assert {name for hit in recall.memories for name in hit.contributions} == {"dense"}
    assert {name for hit in recall.messages for name in hit.contributions} == {"evidence"}  # traced back, not searched
    assert len(recall.degraded) == 1
    assert "no vectors" in recall.degraded[0]


@pytest.mark.parametrize("question", ["What did Ann tell last week?", "Ann上周说了什么？", "last week"])
def test_temporal_returns_what_was_said_in_the_time_that_the_question_names_in_its_order(
    kit: MemoryKit, question: str
) -> None:
    """Last week is a time, not two words to look for; what happened then is a sequence."""
    recall = kit.recall(question, scope=ANN, depth="messages", mode="temporal")
    week = [f"Ann: {DAYS[day]}" for day in (9, 10, 11)]  # Thursday to Saturday; now it is Tuesday
    assert [hit.text for hit in recall.memories] == week
    assert [hit.text for hit in recall.messages] == week


def test_temporal_takes_the_time_that_is_given(kit: MemoryKit) -> None:
    """Who knows the dates need not put them into words."""
    given = kit.recall("Ann", scope=ANN, mode="temporal", time_start=NOON, time_end=NOON + timedelta(days=2))
    assert [hit.text for hit in given.memories] == [f"Ann: {DAYS[1]}"]  # Oslo was replaced


def test_temporal_without_a_time_returns_what_the_words_find_in_its_order(kit: MemoryKit) -> None:
    """The story of something has an order, and only what belongs to it."""
    recall = kit.recall("chess, a baker, hiking", scope=ANN, depth="messages", mode="temporal", k=3)
    story = [f"Ann: {DAYS[day]}" for day in (1, 9, 11)]
    assert [hit.text for hit in recall.memories] == story
    assert [hit.text for hit in recall.messages] == story
    assert kit.recall("zebra", scope=ANN, mode="temporal").memories == ()


def test_every_result_says_its_age_its_confidence_and_whether_it_holds(kit: MemoryKit) -> None:
    """An agent that acts on a memory must know what it stands on."""
    superseded = RecallFilter(statuses=("active", "superseded"))
    recall = kit.recall("Ann lives in Oslo, in Rome", scope=ANN, depth="messages", only=superseded)
    found = {hit.text: hit for hit in (*recall.memories, *recall.messages) if hit.text.startswith("Ann: I live")}
    assert {hit.text: hit.standing for hit in recall.memories if "I live" in hit.text} == {
        f"Ann: {DAYS[0]}": "superseded",
        f"Ann: {DAYS[10]}": "current",
    }
    assert found[f"Ann: {DAYS[10]}"].age == timedelta(days=4)
    assert all(0 < hit.confidence <= hit.trust for hit in found.values())
    assert recall.blocks[0].age > timedelta(0)


def test_temporal_follows_causes_both_ways_and_in_a_circle(tmp_path: Path) -> None:
    """'How did that come about, and what came of it?' is one question; a circle of causes must not hang it."""
    clock = FrozenClock(NOON)
    texts = ["Snow closed the pass.", "The train came late.", "The flight was missed.", "The job was gone."]
    with MemoryKit.open(tmp_path, model=None, index=InMemoryVectorIndex(), clock=clock) as kit:
        ids: list[str] = []
        for text in texts:
            saved = kit.save("story", text, scope=ANN).memory
            assert saved is not None
            ids.append(saved.memory_id)
            clock.move(timedelta(days=1))
        for at in range(4):
            kit.topics.link(ids[at], "causes", ids[(at + 1) % 4], scope=ANN, reason="so it went")

        def asked(k: int) -> list[str]:
            start, end = NOON + timedelta(days=2), NOON + timedelta(days=2, hours=1)
            recall = kit.recall("?", scope=ANN, k=k, mode="temporal", time_start=start, time_end=end)
            signs = {hit.record_id: list(hit.contributions) for hit in recall.memories}
            assert (signs[ids[2]], signs.get(ids[1], ["cause"]), signs.get(ids[3], ["effect"])) == (
                [], ["cause"], ["effect"],
            )  # fmt: skip
            return [hit.text for hit in recall.memories]

        assert asked(k=4) == texts
        assert len(asked(k=1)) == 2


def test_associative_follows_links_and_keeps_to_the_filter(kit: MemoryKit) -> None:
    """What replaced a fact, or is tied to it, is found from either end, even where no word is shared."""
    superseded = RecallFilter(statuses=("active", "superseded"))
    recall = kit.recall("Rome", scope=ANN, mode="associative", only=superseded)
    score = {hit.text: hit.score for hit in recall.memories}
    links = {hit.text: hit.contributions.get("link") for hit in recall.memories}
    assert links[f"Ann: {DAYS[0]}"] == pytest.approx(score[f"Ann: {DAYS[10]}"] / 2)
    alone = kit.recall("Rome", scope=ANN, mode="associative")
    assert f"Ann: {DAYS[0]}" not in {hit.text for hit in alone.memories}


def test_an_unknown_mode_is_refused(kit: MemoryKit) -> None:
    """A typing error must not fall back to another search."""
    with pytest.raises(InputError, match="no mode"):
        kit.recall("Ann", scope=ANN, mode="fuzzy")  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", ["exact", "semantic", "temporal", "associative", "hybrid"])
async def test_no_mode_reaches_another_user(kit: MemoryKit, mode: str) -> None:
    """Each way reads through the same scope, and the async twin goes the same way."""
    question = "I live in Rome now" if mode == "exact" else "What did Ann tell last week?"
    recall = await kit.arecall(question, scope=BOB, depth="messages", mode=mode)  # type: ignore[arg-type]
    assert (recall.memories, recall.blocks, recall.messages) == ((), (), ())
