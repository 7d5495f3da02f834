from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run


@pytest.mark.requirement("K9")
@pytest.mark.slow
def test_memories_move_to_another_home_on_the_command_line(run: Run, chat: Path, tmp_path: Path) -> None:
    """A new machine, or a colleague's: one file, and what was remembered is there, traces and all."""
    file, other = str(tmp_path / "ann.pack"), str(tmp_path / "other")
    assert run("ingest", str(chat)).exit_code == 0
    assert "Written to" in run("pack", "build", file).stdout
    assert "(export)" in run("pack", "inspect", file).stdout
    assert "Every record holds." in run("pack", "verify", file).stdout
    refused = run("pack", "install", file, "--home", other)
    assert (refused.exit_code, "pass trust=1" in " ".join(refused.stderr.split())) == (1, True)
    assert "taken in" in run("pack", "install", file, "--home", other, "--trust", "1").stdout
    assert "nothing changed" in run("pack", "install", file, "--home", other, "--trust", "1").stdout
    here, there = (
        sorted(
            json.loads(run("memory", "list", "--home", home, "--json").stdout), key=lambda memory: memory["memory_id"]
        )
        for home in (str(tmp_path / "home"), other)
    )
    assert here == there
    found = json.loads(run("--home", other, "pack", "diff", file, "--trust", "1", "--json").stdout)
    assert (found["new"], len(found["known"])) == ([], len(here))


@pytest.mark.slow
@pytest.mark.requirement("K9")
def test_a_signed_pack_is_known_as_its_makers_on_the_command_line(run: Run, chat: Path, tmp_path: Path) -> None:
    """Whoever installs what others made wants to know whose it is, and that nobody changed it."""
    file, key, other = str(tmp_path / "tips.pack"), str(tmp_path / "ann.key"), str(tmp_path / "other")
    made = json.loads(run("pack", "keygen", key, "--json").stdout)
    run("ingest", str(chat))
    built = run("pack", "build", file, "--preset", "--id", "tips", "--domain", "homes", "--key", key)
    assert "items" in built.stdout
    unknown = run("pack", "install", file, "--home", other)
    assert (unknown.exit_code, "is unknown here" in " ".join(unknown.stderr.split())) == (1, True)
    assert made["key_id"] in run("pack", "trust", "ann", made["public"], "--home", other).stdout
    assert "signed by ann" in run("pack", "verify", file, "--require-signature", "--home", other).stdout
    done = json.loads(run("pack", "install", file, "--home", other, "--json").stdout)
    assert {item["outcome"] for item in done["items"]} == {"quarantined"}
    assert "revoked" in run("pack", "revoke", made["key_id"], "--home", other).stdout
    assert run("pack", "verify", file, "--home", other).exit_code == 1


@pytest.mark.requirement("K9")
def test_a_pack_of_one_memory_takes_the_beginning_of_its_id(run: Run, chat: Path, tmp_path: Path) -> None:
    """Lists show eight characters of an id: what is seen there can be typed."""
    run("ingest", str(chat))
    named = json.loads(run("memory", "list", "--json").stdout)[0]["memory_id"]
    built = run("pack", "build", str(tmp_path / "one.pack"), "--memory", named[:8])
    assert built.exit_code == 0, built.output
    assert "1 memories" in built.stdout
