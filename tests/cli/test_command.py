from __future__ import annotations

import json
import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.main import get_command

from remegraph.cli.app import app, whole
from remegraph.cli.command import guarded, logged
from tests.cli.conftest import Run
from tests.docs.blocks import ROOT


def _commands(found: Any, *path: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Each command with its words, those in groups, too."""
    if not hasattr(found, "commands"):
        yield path, found
        return
    for name, each in sorted(found.commands.items()):
        yield from _commands(each, *path, name)


COMMANDS = dict(_commands(whole()))


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_explains_itself(run: Run, command: tuple[str, ...]) -> None:
    """The help is the manual: it says what the command does and what each option means."""
    result = run(*command, "--help")
    assert result.exit_code == 0
    assert "--json" in result.output
    assert "--home" in result.output


@pytest.mark.parametrize(
    ("arguments", "environment", "shown"),
    [
        ("--help", {}, "Record and summarise"),
        ("--version", {}, "remegraph "),
        (
            "",
            {"_REMEGRAPH_COMPLETE": "complete_bash", "COMP_WORDS": "remegraph re", "COMP_CWORD": "1"},
            "recall\nreview",
        ),
    ],
    ids=["help", "version", "completion"],
)
def test_who_asks_what_there_is_waits_for_no_command(arguments: str, environment: dict[str, str], shown: str) -> None:
    """The tab key is pressed in the middle of a word."""
    program = (
        "import sys; from remegraph.cli import main\n"
        "try:\n    main()\nfinally:\n    print(*sys.modules, sep='\\n', file=sys.stderr)"
    )
    run = subprocess.run(
        [sys.executable, "-c", program, *arguments.split()],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )
    assert shown in run.stdout
    imported = set(run.stderr.splitlines())
    assert {name for name in imported if name.startswith("remegraph")} == {
        "remegraph",
        "remegraph.cli",
        "remegraph.cli.app",
        "remegraph.cli.options",
    }
    heavy = {
        "alembic",
        "asyncio",
        "chromadb",
        "langchain_core",
        "langgraph",
        "numpy",
        "pydantic_settings",
        "sqlalchemy",
    }
    assert heavy & imported == set()


def test_the_help_says_of_each_command_what_the_command_says_of_itself(capsys: pytest.CaptureFixture[str]) -> None:
    """The first page knows the commands without importing them, and could keep saying what one did once."""
    pages = []
    for program in (get_command(app), whole()):
        program.main(["--help"], prog_name="remegraph", standalone_mode=False)
        pages.append(capsys.readouterr().out)
    assert pages[0] == pages[1]
    assert all(name in pages[0] for name in ("demo", "Share among agents", "key"))


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_option_has_a_help_text(command: tuple[str, ...]) -> None:
    """The manual page is generated from these texts."""
    found = COMMANDS[command]
    assert found.help
    assert [parameter.name for parameter in found.params if not getattr(parameter, "help", "")] == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("nonsense",),
        ("recall",),
        ("recall", "x", "--depth", "abyss"),
        ("recall", "x", "-k", "0"),
        ("recall", "x", "--mode", "fuzzy"),
        ("recall", "x", "--type", "blue"),
        ("recall", "x", "--min-trust", "2"),
        ("recall", "x", "--known-at", "yesterday"),
        ("ingest", "a.json", "--timezone", "Mars/Olympus"),
        ("memory", "messages", "--since", "yesterday"),
        ("memory", "messages", "--since", "2026-03-01"),
        ("memory", "list", "--status", "blue"),
    ],
)
def test_wrong_use_ends_with_code_2(run: Run, arguments: tuple[str, ...]) -> None:
    """Scripts tell a typing error from a failure."""
    assert run(*arguments).exit_code == 2


@pytest.mark.parametrize(
    "command",
    [
        *("memory topics", "memory list", "memory blocks", "memory messages", "memory tools"),
        *("work list", "summarize", "admin stats"),
    ],
)
def test_reading_a_home_that_does_not_exist_is_refused_and_makes_none(run: Run, tmp_path: Path, command: str) -> None:
    """A typing error in --home must not look like an empty memory."""
    result = run(*command.split(), "--home", str(tmp_path / "typo"))
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    assert "There is no memory in" in result.stderr
    assert "ingest" in result.stderr
    assert result.stdout == ""
    assert not (tmp_path / "typo").exists()


def test_an_error_is_one_json_document_where_json_is_asked_for(run: Run) -> None:
    """A program that reads stdout always gets JSON."""
    result = run("memory", "topics", "--json")
    assert result.exit_code == 1
    error = json.loads(result.stdout)["error"]
    assert error["type"] == "SetupError"
    assert error["cure"]
    assert run("--json", "memory", "topics").stdout == result.stdout


def test_a_file_without_zones_is_refused_with_the_option_that_helps(run: Run, tmp_path: Path) -> None:
    """The cure is written in terms of the command line."""
    path = tmp_path / "chat.json"
    path.write_text('[{"role": "user", "content": "x", "time": "2026-03-02T09:05:00"}]', encoding="utf-8")
    result = run("ingest", str(path))
    assert result.exit_code == 1
    assert "--timezone Asia/Shanghai" in result.stderr
    assert not (tmp_path / "home").exists()


def test_a_key_that_is_set_later_names_the_option_by_which_an_offline_home_opens(
    run: Run, chat: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever sets OpenAI's key for something else has lost no memory: the error tells what to type."""
    assert run("ingest", str(chat)).exit_code == 0
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    refused = run("admin", "stats")
    assert (refused.exit_code, "REMEGRAPH_EMBEDDER" in refused.stderr, "hashed:1024" in refused.stderr) == (
        1,
        True,
        True,
    )
    monkeypatch.setenv("REMEGRAPH_EMBEDDER", "hashed:1024")
    assert run("admin", "stats").exit_code == 0


def test_a_bad_line_is_found_before_anything_is_recorded(run: Run, tmp_path: Path) -> None:
    """Half an import is worse than none."""
    path = tmp_path / "chat.jsonl"
    path.write_text('{"messages": [{"role": "user", "content": "x"}]}\n{"messages": [{]}\n', encoding="utf-8")
    result = run("ingest", str(path))
    assert result.exit_code == 1
    assert "chat.jsonl, line 2" in result.stderr
    assert not (tmp_path / "home").exists()


def test_a_command_that_serves_logs_as_the_example_service_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Lines of services and workers end up in one place, where they are sorted by time and searched by level."""
    service = json.loads((ROOT / "examples" / "logging.json").read_text(encoding="utf-8"))
    root, ours, level = logging.getLogger(), logging.getLogger("remegraph.access"), logging.getLogger("remegraph").level
    monkeypatch.setattr(root, "handlers", [])
    with logged():
        assert [each.formatter and each.formatter._fmt for each in root.handlers] == [
            service["formatters"]["line"]["format"]
        ]
        ours.info("mcp answered")
        logging.getLogger("httpx").info("a library says much")
    assert re.fullmatch(r"[-\d]+ [:,\d]+ INFO remegraph\.access mcp answered\n", capsys.readouterr().err)
    assert (root.handlers, logging.getLogger("remegraph").level) == ([], level)


def test_a_host_that_has_set_logging_up_keeps_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under opentelemetry-instrument each line would be there twice."""
    theirs = logging.NullHandler()
    monkeypatch.setattr(logging.getLogger(), "handlers", [theirs])
    with logged():
        assert logging.getLogger().handlers == [theirs]


def test_ctrl_c_says_that_the_same_command_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody should fear to stop a long import."""
    with pytest.raises(typer.Exit) as caught, guarded(as_json=False):
        raise KeyboardInterrupt
    assert caught.value.exit_code == 130
    assert "goes on from there" in capsys.readouterr().err


def test_without_typer_one_line_says_what_to_install() -> None:
    """The core package does not need typer and rich; the command line does."""
    code = "import sys; sys.modules['typer'] = None; from remegraph.cli import main; main()"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert result.stderr == "The command line needs typer. Install it: pip install 'remegraph[cli]'\n"
