"""An OpenAI-compatible server on loopback that answers by a script, and an empty kit."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from remegraph import MemoryKit
from remegraph.testing import InMemoryVectorIndex


class ScriptedServer(ThreadingHTTPServer):
    """Answers each request with the next item of `script` as JSON; keeps what it was sent."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script: list[dict[str, Any]] = []
        self.requests: list[dict[str, Any]] = []

    @property
    def url(self) -> str:
        """What the SDK calls `base_url`."""
        return f"http://127.0.0.1:{self.server_port}/v1"


class _Handler(BaseHTTPRequestHandler):
    server: ScriptedServer

    def do_POST(self) -> None:
        self.server.requests.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        body = json.dumps(self.server.script.pop(0)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class names it
        """Tests print nothing."""


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    """A server without a script yet."""
    with ScriptedServer() as scripted:
        thread = threading.Thread(target=scripted.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield scripted
        scripted.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryKit]:
    """A kit in extractive mode, for all tests of a module."""
    with MemoryKit.open(
        tmp_path_factory.mktemp("kit"), model=None, embedder=None, index=InMemoryVectorIndex()
    ) as opened:
        yield opened
