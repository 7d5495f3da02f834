from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from typer.testing import Result

from remegraph import MemoryKit, Scope
from tests.cli.conftest import TURNS

Run = Callable[..., Result]


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
    before = run("memories", "--json").stdout
    [entry] = json.loads(run("ingest", str(chat), "--json").stdout)["users"]
    assert (entry["added"], entry["known"], entry["summary"]["created"]) == (0, 3, 0)
    assert run("memories", "--json").stdout == before


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
    assert "hate" in run("memories", "--user", "Ann").stdout
    assert "hate" not in run("memories", "--user", "小林").stdout


def test_recording_and_summarising_can_be_two_steps(run: Run, chat: Path) -> None:
    """Recording costs nothing; a model may come later."""
    run("ingest", str(chat), "--no-summary")
    assert "No memories" in run("memories").stdout
    assert "1 block summarised" in run("summarize", "--close").stdout
    assert "mushrooms" in run("memories").stdout
    assert "0 blocks" in run("retry").stdout


def test_the_home_may_stand_before_the_command(run: Run, chat: Path, tmp_path: Path) -> None:
    """`--home` and `--json` are understood on either side of the command, and beat the environment."""
    other = tmp_path / "other"
    run("--home", str(other), "ingest", str(chat))
    assert other.is_dir()
    assert not (tmp_path / "home").exists()
    assert json.loads(run("--home", str(other), "--json", "topics").stdout)


def test_what_agents_left_to_the_background_is_done_on_demand(run: Run, tmp_path: Path) -> None:
    """A process that ended too soon left work in the queue; a cron job does it, for all users."""
    with MemoryKit.open(tmp_path / "home", model=None, embedder=None) as kit, kit._runner.aside():
        for user in ("ann", "bob"):
            kit.capture([*TURNS[:2]], scope=Scope(user=user))
    result = run("drain", "--json")
    assert result.exit_code == 0, result.output
    assert len(json.loads(result.stdout)["blocks"]) == 2
    assert "mushrooms" in run("memories", "--user", "bob").stdout
    assert "0 blocks summarised" in run("drain").stdout
