from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from remegraph import MemoryKit, Scope
from remegraph.testing import InMemoryVectorIndex

Run = Callable[..., Result]

ME = Scope(user="me")


def test_a_backup_is_made_checked_and_restored_on_the_command_line(run: Run, tmp_path: Path) -> None:
    """A line of a cron job, and one that is typed on a bad day, with the manual out of reach."""
    with MemoryKit.open(tmp_path / "home", model=None, embedder=None, index=InMemoryVectorIndex()) as kit:
        kit.add_messages(["I live in Lisbon."], scope=ME)
    backup, other = str(tmp_path / "backup"), str(tmp_path / "other")
    assert "1 message," in run("backup", "make", backup).stdout
    taken = json.loads(run("backup", "check", backup, "--json").stdout)
    assert taken["counts"]["messages"] == 1
    assert "remegraph rebuild" in run("backup", "restore", backup, "--home", other).stdout
    assert "I live in Lisbon." in run("--home", other, "messages").stdout
    again = run("backup", "restore", backup, "--home", other)
    assert again.exit_code == 1
    assert "not empty" in again.stderr


def test_the_doctor_tells_a_script_by_its_exit_code(run: Run) -> None:
    """A monitor reads codes and JSON, not sentences."""
    found = run("doctor", "--json")
    assert found.exit_code == 1
    told = json.loads(found.stdout)
    assert told["healthy"] is False
    assert [each["check"] for each in told["findings"]] == ["home"]
    assert "There is no memory" in run("doctor").stdout


@pytest.mark.slow
@pytest.mark.requirement("X2")
def test_the_doctor_finds_a_damaged_index_and_mends_it(run: Run, chat: Path, tmp_path: Path) -> None:
    """Files of the index that were torn kill whoever opens them: the doctor must not die of the disease."""
    run("ingest", str(chat))
    healthy = run("doctor")
    assert healthy.exit_code == 0
    assert "nothing is wrong" in healthy.stdout
    (tmp_path / "home" / "journal.key").chmod(0o644)
    for file in (tmp_path / "home" / "index" / "chroma").rglob("*.bin"):
        file.write_bytes(b"\xff" * file.stat().st_size)
    (tmp_path / "home" / "index" / "state.json").write_text("torn", encoding="utf-8")
    ill = run("doctor")
    assert ill.exit_code == 1
    assert "mends 2 of them" in ill.stdout
    mended = json.loads(run("doctor", "--fix", "--json").stdout)
    assert mended["healthy"] is True
    assert [(each["check"], bool(each["done"])) for each in mended["findings"]] == [("key", True), ("index", True)]
    shutil.rmtree(tmp_path / "home" / "index")
    assert run("doctor", "--fix").exit_code == 0
    assert "nothing is wrong" in run("doctor").stdout
