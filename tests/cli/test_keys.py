from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

Run = Callable[..., Result]

pytestmark = pytest.mark.requirement("B14")


def test_the_first_key_of_a_shared_ledger_is_made_by_a_command(
    run: Run, chat: Path, postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody finds out a year later that each machine had made a key of its own."""
    monkeypatch.setenv("REMEGRAPH_LEDGER_URL", postgres_url)
    refused = run("ingest", str(chat))
    assert refused.exit_code == 1
    assert "remegraph key make" in refused.stderr
    made = json.loads(run("key", "make", "--json").stdout)
    assert made == {"file": str(tmp_path / "home" / "journal.key")}
    assert run("ingest", str(chat)).exit_code == 0


def test_a_key_is_changed_by_two_commands(run: Run, chat: Path, tmp_path: Path) -> None:
    """The next key is there everywhere before it seals anything."""
    run("ingest", str(chat))
    assert "remegraph key rotate" in run("key", "make").stdout
    assert len((tmp_path / "home" / "journal.key").read_text(encoding="ascii").splitlines()) == 2
    assert "verify what they have sealed" in " ".join(run("key", "rotate").stdout.split())
    assert run("verify").exit_code == 0


def test_a_key_for_the_environment_is_printed_and_kept_nowhere(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store of secrets keeps it; a file beside it would be one more to guard."""
    key = run("key", "make", "--print").stdout.strip()
    assert re.fullmatch("[0-9a-f]{64}", key)
    monkeypatch.setenv("REMEGRAPH_JOURNAL_KEY", key)
    assert "--print" in run("key", "make").stderr
    assert not (tmp_path / "home").exists()


def test_a_seal_over_what_does_not_fit_must_be_asked_for(run: Run, chat: Path, tmp_path: Path) -> None:
    """A command that is typed in a hurry must not put out the alarm."""
    run("ingest", str(chat))
    (tmp_path / "home" / "journal.key").unlink()
    run("key", "make")
    assert "Put the key back" in run("ingest", str(chat)).stderr
    refused = run("key", "rotate")
    assert (refused.exit_code, "key rotate --despite" in " ".join(refused.stderr.split())) == (1, True)
    told = json.loads(run("key", "rotate", "--despite", "--reason", "the disk was lost", "--json").stdout)
    assert "another key" in told["did_not_fit"][0]["problem"]
    assert "the disk was lost" in run("doctor").stdout
    assert run("verify").exit_code == 0
