"""A proxy on the loopback that fails as networks fail: it is slow, swallows what passes, cuts, or ends one side alone."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

__all__ = ["FaultyProxy"]

_CHUNK = 1 << 16
_PATIENCE = 30


class FaultyProxy:
    """Stands before a server, from `with` on; its faults may be changed at any time, and hold for what passes then.

    Args:
        upstream: The server: host and port, or the path of a unix socket.
    """

    def __init__(self, upstream: tuple[str, int] | Path) -> None:
        self.delay = 0.0
        """Seconds that each piece takes, each way."""
        self.deaf = False
        """Whether all that is sent is swallowed, and no end passed on: a network that is gone without a word."""
        self.deaf_from: Sequence[bytes] = ()
        """A connection is deaf from the piece of its client's that holds the last of these words, after the others."""
        self.half_open = False
        """Whether a server is not told that its client has gone."""
        self.round_trips = 0
        """How often clients said something after their server had."""
        self.port = 0
        self.swallowed = threading.Event()
        """Set once something was swallowed."""
        self._upstream = upstream
        self._loop = asyncio.new_event_loop()
        self._writers: set[asyncio.StreamWriter] = set()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="proxy", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(_PATIENCE)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_PATIENCE)

    @property
    def url(self) -> str:
        """Its address, for HTTP."""
        return f"http://127.0.0.1:{self.port}"

    def cut(self) -> None:
        """Reset all connections, on both sides."""
        done = threading.Event()
        self._loop.call_soon_threadsafe(self._reset_all, done)
        assert done.wait(_PATIENCE)

    # ------------------------------------------------------------------------------------------- the thread

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._connected, "127.0.0.1", 0))
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        server.close()
        self._reset_all()
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._loop.close()

    def _reset_all(self, done: threading.Event | None = None) -> None:
        for writer in self._writers:
            _reset(writer)
        if done is not None:
            done.set()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            there = await self._open()
        except OSError:
            _reset(writer)
            self._writers.discard(writer)
            return
        self._writers.add(there[1])
        link = _Link(self)
        try:
            with suppress(asyncio.CancelledError):  # the proxy ends
                async with asyncio.TaskGroup() as both:
                    both.create_task(link.pass_on(reader, there[1], from_client=True))
                    both.create_task(link.pass_on(there[0], writer, from_client=False))
        finally:
            for each in (writer, there[1]):
                _reset(each)
                self._writers.discard(each)

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if isinstance(self._upstream, Path):
            return await asyncio.open_unix_connection(self._upstream)
        return await asyncio.open_connection(*self._upstream)


class _Link:
    """One connection through the proxy."""

    def __init__(self, proxy: FaultyProxy) -> None:
        self._proxy = proxy
        self._heard = 0
        self._deaf = False
        self._answered = True

    async def pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, from_client: bool) -> None:
        """Pass one direction on until its end."""
        loop = asyncio.get_running_loop()
        with suppress(ConnectionError):
            while piece := await reader.read(_CHUNK):
                if from_client:
                    self._hear(piece)
                    self._proxy.round_trips += self._answered
                self._answered = not from_client
                if self._deaf or self._proxy.deaf:
                    self._proxy.swallowed.set()
                elif self._proxy.delay:
                    loop.call_later(self._proxy.delay, writer.write, piece)
                else:
                    writer.write(piece)
        if self._deaf or self._proxy.deaf or (from_client and self._proxy.half_open):
            await asyncio.Event().wait()  # until the proxy ends: nobody tells the other side
        loop.call_later(self._proxy.delay, writer.close)

    def _hear(self, piece: bytes) -> None:
        words = self._proxy.deaf_from
        while self._heard < len(words) and words[self._heard] in piece:
            self._heard += 1
            self._deaf = self._heard == len(words)


def _reset(writer: asyncio.StreamWriter) -> None:
    """End a connection so that its other end gets an error, and no orderly end."""
    with suppress(OSError):
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
