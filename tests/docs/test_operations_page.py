"""The page about operations names each check of the doctor."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

from remegraph.models import Check

_PAGE = Path(__file__).parents[2] / "docs" / "operations.md"


def test_every_check_of_the_doctor_is_explained() -> None:
    """Who gets a finding looks it up by its name."""
    section = _PAGE.read_text(encoding="utf-8").partition("## The doctor\n")[2]
    rows = re.findall(r"^\| ([a-z, ]+) \|", section, re.MULTILINE)
    assert sorted(name for row in rows for name in row.split(", ")) == sorted(get_args(Check))
