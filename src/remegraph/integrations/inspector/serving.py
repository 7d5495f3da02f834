"""Serves the inspector on this machine, to one person, until it is stopped."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable

import uvicorn

from remegraph import MemoryKit, Scope, SetupError
from remegraph.integrations.inspector.app import inspector
from remegraph.integrations.inspector.sessions import Session

__all__ = ["listen", "serve"]

_ADDRESS = "127.0.0.1"


def listen(port: int) -> socket.socket:
    """Return a socket on the loopback address: nobody but this machine can reach it.

    Args:
        port: The port; 0: any that is free.

    Raises:
        SetupError: It is taken, or may not be used.
    """
    door = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        if os.name == "posix":  # elsewhere it would let others take the port from us
            door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        door.bind((_ADDRESS, port))
        door.listen()  # who opens the address as soon as it is printed waits, and is not turned away
    except OSError as error:
        door.close()
        raise SetupError(f"Port {port} cannot be used: {error.strerror}.", "Name another one with --port.") from error
    return door


def serve(kit: MemoryKit, scope: Scope, door: socket.socket, *, write: bool, tell: Callable[[str], object]) -> None:
    """Serve until Ctrl-C.

    Args:
        kit: The memory.
        scope: Who looks.
        door: What `listen` returned.
        write: Whether anything may be decided.
        tell: Given the address that lets one person in.
    """
    port, session = door.getsockname()[1], Session()
    app = inspector(
        kit, scope, session=session, hosts=[f"{name}:{port}" for name in (_ADDRESS, "localhost")], write=write
    )
    tell(f"http://{_ADDRESS}:{port}/login?token={session.token}")
    config = uvicorn.Config(app, log_config=None, access_log=False, server_header=False, ws="none", lifespan="off")
    uvicorn.Server(config).run(sockets=[door])
