"""What the Meta Agent is shown to route a block by, and which topics it may name (R6, R7)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from remegraph import MemoryKit
from remegraph.models import Message
from tests.talk import ANN, called, create, digest, model_of, open_kit, proposal, returned, said

MOVED = create("Ann lives in Porto.", 1, "I live in Porto", slot="lives_in", value="Porto")
SCHOOL = create("Lena goes to school in Gaia.", 1, "Lena goes to school", slot="school", whose="Lena", value="Gaia")


def digested(kit: MemoryKit, *messages: Message) -> str:
    """Have a block summarised; return what the digest of it was shown."""
    kit.add_messages(messages, scope=ANN)
    kit.summarize(scope=ANN, close=True)
    return [call.text for call in model_of(kit).calls if call.schema == "DigestAnswer"][-1]


def steps(*topics: str, operations: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    """A script that routes every block to the same topics."""
    return {"DigestAnswer": digest(*topics), "ProposalAnswer": [proposal(*operations), proposal()]}


@pytest.mark.requirement("R6")
def test_the_index_names_what_the_memories_of_a_topic_are_about(tmp_path: Path) -> None:
    """A description written once says nothing of what a topic holds a month later."""
    with open_kit(tmp_path, steps("personal:Ann", operations=(MOVED, SCHOOL))) as kit:
        first = digested(kit, said("I live in Porto, and Lena goes to school in Gaia."))
        second = digested(kit, said("Lena was ill, she was at home all of last week.", minutes=60))

    assert "lives_in" not in first
    assert "personal:Ann - What is known of Ann, and what Ann tells of others. (lives_in, lena:school)" in second


@pytest.mark.requirement("R6")
def test_what_the_agent_knows_of_itself_is_before_whoever_routes(tmp_path: Path) -> None:
    """What an agent is for decides what is worth remembering."""
    with open_kit(tmp_path, steps("personal:Ann")) as kit:
        kit.remember_self("It plans the school's meals.", scope=ANN)

        assert 'Known of the agent itself:\nself [2025-03-04] "It plans the school\'s meals."' in digested(
            kit, said("Lena does not eat fish on Fridays.")
        )


@pytest.mark.requirement("R7")
@pytest.mark.parametrize("invents", [False, True])
def test_other_tasks_are_asked_for_only_where_they_may_be_made(tmp_path: Path, *, invents: bool) -> None:
    """What a prompt asks for and code refuses is lost."""
    with open_kit(tmp_path, steps("personal:Ann"), create_topics=invents) as kit:
        shown = digested(kit, said("I grow tomatoes on the balcony in summer."))

    assert ("task:NAME" in shown) is invents


@pytest.mark.requirement("R7")
def test_a_topic_that_is_refused_stands_in_the_report(tmp_path: Path) -> None:
    """Nobody looks at the work of a block that is done."""
    with open_kit(tmp_path, steps("personal:Ann", "task:balcony")) as kit:
        kit.add_messages([said("I grow tomatoes on the balcony in summer.")], scope=ANN)

        assert "digest: no topic 'task:balcony'" in kit.summarize(scope=ANN, close=True).notes


@pytest.mark.requirement("R4", "R7")
@pytest.mark.parametrize("named", ["tool:fetch+search", "tool:search + Fetch"])
def test_two_tools_have_one_topic_together_in_whichever_order(tmp_path: Path, named: str) -> None:
    """That a search must come before a fetch is of neither tool alone."""
    lesson = create("Search before you fetch.", 1, "Search first", when_to_use="before a page is fetched")
    with open_kit(tmp_path, steps(named, "tool:search+unknown", operations=(lesson,))) as kit:
        shown = digested(
            kit,
            said("Search first, then fetch the page."),
            called("search", "c1", minutes=1, q="hills"),
            returned("c1", "Two pages.", minutes=2),
            called("fetch", "c2", minutes=3, page="1"),
            returned("c2", "A page of hills.", minutes=4),
        )

        assert "tool:A+B" in shown
        assert [shelf.topic.key for shelf in kit.topics.list(scope=ANN)] == ["tool:fetch+search"]


@pytest.mark.requirement("F4", "F7")
def test_what_is_learned_carries_the_model_s_tags_and_its_session(tmp_path: Path) -> None:
    """Tags that only saved memories carried tied nothing that was learned."""
    tagged = {**MOVED, "tags": ["home", " Portugal "], "importance": 0.6}
    with open_kit(tmp_path, steps("personal:Ann", operations=(tagged,))) as kit:
        digested(kit, said("I live in Porto now, near the river.", thread="s7"))
        (memory,) = kit.memories(scope=ANN)

    assert memory.weighted_tags == {"home": 1.0, "Portugal": 1.0, "memory:fact": 0.5, "session:s7": 0.3}
    assert memory.priority == 60


@pytest.mark.requirement("R6", "X17")
def test_a_topic_of_a_chinese_talk_is_described_in_chinese(tmp_path: Path) -> None:
    """A prompt in two languages has a model answer in either."""
    with open_kit(tmp_path, steps("personal:小林")) as kit:
        shown = digested(kit, said("我上个月搬到了杭州，现在住在西湖边上。", name="小林"))

    assert "personal:小林 - 小林的情况，以及小林讲到的其他人和事。" in shown
    assert "What is known of" not in shown
