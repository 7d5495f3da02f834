"""A kit for the surfaces: no model, a standing clock, ids in order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from remegraph import MemoryKit
from tests.talk import open_kit


@pytest.fixture
def kit(tmp_path: Path) -> Iterator[MemoryKit]:
    """An empty kit in extractive mode."""
    with open_kit(tmp_path) as opened:
        yield opened
