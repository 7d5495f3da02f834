"""The page on the inspector is copied by people who put it into a program of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.test_sharing_page import printed


def test_the_example_makes_an_application_that_lets_one_person_in(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is copied from the page is served as it stands."""
    assert printed("inspector.md", "Inside another program", tmp_path, capsys) == []
