from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from remegraph import MemoryKit, Scope
from remegraph.testing import FrozenClock
from tests.governance.conftest import DAY
from tests.talk import NOON

Run = Callable[..., Result]


@pytest.fixture
def moved(tmp_path: Path) -> list[str]:
    """Ids of what was remembered as somebody moved."""
    clock = FrozenClock(NOON)
    with MemoryKit.open(tmp_path / "home", model=None, embedder=None, clock=clock) as kit:
        ids = []
        for city in ("Paris", "Porto"):
            text = f"Ann lives in {city}."
            memory = kit.save("home", text, scope=Scope(user="me"), slot="ann:lives_in", value=city).memory
            assert memory is not None
            ids.append(memory.memory_id)
            clock.move(DAY)
    return ids


@pytest.mark.requirement("G6", "X4")
def test_a_chain_is_dug_out_compared_and_turned_back_on_the_command_line(run: Run, moved: list[str]) -> None:
    """Which version holds, since when, on whose word: whoever keeps order needs no Python for it."""
    paris, porto = (memory_id[:8] for memory_id in moved)
    shown = run("archaeology", paris).stdout
    for part in ("Ann lives in Paris.", "replaced by", "1  2025-03-04", "create by operator", "“Ann lives in Porto.”"):
        assert part in shown
    assert f"Holds: {porto}" in shown
    assert f"Holds: {paris}" in run("archaeology", porto, "--true-at", NOON.isoformat()).stdout
    assert json.loads(run("archaeology", paris, "--json").stdout)["held"][0]["memory_id"] == moved[1]
    difference = run("diff", paris, "1", "2").stdout
    assert "status" in difference
    assert "superseded" in difference
    assert "say the same" in run("diff", paris, "1", "1").stdout
    assert "has no version 7" in run("diff", paris, "1", "7").stderr
    restored = run("restore", paris, "--version", "1").stdout
    assert "Ann lives in Paris." in restored
    assert "[-" not in restored
    assert "was restored" in run("archaeology", porto).stdout


@pytest.mark.requirement("B14")
@pytest.mark.slow
def test_the_journal_is_shown_exported_and_checked_on_the_command_line(
    run: Run, moved: list[str], tmp_path: Path
) -> None:
    """An auditor gets a file, and a way to tell whether it is the file that was written."""
    shown = run("audit").stdout
    assert "supersede" in shown
    assert "1 → 2" in shown
    assert moved[0][:8] in shown
    assert "Paris" not in shown
    file = tmp_path / "audit.jsonl"
    assert f"written to {file.name}" in run("audit", "--export", str(file)).stdout
    assert "is whole" in run("audit", "--check", str(file)).stdout
    lines = file.read_text(encoding="ascii").splitlines(keepends=True)
    kept = tmp_path / "kept.jsonl"
    kept.write_text(lines[-1], encoding="ascii")
    assert "is whole" in run("audit", "--check", str(file), "--heads", str(kept)).stdout
    assert run("verify", "--heads", str(kept)).exit_code == 0
    file.write_text("".join(lines[1:]), encoding="ascii")
    checked = run("audit", "--check", str(file), "--heads", str(kept))
    assert (checked.exit_code, "is not what was exported" in checked.stdout) == (1, True)
    kept.write_text(lines[-1].replace('"chain": "', '"chain": "0'), encoding="ascii")
    assert "ended with: 0" in " ".join(run("verify", "--heads", str(kept)).stdout.split())
    kept.write_text("{}", encoding="ascii")
    assert "holds no head" in run("verify", "--heads", str(kept)).stderr
    assert run("audit", "--export", str(file)).exit_code == 1
    assert "Nothing happened." in run("audit", "--user", "bob").stdout
