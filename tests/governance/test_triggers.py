"""Whether what was said calls for memory, and why."""

from __future__ import annotations

import pytest

from remegraph.governance.injection import triggers
from remegraph.models import Trigger


@pytest.mark.requirement("G2")
@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("What did we decide about the login page?", "past", "did we"),
        ("上次的格式再来一遍。", "past", "上次"),
        ("Should I take the train?", "decision", "Should I"),
        ("周末去爬山还是看电影？", "decision", "还是看电影？"),
        ("What is my dog called?", "own", "What is my dog called?"),
        ("我的狗叫什么？", "own", "我的狗叫什么？"),
        ("過去的做法是什麼？", "past", "過去的做法"),
        ("這個專案的歷史是什麼？", "past", "專案的歷史"),
        ("該選哪一個框架？", "decision", "該選哪一個框架？"),
        ("幫忙比較一下這兩個方案。", "decision", "比較一下"),
        ("哪個比較省電？", "decision", "哪個比較"),
        ("Machen wir es wie letztes Mal.", "past", "wie letztes Mal"),
        ("Soll man das Dach erneuern?", "decision", "Soll man"),
        ("Wie heißt mein Hund?", "own", "Wie heißt mein Hund?"),
        ("Hazlo como la última vez.", "past", "la última vez"),
        ("¿Deberíamos cambiar el tejado?", "decision", "Deberíamos cambiar el tejado?"),
        ("¿Cómo se llama mi perro?", "own", "Cómo se llama mi perro?"),
        ("Deploy ATLAS.", "entity", "ATLAS"),
        ("部署星河项目。", "entity", "星河项目"),
    ],
)
def test_each_sign_fires_by_itself_and_says_by_which_words(text: str, kind: str, words: str) -> None:
    """Who wonders why memory was searched, or was not, reads it off."""
    (found,) = triggers(text, turn=1, known=["Atlas", "星河项目"])
    assert (found.kind, found.words) == (kind, words)
    assert words in found.reason


@pytest.mark.requirement("G2")
@pytest.mark.parametrize(
    "text",
    [
        "Thanks!",
        'How do you spell "previously"?',
        "Wash the rice before cooking it.",
        "Clear the browser history.",
        "「上次」这个词怎么翻译？",
        "睡觉之前要刷牙。",
        "Atlases are heavy.",
        "唐朝的歷史很有意思。",
        "他從門前走過去了。",
        "我昨天買了一台新的相機。",
        "Die Geschichte Roms ist lang.",
        "Ich habe heute einen Hund gekauft.",
        "La historia de Roma es larga.",
        "Como arroz todos los días.",
        "",
    ],
)
def test_what_only_sounds_like_it_does_not_fire(text: str) -> None:
    """Memory that is brought up at every turn costs tokens and distracts."""
    assert triggers(text, turn=1, known=["Atlas"]) == ()


@pytest.mark.requirement("G2")
def test_every_fifth_turn_memory_is_asked_whatever_is_said() -> None:
    """What no rule foresaw comes up in the end."""
    fired = [turn for turn in range(21) if triggers("Thanks!", turn=turn)]
    assert fired == [5, 10, 15, 20]
    assert triggers("Thanks!", turn=5) == (Trigger(kind="turn", words="5"),)
    assert triggers("Thanks!", turn=5)[0].reason == "Turn 5: it is time to look again."


@pytest.mark.requirement("G2")
def test_a_name_that_is_in_view_needs_no_looking_up() -> None:
    """The rules of the project name it already."""
    assert triggers("Deploy Atlas.", turn=1, known=["Atlas"], shown="atlas uses PostgreSQL.") == ()
