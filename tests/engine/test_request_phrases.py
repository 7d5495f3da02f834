"""Phrases that ask memory to forget, written down before the rule, in seven languages and scripts; and strangers'."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from remegraph.engine.forget_phrases import requests

_HERE = Path(__file__).parent
_BOOK: Mapping[str, Mapping[str, Sequence[str]]] = {
    language: phrases
    for path in sorted(_HERE.glob("requests_*.toml"))
    for language, phrases in tomllib.loads(path.read_text(encoding="utf-8")).items()
}


@pytest.mark.parametrize("language", sorted(_BOOK))
def test_a_plain_request_to_forget_is_heard(language: str) -> None:
    """Not to hear it shows what a person wants gone until a model has read it."""
    phrases = _BOOK[language]["forget"]
    assert len(phrases) >= 35
    assert [each for each in phrases if not requests(each)] == []


@pytest.mark.parametrize("language", sorted(_BOOK))
def test_what_only_sounds_like_a_request_is_none(language: str) -> None:
    """Impatience ("Forget it, I'll take the bus") must not hide a word."""
    phrases = _BOOK[language]["none"]
    assert len(phrases) >= 60
    assert [each for each in phrases if requests(each)] == []


@pytest.mark.parametrize(
    ("text", "back"),
    [
        ("please forget that", True),
        ("Please forget my grocery budget.", False),
        ("别记这个", True),
        ("把我的地址忘了吧", False),
        ("vergiss das bitte", True),
        ("Bitte vergiss meine Adresse.", False),
    ],
)
def test_a_request_says_whether_it_may_mean_what_was_said_before(text: str, back: bool) -> None:
    """Only then the words before it are withheld, too."""
    assert [each.back for each in requests(text)] == [back]


@pytest.mark.parametrize(
    "text",
    [
        "Please don't remember that I smoke.",
        "Forget that my boss is called Karen.",
        "Forget my PIN, and note that my phone is new.",
        "别记我买车的事",
        "忘掉我买车的事",
        "请忘记我抽烟这件事。",
        "別記我買車的事。",
        "Merk dir bitte nicht, dass ich das Haus verkaufe.",
        "Olvídate de mi código de la puerta.",
    ],
)
def test_a_request_that_names_its_object_does_not_point_back(text: str) -> None:
    """A "that" before a clause is no finger: it hid the allergy that was told in the message before."""
    assert [each.back for each in requests(text)] == [False]


@pytest.mark.parametrize(
    "text",
    [
        "Please forget that I said that.",
        "Don't remember what I told you a moment ago.",
        "Forget that I mentioned it.",
        "忘掉我刚才告诉你的事",
        "别记我说的话。",
        "请忘记这件事。",
        "我希望你忘掉这件事。",
        "別記我剛才說的事。",
        "Vergiss bitte, dass ich das gesagt habe.",
        "Olvida eso, por favor.",
    ],
)
def test_a_request_that_names_what_was_said_points_back(text: str) -> None:
    """Whatever stands around "that" and 刚才: not to see it shows what a person has just asked to be gone."""
    assert [each.back for each in requests(text)] == [True]


def test_of_what_a_stranger_wrote_nothing_is_hidden_that_nobody_asked_to_be_gone() -> None:
    """Of 490 sentences by somebody who never saw the phrases, a fifth of the requests is heard, and nothing else."""
    book = json.loads((_HERE / "requests_others.json").read_text(encoding="utf-8"))
    meant = [each["text"] for each in book if each["kind"] in {"forget", "off_record"}]
    assert [each["text"] for each in book if requests(each["text"]) and each["text"] not in meant] == []
    assert sum(bool(requests(text)) for text in meant) / len(meant) > 0.2


@pytest.mark.parametrize("language", ["en", "zh", "zh-Hant"])
def test_three_quarters_of_what_three_strangers_asked_are_heard_and_nothing_else(language: str) -> None:
    """The last 60 requests were read once before their phrases were written: of these 38 were heard, and 22 before."""
    lines = (_HERE / "requests_strangers.jsonl").read_text(encoding="utf-8").splitlines()
    book = [each for each in map(json.loads, lines) if each["lang"] == language]
    heard = [each["asks"] for each in book if any(not request.faint for request in requests(each["text"]))]
    assert False not in heard
    assert len(heard) >= 0.75 * sum(each["asks"] for each in book)


def test_what_others_said_and_what_was_pasted_asks_for_nothing() -> None:
    """A line of a song in quotes is nobody's wish, and no wish is four hundred characters long."""
    assert requests('She sang "please forget that" all day.') == ()
    assert requests("Please forget that " + "and what came after it " * 40) == ()
