"""`remegraph mcp`: what it refuses before it serves anything."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Run


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
    for name in [each for each in sys.modules if each.startswith("remegraph.integrations.mcp.ser")]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("mcp", "uvicorn"):
        monkeypatch.setitem(sys.modules, name, None)
    result = run("mcp")
    assert result.exit_code == 1
    assert "The MCP server needs mcp. Run: pip install 'remegraph[mcp]'." in " ".join(result.stderr.split())
    assert not (tmp_path / "home").exists()
