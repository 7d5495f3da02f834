"""The page on many machines and compose.yaml say what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from remegraph.models import HealthReport, QueueDepth
from remegraph.settings import CapturePolicy, Settings

pytestmark = pytest.mark.requirement("X9")

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "scaling.md").read_text(encoding="utf-8")


def test_what_the_page_tells_to_watch_and_to_set_is_there() -> None:
    """An operator types what stands there, and sets up alarms by it."""
    assert set(re.findall(r"`queue\.(\w+)`", PAGE)) <= set(QueueDepth.model_fields)
    assert "index" in HealthReport.model_fields
    assert set(re.findall(r"`(max_\w+)`", PAGE)) <= set(CapturePolicy.model_fields)


def test_compose_starts_what_is_developed_with(tmp_path: Path) -> None:
    """Whoever starts it gets the Chroma that these tests ran with, pinned, and settings that the kit reads."""
    services = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"]
    pinned = re.search(r"^chromadb==(.*)$", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE)
    assert pinned is not None
    assert services["chroma"]["image"] == f"chromadb/chroma:{pinned[1]}"
    assert re.search(r":\d+\.\d+", services["postgres"]["image"])
    worker = services["worker"]
    told = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["configs"]["settings"]["content"]
    (tmp_path / "settings.toml").write_text(told, encoding="utf-8")
    here = {"REMEGRAPH_QUEUE": "procrastinate", "REMEGRAPH_SETTINGS": str(tmp_path / "settings.toml")}
    known = Settings.from_env(worker["environment"] | here)
    assert worker["configs"] == [{"source": "settings", "target": worker["environment"]["REMEGRAPH_SETTINGS"]}]
    assert (known.queue, known.chroma_url) == ("procrastinate", "http://chroma:8000")
    named = {name for name in worker["environment"] if name.startswith("REMEGRAPH_")}
    assert named == {
        f"REMEGRAPH_{name.upper()}"
        for name in ("ledger_url", "chroma_url", "queue", "journal_key", "model", "settings")
    }
