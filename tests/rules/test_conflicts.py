"""What two statements have against each other: the same again, more of the same, or the contrary."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remegraph.models import Link, LinkType, Memory, Partition, Topic
from remegraph.rules.conflicts import Said, compare, said, says_what_became
from remegraph.rules.disputes import disputed, opposing, pair_of, settled
from tests.talk import NOON

CONTRARY = [
    ("I like olives.", "I don't like olives."),
    ("I prefer rain to sun.", "I prefer sun to rain."),
    ("The hall seats 250 guests.", "The hall seats 320 guests."),
    ("The audit is on Monday.", "The audit is on Friday."),
    ("My visa expires on 3 April.", "My visa expires on 9 April."),
    ("The warehouse is in Oslo.", "The warehouse is located in Turin."),
    ("The shop is open.", "The shop is closed."),
    ("The report is finished.", "The report is not finished."),
    ("我喜欢橄榄。", "我不喜欢橄榄。"),
    ("比起雨天我更喜欢晴天。", "比起晴天我更喜欢雨天。"),
    ("大厅能坐250个人。", "大厅能坐320个人。"),
    ("审计在周一。", "审计在周五。"),
    ("签证4月3日到期。", "签证4月9日到期。"),
    ("仓库在苏州。", "仓库位于昆明。"),
    ("网店在线。", "网店离线。"),
    ("报告写完了。", "报告没有写完。"),
]

COMPATIBLE = [
    ("I like olives.", "I like capers."),
    ("I prefer rain to sun.", "My brother prefers sun to rain."),
    ("The hall seats 250 guests.", "The tent seats 320 guests."),
    ("I swim on Mondays.", "I swim on Fridays."),
    ("I bought 3 apples.", "I bought 6 apples."),
    ("I like quark3.", "I like quark5."),
    ("Room 5 has a view.", "Room 7 has a view."),
    ("I like the iPhone 14.", "I like the iPhone 15."),
    ("I take vitamin B12.", "I take vitamin B6."),
    ("The code of door 4 is 4711.", "The code of door 5 is 4712."),
    ("My visa expires on 3 April.", "My lease expires on 9 April."),
    ("I met Ivo in Oslo.", "I met Ivo in Turin."),
    ("The shop is open.", "The door is closed."),
    ("The report is not finished.", "The report is not open."),
    ("Is the shop open?", "The shop is closed."),
    ("我喜欢橄榄。", "我弟弟不喜欢橄榄。"),
    ("大厅能坐250个人。", "帐篷能坐320个人。"),
    ("我每周一游泳。", "我每周五游泳。"),
    ("我买了三斤苹果。", "我买了六斤苹果。"),
    ("我在苏州见过小周。", "我在昆明见过小周。"),
    ("网店在线。", "论坛离线。"),
]


def told(text: str, who: str = "ann") -> Said:
    return Said.of(text, who)


@pytest.mark.requirement("K4")
@pytest.mark.parametrize(("one", "other"), CONTRARY)
def test_a_contradiction_is_seen_whichever_came_first(one: str, other: str) -> None:
    """Preference, number, date, place and state, in both languages: the commonest ways to be wrong."""
    for new, old in ((one, other), (other, one)):
        finding = compare(told(new), told(old))
        assert finding is not None
        assert finding.kind == "contradiction"
        assert finding.reason.startswith("They differ in")


@pytest.mark.requirement("K4")
@pytest.mark.parametrize("who", ["Ann", "Ben", "小林"])
def test_a_denial_is_seen_whatever_the_speaker_is_called(who: str) -> None:
    """There is an Ann in "cannot": her name was taken out of it, and what she cannot do was lost."""
    finding = compare(told(f"{who} can eat peanuts.", who), told(f"{who} cannot eat peanuts.", who))
    assert finding is not None
    assert finding.reason == "They differ in what is denied."


@pytest.mark.requirement("K4")
@pytest.mark.parametrize(("one", "other"), COMPATIBLE)
def test_what_merely_sounds_alike_is_no_contradiction(one: str, other: str) -> None:
    """A false alarm costs a person's time, and soon nobody looks any more."""
    for new, old in ((one, other), (other, one)):
        finding = compare(told(new), told(old))
        assert finding is None or finding.kind != "contradiction"


def test_what_two_persons_say_of_themselves_is_no_contradiction() -> None:
    """Ann smokes and Ben does not: both are right."""
    assert compare(told("I smoke cigars.", "ann"), told("I don't smoke cigars.", "ben")) is None
    assert compare(told("The shop is open.", "ann"), told("The shop is closed.", "ben")) is not None


def test_one_who_says_that_it_changed_contradicts_nobody() -> None:
    """A change of mind needs no judge."""
    old = told("The hall seats 250 guests.")
    assert says_what_became(told("The hall seats 320 guests now."), old)
    assert not says_what_became(told("The hall seats 320 guests now.", "ben"), old)
    assert not says_what_became(told("The hall seats 320 guests."), old)


@pytest.mark.requirement("K4")
@pytest.mark.parametrize(
    ("more", "less"),
    [
        ("Ann keeps brown hens and bees behind the barn.", "Ann keeps brown hens."),
        ("1. Open the app\n2. Scan the code\n3. Pay\n4. Print the receipt", "1. Scan the code\n2. Pay"),
        ("1. 打开应用\n2. 扫描二维码\n3. 付款", "1. 扫描二维码\n2. 付款"),
    ],
)
def test_what_says_all_of_another_and_more_is_its_superset(more: str, less: str) -> None:
    """Paying by scanned code is paying: the two belong together, and neither is lost."""
    new, old = compare(told(more), told(less)), compare(told(less), told(more))
    assert new is not None
    assert old is not None
    assert (new.kind, old.kind) == ("superset", "subset")


@pytest.mark.requirement("K4")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1. Scan the code\n2. Pay", "1. Pay\n2. Scan the code"),
        ("1. Scan the code\n2. Pay", "1. Book the room\n2. Call the guest"),
        ("My daughter Mia plays the violin.", "I play the violin."),
    ],
)
def test_other_steps_another_order_or_another_person_make_no_superset(one: str, other: str) -> None:
    """Who pays before scanning does something else."""
    assert compare(told(one), told(other)) is None


def test_the_same_in_other_words_is_redundant() -> None:
    """It is counted, and not kept twice."""
    finding = compare(told("I live in Lisbon."), told("I am living in Lisbon."))
    assert finding is not None
    assert finding.kind == "redundancy"


def memory(content: str, **fields: object) -> Memory:
    made = {
        "memory_id": content,
        "partition": Partition(tenant="default", user="ann"),
        "topic": Topic(type="personal", target_name="Ann"),
        "content": content,
        "said_at": NOON,
        "recorded_at": NOON,
    }
    return Memory.model_validate(made | fields)


def test_what_a_writer_put_around_the_words_is_not_compared() -> None:
    """Who said it and when stands before and after the words; the agent's own "I" is not the user's."""
    quoted = said(memory("Ben: The shop is open. (2025-03-04)", extractor="extractive"))
    assert (quoted.text, quoted.who) == ("The shop is open.", "Ben")
    own = said(memory("I learned that Ann sings.", perspective="first-person", extractor="remy"))
    assert (own.text, own.who) == ("Ann sings.", "self")
    steps = said(memory("Pay", payload={"steps": [{"name": "scan", "description": "the code"}, {"name": "pay"}]}))
    assert steps.steps == ("scan the code", "pay")


@given(st.floats(0, 1))
def test_a_dispute_raises_importance_and_never_makes_a_core_rule(importance: float) -> None:
    """What somebody must look at counts more; only a person lays down a rule, and only a person shakes it."""
    before = memory("x", importance=importance)
    after = disputed(before)
    if importance >= 0.9:
        assert after == before
    else:
        assert after.status == "disputed"
        assert importance <= after.importance <= max(importance, 0.89)
    assert disputed(after) == after
    assert disputed(memory("x", status="deleted")).status == "deleted"


def test_a_settled_pair_opposes_no_more_unless_both_are_kept() -> None:
    """Whoever decided that both are worth knowing wants to see the one with the other."""

    def link(source: str, kind: LinkType, target: str, reason: str = "") -> Link:
        return Link(source_id=source, type=kind, target_id=target, reason=reason)

    links = [link("a", "contradicts", "b"), link("c", "may_contradict", "a"), link("a", "related", "d")]
    assert opposing(links) == {frozenset("ab"), frozenset("ac")}
    over = [*links, link("b", "settled", "a", "keep_both"), link("a", "settled", "c", "add")]
    assert opposing(over) == set()
    assert opposing(over, shown=True) == {frozenset("ab")}
    assert settled(over) == {frozenset("ab"): "keep_both", frozenset("ac"): "add"}
    assert pair_of(links[0]) == frozenset("ab")
