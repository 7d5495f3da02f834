"""What every server lets its operator watch: probes without a token, and a log of who came in and who did not."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.testclient import TestClient

from remegraph import MemoryKit, Scope, SetupError
from remegraph.ledger.database import Database
from remegraph.servers.inspector import Session, inspector
from remegraph.servers.mcp import Tokens, http_app, memory_server
from remegraph.servers.watch import PROBES
from tests.reliability.released import later
from tests.servers.test_mcp_serving import HELLO
from tests.talk import open_kit

pytestmark = pytest.mark.requirement("X9", "X10")

ANN, BOB = Scope(user="ann-the-private", agent="remy"), Scope(user="bob")
FIRST, SECOND = "f" * 32, "s" * 32
BASE = "http://127.0.0.1:8765"
ACCEPTING = {"Accept": "application/json, text/event-stream"}


def shown(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def known_by(secret: str) -> str:
    return sha256(secret.encode()).hexdigest()[:12]


@pytest.fixture
def kit(tmp_path: Path) -> Iterator[MemoryKit]:
    with open_kit(tmp_path / "home") as kit:
        yield kit


def mcp(kit: MemoryKit, tokens: Tokens | None = None) -> TestClient:
    return TestClient(http_app(memory_server(kit), tokens or Tokens({FIRST: ANN})), base_url=BASE, headers=ACCEPTING)


def inspected(kit: MemoryKit) -> TestClient:
    return TestClient(inspector(kit, ANN, session=Session(), hosts=["127.0.0.1:8765"]), base_url=BASE)


# ------------------------------------------------------------------------------------------- probes


@pytest.mark.parametrize("server", [mcp, inspected])
def test_every_server_says_without_a_token_that_it_lives_and_whether_it_is_ready_and_nothing_else(
    server: Any, kit: MemoryKit
) -> None:
    """An orchestrator asks by the address of a pod, has no token, and must learn nothing about anybody."""
    kit.add_messages(["I live in Lisbon."], scope=ANN)
    with server(kit) as http:
        for host in ("127.0.0.1:8765", "10.0.0.7:8080"):
            answers = [http.get(path, headers={"host": host}) for path in PROBES]
            assert [(each.status_code, each.text) for each in answers] == [(200, "live"), (200, "ready")]
        with later():
            Database.open(str(kit.context.parts().archive.database.engine.url)).close()
        answers = [http.get(path) for path in PROBES]
        assert [(each.status_code, each.text) for each in answers] == [(200, "live"), (503, "not ready")]


# ------------------------------------------------------------------------------------------- accesses


def test_who_came_in_and_who_was_refused_is_logged_by_the_digest_of_the_token_and_no_more(
    kit: MemoryKit, caplog: pytest.LogCaptureFixture
) -> None:
    """After a leak somebody asks who used the token, and when; the log itself must leak nothing."""
    wrong = "guessed-" * 4
    with caplog.at_level(logging.INFO, "remegraph.access"), mcp(kit) as http:
        assert http.post("/mcp", json=HELLO, headers=shown(FIRST)).status_code == 200
        assert http.post("/mcp", json=HELLO, headers=shown(wrong)).status_code == 401
        assert http.post("/mcp?who=ann-the-private", json=HELLO).status_code == 401
        assert http.post("/mcp", json=HELLO, headers=shown(FIRST) | {"Host": "evil.example"}).status_code == 421
        for path in PROBES:
            http.get(path)
    records = [each for each in caplog.records if each.name == "remegraph.access"]
    told = [(each.levelname, vars(each)["remegraph.caller"], vars(each)["remegraph.status"]) for each in records]
    assert told == [
        ("INFO", known_by(FIRST), 200),
        ("WARNING", known_by(wrong), 401),
        ("WARNING", "nobody", 401),
        ("WARNING", known_by(FIRST), 421),
    ]
    everything = "\n".join(f"{each.getMessage()} {vars(each)}" for each in records)
    assert [secret for secret in (FIRST, wrong, "ann-the-private", "evil.example") if secret in everything] == []


def test_a_login_to_the_inspector_that_fails_is_logged(kit: MemoryKit, caplog: pytest.LogCaptureFixture) -> None:
    """Whoever tries tokens at the door of this machine is somebody with an account on it."""
    with caplog.at_level(logging.INFO, "remegraph.access"), inspected(kit) as http:
        assert http.get("/login?token=wrong").status_code == 401
    (record,) = [each for each in caplog.records if each.name == "remegraph.access"]
    assert (record.levelname, record.getMessage()) == ("WARNING", f"inspector refused {known_by('wrong')}: 401")


# ------------------------------------------------------------------------------------------- rotation


def written(file: Path, tokens: dict[str, Scope], *, replaced: bool) -> None:
    """Write tokens as an editor does, or as Kubernetes does: a link to another file."""
    text = json.dumps({token: scope.model_dump() for token, scope in tokens.items()})
    target = file.with_name(f"tokens.{len(list(file.parent.iterdir()))}") if replaced else file
    target.write_text(text, encoding="utf-8")
    target.chmod(0o640)
    if replaced:
        link = file.with_name("link")
        link.symlink_to(target)
        link.replace(file)


@pytest.mark.parametrize("replaced", [False, True])
def test_tokens_are_exchanged_while_the_server_runs(kit: MemoryKit, tmp_path: Path, replaced: bool) -> None:
    """One that leaked is refused at once, and a new one let in, without a restart that throws everybody out."""
    file = tmp_path / "tokens.json"
    written(file, {FIRST: ANN}, replaced=replaced)
    with mcp(kit, Tokens.of_file(file)) as http:
        assert http.post("/mcp", json=HELLO, headers=shown(FIRST)).status_code == 200
        assert http.post("/mcp", json=HELLO, headers=shown(SECOND)).status_code == 401
        written(file, {SECOND: ANN, "b" * 32: BOB}, replaced=replaced)
        assert http.post("/mcp", json=HELLO, headers=shown(FIRST)).status_code == 401
        assert http.post("/mcp", json=HELLO, headers=shown(SECOND)).status_code == 200


def test_a_file_of_tokens_that_cannot_be_used_changes_nothing_and_is_told_once(
    kit: MemoryKit, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Half a file, or one that all can read, must neither lock everybody out nor let anybody in."""
    file = tmp_path / "tokens.json"
    written(file, {FIRST: ANN}, replaced=False)
    with caplog.at_level(logging.ERROR, "remegraph.access"), mcp(kit, Tokens.of_file(file)) as http:
        for broken in ("{", '{"short": {"user": "ann"}}', None):
            if broken is None:
                written(file, {SECOND: ANN}, replaced=False)
                os.utime(file, (1, 1))
                file.chmod(0o604)
            else:
                file.write_text(broken, encoding="utf-8")
            caplog.clear()
            for token, status in ((FIRST, 200), (SECOND, 401), (FIRST, 200)):
                assert http.post("/mcp", json=HELLO, headers=shown(token)).status_code == status
            (told,) = caplog.records
            assert vars(told)["event.name"] == "remegraph.access.tokens"
        file.chmod(0o640)
        os.utime(file, (2, 2))
        assert http.post("/mcp", json=HELLO, headers=shown(SECOND)).status_code == 200


@pytest.mark.parametrize(
    ("mode", "refused"),
    [
        (0o600, ""),
        (0o640, ""),
        (0o400, ""),
        (0o660, "mode of 660 its group can change it"),
        (0o644, "mode of 644 every account of this machine can use it"),
    ],
)
def test_the_group_of_a_file_of_tokens_may_read_it_and_nobody_else(tmp_path: Path, mode: int, refused: str) -> None:
    """Secrets that a cluster mounts belong to root and to the group of the pod; who is refused reads which file and why."""
    file = tmp_path / "tokens.json"
    written(file, {FIRST: ANN}, replaced=False)
    file.chmod(mode)
    if not refused:
        Tokens.of_file(file)
        return
    with pytest.raises(SetupError, match=refused) as told:
        Tokens.of_file(file)
    assert (str(file) in told.value.what, f"chmod 600 {file}" in told.value.cure) == (True, True)


@pytest.mark.slow
def test_the_command_takes_a_hangup_for_a_change_of_its_tokens_and_writes_who_came(tmp_path: Path) -> None:
    """Tools that exchange secrets send SIGHUP, by which a process ends that does not know it."""
    file = tmp_path / "tokens.json"
    written(file, {FIRST: ANN}, replaced=False)
    command = [sys.executable, "-c", "from remegraph.cli import main; main()", "mcp", "--home", str(tmp_path / "home")]
    with subprocess.Popen(
        [*command, "--http", "127.0.0.1:0", "--tokens", str(file)], stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr is not None
            url = process.stderr.readline().split()[-1]

            def status(token: str) -> int:
                return httpx.post(url, json=HELLO, headers=shown(token) | ACCEPTING, trust_env=False).status_code

            assert (status(FIRST), status(SECOND)) == (200, 401)
            written(file, {SECOND: ANN}, replaced=False)
            process.send_signal(signal.SIGHUP)
            assert (status(FIRST), status(SECOND)) == (401, 200)
        finally:
            process.terminate()
            _, errors = process.communicate(timeout=60)
    lines = [line for line in errors.splitlines() if "mcp " in line or "Tokens" in line]
    assert [line.split(" ", 2)[2] for line in lines] == [
        f"INFO remegraph.access mcp answered {known_by(FIRST)}: 200",
        f"WARNING remegraph.access mcp refused {known_by(SECOND)}: 401",
        "INFO remegraph.access Tokens read: 1",
        f"WARNING remegraph.access mcp refused {known_by(FIRST)}: 401",
        f"INFO remegraph.access mcp answered {known_by(SECOND)}: 200",
    ]
