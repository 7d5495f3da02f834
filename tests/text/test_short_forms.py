"""What stands for a memory where there is little room."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remegraph.ledger.commit import resummarised
from remegraph.models import Memory, Partition, Topic
from remegraph.text.sentences import SUMMARY_LIMIT, length, summary_of
from tests.talk import NOON

WORDS = st.sampled_from(["tea", "Ann likes", "喝茶", "好。", "yes.", "\n", "3.5", "“ok”", " ", "…"])


@pytest.mark.requirement("G3")
@given(st.lists(WORDS, max_size=200).map(" ".join))
def test_a_summary_is_a_beginning_of_at_most_fifty_words_or_characters(content: str) -> None:
    """It says nothing that the memory does not say, and always fits."""
    summary = summary_of(content)
    assert length(summary) <= SUMMARY_LIMIT
    assert content.startswith(summary.removesuffix("…"))
    assert bool(summary) == bool(content)
    if length(content) <= SUMMARY_LIMIT:
        assert summary == content


@pytest.mark.requirement("G3")
@pytest.mark.parametrize(
    ("first", "more", "kept"),
    [
        ("Ann is vegan.", " She cooks with beans, rice and much else.", 5),
        ("安娜吃素。", "她常用豆子和大米做饭。", 4),
    ],
)
def test_whole_sentences_are_kept_as_many_as_fit(first: str, more: str, kept: int) -> None:
    """Half a sentence may say the contrary of the whole."""
    assert summary_of(first + more * 9) == first + more * kept


@pytest.mark.requirement("G3")
@pytest.mark.parametrize(
    ("summary", "before", "kept"),
    [
        ("", None, "Ann hikes."),
        ("Hikes.", None, "Hikes."),
        ("Hikes.", ("Ann hikes.", "Hikes."), "Hikes."),
        ("Bikes.", ("Ann bikes.", "Bikes."), "Ann hikes."),
        ("Hikes.", ("Ann bikes.", "Bikes."), "Hikes."),
    ],
)
def test_a_summary_follows_its_memory_whoever_wrote_it(summary: str, before: tuple[str, str] | None, kept: str) -> None:
    """One that tells what a memory said before it was refined would be injected in its place."""

    def memory(content: str, summary: str) -> Memory:
        return Memory(
            memory_id="m",
            partition=Partition(tenant="t"),
            topic=Topic(type="personal", target_name="Ann"),
            content=content,
            summary=summary,
            said_at=NOON,
            recorded_at=NOON,
        )

    assert resummarised(memory("Ann hikes.", summary), memory(*before) if before else None) == kept


@pytest.mark.requirement("G3")
@pytest.mark.parametrize(("unit", "left"), [("字", "字" * 49), ("word ", "word " * 48 + "word")])
def test_one_long_sentence_is_cut_and_says_so(unit: str, left: str) -> None:
    """Who reads a summary must see that it goes on."""
    assert summary_of(unit * 60) == f"{left}…"
