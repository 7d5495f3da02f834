"""The MCP server over HTTP: a token for each caller, nothing for web pages; and the command, by pipes and by socket."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.types import TextContent
from starlette.testclient import TestClient

from remegraph import InputError, MemoryKit, Scope, ScopeError, SetupError
from remegraph.servers.mcp import Tokens, http_app, memory_server, serve_http
from tests.talk import open_kit

ANN, BOB = Scope(user="ann", agent="remy"), Scope(user="bob")
TOKENS = {"a" * 32: ANN, "b" * 32: BOB}
MINE, THEIRS = ({"Authorization": f"Bearer {token}"} for token in TOKENS)
TEA = {"key": "tea", "content": "I drink oolong."}
_COMMAND = "from remegraph.cli import main; main()"


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryKit]:
    """A kit for all tests of the module."""
    with open_kit(tmp_path_factory.mktemp("kit")) as opened:
        yield opened


def asking(method: str, **params: Any) -> dict[str, Any]:
    """The body of a request."""
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


HELLO = asking("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "t", "version": "1"})


@pytest.mark.requirement("X5", "X10")
def test_a_request_needs_a_token_the_right_name_and_no_web_page_behind_it(kit: MemoryKit) -> None:
    """A page in the user's browser can reach loopback, too, and by a name of its own even with the user's rights."""
    app = http_app(memory_server(kit), Tokens(TOKENS))
    accepting = {"Accept": "application/json, text/event-stream"}
    with TestClient(app, base_url="http://127.0.0.1:8765", headers=accepting) as http:
        for status, headers in (
            (401, {}),
            (401, {"Authorization": "Bearer " + "c" * 32}),
            (401, {"Authorization": "Bearer " + "a" * 31}),
            (401, {"Authorization": "Basic " + "a" * 32}),
            (421, MINE | {"Host": "evil.example"}),
            (421, MINE | {"Host": "127.0.0.1.evil.example:8765"}),
            (403, MINE | {"Origin": "https://evil.example"}),
            (403, MINE | {"Origin": "http://localhost:8765"}),
        ):
            refused = http.post("/mcp", json=HELLO, headers=headers)
            assert refused.status_code == status, (headers, refused.text)
        large = json.dumps(asking("tools/call", name="save_memory", arguments={"key": "k", "content": "c" * 2_000_000}))
        assert http.post("/mcp", content=large, headers=MINE).status_code == 413

        welcome = http.post("/mcp", json=HELLO, headers=MINE)
        assert welcome.status_code == 200
        taken = THEIRS | {"mcp-session-id": welcome.headers["mcp-session-id"], "mcp-protocol-version": "2025-11-25"}
        assert http.post("/mcp", json=asking("tools/list"), headers=taken).status_code == 404
    assert kit.memories(scope=ANN) == ()


@pytest.mark.parametrize(
    ("scopes", "error", "words"),
    [
        ({}, InputError, "There is no token"),
        ({"short": ANN}, InputError, "entry 1.*under 16 characters"),
        ({"a" * 32: "ann"}, ScopeError, "A scope is needed"),
    ],
)
def test_a_token_that_could_be_guessed_or_stands_for_nobody_is_refused(
    scopes: Any, error: type[Exception], words: str
) -> None:
    """It is all that stands between a memory and whoever can reach the port."""
    with pytest.raises(error, match=words):
        Tokens(scopes)


async def test_tokens_are_read_from_a_file_that_others_cannot_read(tmp_path: Path) -> None:
    """A secret that everybody on the machine can read is none."""
    file = tmp_path / "tokens.json"
    for broken in ("", "[1]", '{"a": 1}', '{"%s": {"user": ""}}' % ("a" * 32)):
        file.write_text(broken, encoding="utf-8")
        file.chmod(0o600)
        with pytest.raises(SetupError, match="cannot be read"):
            Tokens.of_file(file)
    file.write_text(json.dumps({token: scope.model_dump() for token, scope in TOKENS.items()}), encoding="utf-8")
    assert await Tokens.of_file(file).verify_token("a" * 32) is not None
    file.chmod(0o644)
    with pytest.raises(SetupError, match="chmod 640"):
        Tokens.of_file(file)


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ({"user": "eva", "agnet": "remy"}, r"entry 2 is no scope \(its key 'agnet'"),
        ({"usr": "eva", "agent": "remy"}, r"entry 2 is no scope \(its key 'usr': .*; its key 'user': .*\)"),
        ({"agent": "remy"}, r"entry 2 is no scope \(its key 'user'"),
        ({"user": 7}, r"entry 2 is no scope \(its key 'user'"),
        ("eva", r"entry 2 is no scope"),
    ],
)
def test_a_file_of_tokens_says_which_entry_and_key_is_wrong_and_no_token(
    tmp_path: Path, entry: object, told: str
) -> None:
    """A file of a hundred users is not searched by hand, and an error goes to a log, which names no user."""
    file = tmp_path / "tokens.json"
    file.write_text(json.dumps({"a" * 32: {"user": "ann"}, "SECRET" * 6: entry}), encoding="utf-8")
    file.chmod(0o600)
    with pytest.raises(SetupError, match=told) as caught:
        Tokens.of_file(file)
    assert "SECRET" not in str(caught.value)
    assert "eva" not in str(caught.value)


def test_all_wrong_entries_of_a_file_of_tokens_are_told_at_once(tmp_path: Path) -> None:
    """Whoever mends one and starts again, to hear of the next, is kept from work by us."""
    file = tmp_path / "tokens.json"
    wrong = {f"{number}" * 32: {"agent": "remy"} for number in range(8)}
    file.write_text(json.dumps({"a" * 32: {"user": "ann"}, **wrong}), encoding="utf-8")
    file.chmod(0o600)
    with pytest.raises(SetupError, match=r"entry 2 is no scope .*; entry 6 is no scope .*, and 3 more\."):
        Tokens.of_file(file)


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ('{\n  "%s": {"user": "ann"}\n  "SECRET2": {}\n}', "line 3 column 3 "),
        ('{"%s": \\SECRET}', "line 1 column 42 "),
        ("", "line 1 column 1 "),
    ],
)
def test_a_file_of_tokens_that_is_no_json_says_where_and_none_of_its_words(
    tmp_path: Path, written: str, told: str
) -> None:
    """A comma that is missing among a hundred users is found at once, and the error goes to a log."""
    file = tmp_path / "tokens.json"
    file.write_text(written.replace("%s", "SECRET" * 6), encoding="utf-8")
    file.chmod(0o600)
    with pytest.raises(SetupError, match=f"{file}.*{told}") as caught:
        Tokens.of_file(file)
    assert "SECRET" not in str(caught.value)
    assert caught.value.__cause__ is None, "the error of json holds the whole file"


def test_a_token_that_is_too_short_is_known_by_its_place_and_names_nobody(tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    file.write_text(json.dumps({"a" * 32: {"user": "ann"}, "SECRET": {"user": "eva"}}), encoding="utf-8")
    file.chmod(0o600)
    with pytest.raises(InputError, match="entry 2 has under") as caught:
        Tokens.of_file(file)
    assert "SECRET" not in str(caught.value)
    assert "eva" not in str(caught.value)


async def test_what_other_machines_can_reach_must_be_named(kit: MemoryKit) -> None:
    """One address too many would put a memory on the network, without encryption."""
    server = memory_server(kit)

    def listens(url: str) -> None:
        raise AssertionError(url)

    for host in ("0.0.0.0", "::", "192.0.2.1", "memory.example.org"):
        with pytest.raises(SetupError, match="can be reached from other machines"):
            await serve_http(server, Tokens(TOKENS), host=host, port=0, ready=listens)
    with pytest.raises(SetupError, match="There is no port"):
        await serve_http(server, Tokens(TOKENS), port=10**6)
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(SetupError, match="Cannot listen at"):
        await serve_http(server, Tokens(TOKENS), port=taken.getsockname()[1])


async def told(session: Client, name: str, **arguments: Any) -> str:
    """What a tool answers."""
    (content,) = (await session.call_tool(name, arguments)).content
    assert isinstance(content, TextContent)
    return content.text


@pytest.mark.slow
@pytest.mark.requirement("X10")
async def test_a_client_starts_the_command_and_finds_next_time_what_it_saved(tmp_path: Path) -> None:
    """This is what a desktop client does with the lines that the page on MCP tells it to have."""
    command = ["-c", _COMMAND, "mcp", "--home", str(tmp_path / "home"), "--user", "ann"]
    params = StdioServerParameters(command=sys.executable, args=command, env=dict(os.environ))
    async with Client(params) as session:
        assert (await told(session, "save_memory", **TEA)).startswith("Saved as new memory")
    async with Client(params, mode="legacy") as session:
        assert "I drink oolong." in await told(session, "search_memory", query="oolong")


@pytest.mark.slow
def test_the_command_ends_by_control_c_while_it_waits_for_a_client(tmp_path: Path) -> None:
    """Somebody will start it by hand to see what it does, and must get their terminal back."""
    command = [sys.executable, "-c", _COMMAND, "mcp", "--home", str(tmp_path / "home")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{json.dumps(HELLO)}\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["result"]["serverInfo"]["name"] == "remegraph"
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == -signal.SIGINT


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    """The URL of the command, serving Ann and Bob."""
    file = tmp_path / "tokens.json"
    file.write_text(json.dumps({token: scope.model_dump() for token, scope in TOKENS.items()}), encoding="utf-8")
    file.chmod(0o600)
    options = ["--home", str(tmp_path / "home"), "--http", "127.0.0.1:0", "--tokens", str(file)]
    command = [sys.executable, "-c", _COMMAND, "mcp", *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, encoding="utf-8") as process:
        try:
            assert process.stderr is not None
            said = process.stderr.readline()
            found = re.fullmatch(r"Serving (http://127\.0\.0\.1:\d+/mcp)\n", said)
            assert found, said
            yield found[1]
        finally:
            process.terminate()
            assert process.wait(30) in {0, -signal.SIGTERM}


@pytest.mark.slow
@pytest.mark.requirement("X5", "X10")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_callers_over_a_socket_are_told_apart_by_their_tokens(served: str, mode: str) -> None:
    """One server for a team, and nobody's memory in anybody else's hands; it ends when it is told to."""
    for headers, name in ((MINE, "Ann"), (THEIRS, "Bob"), (MINE, "Ann")):
        async with (
            httpx2.AsyncClient(headers=headers) as http,
            Client(streamable_http_client(served, http_client=http), mode=mode) as session,
        ):
            await told(session, "save_memory", key="tea", content=f"{name} drinks oolong.")
            shown = await told(session, "search_memory", query="Who drinks oolong?")
            assert shown.count("drinks oolong") == shown.count(f"{name} drinks oolong") == 1
