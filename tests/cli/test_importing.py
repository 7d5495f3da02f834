from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from typer.testing import Result

Run = Callable[..., Result]


def test_an_export_of_mem0_is_taken_in_on_the_command_line(run: Run, tmp_path: Path) -> None:
    """One line moves a person's memories, one more shows that nothing is doubled, and users stay apart."""
    file = tmp_path / "export.json"
    records = [{"id": str(number), "memory": f"Likes dish {number}.", "user_id": f"u{number}"} for number in (1, 2)]
    file.write_text(json.dumps({"results": records}), encoding="utf-8")
    refused = run("import", "mem0", str(file), "--user", "ann")
    assert (refused.exit_code, "2 users: u1, u2" in " ".join(refused.stderr.split())) == (1, True)
    assert "2 memories taken in for u1, u2." in run("import", "mem0", str(file)).stdout
    assert json.loads(run("import", "mem0", str(file), "--json").stdout)["known"] == 2
    (memory,) = json.loads(run("memories", "--user", "u2", "--json").stdout)
    assert memory["content"] == "Likes dish 2."


def test_a_dump_of_a_langgraph_store_is_taken_in_on_the_command_line(run: Run, tmp_path: Path) -> None:
    """What LangMem left in a table is enough, and what is broken in it is listed."""
    file = tmp_path / "items.jsonl"
    items = [{"namespace": ["memories", "ann"], "key": "a", "value": {"content": "Ann runs."}}, {"key": "b"}]
    file.write_text("\n".join(map(json.dumps, items)), encoding="utf-8")
    told = " ".join(run("import", "langmem", str(file), "--skip-invalid").stdout.split())
    assert "1 memory taken in for ann." in told
    assert "Skipped: Record 2 (b): its namespace is None." in told
