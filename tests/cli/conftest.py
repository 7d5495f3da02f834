from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from remegraph.cli.app import app

Run = Callable[..., Result]

TURNS = [
    {"role": "user", "name": "Ann", "content": "I live in Lisbon. I hate mushrooms.", "time": "2026-03-02T09:05:00Z"},
    {"role": "assistant", "content": "Noted.", "time": "2026-03-02T09:05:30Z"},
    {"role": "user", "name": "Ann", "content": "I love coffee.", "time": "2026-03-02T09:06:00Z"},
]


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No setting of the machine reaches a test, and its home is a temporary folder."""
    for name in ("REMEGRAPH_HOME", "REMEGRAPH_USER", "REMEGRAPH_MODEL", "REMEGRAPH_LEDGER_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("REMEGRAPH_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")


@pytest.fixture
def run() -> Run:
    """Run the command line in this process."""
    runner = CliRunner()

    def run(*arguments: str) -> Result:
        return runner.invoke(app, list(arguments))

    return run


@pytest.fixture
def chat(tmp_path: Path) -> Path:
    """A file with a short conversation."""
    path = tmp_path / "chat.json"
    path.write_text(json.dumps(TURNS), encoding="utf-8")
    return path
