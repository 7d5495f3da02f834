"""What a request to forget names in its talk, before anybody decides: as three strangers wrote them, who never saw the code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from remegraph import Scope
from tests.talk import open_kit

_TALKS = Path(__file__).parent / "forget_talks.jsonl"
_ROLES = {"u": "user", "a": "assistant"}


def talks(language: str) -> list[dict[str, Any]]:
    """The talks of a language: `gone` is to be withheld at once, `kept` to stay."""
    read = map(json.loads, _TALKS.read_text(encoding="utf-8").splitlines())
    return [each for each in read if each["lang"] == language]


def left(home: Path, book: list[dict[str, Any]]) -> list[str]:
    """What can be read of each talk after it was recorded, turn by turn."""
    found: list[str] = []
    with open_kit(home) as kit:
        for number, each in enumerate(book):
            scope = Scope(user=f"user-{number}", agent="remy")
            for role, words in each["talk"]:
                kit.add_messages([{"role": _ROLES[role], "content": words}], scope=scope)
            found.append("\n".join(message.text for message in kit.messages(scope=scope)))
    return found


@pytest.mark.parametrize(("language", "share"), [("en", 0.4), ("zh", 0.65), ("zh-Hant", 0.45)])
def test_what_strangers_named_in_a_request_to_forget_is_withheld_from_that_moment(
    tmp_path: Path, language: str, share: float
) -> None:
    """Rules were made on all of these; the last 60 were run once before, and 27 of them showed nothing of what is to be gone."""
    book = [each for each in talks(language) if each["asks"]]
    shown = left(tmp_path, book)

    clean = [not any(word in text for word in each["gone"]) for each, text in zip(book, shown, strict=True)]
    kept = [all(word in text for word in each["kept"]) for each, text in zip(book, shown, strict=True)]
    assert sum(clean) >= share * len(book)
    assert sum(kept) >= 0.75 * len(book)


@pytest.mark.parametrize("language", ["en", "zh", "zh-Hant"])
def test_no_word_is_withheld_of_talks_that_only_sound_as_if_something_were_to_be_forgotten(
    tmp_path: Path, language: str
) -> None:
    """Letters, lists, code and keys: a text that is taken from an agent's sight there is lost for nothing."""
    book = [each for each in talks(language) if not each["asks"]]
    assert [text for text in left(tmp_path, book) if "[withheld]" in text] == []


_SHED = [
    ["u", "My locker code is 8821 and the bike shed one is 4057."],
    ["a", "Two codes, noted."],
    ["u", "I do mostly rowing."],
    ["a", "Good."],
    ["u", "Actually please forget my locker code, I shouldn't hand that out. The shed one is fine."],
]
_WIFI = [
    ["u", "Write instructions for our guests."],
    ["a", "Sure. What is the wifi password?"],
    ["u", "Tulip-Harbor-77"],
    ["a", "Done."],
    ["u", "Checkout is at 11."],
    ["a", "Added."],
    ["u", "Please forget my wifi password."],
]


@pytest.mark.parametrize(
    ("talk", "gone", "kept"),
    [(_SHED, "8821", ["4057", "rowing"]), (_WIFI, "Tulip", ["Checkout"])],
    ids=["shed", "wifi"],
)
def test_what_a_request_names_goes_also_as_the_answer_to_a_question_and_what_it_says_is_to_stay_stays(
    tmp_path: Path, talk: list[list[str]], gone: str, kept: list[str]
) -> None:
    """One sentence holds two codes, of which one is to be gone; a message holds a value, and only the question says of what."""
    (shown,) = left(tmp_path, [{"talk": talk}])
    assert gone not in shown
    assert [each for each in kept if each not in shown] == []


def test_what_was_learned_of_a_sentence_that_a_request_names_is_out_of_sight_and_the_rest_of_it_is_not(
    tmp_path: Path,
) -> None:
    """Both sentences came in one message, and were learned before the request was said."""
    scope = Scope(user="ann", agent="remy")
    with open_kit(tmp_path) as kit:
        said = "I am allergic to penicillin. My locker code at work is 8821."
        kit.add_messages([{"role": "user", "content": said}], scope=scope)
        kit.summarize(scope=scope, close=True)
        assert "8821" in kit.recall("What is my locker code?", scope=scope).context
        kit.add_messages([{"role": "user", "content": "Please forget my locker code."}], scope=scope)

        assert "8821" not in kit.recall("What is my locker code?", scope=scope, depth="messages").context
        assert "penicillin" in kit.recall("What am I allergic to?", scope=scope, depth="messages").context
