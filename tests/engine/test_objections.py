"""What the reviser holds against a change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from remegraph.engine.change_set import review
from remegraph.engine.salience import uncovered
from remegraph.models import Evidence, Memory, Message, Partition, Role, Topic

TIME = datetime(2024, 3, 5, 18, 22, tzinfo=UTC)
ANN = Topic(type="personal", target_name="Ann")


def _said(*texts: str, role: Role = "user", name: str = "Ann") -> list[Message]:
    return [
        Message(message_id=f"m{at}", role=role, name=name, content=text, time=TIME) for at, text in enumerate(texts)
    ]


def _memory(content: str, memory_id: str = "", quote: str = "", **slot: object) -> Memory:
    made = Memory(
        memory_id=memory_id or content,
        partition=Partition(tenant="t", user="ann"),
        topic=ANN,
        content=content,
        evidence=(Evidence(message_id="m0", quote=quote, block_id="20240305_01"),) if quote else (),
        said_at=TIME,
        recorded_at=TIME,
    )
    return made.evolve(**slot)


def _home(content: str, value: str = "", **fields: object) -> Memory:
    return _memory(content).evolve(canonical_topic="ann:lives_in", slot_value=value, **fields)


@pytest.mark.requirement("R11")
@pytest.mark.parametrize(
    ("text", "memory"),
    [
        ("By the way, I hate mushrooms, always have.", "Ann dislikes mushrooms and always has."),
        ("I have my driving test on 28 March.", "Ann takes her driving test on 28 March 2024."),
        ("My cousin Felix works at the harbour in Porto.", "Ann's cousin Felix works at the harbour in Porto."),
        (
            "I never drink coffee after lunch, it keeps me awake.",
            "Ann never drinks coffee after lunch, as it keeps her awake.",
        ),
        ("我从小就讨厌香菜的味道。", "Ann从小讨厌香菜的味道。"),
        ("我对花生过敏，一点都不能吃。", "Ann对花生过敏，一点都不能吃。"),
    ],
)
def test_a_statement_without_a_memory_is_an_omission(text: str, memory: str) -> None:
    """What somebody told about herself must not get lost, with or without a name, number or date."""
    assert [omission.message_id for omission in uncovered(_said(text), ["Ann has a bicycle."])] == ["m0"]
    assert uncovered(_said(text), ["Ann has a bicycle.", memory]) == []


@pytest.mark.requirement("R11", "R14")
def test_a_relative_date_is_covered_by_the_day_that_it_meant() -> None:
    """The memory of "tomorrow" holds a date."""
    assert uncovered(_said("My exam in pharmacy is tomorrow."), ["Ann has an exam in pharmacy on 6 March 2024."]) == []
    assert uncovered(_said("My exam in pharmacy is tomorrow."), ["Ann has an exam in pharmacy on 9 May 2024."]) != []


@pytest.mark.requirement("R11")
@pytest.mark.parametrize(
    "text",
    ["Hello!", "thanks, perfect", "haha ok", "What is the capital of Mongolia?", "Please translate this into French.",
     "Can you recommend a film for my brother Felix?", "你好", "谢谢啦", "帮我翻译一下这段话"],
)  # fmt: skip
def test_small_talk_and_requests_are_no_omissions(text: str) -> None:
    """A reviser that objects to everything is switched off."""
    assert uncovered(_said(text), []) == []


def test_what_the_assistant_says_need_not_be_remembered() -> None:
    """Advice and general knowledge are not facts about the user."""
    advice = "I always take my coffee to Porto on 28 March, my cousin Felix says."
    assert uncovered(_said(advice, role="assistant", name="bot"), []) == []


@pytest.mark.requirement("R11")
def test_a_sound_change_passes() -> None:
    """Rules that flag nothing cost no model call."""
    after = [_memory("Ann is allergic to peanuts.", quote="I'm allergic to peanuts")]
    assert review(_said("I'm allergic to peanuts."), [], after) == ()


def test_words_of_an_attachment_are_not_looked_for_in_the_message() -> None:
    """The commit looks for them in what was read; here they would only be missed."""
    memory = _memory("Ann is president.", quote="president")
    cited = tuple(each.evolve(attachment="0" * 64) for each in memory.evidence)
    assert review(_said("Look at this."), [], [memory.evolve(evidence=cited)]) == ()


@pytest.mark.requirement("R11", "X6")
def test_an_invented_quote_is_refused() -> None:
    """A memory rests on words that were said."""
    after = [_memory("Ann is allergic to peanuts.", quote="I am deadly allergic to peanuts")]
    found = review(_said("I'm allergic to peanuts."), [], after)
    assert [(each.kind, each.topic, each.message_id) for each in found] == [("evidence", "personal:Ann", "m0")]


@pytest.mark.requirement("R11")
def test_different_values_of_one_attribute_are_no_duplicates() -> None:
    """Who reads that mushrooms and coffee say the same believes nothing else that the reviser says."""
    mushrooms, coffee = _memory("Ann hates mushrooms.", "a"), _memory("Ann doesn't like coffee anymore.", "b")
    assert review(_said("I don't like coffee anymore."), [mushrooms], [mushrooms, coffee]) == ()


@pytest.mark.requirement("R11", "G7")
def test_duplicates_and_conflicts_name_both_memories() -> None:
    """A Sub Agent that shall mend it must know what to mend."""
    old, same = _home("Ann lives in Oslo.", "Oslo"), _home("Ann's home is in Oslo.", "oslo")
    other = _home("Ann lives in Bergen.", "Bergen")
    found = review(_said("ok"), [old], [old, same, other])
    assert ("duplicate", (old.memory_id, same.memory_id)) in [(each.kind, each.memory_ids) for each in found]
    assert ("conflict", (old.memory_id, other.memory_id)) in [(each.kind, each.memory_ids) for each in found]


@pytest.mark.requirement("R11", "X11")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("The north gate opens at seven.", "The north gate is green."),
        ("The lease expires in August.", "The lease is expensive."),
        ("Ann likes red.", "Ann hates red."),
    ],
)
def test_likeness_flags_nothing(old: str, new: str) -> None:
    """Of 68 pairs that only looked alike, none said the same: each cost a call, and a sound change its place."""
    before = [_memory(old)]
    kinds = {each.kind for each in review(_said("ok"), before, [*before, _memory(new)])}
    assert not kinds & {"duplicate", "conflict"}


@pytest.mark.requirement("R11")
def test_a_later_value_of_a_slot_is_no_conflict_and_one_of_the_same_moment_is() -> None:
    """The later takes the earlier's place when it is committed; which of two at once holds, somebody must say."""
    old, later = _home("Ann lives in Oslo."), _home("Ann moved to Bergen.", said_at=TIME + timedelta(days=1))
    assert review(_said("ok"), [old], [old, later]) == ()
    many = [
        _memory(text, canonical_topic="ann:likes", slot_many=True) for text in ("Ann likes tea.", "Ann likes figs.")
    ]
    assert review(_said("ok"), [], many) == ()


@pytest.mark.requirement("K4")
def test_disputed_memories_may_stand_side_by_side() -> None:
    """A flagged conflict is an answer, not a fault."""
    both = [_home(text, text, status="disputed") for text in ("Ann lives in Oslo.", "Ann lives in Bergen.")]
    assert review(_said("ok"), [], both) == ()


def test_old_faults_are_not_held_against_a_change() -> None:
    """A block must not fail for what another one did."""
    old = [_home("Ann lives in Oslo."), _home("Ann lives in Bergen.")]
    assert review(_said("ok"), old, old) == ()
