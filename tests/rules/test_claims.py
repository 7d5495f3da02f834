"""Statements in slots."""

from __future__ import annotations

import pytest

from remegraph.models import Claim
from remegraph.rules.claims import contradicts, read_claims, slot


def _one(sentence: str, speaker: str = "Ann", language: str = "en") -> Claim:
    claims = read_claims(sentence, speaker, language)
    assert len(claims) == 1, (sentence, claims)
    return claims[0]


@pytest.mark.requirement("G3")
@pytest.mark.parametrize(
    ("sentence", "subject", "relation", "value", "positive"),
    [
        ("I love hiking.", "Ann", "likes", "hiking", True),
        ("I don't like red.", "Ann", "likes", "red", False),
        ("Tom can't stand coriander, really.", "Tom", "likes", "coriander", False),
        ("I’m allergic to peanuts, so no satay.", "Ann", "allergic_to", "peanuts", True),
        ("I am not allergic to nuts", "Ann", "allergic_to", "nuts", False),
        ("Ann lives in Oslo with her cat.", "Ann", "lives_in", "Oslo", True),
        ("I've just moved to Bergen!", "Ann", "lives_in", "Bergen", True),
        ("I no longer live in Oslo.", "Ann", "lives_in", "Oslo", False),
        ("My sister Eva works as a baker", "Ann's sister", "works_as", "baker", True),
        ("I'm a nurse.", "Ann", "works_as", "nurse", True),
        ("I work for Siemens.", "Ann", "works_at", "Siemens", True),
        ("My name is Ann Miller.", "Ann", "name", "Ann Miller", True),
        ("I'm 34 years old.", "Ann", "age", "34", True),
        ("My birthday is on 3 May.", "Ann", "birthday", "3 May", True),
        ("My favourite colour is blue.", "Ann", "favourite_colour", "blue", True),
        ("I have a dog named Rex.", "Ann", "has", "dog named Rex", True),
        ("I'm planning to sell the car.", "Ann", "plans_to", "sell the car", True),
        ("I speak Danish.", "Ann", "speaks", "Danish", True),
        ("I am studying law.", "Ann", "studies", "law", True),
        ("Ann is married to Lars.", "Ann", "married_to", "Lars", True),
    ],
)
def test_english_statements_are_read(sentence: str, subject: str, relation: str, value: str, positive: bool) -> None:
    """Without a model, these are the facts that can be kept up to date."""
    assert _one(sentence) == Claim(subject=subject, relation=relation, value=value, positive=positive)


@pytest.mark.requirement("G3")
@pytest.mark.parametrize(
    ("sentence", "subject", "relation", "value", "positive"),
    [
        ("我喜欢红色。", "小林", "likes", "红色", True),
        ("我不喜欢香菜，太难吃了", "小林", "likes", "香菜", False),
        ("我老婆讨厌猫", "小林的老婆", "likes", "猫", False),
        ("我对花生过敏", "小林", "allergic_to", "花生", True),
        ("小林住在苏州", "小林", "lives_in", "苏州", True),
        ("我在腾讯上班", "小林", "works_at", "腾讯", True),
        ("小林是一名老师", "小林", "works_as", "老师", True),
        ("我叫王芳", "小林", "name", "王芳", True),
        ("我今年三十岁了", "小林", "age", "30", True),
        ("我养了一只橘猫", "小林", "has", "橘猫", True),
        ("我打算去日本", "小林", "plans_to", "去日本", True),
        ("我最喜欢的颜色是蓝色", "小林", "favourite_颜色", "蓝色", True),
        ("我跟李雷结婚了", "小林", "married_to", "李雷", True),
    ],
)
def test_chinese_statements_are_read(sentence: str, subject: str, relation: str, value: str, positive: bool) -> None:
    """The same facts, said in Chinese."""
    assert _one(sentence, "小林", "zh") == Claim(subject=subject, relation=relation, value=value, positive=positive)


@pytest.mark.parametrize(
    "sentence",
    [
        "Do you like tea?",
        "If I lived in Rome I would love it.",
        "I used to live in Rome.",
        "Maybe I work as a spy.",
        "She lives in Oslo.",
        "This is a nurse.",
        "I am happy.",
        "He said I love opera.",
    ],
)
def test_questions_conditions_and_hearsay_are_no_claims(sentence: str) -> None:
    """A wrong fact is worse than a missing one."""
    assert read_claims(sentence, "Ann", "en") == ()


@pytest.mark.parametrize("sentence", ["你喜欢什么", "如果我住在上海就好了", "我以前住在上海", "你住在哪"])
def test_chinese_questions_and_conditions_are_no_claims(sentence: str) -> None:
    """The same in Chinese."""
    assert read_claims(sentence, "小林", "zh") == ()


def test_a_slot_names_the_one_truth() -> None:
    """Two homes fill one slot; two likes fill two."""
    assert slot(_one("I live in Oslo.")) == slot(_one("Ann lives in Bergen.")) == "ann:lives_in"
    assert slot(_one("I like mushrooms.")) == slot(_one("I hate mushroom.")) == "ann:likes:mushroom"
    assert slot(_one("I like tea.")) != slot(_one("I like coffee."))


@pytest.mark.requirement("K4")
@pytest.mark.parametrize(
    ("a", "b", "clash"),
    [
        ("I live in Oslo.", "I live in Bergen.", True),
        ("I live in Oslo.", "I live in Oslo, Norway.", False),
        ("I live in Oslo.", "I don't live in Oslo.", True),
        ("I like red.", "I hate red.", True),
        ("I like red.", "I like blue.", False),
        ("I'm a nurse.", "I'm a baker.", True),
        ("I like red.", "Tom hates red.", False),
    ],
)
def test_claims_contradict_where_both_cannot_hold(a: str, b: str, clash: bool) -> None:
    """A contradiction must be seen before the two are merged."""
    assert contradicts(_one(a), _one(b)) is clash
    assert contradicts(_one(b), _one(a)) is clash


@pytest.mark.requirement("F1")
@pytest.mark.parametrize(
    ("sentence", "language", "subject", "relation", "value"),
    [
        ("I learned that Ann likes tea.", "en", "Ann", "likes", "tea"),
        ("I've just found out that Ann's favourite colour is red.", "en", "Ann", "favourite_colour", "red"),
        ("I know Ann lives in Oslo.", "en", "Ann", "lives_in", "Oslo"),
        ("I like short answers.", "en", "self", "likes", "short answers"),
        ("我了解到小林喜欢绿茶。", "zh", "小林", "likes", "绿茶"),
        ("我记得林晓住在苏州。", "zh", "林晓", "lives_in", "苏州"),
        ("我注意到林晓最喜欢的颜色是蓝色。", "zh", "林晓", "favourite_颜色", "蓝色"),
        ("我喜欢简短的回答。", "zh", "self", "likes", "简短的回答"),
    ],
)
def test_the_agents_i_is_never_the_person_it_writes_about(
    sentence: str, language: str, subject: str, relation: str, value: str
) -> None:
    """Else an agent that likes short answers would overwrite what its user likes."""
    (claim,) = read_claims(sentence, "self", language, ["Ann", "林晓"])
    assert (claim.subject, claim.relation, claim.value) == (subject, relation, value)


@pytest.mark.parametrize(
    ("sentence", "language"),
    [
        ("I didn't know that Ann likes tea.", "en"),
        ("I know that she likes tea.", "en"),
        ("I remember what Ann likes.", "en"),
        ("我不知道小林喜欢绿茶。", "zh"),
        ("我了解到她喜欢绿茶。", "zh"),
    ],
)
def test_what_the_agent_does_not_say_it_knows_is_no_claim(sentence: str, language: str) -> None:
    """What does not parse stays prose: precision over recall."""
    assert read_claims(sentence, "self", language, ["Ann"]) == ()
