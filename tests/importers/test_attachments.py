"""Bytes taken out of messages: every known form, and what is refused."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from remegraph import Message, MessageError
from remegraph.importers.attachments import Intake, restored
from remegraph.settings import PerceptionPolicy
from tests.pictures import PNG, TEXT, b64, image, png, sha, text_file
from tests.talk import NOON

URL = f"data:image/png;base64,{b64(PNG)}"
FORMS: list[dict[str, Any]] = [
    image(),
    image(id="b1", extras={"alt": "a dot"}),
    {"type": "image", "source_type": "base64", "data": b64(PNG), "mime_type": "image/png"},
    {"type": "image", "url": URL},
    {"type": "image_url", "image_url": {"url": URL, "detail": "low"}},
    {"type": "image_url", "image_url": URL},
    {"type": "input_image", "image_url": URL},
    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": b64(PNG)}},
    {"type": "file", "file": {"filename": "dot.png", "file_data": URL}},
    {"type": "input_file", "filename": "dot.png", "file_data": URL},
    {"type": "media", "mime_type": "image/png", "data": b64(PNG)},
]
OUTSIDE: list[dict[str, Any]] = [
    {"type": "image", "url": "https://example.org/a/photo.png?token=secret"},
    {"type": "image", "file_id": "file-1"},
    {"type": "image_url", "image_url": {"url": "https://example.org/photo.png"}},
    {"type": "document", "source": {"type": "url", "url": "https://example.org/a.pdf"}},
]


def message(*blocks: Any) -> Message:
    return Message(role="user", content=list(blocks), time=NOON)


def strict(**policy: Any) -> Intake:
    return Intake(PerceptionPolicy(**policy), strict=True)


@pytest.mark.parametrize("block", FORMS, ids=range(len(FORMS)))
def test_bytes_of_every_known_form_are_taken_out_and_come_back_as_they_were(block: dict[str, Any]) -> None:
    """A form that is not known would swell the ledger; one that comes back otherwise, a provider would refuse."""
    intake = strict()
    taken = intake.take(message({"type": "text", "text": "Look."}, block))

    assert intake.blobs[sha(PNG)].data == PNG
    assert b64(PNG) not in taken.to_json()
    (held,) = taken.attachments
    assert (held.kind, held.sha256, held.size, held.mime_type) == ("image", sha(PNG), len(PNG), "image/png")
    assert taken.text == "Look."
    assert restored(taken.content, lambda name: intake.blobs[name].data)[1] == block


@pytest.mark.parametrize(
    "block",
    [
        {"type": "text-plain", "text": TEXT.decode(), "mime_type": "text/plain"},
        {"type": "file", "source_type": "text", "text": TEXT.decode(), "mime_type": "text/plain"},
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": TEXT.decode()}},
    ],
    ids=["v1", "v0", "anthropic"],
)
def test_a_document_that_comes_as_text_is_nothing_that_the_user_said(block: dict[str, Any]) -> None:
    """What stands in a document would be believed as if she had said it."""
    intake = strict()
    taken = intake.take(message({"type": "text", "text": "Read this."}, block))

    assert taken.text == "Read this."
    reading = intake.blobs[sha(TEXT)].reading
    assert reading is not None
    assert (reading.text, reading.reader) == (TEXT.decode(), "text")
    assert restored(taken.content, lambda name: intake.blobs[name].data)[1] == block


def test_a_url_in_percent_code_comes_back_as_the_same_bytes() -> None:
    """A data: URL need not be base64."""
    intake = strict()
    taken = intake.take(message({"type": "file", "url": "data:text/plain,a%20b"}))

    (held,) = taken.attachments
    assert intake.blobs[held.sha256].data == b"a b"
    back = restored(taken.content, lambda name: intake.blobs[name].data)
    assert strict().take(message(*back)).attachments == (held,)


@pytest.mark.parametrize("block", OUTSIDE, ids=["url", "file id", "openai", "anthropic"])
def test_what_is_elsewhere_is_left_as_it_is_and_never_fetched(block: dict[str, Any]) -> None:
    """A memory that fetches what a message names lets whoever writes messages reach into the network."""
    intake = strict()
    given = message(block)

    assert intake.take(given) is given
    assert intake.blobs == {}
    (held,) = given.attachments
    assert held.sha256 == ""
    assert "secret" not in held.name


@pytest.mark.parametrize(
    ("block", "problem"),
    [
        (image(TEXT), "given as image/png, and its bytes are not"),
        (image(b"MZ\x90\x00" + bytes(200)), "application/x-msdownload"),
        (image(PNG, mime_type="application/pdf"), "given as image, and is of type application/pdf"),
        (image(PNG, mime_type="image/gif"), "given as image/gif, and its bytes are image/png"),
        (text_file(b"%PDF-1.7" + bytes(range(128, 200))), "its bytes are application/pdf"),
        ({"type": "input_audio", "input_audio": {"data": b64(PNG), "format": "wav"}}, "audio/wav"),
        (image() | {"base64": "*" * 40}, "not base64"),
        (image() | {"base64": b64(PNG)[:-3]}, "not base64"),
        ({"type": "image", "url": "data:image/png;base64,%%%"}, "not base64"),
    ],
    ids=["text", "program", "kind", "gif", "pdf as text", "audio", "stars", "cut", "url"],
)
def test_bytes_that_are_not_what_they_claim_to_be_are_refused_with_a_cure(block: dict[str, Any], problem: str) -> None:
    """Whoever opens a picture must not find a program."""
    with pytest.raises(MessageError, match=problem) as refused:
        strict().take(message(block))
    assert refused.value.cure


@pytest.mark.parametrize(
    ("data", "mime", "kept"),
    [
        (b"BM is short for benchmark.", "text/plain", "text/plain"),
        (b"PK\x03\x04" + bytes(60), "application/vnd.openxmlformats-officedocument.wordprocessingml.document", None),
        (b'{"a": 1}', "application/json", "application/json"),
        (b"<svg/>", "image/svg+xml", "image/svg+xml"),
        (PNG, "", "image/png"),
        (b"\x00\x01", "", "application/octet-stream"),
        (b"ID3" + bytes(60), "audio/mp3", "audio/mpeg"),
    ],
    ids=["looks like a bitmap", "office", "json", "svg", "untold", "unknown", "alias"],
)
def test_types_that_are_true_pass(data: bytes, mime: str, kept: str | None) -> None:
    """A check that refuses good files is soon switched off."""
    (held,) = strict().take(message({"type": "file", "base64": b64(data), "mime_type": mime})).attachments
    assert held.mime_type == (kept or mime)


def test_a_bomb_is_refused_before_it_is_unpacked() -> None:
    """Two hundred megabytes of base64 must not become two hundred megabytes more."""
    bomb = message(image() | {"base64": "A" * 20_000_000})
    intake = strict(max_bytes=1_000_000)
    tracemalloc.start()
    with pytest.raises(MessageError, match="larger than 1000000 bytes"):
        intake.take(bomb)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 1_000_000


def test_what_one_message_carries_is_limited_as_a_whole() -> None:
    """Many small files are as much as one that is large."""
    many = message(*(image(png(colour)) for colour in range(3)))

    assert len(strict(max_message_bytes=3 * len(PNG)).take(many).attachments) == 3
    with pytest.raises(MessageError, match="Too much at once"):
        strict(max_message_bytes=3 * len(PNG) - 1).take(many)


@pytest.mark.parametrize(
    ("block", "policy"),
    [(image(TEXT), {}), (image(), {"max_bytes": 10}), (image(), {"max_message_bytes": 10})],
    ids=["mime", "size", "sum"],
)
def test_where_a_turn_must_not_be_lost_a_refused_file_becomes_a_reference_that_says_so(
    block: dict[str, Any], policy: dict[str, Any]
) -> None:
    """A host gives the whole thread after each turn: one bad file would end all memory of it."""
    intake = Intake(PerceptionPolicy(**policy), strict=False)
    taken = intake.take(message({"type": "text", "text": "Look."}, block))

    (held,) = taken.attachments
    assert held.sha256 == ""
    assert held.refused
    assert "base64" not in taken.content[1]
    assert taken.text == "Look."


@pytest.mark.parametrize("name", ["../../etc/passwd", "C:\\Users\\ann\\passwd", "/a/b/../passwd", "pass\x00wd\u202e[]"])
def test_a_name_is_shown_without_its_folders_and_names_no_file_of_ours(name: str) -> None:
    """A name that travels would write where it likes; one with brackets would pose as a mark."""
    (held,) = strict().take(message(text_file(name=name))).attachments
    assert held.name == "passwd"


@pytest.mark.parametrize(
    "forged",
    [
        {"path": ["__class__"]},
        {"path": [["base64"]]},
        {"path": []},
        {"path": "base64"},
        {"path": ["text"], "prefix": "text"},
        {"path": ["base64"], "sha256": 7},
    ],
    ids=range(6),
)
def test_a_reference_that_we_did_not_write_leads_nowhere_and_breaks_nothing(forged: dict[str, Any]) -> None:
    """Messages hold what their writers like; a history must be readable all the same."""
    block = {"type": "image", "attachment": {"sha256": sha(PNG), "prefix": ""} | forged}
    assert restored([block], lambda name: b"\xff" if name == sha(PNG) else None) == [block]


@pytest.mark.parametrize("mime", ["image/\x00png", "image/png\ud800", "image/png" + 300 * "\x00"])
@pytest.mark.parametrize("bytes_are", [{"url": "https://example.org/a.png"}, {"base64": b64(PNG)}], ids=["far", "here"])
def test_a_type_that_no_column_can_hold_costs_no_turn(bytes_are: dict[str, Any], mime: str) -> None:
    """Whoever sends a picture writes its type; a capture that fails on it would lose what else was said."""
    intake = Intake(PerceptionPolicy(), strict=False)
    (held,) = intake.take(message({"type": "image", "mime_type": mime, **bytes_are})).attachments
    assert (held.mime_type, held.refused) == ("image/png", "")


def test_the_same_message_is_the_same_after_its_bytes_are_taken_out() -> None:
    """Hosts give a thread again and again; a second reading must find nothing new."""
    given = message({"type": "text", "text": "Look."}, image())
    assert strict().take(given) == strict().take(given)
    taken = strict().take(given)
    assert strict().take(taken) == taken
