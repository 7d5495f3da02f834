"""After an erasure no file holds a byte of it, wherever it was stopped, and no late writer brings it back."""

from __future__ import annotations

import os
import shutil
import sqlite3
import struct
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from conftest import Figure
from remegraph.failpoints import FAILPOINTS
from remegraph.ledger.index.guard import IndexFolder
from remegraph.models import Subject
from tests.reliability.erasable import ANN, BOB, WORDS, fill, look, open_home, row_of, vectors_of
from tests.reliability.host import ROOT

pytestmark = pytest.mark.requirement("X7")

PERSON = Subject(user="zzannuser")
OF_ONE_MESSAGE = ("zzmessage", "zzmemory", "zzreason")
STEPS = tuple(name for name in FAILPOINTS if name.startswith("erase."))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home full of Ann's words."""
    with open_home(tmp_path) as kit:
        fill(kit)
    return tmp_path


def leave_in_queue(folder: IndexFolder) -> None:
    """Leave a vector of a collection that is no more, as Chroma does after some drops."""
    with closing(sqlite3.connect(folder.files / "chroma.sqlite3", timeout=5)) as chroma:
        queued = "INSERT INTO embeddings_queue (operation, topic, id, vector) VALUES (0, 'dropped', 'x', 'zzqueued')"
        chroma.execute(queued)
        chroma.commit()


@pytest.mark.slow
def test_not_a_byte_of_a_message_and_then_of_a_person_is_left_in_any_file(home: Path, figure: Figure) -> None:
    """Deleting a row leaves its words in the file, the log and the index: whoever has the disk would read them."""
    with open_home(home) as kit:
        vectors = vectors_of(kit, ANN)
        assert {found.what for found in look(home, WORDS, vectors)} == {*WORDS, "a vector"}
        archive = kit.context.parts().archive
        gone = [each for each in archive.memories([ANN.partition()]) if "zzm" in each.content]
        receipt = kit.admin.erase(ANN, message_ids=["a1"])
        assert receipt.complete
        assert look(home, OF_ONE_MESSAGE, [row_of(each) for each in gone]) == []
        concluded = archive.memories([ANN.partition()], ids=["long", "repeating"])
        assert {each.memory_id: each.status for each in concluded} == {"long": "active", "repeating": "erased"}
        assert kit.recall("green tea from Uji", scope=ANN).memories
        leave_in_queue(IndexFolder(home / "index"))
        receipt = kit.admin.erase(PERSON)
        assert (receipt.complete, receipt.left) == (True, 0)
        assert look(home, (*WORDS, "zzqueued"), vectors) == []
        assert kit.admin.verify().differences == ()
        assert [hit.text for hit in kit.recall("Where does Bob live?", scope=BOB).memories] == ["Bob: I live in Paris."]
    assert look(home, WORDS, vectors) == []
    figure("bar 19: erasure", f"{len(WORDS)} words and {len(vectors)} vectors, in every form and file: 0 bytes left")


def test_what_chroma_leaves_in_its_files_is_overwritten(home: Path) -> None:
    """It keeps a queue of dropped vectors, and writes space that it reserves as it finds it in the host's memory."""
    folder = IndexFolder(home / "index")
    (data, *_) = folder.files.glob("*/data_level0.bin")
    whole = data.read_bytes()
    data.write_bytes(whole[: -len(b"zzreserved")] + b"zzreserved")
    lengths = data.with_name("length.bin")
    lengths.write_bytes(lengths.read_bytes()[: -len(b"zzlengths")] + b"zzlengths")
    leave_in_queue(folder)
    left = ("zzreserved", "zzlengths", "zzqueued")
    assert {word for word in left if look(home / "index", (word,), [])} == set(left)
    folder.shred()
    assert look(home / "index", left, []) == []
    assert data.read_bytes() == whole, "and not a vector was lost"


@pytest.mark.parametrize("room", [250, 253, 256])
def test_a_file_of_vectors_may_end_anywhere_in_what_was_reserved(tmp_path: Path, room: int) -> None:
    """Chroma writes what it reserved, or not: an index that grew could neither be closed in order nor cleared."""
    folder = IndexFolder(tmp_path)
    segment = folder.files / "segment"
    segment.mkdir(parents=True)
    (segment / "header.bin").write_bytes(struct.pack("<iQQQQ", 1, 0, 256, 250, 8))
    vectors = segment / "data_level0.bin"
    vectors.write_bytes(b"a vector" * 250 + b"reserved" * (room - 250))
    lengths = segment / "length.bin"
    lengths.write_bytes(b"long" * 250 + b"room" * (room - 250))
    folder.blank()
    assert vectors.read_bytes() == b"a vector" * 250 + bytes(8 * (room - 250))
    assert lengths.read_bytes() == b"long" * 250 + bytes(4 * (room - 250))
    vectors.write_bytes(b"a vector" * 249)
    with pytest.raises(ValueError, match="does not hold"):
        folder.blank()


@pytest.mark.slow
def test_kill_9_at_any_step_of_an_erasure_leaves_nothing_after_the_next_call(
    home: Path, tmp_path_factory: pytest.TempPathFactory, figure: Figure
) -> None:
    """Machines are turned off in the midst of it; who asked for the erasure has its receipt in mind, not the machine."""
    for step in STEPS:
        copy = tmp_path_factory.mktemp("killed") / "home"
        shutil.copytree(home, copy)
        killed = subprocess.run(
            [sys.executable, "-m", "tests.reliability.erasable", str(copy), step],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            check=False,
        )
        assert killed.returncode == -9, step
        with open_home(copy) as kit:
            (receipt,) = kit.admin.resume()
            assert receipt.complete, (step, receipt)
            assert kit.admin.verify().differences == (), step
        assert look(copy, WORDS, []) == [], step
    figure("bar 02: kill -9 in an erasure", f"{len(STEPS)} kills, one at each step: 0 bytes left after the next call")
