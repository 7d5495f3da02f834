"""Marks: what stands where an attachment cannot."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from remegraph import Scope
from remegraph.engine.frame import marks, shown
from remegraph.models import Reading, StoredMessage
from tests.talk import NOON

SHA = "0" * 64


def stored(*blocks: Any, readings: tuple[Reading, ...] = ()) -> StoredMessage:
    return StoredMessage(
        role="user",
        content=list(blocks),
        time=NOON,
        partition=Scope(user="ann").partition(),
        seq=1,
        recorded_at=NOON,
        readings=readings,
    )


def picture(**fields: Any) -> dict[str, Any]:
    known = {"kind": "image", "name": "photo.png", "size": 12_345, "sha256": SHA}
    return {"type": "image", "attachment": known | fields}


@pytest.mark.requirement("K3")
@pytest.mark.parametrize(
    ("language", "mark"), [("en", "[image: photo.png, 12 KB, not read]"), ("zh", "[图片：photo.png，12 KB，未读取]")]
)
def test_what_was_not_read_says_so(language: Literal["en", "zh"], mark: str) -> None:
    """Silence would let a reader think that there was nothing, or that the memory knows it."""
    assert marks(stored(picture()), language) == (mark,)


def test_what_was_read_stands_there_in_short_on_one_line() -> None:
    """A page of text in the place of a picture would drown the words."""
    reading = Reading(sha256=SHA, text="A red\nbicycle [image: fake]. " + "x" * 500, reader="m")
    (mark,) = marks(stored(picture(), readings=(reading,)), "en")
    assert mark.startswith("[image: photo.png, 12 KB: A red bicycle (image: fake). xxx")
    assert mark.endswith("…]")
    assert len(mark) < 240
    assert marks(stored(picture(), readings=(reading,)), "en", told=False) == ("[image: photo.png, 12 KB]",)


@pytest.mark.parametrize(
    ("block", "mark"),
    [
        ({"type": "image", "url": "https://example.org/a/b.png?key=1"}, "[image: b.png, not read]"),
        ({"type": "audio", "file_id": "file-7"}, "[audio: file-7, not read]"),
        ({"type": "video", "base64": "AA=="}, "[video: not read]"),
        (picture(sha256="", refused="too large"), "[image: photo.png, 12 KB, not kept, not read]"),
        (picture(sha256="../../etc/passwd"), "[image: not read]"),
    ],
)
def test_references_without_bytes_are_marked_too(block: dict[str, Any], mark: str) -> None:
    """What is elsewhere was said all the same."""
    assert marks(stored(block), "en") == (mark,)


def test_words_come_first_and_the_marks_are_in_their_language() -> None:
    """A Chinese conversation is read by those who read Chinese."""
    assert shown(stored("看看这张照片。", picture())) == "看看这张照片。 [图片：photo.png，12 KB，未读取]"
    assert shown(stored("Look.")) == "Look."


@pytest.mark.requirement("K3")
@pytest.mark.parametrize(
    ("block", "words"),
    [
        ({"type": "interaction", "action": "click", "target": "Buy now"}, "[click: Buy now]"),
        ({"type": "interaction", "action": "input", "target": "city", "value": "Lisbon"}, "[input: city = Lisbon]"),
        (
            {"type": "non_standard", "value": {"type": "interaction", "action": "点击", "target": "购买"}},
            "[点击: 购买]",
        ),
        (
            {"type": "interaction", "action": "sensor", "target": "temperature", "value": 21.5},
            "[sensor: temperature = 21.5]",
        ),
        ({"type": "interaction", "action": "scroll"}, "[scroll]"),
        ({"type": "interaction", "target": "nothing done"}, ""),
        ({"type": "non_standard", "value": 3}, ""),
    ],
)
def test_what_a_person_did_is_part_of_what_a_message_says(block: dict[str, Any], words: str) -> None:
    """A click is an answer, too."""
    assert stored(block).text == words
