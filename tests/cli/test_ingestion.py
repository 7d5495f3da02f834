from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from remegraph import MemoryKit, Scope, Settings
from tests.cli.conftest import TURNS, Run
from tests.talk import EACH_TURN


def test_a_file_becomes_memories(run: Run, chat: Path) -> None:
    """One command from a conversation to its memories."""
    result = run("ingest", str(chat), "--json")
    assert result.exit_code == 0, result.output
    [entry] = json.loads(result.stdout)["users"]
    assert (entry["user"], entry["added"], entry["known"]) == ("me", 3, 0)
    assert entry["summary"]["created"] > 0
    assert "Lisbon" in run("recall", "Where do I live?").stdout


def test_ingesting_a_file_again_changes_nothing(run: Run, chat: Path) -> None:
    """A run that was stopped is simply run again."""
    run("ingest", str(chat))
    before = run("memory", "list", "--json").stdout
    [entry] = json.loads(run("ingest", str(chat), "--json").stdout)["users"]
    assert (entry["added"], entry["known"], entry["summary"]["created"]) == (0, 3, 0)
    assert run("memory", "list", "--json").stdout == before


def test_each_user_of_a_file_has_a_memory_of_their_own(run: Run, tmp_path: Path) -> None:
    """The file says who speaks; --user overrules it."""
    path = tmp_path / "users.jsonl"
    turn = {"role": "user", "time": "2026年3月2日 周一 09:05"}
    lines = [
        {"user": "Ann", "messages": [turn | {"content": "I hate mushrooms."}]},
        {"user": "小林", "messages": [turn | {"content": "我喜欢蘑菇。"}]},
    ]
    path.write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")
    result = run("ingest", str(path), "-z", "Asia/Shanghai")
    assert result.exit_code == 0, result.output
    assert "小林" in result.stdout
    assert "hate" in run("memory", "list", "--user", "Ann").stdout
    assert "hate" not in run("memory", "list", "--user", "小林").stdout


def test_recording_and_summarising_can_be_two_steps(run: Run, chat: Path) -> None:
    """Recording costs nothing; a model may come later."""
    run("ingest", str(chat), "--no-summary")
    assert "No memories" in run("memory", "list").stdout
    assert "1 block summarised" in run("summarize", "--close").stdout
    assert "mushrooms" in run("memory", "list").stdout
    assert "Nothing failed here." in run("work", "retry").stdout


def test_what_reading_again_would_cost_is_told_before_anything_is_spent(
    run: Run, chat: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model is switched on over a home that was written without one: nobody is asked until somebody says so."""
    pytest.importorskip("langchain_openai")
    run("ingest", str(chat))
    assert "There is no model" in run("work", "reread", "--dry-run").stderr

    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("REMEGRAPH_EMBEDDER", "hashed:1024")  # with a key it would be another than the home's
    told = run("work", "reread", "--dry-run", "--model", "openai:gpt-5-mini")
    assert told.exit_code == 0, told.output
    assert re.search(r"1 block to read again: about 2 model calls, [\d,]+ tokens sent and 400 received", told.stdout)
    assert "by gpt-5-mini" in told.stdout
    again = json.loads(
        run("work", "reread", "--dry-run", "--by", "gpt-5", "--model", "openai:gpt-5-mini", "--json").stdout
    )
    assert again["blocks"] == []


def test_the_home_may_stand_before_the_command(run: Run, chat: Path, tmp_path: Path) -> None:
    """`--home` and `--json` are understood on either side of the command, and beat the environment."""
    other = tmp_path / "other"
    run("--home", str(other), "ingest", str(chat))
    assert other.is_dir()
    assert not (tmp_path / "home").exists()
    assert json.loads(run("--home", str(other), "--json", "memory", "topics").stdout)


def test_what_agents_left_to_the_background_is_done_on_demand(run: Run, tmp_path: Path) -> None:
    """A process that ended too soon left work in the queue; a cron job does it, for all users."""
    settings = Settings(home=tmp_path / "home", agent=EACH_TURN)
    kit = MemoryKit.open(settings=settings, model=None, embedder=None)
    with kit.context.background.aside():  # until it is closed: between the two the background would begin
        for user in ("ann", "bob"):
            kit.capture([*TURNS[:2]], scope=Scope(user=user))
        kit.close()
    result = run("work", "drain", "--json")
    assert result.exit_code == 0, result.output
    assert len(json.loads(result.stdout)["blocks"]) == 2
    assert "mushrooms" in run("memory", "list", "--user", "bob").stdout
    assert "0 blocks summarised" in run("work", "drain").stdout


def test_an_export_of_mem0_is_taken_in_on_the_command_line(run: Run, tmp_path: Path) -> None:
    """One line moves a person's memories, one more shows that nothing is doubled, and users stay apart."""
    file = tmp_path / "export.json"
    records = [{"id": str(number), "memory": f"Likes dish {number}.", "user_id": f"u{number}"} for number in (1, 2)]
    file.write_text(json.dumps({"results": records}), encoding="utf-8")
    refused = run("import", "mem0", str(file), "--user", "ann")
    assert (refused.exit_code, "2 users: u1, u2" in " ".join(refused.stderr.split())) == (1, True)
    assert "2 memories taken in for u1, u2." in run("import", "mem0", str(file)).stdout
    assert json.loads(run("import", "mem0", str(file), "--json").stdout)["known"] == 2
    (memory,) = json.loads(run("memory", "list", "--user", "u2", "--json").stdout)
    assert memory["content"] == "Likes dish 2."


def test_a_dump_of_a_langgraph_store_is_taken_in_on_the_command_line(run: Run, tmp_path: Path) -> None:
    """What LangMem left in a table is enough, and what is broken in it is listed."""
    file = tmp_path / "items.jsonl"
    items = [{"namespace": ["memories", "ann"], "key": "a", "value": {"content": "Ann runs."}}, {"key": "b"}]
    file.write_text("\n".join(map(json.dumps, items)), encoding="utf-8")
    told = " ".join(run("import", "langmem", str(file), "--skip-invalid").stdout.split())
    assert "1 memory taken in for ann." in told
    assert "Skipped: Record 2 (b): its namespace is None." in told
