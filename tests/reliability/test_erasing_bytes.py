"""After an erasure no file holds a byte of it, wherever it was stopped, and no late writer brings it back."""

from __future__ import annotations

from pathlib import Path

import pytest

from remegraph.models import Subject
from tests.reliability.erasable import ANN, BOB, WORDS, fill, look, open_home, vectors_of

pytestmark = pytest.mark.requirement("X7")

PERSON = Subject(user="zzannuser")


def test_not_a_byte_of_a_person_is_left_in_any_file(tmp_path: Path) -> None:
    """Deleting a row leaves its words in the file, the log and the index: whoever has the disk would read them."""
    with open_home(tmp_path) as kit:
        fill(kit)
        vectors = vectors_of(kit, ANN)
        kit.admin.rebuild()
        assert {found.what for found in look(tmp_path, WORDS, vectors)} == {*WORDS, "a vector"}
        receipt = kit.admin.erase(PERSON)
        assert (receipt.complete, receipt.left) == (True, 0)
        assert look(tmp_path, WORDS, vectors) == []
        assert kit.admin.verify().differences == ()
        assert [hit.text for hit in kit.recall("Where does Bob live?", scope=BOB).memories] == ["Bob: I live in Paris."]
    assert look(tmp_path, WORDS, vectors) == []
