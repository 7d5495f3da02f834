"""Commands that serve the memory: to a person in a browser, and to clients of the Model Context Protocol."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from remegraph.cli.command import Session, logged, of_scope
from remegraph.errors import MissingExtraError
from remegraph.models import Scope
from remegraph.prompts import Language
from remegraph.servers import mcp as protocol
from remegraph.servers.mcp import Rights

__all__ = ["inspect", "mcp"]

_TOKEN = "REMEGRAPH_MCP_TOKEN"  # noqa: S105 - where it is, not what it is


@of_scope()
def inspect(
    session: Session,
    scope: Scope,
    *,
    port: Annotated[int, Option("--port", min=0, max=65535, help="Port of the page; 0: any that is free.")] = 8770,
    write: Annotated[bool, Option("--write", help="Let the visitor decide what waits, and restore.")] = False,
) -> None:
    """Look at the memory in a browser: topics, sources, forgetting, recall, what waits. Ctrl-C ends it.

    It listens on this machine only, and lets in the first browser that opens the printed address. It shows what the given user,
    agent and project may see, and changes nothing unless --write is given.
    """
    try:
        import uvicorn  # noqa: PLC0415 - the extra may be missing

        from remegraph.servers import inspector as site  # noqa: PLC0415
    except ModuleNotFoundError as error:
        needed = str(error.name).partition(".")[0]
        if needed not in {"jinja2", "starlette", "uvicorn"}:
            raise
        raise MissingExtraError(
            f"The inspector needs {needed}.", "Install it: pip install 'remegraph[inspector]'"
        ) from error
    door = session.enter(site.access.listen(port))
    port, visit = door.getsockname()[1], site.Session()
    hosts = [f"{name}:{port}" for name in (site.access.ADDRESS, "localhost")]
    app = site.inspector(session.kit(), scope, session=visit, hosts=hosts, write=write)
    address = f"http://{site.access.ADDRESS}:{port}/login?token={visit.token}"
    session.print({"address": address}, address)
    config = uvicorn.Config(app, log_config=None, access_log=False, server_header=False, ws="none", lifespan="off")
    uvicorn.Server(config).run(sockets=[door])


@of_scope()
def mcp(
    session: Session,
    scope: Scope,
    *,
    rights: Annotated[
        Rights, Option("--rights", help="read: look up; save: state memories, too; write: forget and decide, too.")
    ] = "save",
    http: Annotated[
        str | None,
        Option(
            "--http",
            help="Serve over HTTP at this address, e.g. 127.0.0.1:8765, instead of standard input and output.",
            metavar="HOST:PORT",
        ),
    ] = None,
    tokens: Annotated[
        Path | None,
        Option(
            "--tokens",
            help='JSON file that names the user of each token: {"TOKEN": {"user": "ann"}}. Unless given, one token '
            f"acts for the user named here: ${_TOKEN}, else a new one, which is printed.",
            metavar="FILE",
        ),
    ] = None,
    name: Annotated[
        list[str] | None,
        Option("--name", help="Host name that clients reach it by, where that is not loopback.", metavar="NAME"),
    ] = None,
    language: Annotated[Language, Option("--language", help="Of the instructions and prompts.")] = "en",
) -> None:
    """Serve the memory to an MCP client, such as Claude: its tools, resources and prompts. No model is called.

    These options, or the token, say whose memory it is; no argument of a tool can change it.
    """
    if http is not None:
        _serve_http(
            session, _address(http), _tokens(session, scope, tokens), name or (), rights=rights, language=language
        )
        return
    if tokens is not None or name:
        raise typer.BadParameter("--tokens and --name are for --http.")
    server = protocol.memory_server(session.kit(create=True), scope, rights=rights, language=language)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a thread that waits for a line cannot be interrupted, only ended
    asyncio.run(protocol.serve_stdio(server))


def _serve_http(
    session: Session,
    address: tuple[str, int],
    tokens: protocol.Tokens,
    names: Sequence[str],
    *,
    rights: Rights,
    language: Language,
) -> None:
    host, port = address
    server = protocol.memory_server(session.kit(create=True), rights=rights, language=language)
    session.enter(logged())
    asyncio.run(
        protocol.serve_http(
            server, tokens, host=host, port=port, names=names, ready=lambda url: _note(session, f"Serving {url}")
        )
    )


def _tokens(session: Session, scope: Scope, file: Path | None) -> protocol.Tokens:
    """Return the allowed tokens: those of a file, else one token for the user of the options, which is printed if it is new."""
    if file is not None:
        return protocol.Tokens.of_file(file)
    token = os.environ.get(_TOKEN) or secrets.token_hex(32)
    if not os.environ.get(_TOKEN):
        _note(session, f"Token, until this ends: {token}")
    return protocol.Tokens({token: scope})


def _note(session: Session, line: str) -> None:
    session.errors.print(line, soft_wrap=True, markup=False)


def _address(given: str) -> tuple[str, int]:
    """Return host and port.

    Raises:
        typer.BadParameter: They cannot be read.
    """
    host, colon, port = given.rpartition(":")
    if not (colon and host and port.isdecimal() and port.isascii()):
        raise typer.BadParameter(f"{given!r} is no address: give one such as 127.0.0.1:8765.")
    return host.removeprefix("[").removesuffix("]"), int(port)
