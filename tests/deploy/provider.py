"""A server that answers as OpenAI's does, by what it is shown."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

__all__ = ["provider"]


class _Chat(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        asked = self.rfile.read(int(self.headers["content-length"])).decode()
        last = json.loads(asked)["messages"][-1]["content"]
        known = "In Lisbon." if "I live in Lisbon" in asked else "I do not know."
        message = {"role": "assistant", "content": known if "Where" in last else "Noted."}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        answer = {"id": "1", "object": "chat.completion", "created": 0, "model": "gpt-5-mini", "choices": [choice]}
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base names it
        pass


@contextmanager
def provider() -> Iterator[str]:
    """Run it; give its URL."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Chat) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1"
        finally:
            server.shutdown()
            thread.join()
