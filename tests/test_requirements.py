"""`requirements.toml` and the marks on the tests agree, both ways."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from docs.generate import named_in, named_in_tests

_MANIFEST = tomllib.loads((Path(__file__).parent / "requirements.toml").read_text(encoding="utf-8"))


def test_what_is_claimed_done_has_a_test() -> None:
    """A promise that nothing checks is no promise."""
    done = {name for name, entry in _MANIFEST.items() if entry["status"] == "done"}
    assert done <= named_in_tests().keys()


def test_no_test_names_an_unknown_requirement() -> None:
    """A mistyped id would prove nothing, unseen."""
    unknown = {name: modules for name, modules in named_in_tests().items() if name not in _MANIFEST}
    assert unknown == {}


def test_every_requirement_has_a_sentence_a_source_and_a_status() -> None:
    """The manifest is read by people first."""
    for name, entry in _MANIFEST.items():
        assert re.fullmatch(r"[A-Z][1-9]\d*", name)
        assert entry.keys() == {"sentence", "source", "status"}
        assert entry["sentence"].endswith(".")
        assert entry["source"]
        assert entry["status"] in {"planned", "done"}


def test_ids_are_numbered_without_gaps() -> None:
    """A requirement that is dropped is dropped in the open, not by leaving out its number."""
    numbers: dict[str, list[int]] = {}
    for name in _MANIFEST:
        numbers.setdefault(name[0], []).append(int(name[1:]))
    assert {letter: len(found) for letter, found in numbers.items()} == {
        letter: max(found) for letter, found in numbers.items()
    }


@pytest.mark.parametrize(
    "source",
    [
        "@pytest.mark.requirement('R1', 'X3')\ndef test_it() -> None: ...",
        "@pytest.mark.requirement('R1', 'X3')\nclass TestIt: ...",
        "pytestmark = [pytest.mark.slow, pytest.mark.requirement('R1', 'X3')]",
        "@pytest.mark.parametrize('x', [pytest.param(1, marks=pytest.mark.requirement('R1', 'X3'))])\ndef test(): ...",
        "from pytest import mark\n@mark.requirement('R1')\n@mark.requirement('X3')\ndef test_it() -> None: ...",
    ],
)
def test_marks_are_found_wherever_pytest_allows_them(source: str) -> None:
    """Else a proof would not be counted."""
    assert named_in(source) == {"R1", "X3"}
