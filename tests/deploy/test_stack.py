"""What compose.yaml starts, started: the migration, a service of two processes and a worker, on a real PostgreSQL."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event
from uuid import uuid4

import httpx
import pytest
from sqlalchemy import make_url

from conftest import Figure
from remegraph import MemoryKit, Scope, Settings
from tests.deploy.manifests import ROOT, Started, composed
from tests.deploy.provider import provider
from tests.talk import SHARED_KEY

pytestmark = [pytest.mark.slow, pytest.mark.requirement("X9")]

USERS, AT_ONCE = 20, 10
PATIENCE = 180
"""Seconds that a test waits before it fails; none waits so long where all is well."""


class Stack:
    """The services of compose.yaml as processes of this machine, with addresses of this machine.

    Args:
        env: What is put into the environment of all.
        model: What tells the service its chat model; the worker learns without one.
        folder: Where each has a home of its own.
    """

    def __init__(self, env: Mapping[str, str], model: Mapping[str, str], folder: Path) -> None:
        self._env = env
        self._model = model
        self._folder = folder
        self._services: Mapping[str, Started] = {each.name: each for each in composed()}
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]

    def settings(self) -> Settings:
        """What all of them run with."""
        return Settings.from_env({**self._services["worker"].env, **self._env, **dict.fromkeys(self._model, "")})

    def run(self, name: str, command: Sequence[str] = ()) -> subprocess.Popen[bytes]:
        """Start the command of a service, or another one as if in its container."""
        service = self._services[name]
        (home := self._folder / name).mkdir(exist_ok=True)
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        model = self._model if name == "service" else dict.fromkeys(self._model, "")
        env = {**service.env, **self._env, **model, "HOME": str(home), "PATH": path, "PYTHONPATH": str(ROOT)}
        given = [
            word.replace("8080", str(self.port)).replace("0.0.0.0", "127.0.0.1") for word in command or service.command
        ]
        return subprocess.Popen(given, cwd=ROOT, env=env)

    @contextmanager
    def up(self, name: str) -> Iterator[subprocess.Popen[bytes]]:
        """Have a service run, and be well by its own health check; nothing is left behind."""
        process = self.run(name)
        try:
            end, pause = time.monotonic() + PATIENCE, Event()
            (check,) = self._services[name].asked
            while self.run(name, check).wait(PATIENCE):
                assert process.poll() is None, f"{name} ended"
                assert time.monotonic() < end, f"{name} is never well"
                pause.wait(0.5)
            yield process
        finally:
            process.kill()
            process.wait(PATIENCE)


@pytest.fixture(params=["pgvector", "chroma"])
def stack(request: pytest.FixtureRequest, postgres_url: str, tmp_path: Path) -> Iterator[Stack]:
    """On an empty database; turns are learned from at once. Vectors are where compose.yaml says, or on a Chroma server."""
    elsewhere = {"REMEGRAPH_INDEX": "chroma"}
    if request.param == "chroma":
        elsewhere["REMEGRAPH_CHROMA_URL"] = request.getfixturevalue("chroma_url")
    (service,) = (each for each in composed() if each.name == "service")
    settings = tmp_path / "remegraph.toml"
    settings.write_text(f'{service.settings}\n[agent.extraction]\ntrigger = "per-turn"\n', encoding="utf-8")
    with provider() as url:
        yield Stack(
            {
                "REMEGRAPH_LEDGER_URL": postgres_url,
                **(elsewhere if request.param == "chroma" else {}),
                "REMEGRAPH_SETTINGS": str(settings),
                "REMEGRAPH_JOURNAL_KEY": SHARED_KEY,
                "REMEGRAPH_EMBEDDER": "hashed:512",
            },
            {"REMEGRAPH_MODEL": "openai:gpt-5-mini", "OPENAI_API_KEY": "of nobody", "OPENAI_BASE_URL": url},
            tmp_path,
        )


def logged(postgres_url: str) -> list[str]:
    """The errors in the log of the server, which keeps it beside its data."""
    log = Path(str(make_url(postgres_url).query["host"])) / "log"
    return re.findall(r"(?:ERROR|FATAL|PANIC): .*", log.read_text(encoding="utf-8"))


def test_what_compose_starts_answers_learns_and_stops_and_loses_nothing(
    stack: Stack, postgres_url: str, figure: Figure
) -> None:
    """Whoever starts it for the first time has no more than this file, and looks into the log of PostgreSQL."""
    before = logged(postgres_url)

    def talk(number: int) -> list[str]:
        answers = []
        with httpx.Client(base_url=f"http://127.0.0.1:{stack.port}", timeout=PATIENCE) as http:
            for thread, words in (("first", "I live in Lisbon."), ("second", "Where do I live?")):
                said = [{"id": uuid4().hex, "role": "user", "content": words}]
                turn = {"thread": thread, "messages": said}
                answers.append(http.post("/turns", json=turn, headers={"x-user": f"user{number}"}).json()["content"])
        return answers

    assert stack.run("migrate").wait(PATIENCE) == 0
    with ExitStack() as opened:
        service, worker = (opened.enter_context(stack.up(name)) for name in ("service", "worker"))
        with ThreadPoolExecutor(AT_ONCE) as pool:
            answers = [*pool.map(talk, range(USERS))]
        assert answers == [["Noted.", "In Lisbon."]] * USERS
        kit = opened.enter_context(MemoryKit.open(settings=stack.settings(), model=None))
        end, pause = time.monotonic() + PATIENCE, Event()
        while kit.admin.jobs():
            assert time.monotonic() < end, kit.admin.jobs()
            pause.wait(0.1)
        for process in (service, worker):
            process.send_signal(signal.SIGTERM)
        assert [process.wait(PATIENCE) for process in (service, worker)] == [0, 0]
        stats = kit.admin.stats()
        assert (stats["messages"], stats["blocks_pending"]) == (4 * USERS, 0)
        assert all(kit.memories(scope=Scope(user=f"user{number}", agent="remy")) for number in range(USERS))
    assert logged(postgres_url) == before
    figure(
        f"what compose.yaml starts, {USERS} users, {AT_ONCE} at once",
        f"{2 * USERS} turns answered, {stats['messages']} of {4 * USERS} messages, each once, all learned from, 0 errors in the log of PostgreSQL",
    )
