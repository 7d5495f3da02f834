"""From memories back to their blocks and words; a search finds the rest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from remegraph import Hit, InputError, MemoryKit, NotFoundError, RecallFilter, Scope
from remegraph.engine.frame import shown_texts
from tests.talk import ANN, by_topic, create, digest, misled, open_kit, proposal, replied, said

KEYS = "We got the keys to Kastanienallee today!"
HOME = "The home of Ann is Kastanienallee."


def moved(home: Path) -> MemoryKit:
    """A kit whose model understood what no word says; much else was said that has the words of the question."""
    script: dict[str, Any] = {
        "DigestAnswer": digest("personal:Ann", summary="The keys were handed over."),
        "ProposalAnswer": by_topic({"personal:Ann": proposal(create(HOME, 1, "the keys to Kastanienallee"))}),
        "VerdictAnswer": {"objections": []},
    }
    kit = open_kit(home, script)
    kit.add_messages([said(KEYS)], scope=ANN)
    kit.summarize(scope=ANN, close=True)
    others = [f"Is anybody at home, number {number}?" for number in range(12)]
    kit.add_messages([replied(text, minutes=600 + at) for at, text in enumerate(others)], scope=ANN)
    return kit


@pytest.mark.requirement("R10", "R1")
def test_messages_are_traced_back_from_the_memories_found(tmp_path: Path) -> None:
    """The words that a memory stands on need not share one with the question: no search would ever find them."""
    with moved(tmp_path) as kit:
        recall = kit.recall("Where is the home of Ann?", scope=ANN, depth="messages")
        (memory,) = recall.memories
        first, *others = recall.messages
        assert (first.text, first.record_id) == (f"Ann: {KEYS}", memory.evidence[0].message_id)
        assert [*first.contributions] == ["evidence"]
        assert first.block_ids == memory.block_ids
        assert len(others) == 9  # the rest is searched
        assert all("home" in hit.text and "evidence" not in hit.contributions for hit in others)
        assert [hit.score for hit in recall.messages] == sorted((hit.score for hit in recall.messages), reverse=True)


@pytest.mark.requirement("R10")
def test_index_entries_are_traced_back_from_the_memories_found(tmp_path: Path) -> None:
    """A memory leads to its blocks by their ids, whatever the entry of the index says."""
    with moved(tmp_path) as kit:
        kit.summarize(scope=ANN, close=True)
        recall = kit.recall("Where is the home of Ann?", scope=ANN, depth="blocks")
        assert recall.memories[0].block_ids == ("20250304_01",)
        assert recall.blocks[0].record_id == "20250304_01"
        assert [*recall.blocks[0].contributions] == ["evidence"]
        assert recall.messages == ()


@pytest.mark.requirement("R10")
def test_a_context_shows_a_memory_with_the_words_it_stands_on(tmp_path: Path) -> None:
    """An agent that may have to answer for it sees who said so, even where there is not room for much."""
    with moved(tmp_path) as kit:
        context = kit.recall("Where is the home of Ann?", scope=ANN, depth="messages", budget=120).context
        shown = [*shown_texts(context).values()]
        assert {HOME, f"Ann: {KEYS}"} <= {*shown}


@pytest.mark.requirement("R10", "R9")
def test_the_question_of_the_design_document_returns_its_own_evidence(tmp_path: Path) -> None:
    """选择搜索工具: which search tool? What was said of AI and watermelons has the words, and is no answer."""
    lines = [
        "选择什么工具学 AI？我搜索了很久。",
        "选择西瓜也要工具吗？搜索一下。",
        "bing 又挂了, 今天第三次了, 真烦。",
        "同义那个倒是靠谱, 配上网页抽取就行。",
    ]
    tools = {
        "tool:bing_search": proposal(
            create("bing_search 很不稳定，经常失败", 3, "bing 又挂了", when_to_use="选择搜索工具时")
        ),
        "tool:tongyi_search": proposal(
            create(
                "tongyi_search 的结果质量较好，常需要配合 web_extract 使用", 4, "倒是靠谱", when_to_use="选择搜索工具时"
            )
        ),
    }
    script: dict[str, Any] = {
        "DigestAnswer": digest(*tools, summary="用户谈到 AI、西瓜和工具。"),
        "ProposalAnswer": by_topic(tools),
        "VerdictAnswer": {"objections": []},
    }
    with open_kit(tmp_path, script) as kit:
        for name in ("bing_search", "tongyi_search"):
            kit.save("known", f"{name} 是一个工具", topic=f"tool:{name}", scope=ANN)
        kit.add_messages([said(text, minutes=at) for at, text in enumerate(lines)], scope=ANN)
        kit.summarize(scope=ANN, close=True)

        recall = kit.recall("选择搜索工具", scope=ANN, depth="messages", k=4)
        learned = [hit for hit in recall.memories if "是一个工具" not in hit.text]
        assert {hit.topic for hit in learned} == {*tools}
        evidence = {item.message_id for hit in learned for item in hit.evidence}
        said_of_tools = {hit.text for hit in recall.messages if hit.record_id in evidence}
        assert said_of_tools == {f"Ann: {lines[2]}", f"Ann: {lines[3]}"}


@pytest.mark.requirement("R10")
def test_words_of_memories_leave_room_for_what_no_memory_knows(tmp_path: Path) -> None:
    """What was said a moment ago is in no memory yet: it must not be crowded out by what memories stand on."""
    burnt = [create(f"Ann got hurt by soup {at}.", at + 1, f"Soup {at} burnt me") for at in range(6)]
    script: dict[str, Any] = {
        "DigestAnswer": digest("personal:Ann", summary="Ann burnt herself."),
        "ProposalAnswer": by_topic({"personal:Ann": proposal(*burnt)}),
    }
    with open_kit(tmp_path, script) as kit:
        kit.add_messages([said(f"Soup {at} burnt me.", minutes=at) for at in range(6)], scope=ANN)
        kit.summarize(scope=ANN, close=True)
        kit.add_messages([replied(f"I cook soup of kind {at} today.", minutes=900 + at) for at in range(6)], scope=ANN)
        recall = kit.recall("Which soup hurt Ann?", scope=ANN, depth="messages", k=4)
        assert len(recall.memories) == 4
        assert ["evidence" in hit.contributions for hit in recall.messages] == [True, True, False, False]


@pytest.mark.requirement("R10")
def test_what_memories_only_repeat_does_not_outrank_what_the_search_finds(tmp_path: Path) -> None:
    """Without a model a memory is a turn, to the letter: the search knows more of it; what it misses is there all the same."""
    with open_kit(tmp_path) as kit:
        kit.save("tool", "bing 又挂了", topic="tool:bing_search", scope=ANN)
        kit.add_messages([said(f"选择什么工具？搜索第{at}次。", thread=f"{at}") for at in range(6)], scope=ANN)
        recall = kit.recall("选择搜索工具", scope=ANN, depth="messages", k=4, topics=["tool:bing_search"])
        (memory,) = recall.memories
        *found, last = recall.messages
        assert last.record_id == memory.evidence[0].message_id
        assert len(found) == 3
        assert not any("evidence" in hit.contributions for hit in found)
        assert [hit.score for hit in recall.messages] == sorted((hit.score for hit in recall.messages), reverse=True)


@pytest.mark.requirement("R10", "X14", "X6")
def test_what_may_not_be_shown_is_not_shown_by_tracing_either(tmp_path: Path) -> None:
    """A memory is a way to its words: not to those that were forgotten, nor to what a document says."""
    with misled(tmp_path) as kit:
        (poisoned,) = kit.memories(scope=ANN, statuses=["quarantined"])
        ids = {item.message_id for item in poisoned.evidence}
        wide = RecallFilter(statuses=("quarantined",))
        recall = kit.recall(poisoned.content, scope=ANN, depth="messages", only=wide)
        assert poisoned.memory_id in {hit.record_id for hit in recall.memories}
        assert ids.isdisjoint(hit.record_id for hit in recall.messages)
    with moved(tmp_path / "forgotten") as kit:
        at_hand = kit.recall("Where is the home of Ann?", scope=ANN).memories[0].evidence[0].message_id
        again = kit.recall("Where is the home of Ann?", scope=ANN, depth="messages", without=[at_hand])
        assert at_hand not in {hit.record_id for hit in again.messages}


# ----------------------------------------------------------------------------------- from messages to blocks


@pytest.mark.requirement("R1", "R10")
async def test_a_message_knows_its_block(tmp_path: Path) -> None:
    """From a line found to the conversation around it: the way up must not be a search, either."""
    with moved(tmp_path) as kit:
        (said_first, *rest) = kit.messages(scope=ANN)
        block = kit.sources.block_of(said_first, scope=ANN)
        assert block is not None
        assert block.block_id == "20250304_01"
        assert (
            kit.sources.block_of(said_first.message_id, scope=ANN)
            == await kit.sources.ablock_of(said_first, scope=ANN)
            == block
        )
        assert [each.message_id for each in kit.sources.retrieve_block(block.block_id, scope=ANN)] == [
            said_first.message_id
        ]
        assert kit.sources.block_of(rest[0], scope=ANN) is None  # it waits for one

        kit.summarize(scope=ANN, close=True)
        hits = kit.recall("Is anybody at home?", scope=ANN, depth="messages").messages
        for hit in hits:
            held = kit.sources.block_of(hit, scope=ANN)
            assert held is not None
            assert hit.block_ids == (held.block_id,)
            assert held.first_seq <= hit.seq <= held.last_seq


@pytest.mark.requirement("R1", "X5")
def test_the_block_of_a_message_is_told_to_nobody_else(tmp_path: Path) -> None:
    """An id of another scope is no id here."""
    with moved(tmp_path) as kit:
        message = kit.messages(scope=ANN)[0]
        for scope in (Scope(user="bob", agent="remy"), Scope(user="ann", agent="remy", tenant="other")):
            with pytest.raises(NotFoundError):
                kit.sources.block_of(message, scope=scope)
        memory = kit.recall("Where is the home of Ann?", scope=ANN).memories[0]
        wrong: list[object] = [memory, None, 7]
        for each in wrong:
            with pytest.raises(InputError):
                kit.sources.block_of(each, scope=ANN)  # type: ignore[arg-type]
        assert isinstance(memory, Hit)


@pytest.mark.requirement("R1", "R2")
def test_of_blocks_that_overlap_a_message_belongs_to_the_one_where_it_was_new(tmp_path: Path) -> None:
    """The same line in two blocks would lead to two stories."""
    from remegraph import Settings, SlicingPolicy
    from remegraph.testing import FrozenClock, InMemoryVectorIndex
    from tests.talk import NOON

    settings = Settings(home=tmp_path, slicing=SlicingPolicy(strategy="length", max_messages=4, overlap=2))
    with MemoryKit.open(
        settings=settings, model=None, embedder=None, index=InMemoryVectorIndex(), clock=FrozenClock(NOON)
    ) as kit:
        kit.add_messages([said(f"Line {at} of the talk.", minutes=at) for at in range(8)], scope=ANN)
        kit.summarize(scope=ANN, close=True)
        blocks = {}
        for message in kit.messages(scope=ANN):
            block = kit.sources.block_of(message, scope=ANN)
            assert block is not None
            blocks[message.seq] = block
        assert len({block.block_id for block in blocks.values()}) > 1
        assert [blocks[seq].last_seq for seq in sorted(blocks)] == sorted(block.last_seq for block in blocks.values())
        assert all(block.first_seq <= seq <= block.last_seq for seq, block in blocks.items())
