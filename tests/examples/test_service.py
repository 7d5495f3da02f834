"""The FastAPI service of `examples/service.py`: what a user says to one process, another one knows."""

from __future__ import annotations

import logging
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import psycopg
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from langchain_core.messages import AIMessage
from psycopg import sql
from sqlalchemy import make_url

from examples import service as example
from examples.service import create_app
from remegraph import ClosedError, SetupError
from remegraph.servers.watch import PROBES
from remegraph.testing import ModelCall, ScriptedChatModel
from tests.talk import SHARED_KEY

pytestmark = pytest.mark.requirement("X9")


def _answered(call: ModelCall) -> AIMessage:
    """Answer from what the model is shown."""
    if "Where" in call.messages[-1].text:
        return AIMessage("In Lisbon." if "I live in Lisbon" in call.text else "I do not know.")
    return AIMessage("Noted.")


@pytest.fixture
def env(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """The environment of a process, which names a home."""
    monkeypatch.setenv("REMEGRAPH_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("REMEGRAPH_EMBEDDER", "hashed:256")
    return monkeypatch


def service() -> FastAPI:
    """The service of one process, with a scripted model."""
    return create_app(ScriptedChatModel(script={"": _answered}))


class Client:
    """A user's client: it keeps the conversation, and sends the whole of it each time.

    Args:
        http: The process that answers; others may answer the next turn.
    """

    def __init__(self, http: TestClient, user: str, thread: str = "main") -> None:
        self.http = http
        self._headers = {"x-user": user}
        self._thread = thread
        self._said: list[dict[str, str]] = []

    def say(self, words: str) -> str:
        """Return what the agent answers."""
        self._said.append({"id": f"{self._thread} {len(self._said)}", "role": "user", "content": words})
        turn = {"thread": self._thread, "messages": self._said}
        answer = self.http.post("/turns", json=turn, headers=self._headers)
        assert answer.status_code == 200, answer.text
        self._said.append(answer.json())
        return self._said[-1]["content"]

    def context(self, question: str) -> tuple[int, str]:
        """Return the status, and what is remembered about a question."""
        answer = self.http.post("/context", json={"question": question}, headers=self._headers)
        return answer.status_code, answer.text


@pytest.mark.usefixtures("env")
def test_what_was_said_in_one_conversation_is_known_in_the_next_to_its_user_alone() -> None:
    """It is what a memory is for; a user who could read another's would be the end of it."""
    app = service()
    with TestClient(app) as http:
        ann = Client(http, "ann")
        assert [ann.say(words) for words in ("I live in Lisbon.", "I have a dog.")] == ["Noted.", "Noted."]
        assert Client(http, "ann", "next").say("Where do I live?") == "In Lisbon."
        assert Client(http, "bob", "next").say("Where do I live?") == "I do not know."
        assert "I live in Lisbon." in ann.context("Where does Ann live?")[1]
        assert app.state.kit.admin.stats()["messages"] == 8  # a conversation that is sent again is not recorded again


@pytest.mark.usefixtures("env")
def test_nobody_is_answered_without_a_user() -> None:
    """A default user would be one that all share."""
    with TestClient(service()) as http:
        turn = {"thread": "main", "messages": [{"role": "user", "content": "Where do I live?"}]}
        for headers in ({}, {"x-user": ""}):
            assert http.post("/turns", json=turn, headers=headers).status_code == 422
            assert http.post("/context", json={"question": "home"}, headers=headers).status_code == 422


def test_no_word_of_a_person_is_part_of_an_address() -> None:
    """Proxies log addresses, and spans of a web framework carry them."""
    for path, methods in service().openapi()["paths"].items():
        for method, operation in methods.items():
            assert method == "post", path
            assert {each["in"] for each in operation["parameters"]} == {"header"}, path


@pytest.mark.usefixtures("env")
def test_probes_answer_while_it_serves_and_its_kit_is_closed_when_it_ends() -> None:
    """A kit that stays open keeps the index from the next process."""
    app = service()
    with TestClient(app) as http:
        assert [http.get(path).text for path in PROBES] == ["live", "ready"]
    with pytest.raises(ClosedError):
        app.state.kit.admin.stats()


_LOGS = """
import json, logging.config, sys
logging.config.dictConfig(json.load(open(sys.argv[1])))
for name in ("remegraph.access", "remegraph.kit", "uvicorn.error", "uvicorn.access"):
    logging.getLogger(name).info("informs")
    logging.getLogger(name).warning("warns")
"""


@pytest.mark.usefixtures("env")
def test_who_came_in_is_logged_without_a_name_or_a_word(caplog: pytest.LogCaptureFixture) -> None:
    """An operator is asked who read a memory, and must not become one who can."""
    with caplog.at_level(logging.INFO, "remegraph.access"), TestClient(service()) as http:
        Client(http, "ann").context("Where does Ann live?")
        http.post("/context", json={"question": "home"})
        http.get(PROBES[0])
    ann = sha256(b"ann").hexdigest()[:12]
    lines = [each.getMessage() for each in caplog.records if each.name == "remegraph.access"]
    assert lines == [f"service answered {ann}: 200", "service answered nobody: 422"]


def test_the_logging_beside_the_service_shows_accesses_once() -> None:
    """Uvicorn's own log of accesses says the same once more, without a caller."""
    config = Path(example.__file__).with_name("logging.json")
    command = [sys.executable, "-c", _LOGS, str(config)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stderr.splitlines()
    assert [line.split(" ", 2)[2] for line in said] == [
        "INFO remegraph.access informs",
        "WARNING remegraph.access warns",
        "INFO remegraph.kit informs",
        "WARNING remegraph.kit warns",
        "INFO uvicorn.error informs",
        "WARNING uvicorn.error warns",
        "WARNING uvicorn.access warns",
    ]


@pytest.mark.usefixtures("env")
def test_it_does_not_start_without_a_model_and_says_why() -> None:
    """A service that starts and fails at each turn looks well to whoever starts it."""
    with pytest.raises(SetupError, match="REMEGRAPH_MODEL"), TestClient(create_app()):
        pass


def on_postgresql(env: pytest.MonkeyPatch, url: str, home: Path) -> None:
    """Have the environment name a ledger that others have migrated; no call waits for it."""
    (home / "remegraph.toml").write_text("[pool]\nwait = 0\n", encoding="utf-8")
    env.setenv("REMEGRAPH_SETTINGS", str(home / "remegraph.toml"))
    for name, value in {"LEDGER_URL": url, "JOURNAL_KEY": SHARED_KEY, "QUEUE": "ledger", "MIGRATE": "never"}.items():
        env.setenv(f"REMEGRAPH_{name}", value)


@pytest.mark.slow
def test_on_postgresql_what_one_process_hears_another_one_knows(
    app_url: str, env: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The next turn of a conversation comes to whatever process is free, by an account that may change no table."""
    on_postgresql(env, app_url, tmp_path)
    app = service()
    with TestClient(app) as first, TestClient(service()) as second:
        ann = Client(first, "ann")
        assert ann.say("I live in Lisbon.") == "Noted."
        ann.http = second
        assert ann.say("I have a dog.") == "Noted."
        assert Client(second, "ann", "next").say("Where do I live?") == "In Lisbon."
        assert Client(second, "bob").say("Where do I live?") == "I do not know."
        assert app.state.kit.admin.stats()["messages"] == 8


@pytest.mark.slow
def test_while_postgresql_is_away_the_agent_answers_and_a_process_says_that_it_is_not_ready(
    app_url: str, postgres_server: str, env: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """An outage of memory is none of the agent; who asks memory itself is told to try again, and not why."""
    on_postgresql(env, app_url, tmp_path)
    name = sql.Identifier(make_url(app_url).database or "")
    with TestClient(service()) as http, psycopg.connect(postgres_server, autocommit=True) as server:
        ann = Client(http, "ann")
        server.execute(sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS false").format(name))
        server.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'remegraph_app'")
        assert [ann.say(words) for words in ("I live in Lisbon.", "Where do I live?")] == ["Noted.", "In Lisbon."]
        assert ann.context("home") == (503, '{"detail":"Try again."}')
        assert [http.get(path).status_code for path in PROBES] == [200, 503]
        server.execute(sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS true").format(name))
        assert ann.say("Thank you.") == "Noted."  # records what could not be recorded, too
        assert "I live in Lisbon." in ann.context("Where does Ann live?")[1]
        assert [http.get(path).status_code for path in PROBES] == [200, 200]
