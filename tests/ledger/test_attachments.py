"""Attachments in the ledger: bytes before rows, bytes only with rows, and nothing left behind."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from remegraph import InputError, SetupError
from remegraph.failpoints import listen
from remegraph.ledger.archive import Archive
from remegraph.ledger.attachments import SWEEP_LOCK, BlobFolder
from remegraph.ledger.journal import KeyRing
from remegraph.models import Evidence, Message, Partition, Reading
from remegraph.models.messages import Blob
from tests.ledger.conftest import ANN, BOB, KEY, NOON, Ledger, create, whole
from tests.pictures import PNG, TEXT, png, sha


class Crash(BaseException):
    """The process ends here."""


@pytest.fixture
def folder(tmp_path: Path) -> BlobFolder:
    """Where bytes are."""
    return BlobFolder(tmp_path / "blobs")


@pytest.fixture
def archive(ledger: Ledger, folder: BlobFolder) -> Iterator[Archive]:
    """A ledger with a folder, on SQLite, then on PostgreSQL."""
    opened = Archive.open(
        ledger.url, keys=KeyRing([KEY]), clock=lambda: ledger.now, new_id=lambda: f"id{next(ledger.ids)}", blobs=folder
    )
    yield opened
    opened.close()


def held(message_id: str, *data: bytes) -> tuple[Message, dict[str, Blob]]:
    """A message that holds these bytes."""
    blocks = [{"type": "image", "attachment": {"kind": "image", "sha256": sha(each)}} for each in data]
    return Message(message_id=message_id, role="user", content=blocks, time=NOON), {
        sha(each): Blob(each) for each in data
    }


def put(archive: Archive, partition: Partition, message_id: str, *data: bytes) -> None:
    message, blobs = held(message_id, *data)
    archive.add_messages(partition, [message], NOON, blobs=blobs)


def test_bytes_are_read_by_those_whose_messages_came_with_them(archive: Archive) -> None:
    """A hash is no secret: to know it, or to write it into a message, must not open another's file."""
    put(archive, ANN, "m1", PNG)
    forged, _ = held("m2", PNG)
    archive.add_messages(BOB, [forged], NOON)

    assert archive.attachments.get([ANN], sha(PNG)) == PNG
    assert archive.attachments.get([BOB], sha(PNG)) is None
    assert archive.attachments.held([ANN], message_id="m1") == (sha(PNG),)
    assert archive.attachments.held([ANN], message_id="m2") == ()


def test_equal_bytes_of_two_users_are_kept_once_and_belong_to_both(archive: Archive, folder: BlobFolder) -> None:
    """The same form letter a thousand times is one file."""
    put(archive, ANN, "m1", PNG)
    put(archive, BOB, "m1", PNG, png(9))

    assert list(folder.names()) == sorted([sha(PNG), sha(png(9))])
    assert archive.attachments.get([BOB], sha(PNG)) == PNG
    assert archive.attachments.get([ANN], sha(png(9))) is None


def test_a_crash_between_bytes_and_row_leaves_bytes_that_the_sweep_finds_and_the_next_try_uses(
    archive: Archive, folder: BlobFolder
) -> None:
    """A row without its bytes would be a lie; bytes without a row are only dust."""

    def crash(place: str) -> None:
        if place == "add.kept":
            raise Crash

    listen(crash)
    try:
        with pytest.raises(Crash):
            put(archive, ANN, "m1", PNG)
    finally:
        listen(None)
    assert archive.messages([ANN]) == ()
    assert folder.has(sha(PNG))
    assert archive.attachments.unreferenced() == (sha(PNG),)

    put(archive, ANN, "m1", PNG)
    assert archive.attachments.unreferenced(remove=True) == ()
    assert archive.attachments.get([ANN], sha(PNG)) == PNG


def test_a_picture_is_recorded_while_the_index_is_brought_up_to_date(ledger: Ledger) -> None:
    """Embedding takes minutes: nobody who sends a picture may wait for it, nor the index for who sends one."""
    with (
        closing(ledger.another()) as other,
        ledger.archive.database.write([SWEEP_LOCK]),
        other.database.first(1) as mine,
    ):
        assert mine


def test_a_sweep_while_somebody_adds_takes_nothing_that_is_about_to_be_held(
    archive: Archive, folder: BlobFolder
) -> None:
    """The moment between the bytes and the row is when a careless sweep destroys a file."""
    folder.put(sha(TEXT), TEXT)
    swept: list[tuple[str, ...]] = []

    def sweep(place: str) -> None:
        if place == "add.kept":
            worker = threading.Thread(target=lambda: swept.append(archive.attachments.unreferenced(remove=True)))
            worker.start()
            worker.join()

    listen(sweep)
    try:
        put(archive, ANN, "m1", PNG)
    finally:
        listen(None)

    assert swept == [tuple(sorted([sha(PNG), sha(TEXT)]))]
    assert archive.attachments.get([ANN], sha(PNG)) == PNG
    assert list(folder.names()) == [sha(PNG)]


def test_lost_and_damaged_bytes_are_told_with_a_cure(archive: Archive, folder: BlobFolder) -> None:
    """A wrong picture is worse than none."""
    put(archive, ANN, "m1", PNG)
    (path,) = folder.folder.glob("??/??/*")
    assert path.relative_to(folder.folder).parts == (sha(PNG)[:2], sha(PNG)[2:4], sha(PNG))
    path.write_bytes(TEXT)
    with pytest.raises(SetupError, match="damaged"):
        archive.attachments.get([ANN], sha(PNG))
    assert archive.attachments.missing(ANN) == ()
    path.unlink()
    with pytest.raises(SetupError, match="backup"):
        archive.attachments.get([ANN], sha(PNG))
    assert archive.attachments.missing(ANN) == (sha(PNG),)


def test_what_is_in_a_picture_is_written_once_and_its_message_is_found_by_it(archive: Archive, ledger: Ledger) -> None:
    """A second description would change what memories were made from."""
    put(archive, ANN, "m1", PNG)
    before = archive.layout(ANN).lengths.sum()
    first = Reading(sha256=sha(PNG), text="A scarlet bicycle \ud800\x00.", reader="m")
    archive.attachments.describe(ANN, {"m1": [first]})
    archive.attachments.describe(ANN, {"m1": [first.evolve(text="A blue bicycle.")]})

    (message,) = archive.messages([ANN])
    assert message.readings == (first,)
    assert message.reading(sha(PNG)) == first.text
    assert ledger.found(ANN, "message", "scarlet") == {"m1"}
    assert ledger.found(ANN, "message", "blue") == set()
    (matches,) = archive.match([ANN], "message", ["scarlet"])
    assert (matches.total, matches.lengths[0]) == (1, archive.layout(ANN).lengths.sum())
    assert archive.layout(ANN).lengths.sum() > before


def test_a_quote_of_an_attachment_must_stand_in_what_was_read_of_it(archive: Archive, ledger: Ledger) -> None:
    """A memory that cites a picture for words that nobody read there has no evidence at all."""
    put(archive, ANN, "m1", PNG)
    archive.attachments.describe(ANN, {"m1": [Reading(sha256=sha(PNG), text="A scarlet bicycle.", reader="m")]})
    (tail,) = archive.tails(ANN)
    (block,) = archive.add_blocks(ANN, [whole(tail.after_seq, tail.messages[-1].seq)], "1")

    def learn(quote: str, attachment: str) -> None:
        evidence = Evidence(message_id="m1", quote=quote, block_id=block.block_id, attachment=attachment)
        ledger.commit(create(ledger.memory().evolve(evidence=(evidence,), block_ids=(block.block_id,))))

    learn("scarlet bicycle", sha(PNG))
    for quote, attachment in (("blue bicycle", sha(PNG)), ("scarlet bicycle", sha(TEXT)), ("scarlet bicycle", "")):
        with pytest.raises(InputError, match="quote"):
            learn(quote, attachment)


def test_without_a_folder_a_message_with_bytes_is_refused_and_one_without_is_not(ledger: Ledger) -> None:
    """Bytes that land in a folder of one machine of many are lost to the others."""
    ledger.say(ANN, "Hello.")
    message, blobs = held("m1", PNG)
    with pytest.raises(SetupError, match="no folder for attachments") as refused:
        ledger.archive.add_messages(ANN, [message], NOON, blobs=blobs)
    assert "perception" in refused.value.cure
    assert len(ledger.archive.messages([ANN])) == 1
    assert ledger.archive.attachments.unreferenced() == ()


@pytest.mark.parametrize("name", ["../../etc/passwd", "", "0" * 63, "0" * 64 + "/..", "A" * 64])
def test_only_a_hash_becomes_a_path(folder: BlobFolder, name: str) -> None:
    """A name that a host passes on may come from anybody."""
    with pytest.raises(ValueError, match="no SHA-256"):
        folder.get(name)


def test_a_folder_that_cannot_be_written_is_told_and_nothing_is_recorded(archive: Archive, folder: BlobFolder) -> None:
    """A full or foreign disk must not leave a message without its picture."""
    folder.folder.write_text("a file is in the way")
    with pytest.raises(SetupError, match="cannot be kept"):
        put(archive, ANN, "m1", PNG)
    assert archive.messages([ANN]) == ()
