"""The page on many machines says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from remegraph.models import HealthReport, QueueDepth
from remegraph.settings import CapturePolicy

pytestmark = pytest.mark.requirement("X9")

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "scaling.md").read_text(encoding="utf-8")


def test_what_the_page_tells_to_watch_and_to_set_is_there() -> None:
    """An operator types what stands there, and sets up alarms by it."""
    assert set(re.findall(r"`queue\.(\w+)`", PAGE)) <= set(QueueDepth.model_fields)
    assert "index" in HealthReport.model_fields
    assert set(re.findall(r"`(max_\w+)`", PAGE)) <= set(CapturePolicy.model_fields)
