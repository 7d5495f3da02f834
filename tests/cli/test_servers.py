from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from remegraph import MemoryKit, Scope
from tests.cli.conftest import TURNS, Run

_COMMAND = [
    sys.executable,
    "-c",
    # Where the tests run in the background of a script, Ctrl-C is ignored, and a process inherits that.
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from remegraph.cli import main; main()",
]
_ME = Scope(user="me")


@pytest.mark.slow
def test_the_printed_address_shows_the_memory_until_ctrl_c(tmp_path: Path) -> None:
    """One command, one address, a page: and the terminal is free again when one is done."""
    with MemoryKit.open(tmp_path / "home", model=None, embedder=None) as kit:
        kit.add_messages(TURNS, scope=_ME)
        kit.summarize(scope=_ME, close=True)
    command = [*_COMMAND, "inspect", "--port", "0", "--home", str(tmp_path / "home")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().strip()
            with httpx.Client(follow_redirects=True, trust_env=False, timeout=60) as client:
                page = client.get(address)
                deed = client.post(address.partition("/login")[0] + "/quarantine/decide")
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=60)
        finally:
            process.kill()  # else a test that failed would wait for a server that nobody stops
    assert address.startswith("http://127.0.0.1:")
    assert (page.status_code, "I live in Lisbon." in page.text) == (200, True)
    assert deed.status_code == 403
    assert process.returncode == 130
    assert "Traceback" not in errors


@pytest.mark.slow
def test_without_its_extra_the_inspector_says_how_to_get_it(tmp_path: Path) -> None:
    """Most homes live on servers that need no page."""
    program = "import sys; sys.modules['starlette'] = None\nfrom remegraph.cli import main; main()"
    command = [sys.executable, "-c", program, "inspect", "--home", str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "COLUMNS": "200"})
    assert run.returncode == 1
    assert "The inspector needs starlette. Install it: pip install 'remegraph[inspector]'" in run.stderr


def test_a_home_that_is_not_there_is_no_page(run: Run, tmp_path: Path) -> None:
    """An empty page would look like a lost memory."""
    told = run("inspect", "--port", "0", "--home", str(tmp_path / "nowhere"))
    assert told.exit_code == 1
    assert "There is no memory in" in told.stderr


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["--tokens", "t.json"], 2, "are for --http"),
        (["--http", "8765"], 2, "is no address"),
        (["--http", "127.0.0.1:-1"], 2, "is no address"),
        (["--http", "0.0.0.0:8765"], 1, "can be reached from other machines"),
        (["--http", "127.0.0.1:8765", "--tokens", "missing.json"], 1, "cannot be read (FileNotFoundError)"),
        (["--user", ""], 1, "--user"),
    ],
)
def test_wrong_use_is_told_with_its_cure(run: Run, options: list[str], code: int, words: str) -> None:
    """A client shows its user this line and nothing else; standard output belongs to the protocol."""
    result = run("mcp", *options)
    assert result.exit_code == code
    assert words in " ".join(result.stderr.replace("│", " ").split())
    assert result.stdout == ""


def test_without_the_extra_it_says_what_to_install(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whoever has no client does not install a web server; whoever tries gets one line, and no empty memory."""
    for name in [each for each in sys.modules if each.startswith("remegraph.servers.mcp.")]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("mcp", "uvicorn"):
        monkeypatch.setitem(sys.modules, name, None)
    result = run("mcp")
    assert result.exit_code == 1
    assert "The MCP server needs mcp. Run: pip install 'remegraph[mcp]'." in " ".join(result.stderr.split())
    assert not (tmp_path / "home").exists()
